#!/usr/bin/env bash
# Measures convolutions on this CPU and trains one of the models that the package ships:
#
#   scripts/default_conv_model.sh avx512 1       kernels up to AVX-512, one thread
#   scripts/default_conv_model.sh avx512 2 24    one or two threads, 24 instead of 60 configs of each
#                                                training problem in the mean
#   DIRECTIONS=forward scripts/default_conv_model.sh avx2 1 24
#
# Problems are drawn from layers of networks (bench/draw_conv_shapes.py); no validation problem has
# the weights' shape of a training problem. Rounds of training choose the configs that are measured.
# Run it again after an interruption and it goes on. Leaves everything in build/models/conv-CLASS-THREADS.
set -euo pipefail
cd "$(dirname "$0")/.."
foretune=${FORETUNE:-build/release/tools/foretune/foretune}
isa=${1:?avx512, avx2 or generic}
threads=${2:?threads}
configs=${3:-60}
validation_configs=${4:-128}
out=${OUT:-build/models}/conv-$isa-$threads
family=(--family cpu-conv --family-option "isa=$isa" --threads "$threads" --num-shapes 0 --search-mode fast)
recipe=(--group-key weights --min-rows-per-leaf 30 --forests 2 --best-of-problem 6)
mkdir -p "$out/training" "$out/separate"
draw=(bench/draw_conv_shapes.py --seed 20261127 --role)
"${draw[@]}" training >"$out/train.txt"
"${draw[@]}" training --hard >"$out/hard.txt"
"${draw[@]}" validation >"$out/validation.txt"

for direction in ${DIRECTIONS:-forward backward_data backward_weight}; do
  own=()
  for set in train hard; do
    own+=("$out/training/$direction-$set.ftd")
    "$foretune" --seed 7 collect --active --output "${own[-1]}" "${family[@]}" --shapeset "$out/$set.txt" \
      --operations "$direction" --configs-per-problem "$configs"
  done
  "$foretune" merge "${own[@]}" --overwrite --output "$out/separate/$direction.ftd"
  "$foretune" --seed 8 train --dataset "$out/separate/$direction.ftd" --model "$out/separate/$direction.ftm" \
    "${recipe[@]}" --folds 2
done
"$foretune" --seed 9 train --data-dir "$out/training" --model "$out/conv.ftm" "${recipe[@]}" --fast \
  --json "$out/training.json"
for direction in ${DIRECTIONS:-forward backward_data backward_weight}; do
  "$foretune" --seed 10 create-validation --output "$out/validation.ftd" "${family[@]}" \
    --shapeset "$out/validation.txt" --operations "$direction" --training-data "$out/training" \
    --model "$out/conv.ftm" --search-space "SAMPLE:$validation_configs" --confirm-top 10
done
"$foretune" --seed 11 validate-model --model "$out/conv.ftm" --dataset "$out/validation.ftd" \
  --family-option "isa=$isa" --threads "$threads" --training-data "$out/training" --html "$out/report.html" \
  --json "$out/validation.json"
