#!/usr/bin/env bash
# Several processes share one collection, and a model learns from it.
#
#   collect.sh [FOLDER]
#
# TASKS processes of this machine, each on cores of its own; with NODES=8 a job array of Slurm
# instead. Ctrl-C and the same command: the run goes on where it stood.
set -euo pipefail
folder="${1:-data}"
mkdir -p "$folder"
shared=(--local "${TASKS:-2}")
if [[ -n "${NODES:-}" ]]; then
  shared=(--slurm --nodes "$NODES" --time "${TIME:-1:00:00}")
fi

foretune --seed 1 collect --output "$folder/train.ftd" --log-normal --num-shapes "${SHAPES:-200}" \
  --max-flops 1e8 --search-space SAMPLE:24 "${shared[@]}" --summary "$folder/summary.json"

echo "Who measured how many shards:"
find "$folder/train.run/done" -type f | sed 's/.*\.//' | sort | uniq -c

foretune --seed 1 train --dataset "$folder/train.ftd" --model "$folder/gemm.ftm" --threads 1
