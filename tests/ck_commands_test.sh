#!/usr/bin/env bash
# Every command line of the README of Composable Kernel's heuristics runs here with another program's
# name in place of the script's; docs/guides/from-ck.md has the table of names. Lines that build kernels or run
# them on a GPU are left out.
#   ck_commands_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
make_times() { python3 "$source_dir/examples/ck/synthetic_benchmarks.py" "$@" >/dev/null; }

# Stand-ins for programs of others: a GPU's facts, and Parquet, which holds a data set behind its
# magic.
mkdir programs
cat >programs/rocminfo <<'EOF'
#!/bin/sh
echo "Agent 2
*******
  Name:                    gfx950
  Marketing Name:          a GPU
  Device Type:             GPU
  Compute Unit:            200
  Wavefront Size:          64(0x40)"
EOF
cat >programs/foretune-parquet <<'EOF'
#!/bin/sh
command="$1"
while [ $# -gt 2 ]; do shift; done
if [ "$command" = export ]; then
  { printf PAR1; cat "$1"; } >"$2"
else
  tail -c +5 "$1" >"$2"
fi
EOF
chmod +x programs/*
PATH="$PWD/programs:$PATH"

# The files that a user of the scripts has.
mkdir -p data/fp16_original data/bwd_data_training
make_times data/fp16_original/benchmark_results_fp16_rcr.json --problems 12
make_times ck_tile_testrun_2.log --problems 30 --seed 3 --dtype fp8
make_times train.csv --problems 10 --direction forward
for direction in bwd_data bwd_weight; do
  make_times ${direction}_model_crawler_oracle.csv --problems 12 --seed 5 --direction $direction
done
make_times bwd_data.csv --problems 40 --direction bwd_data

# run TEXT COMMAND... expects exit code 0 and TEXT in what is printed.
run() {
  local text="$1"
  shift
  expect 0 "$@"
  grep -qF -- "$text" out.txt || fail "no '$text' in the output of $*: $(cat out.txt)"
}

# 1. Data. convert_json_to_parquet.py, data_pipeline.py and convert_csv_to_parquet.py are
# `foretune convert`.
run "(parquet)" "$foretune" convert \
  --input data/fp16_original/benchmark_results_fp16_rcr.json \
  --output data/fp16_original/fp16_training_data.parquet \
  --arch gfx950
run "1,592 rows read, 1,592 kept" "$foretune" convert ck_tile_testrun_2.log \
  -o data/gemm_universal_fp8_rcr_gfx950.parquet \
  --arch gfx950 --capture_hw
test ! -s err.txt || fail "$(cat err.txt)"
run "(parquet)" "$foretune" convert --input train.csv --output train.parquet
"$foretune" convert data/gemm_universal_fp8_rcr_gfx950.parquet --output check.ftd >/dev/null
expect 0 "$foretune" inspect check.ftd
grep -q "cores=200" out.txt || fail "the captured hardware is not in the data set: $(cat out.txt)"
rm train.csv
"$foretune" convert bwd_data.csv --arch gfx950 --output data/bwd_data_training/bwd_data.ftd >/dev/null

# 2. Models. train.py is `foretune train`.
quick=(--trees 60 --folds 0 --threads 1 --min-rows-per-leaf 2)
run "models: models/" "$foretune" train \
  --data_dir data/ \
  --out_dir models/gemm_universal_fp8_gfx950 \
  --op gemm_universal --dtype fp8 --arch gfx950
# Theirs learns rates without being asked; ours learns time, of which there is no rate to print.
"$foretune" train --data_dir data/ --op gemm_universal --dtype fp8 --arch gfx950 --out_dir rates \
  --targets tflops,latency,bandwidth "${quick[@]}" >/dev/null
rm -r models/gemm_universal_fp8_gfx950
mv rates models/gemm_universal_fp8_gfx950
run "models: models/" "$foretune" train \
  --operation grouped_conv \
  --data_dir data/bwd_data_training \
  --out_dir models/grouped_conv_bwd_data_bf16_gfx950 \
  --dtype bf16 \
  --arch gfx950 \
  --targets tflops \
  --n_splits 5
for direction in forward bwd_weight; do
  mkdir -p "data/grouped_conv_$direction"
  make_times $direction.csv --problems 30 --direction $direction
  "$foretune" convert $direction.csv --arch gfx950 \
    --output "data/grouped_conv_$direction/training_data.ftd" >/dev/null
  "$foretune" train --dataset "data/grouped_conv_$direction/training_data.ftd" --targets tflops \
    --out_dir models/grouped_conv_${direction}_bf16_gfx950 "${quick[@]}" >/dev/null
done
run "models: models/" "$foretune" train \
  --data_dir data/bwd_data_training \
  --out_dir models/v2 \
  --warm_start models/grouped_conv_bwd_data_bf16_gfx950 \
  --warm_start_n_estimators 200 \
  --targets tflops

# 3. Evaluation, prediction and search. evaluate.py, predict.py and search.py have commands of these
# names.
run "mean" "$foretune" evaluate \
  --model_dir models/gemm_universal_fp8_gfx950 \
  --data_dir data/ --op gemm_universal --dtype fp8
grep -q "30 problems" out.txt || fail "not the problems of the data type: $(cat out.txt)"
run "TFLOPS" "$foretune" predict \
  --model_dir models/gemm_universal_fp8_gfx950 \
  --m 128 --n 1536 --k 7168 --layout rcr
grep -q "gemm_universal_fp8_rcr_" out.txt || fail "no kernel's name: $(cat out.txt)"
run "TFLOPS" "$foretune" search \
  --model_dir models/gemm_universal_fp8_gfx950 \
  --m 128 --n 1536 --k 7168 \
  --strategy random --budget 500 --top_k 10
test "$(grep -cE "gemm_(universal|preshuffle)_fp8_rcr_" out.txt)" = 10 || fail "not ten kernels: $(cat out.txt)"

# 4. Validation. validate_ml_vs_oracle.py is `foretune validate-model`.
for direction in bwd_data bwd_weight; do
  run "12 problems" "$foretune" validate-model --variant $direction
done
run "12 problems" "$foretune" validate-model \
  --operation grouped_conv \
  --variant bwd_data \
  --problem-set bwd_data_model_crawler_validation \
  --oracle-csv bwd_data_model_crawler_oracle.csv \
  --save-predictions old_predictions.csv
cp -r models/grouped_conv_bwd_data_bf16_gfx950 backup
cp models/v2/* models/grouped_conv_bwd_data_bf16_gfx950
run "12 problems" "$foretune" validate-model \
  --operation grouped_conv \
  --variant bwd_data \
  --problem-set bwd_data_model_crawler_validation \
  --oracle-csv bwd_data_model_crawler_oracle.csv \
  --save-predictions new_predictions.csv
# compare_model_predictions.py is `foretune compare`; 5 says that the new model is worse.
status=0
"$foretune" compare \
  --old-predictions old_predictions.csv \
  --new-predictions new_predictions.csv \
  --variant bwd_data >out.txt 2>err.txt || status=$?
[[ $status -eq 0 || $status -eq 5 ]] || fail "compare ended with $status: $(cat err.txt)"
grep -q "mean efficiency" out.txt || fail "no comparison: $(cat out.txt)"
run "0 degraded" "$foretune" compare --old-predictions old_predictions.csv \
  --new-predictions old_predictions.csv
# validate_training_shapes.py and validate_backward_models.py
known=(validate-model --variant forward --known-shapes 5 --pass-mark 95)
run "reaches the pass mark of 95 %" "$foretune" "${known[@]}"
grep -q "5 problems" out.txt || fail "not five problems: $(cat out.txt)"
for direction in bwd_data bwd_weight; do
  run "TFLOPS of the first" "$foretune" predict \
    --model_dir models/grouped_conv_${direction}_bf16_gfx950 \
    --problems ck-conv-backward-${direction#bwd_} --top_k 3
  grep -q "grouped_conv_${direction}_bf16_2d_" out.txt || fail "no kernel of $direction"
done
# test_model_quality.sh
status=0
"$foretune" compare backup/model_tflops.ftm models/v2/model_tflops.ftm \
  --dataset bwd_data_model_crawler_oracle.csv >out.txt 2>err.txt || status=$?
[[ $status -eq 0 || $status -eq 5 ]] || fail "compare ended with $status: $(cat err.txt)"

# Models of which only the LightGBM text is there, as the scripts leave them: the kernels are those of
# the data beside them, of a list, or of a folder of programs.
"$foretune" train --dataset check.ftd --out_dir theirs/models/gemm_universal_fp8_gfx950 \
  --targets tflops,latency,bandwidth --features gemm-ck-72 --write-lightgbm "${quick[@]}" >/dev/null
rm theirs/models/gemm_universal_fp8_gfx950/*.ftm
mkdir theirs/data
cp check.ftd data/bwd_data_training/bwd_data.ftd theirs/data
cd theirs
run "TFLOPS" "$foretune" predict --model_dir models/gemm_universal_fp8_gfx950 \
  --m 128 --n 1536 --k 7168 --layout rcr --json all.json
grep -q '"kernel": "gemm_universal_fp8_rcr_' all.json || fail "no kernel in the JSON"
run "TFLOPS" "$foretune" search --model_dir models/gemm_universal_fp8_gfx950 \
  --m 128 --n 1536 --k 7168 --strategy random --budget 500 --top_k 10
run "30 problems" "$foretune" evaluate --model_dir models/gemm_universal_fp8_gfx950 --data_dir data/ \
  --op gemm_universal --dtype fp8 --output figures.json
grep -q '"mean_efficiency"' figures.json
grep -o '"kernel": "gemm_universal[^"]*' all.json | sed 's/.*"//' | sort -u >names.txt
run "3 of 3 candidates" "$foretune" predict --model_dir models/gemm_universal_fp8_gfx950 \
  --m 128 --n 1536 --k 7168 --layout rcr --kernels <(head -3 names.txt)
mkdir bin
while read -r name; do touch "bin/benchmark_$name"; done <names.txt
touch bin/benchmark_grouped_conv_forward_bf16_2d_16x64x64_compv3 bin/README
run "5 of 5 candidates" "$foretune" predict --model_dir models/gemm_universal_fp8_gfx950 \
  --m 128 --n 1536 --k 7168 --layout rcr --kernels bin
grep -q "2 of 7 names are no kernels" err.txt || fail "$(cat err.txt)"
run "TFLOPS" "$foretune" predict --model_dir models/gemm_universal_fp8_gfx950/model_tflops.lgbm.gz \
  --m 128 --n 1536 --k 7168

# Errors are one sentence.
refused() { # refused CODE TEXT ARGUMENTS...
  local code="$1" text="$2"
  shift 2
  expect "$code" "$foretune" "$@"
  one_sentence
  grep -qF -- "$text" err.txt || fail "no '$text': $(cat err.txt)"
}
model=(--model_dir models/gemm_universal_fp8_gfx950)
refused 3 "the operation grouped_conv has other problems" predict "${model[@]}" --m 1 --n 1 --k 1 \
  --operation grouped_conv
refused 2 "dtype=fp7 is not one of" predict "${model[@]}" --m 1 --n 1 --k 1 --dtype fp7
refused 2 "no problem is given: by --m, --n, --k, or as text: gemm m=... n=... k=..." predict "${model[@]}"
refused 3 "there is no model of 'time'; there are tflops" predict "${model[@]}" --m 1 --n 1 --k 1 \
  --rank-by time
refused 2 "--kernels has an effect only with a directory" predict --model a.ftm --kernels b --m 1 \
  --n 1 --k 1
refused 3 "none of 1 name is a kernel" predict "${model[@]}" --m 1 --n 1 --k 1 --kernels <(echo a)
refused 3 "no measurements of such" predict "${model[@]}" --m 1 --n 1 --k 1 --pool data/bwd_data.ftd
refused 3 "has no measurements of such kernels" evaluate "${model[@]}" --data_dir data --dtype bf16
refused 2 "--model is required" validate-model --dataset data/check.ftd
refused 2 "--operation has an effect only with --variant" validate-model --model a.ftm \
  --dataset b.ftd --operation grouped_conv
refused 2 "give one problem or --problems" predict "${model[@]}" --m 1 --n 1 --k 1 --problems ck-25
refused 3 "there is no gemm problem in ck-conv" predict "${model[@]}" --problems ck-conv
expect 5 "$foretune" validate-model --dataset data/check.ftd "${model[@]}" --known-shapes 3 \
  --pass-mark 100.1
grep -q "is below the pass mark" out.txt
cd ..
rm programs/foretune-parquet programs/rocminfo
refused 4 "foretune-parquet of the Python package" convert check.ftd --output check.parquet
refused 4 "foretune-parquet of the Python package" convert train.parquet --output none.ftd
expect 0 "$foretune" convert ck_tile_testrun_2.log -o known.ftd --arch gfx950 --capture_hw
grep -q "warning: --capture-hw: there is no program rocminfo" err.txt || fail "$(cat err.txt)"
refused 2 "--capture-hw has an effect only with files of CK Tile" convert known.ftd -o no.ftd \
  --capture_hw
echo "every command line runs"
