#!/usr/bin/env bash
# Measures sparse products on this CPU and trains one of the models that the package ships:
#
#   scripts/default_sparse_model.sh avx512 1 MATRICES         kernels up to AVX-512, one thread
#   scripts/default_sparse_model.sh avx2 1 MATRICES 40 300    40 instead of 24 configs of each training
#                                                             problem in the mean, 300 of validation
#
# The model learns from drawn matrices alone (bench/draw_sparse_matrices.py, which needs NumPy).
# MATRICES is a folder of real ones (.mtx, .mtx.gz), which judge it: with a vector and 128 columns, by
# many configs each and the model's first 16, the best 10 of which are timed once more, in turns.
# STAGES names some of collect, train and validate. Run it again after an interruption and it goes
# on. Leaves everything in build/models/sparse-CLASS-THREADS.
set -euo pipefail
cd "$(dirname "$0")/.."
foretune=${FORETUNE:-build/release/tools/foretune/foretune}
python=${PYTHON:-build/venv/bin/python}
isa=${1:?avx512, avx2 or generic}
threads=${2:?threads}
matrices=${3:?a folder of matrices}
configs=${4:-24}
validation_configs=${5:-128}
stages=${STAGES:-collect train validate}
out=${OUT:-build/models}/sparse-$isa-$threads
measuring=(--family sparse-cpu --family-option "isa=$isa" --threads "$threads" --num-shapes 0 --search-mode fast)
mkdir -p "$out"

if [[ ! -s $out/training.txt ]]; then
  "$python" bench/draw_sparse_matrices.py --count "${COUNT:-462}" --seed "${SEED:-20261130}" "$out/drawn" >"$out/drawn.txt"
  mv "$out/drawn.txt" "$out/training.txt"
fi
if [[ $stages == *collect* ]]; then
  "$foretune" --seed 7 collect --active --output "$out/training.ftd" "${measuring[@]}" --payloads "$out/drawn" \
    --shapeset "$out/training.txt" --configs-per-problem "$configs" --rounds 4
fi
if [[ $stages == *train* ]]; then
  "$foretune" --seed 9 train --dataset "$out/training.ftd" --payloads "$out/drawn" --model "$out/sparse.ftm" \
    --min-rows-per-leaf 30 --forests 2 --json "$out/training.json"
fi
if [[ $stages == *validate* ]]; then
  for operation in spmv spmm sddmm; do
    find "$matrices" -name '*.mtx*' -printf '%f\n' | LC_ALL=C sort |
      sed "s/.*/sparse op=$operation $([[ $operation == spmv ]] || echo n=128) payload=@&/" >"$out/$operation.txt"
    "$foretune" --seed 10 create-validation --output "$out/$operation.ftd" "${measuring[@]}" --payloads "$matrices" \
      --shapeset "$out/$operation.txt" --model "$out/sparse.ftm" --search-space "SAMPLE:$validation_configs" \
      --confirm-top 10
    "$foretune" --seed 11 validate-model --model "$out/sparse.ftm" --dataset "$out/$operation.ftd" \
      --payloads "$matrices" --family-option "isa=$isa" --threads "$threads" --training-data "$out/training.ftd" \
      --html "$out/$operation.html" --json "$out/$operation.json"
  done
fi
