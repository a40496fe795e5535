#!/usr/bin/env bash
# Goes from CK Tile's benchmark results to a kernel's name at run time; docs/guides/from-ck.md explains every
# step.
#
#   cmake -B build && cmake --build build && ./workflow.sh [FOLDER]
#
# With BENCHMARKS=file.json it takes real results (fp16, rcr) in place of made-up ones, with
# HEURISTIC=program it also asks that one (heuristic.cc).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
FORETUNE="${FORETUNE:-foretune}"
DISPATCH="${DISPATCH:-$here/build/dispatch}"
DISPATCH_C="${DISPATCH_C:-$here/build/dispatch_c}"
ARCH="${ARCH:-gfx950}"
work="${1:-$(mktemp -d)}"
mkdir -p "$work/data"
cd "$work"

# 1. Benchmark results, for training problems and for others.
if [[ -z "${BENCHMARKS:-}" ]]; then
  python3 "$here/synthetic_benchmarks.py" train.json --problems 60 --seed 1
  BENCHMARKS=train.json
fi
VALIDATION="${VALIDATION:-validation.json}"
[[ -f "$VALIDATION" ]] || python3 "$here/synthetic_benchmarks.py" "$VALIDATION" --problems 15 --seed 2

# 2. Their data sets.
"$FORETUNE" convert "$BENCHMARKS" --arch "$ARCH" --output data/train.ftd --overwrite
"$FORETUNE" convert "$VALIDATION" --arch "$ARCH" --role validation --output validation.ftd --overwrite

# 3. Models of all targets on the features of CK's models, as LightGBM text and with the names and
#    the order of CK's own directories: its predict.py takes the folder.
"$FORETUNE" --seed 42 train --dataset data/train.ftd --out-dir models --targets time,tflops \
  --features gemm-ck-55 --trees 60 --folds 3 --threads 1 --write-lightgbm
#    Then a model on our own features, the one to use.
"$FORETUNE" --seed 42 train --dataset data/train.ftd --model ours.ftm --trees 60 \
  --folds 3 --threads 1

for word in '"op_type": "gemm_universal"' '"dtype": "fp16"' "\"arch\": \"$ARCH\"" \
  '"feature_engine": "GemmUniversalFeatureEngine"'; do
  grep -q "$word" models/feature_spec.json
done
[[ "$(grep -m 1 '^feature_names=' models/model_tflops.lgbm)" == feature_names=M\ N\ K\ split_k\ log2_M* ]]

# 4. Their quality on problems that they never saw.
"$FORETUNE" validate-model --model models/model_tflops.ftm --dataset validation.ftd \
  --training-data data --no-measure --json theirs.json
"$FORETUNE" validate-model --model ours.ftm --dataset validation.ftd --training-data data \
  --no-measure --json ours.json
"$FORETUNE" compare models/model_tflops.ftm ours.ftm --dataset validation.ftd || [[ $? -eq 5 ]]

# 5. A directory of models that somebody else trained: only the LightGBM text and the documents.
mkdir -p foreign
cp models/feature_spec.json models/train_manifest.json models/model_*.lgbm.gz foreign/
"$FORETUNE" import-model foreign --pool data/train.ftd --output imported.ftm --overwrite
"$FORETUNE" inspect imported.ftm >imported.txt
"$FORETUNE" predict --model imported.ftm --m 128 --n 1536 --k 7168 --dtype fp16 --layout rcr --top-k 3
#    It also predicts as it is: the kernels are those of the data, or of a list.
"$FORETUNE" predict --model_dir foreign --pool data/train.ftd --m 128 --n 1536 --k 7168 \
  --layout rcr --top_k 3 --json foreign.json
grep -o '"kernel": "[^"]*' foreign.json | sed 's/.*"//' >kernels.txt
"$FORETUNE" predict --model_dir foreign --kernels kernels.txt --problems ck-25 --top_k 1

# 6. The kernel's name, as a user's program gets it, in C++ and in C.
problems=(1,4096,4096 32,8192,1024 128,1536,7168 2048,1024,1024)
for model in ours.ftm models/model_tflops.ftm imported.ftm; do
  echo "$model"
  "$DISPATCH" "$model" "${problems[@]}" | tee "$(basename "$model").names"
  "$DISPATCH_C" "$model" "${problems[@]}" | cmp - "$(basename "$model").names"
done
# A model that was written as a model directory and read back makes the same picks.
cmp model_tflops.ftm.names imported.ftm.names
[[ "$(grep -c '^[0-9,]* gemm_universal_fp16_rcr_' ours.ftm.names)" -eq "${#problems[@]}" ]]
#    As the heuristic of a dispatcher, with the kernels whose programs are in a folder.
if [[ -n "${HEURISTIC:-}" ]]; then
  mkdir -p bin
  while read -r name; do touch "bin/benchmark_$name"; done <kernels.txt
  "$HEURISTIC" --model ours.ftm --kernels bin "${problems[@]}" | tee heuristic.names
  [[ "$(grep -c '^[0-9,]* fp16_rcr_' heuristic.names)" -eq "${#problems[@]}" ]]
fi

# 7. Convolutions: the same with other words. Results come as CSV or JSON, of one direction or of all.
for direction in bwd_data bwd_weight; do
  python3 "$here/synthetic_benchmarks.py" $direction.json --problems 40 --seed 4 --direction $direction
  python3 "$here/synthetic_benchmarks.py" ${direction}_oracle.csv --problems 15 --seed 5 \
    --direction $direction
  mkdir -p conv/data/$direction
  "$FORETUNE" convert --input $direction.json --arch "$ARCH" --output conv/data/$direction/times.ftd --overwrite
  "$FORETUNE" --seed 42 train --data_dir conv/data/$direction --targets tflops --trees 60 --folds 0 \
    --out_dir "conv/models/grouped_conv_${direction}_bf16_$ARCH" --features grouped-conv-ck-83 \
    --threads 1 --write-lightgbm
  # As somebody else's: the direction is in the folder's name, the kernels are in ../../data.
  rm "conv/models/grouped_conv_${direction}_bf16_$ARCH"/*.ftm
  models=(--model_dir "conv/models/grouped_conv_${direction}_bf16_$ARCH")
  "$FORETUNE" predict "${models[@]}" --n 16 --c 256 --k 128 --hi 28 --wi 28 --y 3 --x 3 --pad_h 1 \
    --pad_w 1 --top_k 3 | tee $direction.txt
  grep -q "grouped_conv_${direction}_bf16_2d_" $direction.txt
  "$FORETUNE" validate-model "${models[@]}" --pool conv/data --oracle-csv ${direction}_oracle.csv \
    --save-predictions ${direction}_picks.csv --pass-mark 50
  "$FORETUNE" compare --old-predictions ${direction}_picks.csv \
    --new-predictions ${direction}_picks.csv >/dev/null
done
echo "workflow done: $work"
