#!/usr/bin/env bash
# Measures convolutions on this CPU and trains one of the models that the package ships:
#
#   scripts/default_conv_model.sh avx512 1       kernels up to AVX-512, one thread
#   scripts/default_conv_model.sh avx512 2 24    one or two threads, 24 instead of 60 configs of each
#                                                training problem in the mean
#   DIRECTIONS=forward MAX_FLOPS=2e8 scripts/default_conv_model.sh avx2 1 24
#   SHARDS=5 scripts/default_conv_model.sh avx512 1     on a machine of 16 cores
#
# Problems are drawn from layers of networks (bench/draw_conv_shapes.py); no validation problem has
# the weights' shape of a training problem. Rounds of training choose the configs that are measured.
# With SHARDS the problems of each direction are dealt to so many processes, each on cores of its
# own, and all directions are measured at once. Times of a machine that is shared by others scatter
# (the residual of training tells): then pick another. STAGES names some of collect, train and
# validate. Run it again after an interruption and it goes on. Leaves everything in build/models/conv-CLASS-THREADS.
set -euo pipefail
cd "$(dirname "$0")/.."
foretune=${FORETUNE:-build/release/tools/foretune/foretune}
isa=${1:?avx512, avx2 or generic}
threads=${2:?threads}
configs=${3:-60}
validation_configs=${4:-128}
directions=${DIRECTIONS:-forward backward_data backward_weight}
shards=${SHARDS:-0}
stages=${STAGES:-collect train validate}
out=${OUT:-build/models}/conv-$isa-$threads
family=(--family cpu-conv --family-option "isa=$isa" --threads "$threads" --num-shapes 0 --search-mode fast
  --max-flops "${MAX_FLOPS:-1e9}")
recipe=(--group-key weights --min-rows-per-leaf 30 --forests 2 --best-of-problem 6)
mkdir -p "$out/parts" "$out/training" "$out/separate"

# Runs `measure PROBLEMS DIRECTION RESULT`, side by side for the shards of all directions.
in_shards() {
  local measure=$1 problems=$2 first_core=0 direction shard cores
  local -a running=()
  for ((shard = 0; shard < shards; shard++)); do
    awk -v shards="$shards" -v shard="$shard" '!/^#/ && n++ % shards == shard' "$problems" \
      >"${problems%.txt}-$shard.txt"
  done
  for direction in $directions; do
    if ((shards == 0)); then
      "$measure" "$problems" "$direction" "${problems%.txt}-$direction.ftd"
      continue
    fi
    for ((shard = 0; shard < shards; shard++)); do
      cores=$first_core-$((first_core + threads - 1))
      (
        taskset -cp "$cores" $BASHPID >/dev/null
        "$measure" "${problems%.txt}-$shard.txt" "$direction" "${problems%.txt}-$direction-$shard.ftd"
      ) &
      running+=($!)
      first_core=$((first_core + threads))
    done
  done
  for shard in "${running[@]}"; do wait "$shard"; done
}

collect() {
  "$foretune" --seed 7 collect --active --output "$3" "${family[@]}" --shapeset "$1" --operations "$2" \
    --configs-per-problem "$configs" --rounds $((configs < 40 ? 3 : 5))
}

validate() {
  "$foretune" --seed 10 create-validation --output "$3" "${family[@]}" --shapeset "$1" --operations "$2" \
    --training-data "$out/training" --model "$out/conv.ftm" --search-space "SAMPLE:$validation_configs" --confirm-top 10
}

draw=(python3 bench/draw_conv_shapes.py --seed "${SEED:-20261127}" --role)
if [[ $stages == *collect* ]]; then
  "${draw[@]}" training >"$out/parts/train.txt"
  in_shards collect "$out/parts/train.txt"
  for direction in $directions; do
    "$foretune" merge "$out/parts/train-$direction"*.ftd --overwrite --output "$out/training/$direction.ftd"
  done
fi
if [[ $stages == *train* ]]; then
  for direction in $directions; do
    "$foretune" --seed 8 train --dataset "$out/training/$direction.ftd" --model "$out/separate/$direction.ftm" \
      "${recipe[@]}" --folds 2
  done
  "$foretune" --seed 9 train --data-dir "$out/training" --model "$out/conv.ftm" "${recipe[@]}" --fast \
    --json "$out/training.json"
fi
if [[ $stages == *validate* ]]; then
  "${draw[@]}" validation >"$out/parts/validation.txt"
  in_shards validate "$out/parts/validation.txt"
  "$foretune" merge "$out/parts/validation-"*.ftd --overwrite --output "$out/validation.ftd"
  "$foretune" --seed 11 validate-model --model "$out/conv.ftm" --dataset "$out/validation.ftd" \
    --family-option "isa=$isa" --threads "$threads" --training-data "$out/training" --html "$out/report.html" \
    --json "$out/validation.json"
fi
