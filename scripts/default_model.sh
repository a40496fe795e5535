#!/usr/bin/env bash
# Measures this CPU and trains one of the models that the package ships:
#
#   scripts/default_model.sh avx512 1     kernels up to AVX-512, one thread
#   scripts/default_model.sh avx2 2 96    kernels up to AVX2, one or two threads, 96 instead of 256
#                                         configs of each training problem
#
# Training problems are drawn log-normally, as workloads have them, and taken from networks, with a
# few thin and large ones; validation problems are drawn uniformly and share no shape with them. Run it again
# after an interruption and it goes on. Leaves everything in build/models/CLASS-THREADS.
set -euo pipefail
cd "$(dirname "$0")/.."
foretune=${FORETUNE:-build/release/tools/foretune/foretune}
isa=${1:?avx512, avx2 or generic}
threads=${2:?threads}
samples=${3:-256}
out=${OUT:-build/models}/$isa-$threads
mkdir -p "$out/training"
family=(--family-option "isa=$isa" --threads "$threads")
layouts=(--layouts rrr rcr crr ccr)

"$foretune" --seed 7 collect --output "$out/training/drawn.ftd" "${family[@]}" --num-shapes 220 \
  --log-normal --operations mm addmm addmm_relu bmm "${layouts[@]}" --max-flops 2e8 \
  --search-space "SAMPLE:$samples"
"$foretune" --seed 8 collect --output "$out/training/networks.ftd" "${family[@]}" --num-shapes 0 \
  --shapeset bench/shapes/networks.csv --max-flops 5e8 --search-space "SAMPLE:$samples"
"$foretune" --seed 12 collect --output "$out/training/large.ftd" "${family[@]}" --num-shapes 0 \
  --shapeset bench/shapes/large.csv --search-space SAMPLE:24
"$foretune" --seed 13 collect --output "$out/training/thin.ftd" "${family[@]}" --num-shapes 0 \
  --shapeset bench/shapes/thin.csv --search-space "SAMPLE:$samples"
"$foretune" --seed 9 train --data-dir "$out/training" --model "$out/gemm.ftm" \
  --json "$out/training.json"
"$foretune" --seed 10 create-validation --output "$out/validation.ftd" "${family[@]}" \
  --num-shapes 100 --random --min-size 16 --max-size 1024 --operations mm addmm bmm \
  "${layouts[@]}" --max-flops 2e8 --training-data "$out/training" --model "$out/gemm.ftm"
"$foretune" --seed 11 validate-model --model "$out/gemm.ftm" --dataset "$out/validation.ftd" \
  "${family[@]}" --training-data "$out/training" --html "$out/report.html" \
  --json "$out/validation.json"
