#!/usr/bin/env bash
# Measures products of some sparse matrices with a vector and learns from them: writes sparse.ftm.
#
#   learn.sh MATRIX.mtx...
set -euo pipefail
mkdir -p matrices
cp "$@" matrices
for matrix in "$@"; do
  echo "sparse op=spmv payload=@$(basename "$matrix")"
done >problems.txt
foretune --seed 1 collect --family sparse-cpu --family-option threads=1 --shapeset problems.txt --num-shapes 0 \
  --payloads matrices --search-space "SAMPLE:${CONFIGS:-60}" --output times.ftd
foretune --seed 1 train --dataset times.ftd --payloads matrices --model sparse.ftm --folds 3
