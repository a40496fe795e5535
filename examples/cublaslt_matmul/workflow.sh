#!/usr/bin/env bash
# From measurements of cuBLASLt's algorithms to a program that multiplies with the best of them.
#
#   cmake -B build && cmake --build build && ./workflow.sh [FOLDER]
#
# On a machine with an NVIDIA GPU. With FAKE_GPU, a library that plays the GPU and NVIDIA's
# libraries on the CPU, the same runs anywhere (times are made up then). SHAPES and CONFIGS make it
# large: hundreds of shapes and EXHAUSTIVE are what a model for daily use takes.
set -euo pipefail
FORETUNE="${FORETUNE:-foretune}"
MATMUL="${MATMUL:-$(cd "$(dirname "$0")" && pwd)/build/cublaslt_matmul}"
work="${1:-$(mktemp -d)}"
mkdir -p "$work"
cd "$work"
family=(--family cublaslt)
libraries=()
if [[ -n "${FAKE_GPU:-}" ]]; then
  for library in driver cublaslt nvml; do
    family+=(--family-option "$library=$FAKE_GPU")
  done
  libraries=(--driver "$FAKE_GPU" --cublaslt "$FAKE_GPU")
fi

# 1. Measure products of bf16 matrices, A by rows and B by columns: cuBLASLt's A' * B.
"$FORETUNE" --seed 1 collect --output train.ftd "${family[@]}" --num-shapes "${SHAPES:-12}" \
  --dtype bf16 --layout rcr --max-size "${MAX_SIZE:-512}" --no-odd-sizes \
  --search-space "${CONFIGS:-SAMPLE:24}"

# 2. Learn.
"$FORETUNE" --seed 1 train --dataset train.ftd --model cublaslt.ftm --trees 40 --folds 3 \
  --threads 1

# 3. Multiply: with the model, and where it has to leave the choice to the library.
"$MATMUL" --model cublaslt.ftm --follow "${libraries[@]}" 256 192 384 | tee inside.txt
"$MATMUL" --model cublaslt.ftm "${libraries[@]}" 8 8 65536 | tee outside.txt
"$MATMUL" "${libraries[@]}" 256 192 384 >/dev/null
grep -q '^foretune .*  model' inside.txt
grep -q '^foretune .*  heuristic: .*outside' outside.txt
echo "workflow done: $work"
