#!/usr/bin/env bash
# Takes measurements in foreign formats from their files to a judged model.
#   foreign_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

# Writes torch-diode's older schema, in which a config is JSON text: products of SIZE and 2 SIZE in
# six tiles, of which one fails. The flag is true or false.
#   diode_document FLAG SIZE... >FILE
diode_document() {
  local flag="$1"
  shift
  awk -v flag="$flag" -v sizes="$*" 'BEGIN {
    count = split(sizes, size, " ")
    printf "{\"version\": 1, \"hardware\": {\"NVIDIA H100\": {\"operation\": {\"mm\": {"
    printf "\"name\": \"mm\", \"solution\": {"
    for (i = 1; i <= count; ++i) {
      m = size[i]
      n = 2 * m
      printf "%s\"{\\\"version\\\": 1, \\\"B\\\": 1, \\\"M\\\": %d, ", (i > 1 ? ", " : ""), m
      printf "\\\"M_dtype\\\": \\\"float16\\\", \\\"N\\\": %d, \\\"K\\\": %d, ", n, m
      printf "\\\"K_dtype\\\": \\\"float16\\\", \\\"out_dtype\\\": \\\"float16\\\"}\": "
      printf "{\"name\": \"mm\", \"version\": 1, \"timed_configs\": ["
      first = 1
      for (block = 16; block <= 128; block *= 2) {
        for (stages = 2; stages <= 3; ++stages) {
          time = block == 16 && stages == 3 ? "Infinity" \
            : 0.005 + m * n * m * 1e-10 * (1 + 32 / block) / stages * (flag == "true" ? 0.5 : 1)
          printf "%s{\"version\": 1, \"time\": %s, \"config\": \"{\\\"ACC_TYPE\\\": ", \
            (first ? "" : ", "), time
          printf "\\\"tl.float32\\\", \\\"ALLOW_TF32\\\": %s, \\\"EVEN_K\\\": false, ", flag
          printf "\\\"USE_FAST_ACCUM\\\": false, \\\"block_k\\\": 32, \\\"block_m\\\": %d, ", block
          printf "\\\"block_n\\\": %d, \\\"grid\\\": 1, \\\"group_m\\\": 8, ", block
          printf "\\\"name\\\": \\\"mm_config\\\", \\\"num_stages\\\": %d, ", stages
          printf "\\\"num_warps\\\": 4, \\\"version\\\": 1}\"}"
          first = 0
        }
      }
      printf "], \"version\": 1}"
    }
    print "}}}}}}"
  }'
}

# Replays measurements from elsewhere: draws from them, learns from them, judges a model by them.
diode_document false 64 96 128 192 256 384 512 768 1024 1536 2048 3072 >times.json
expect 0 "$foretune" convert times.json --output times.ftd
grep -q "^96 rows read, 96 kept" out.txt
expect 0 "$foretune" collect --family recorded --family-data times.ftd --num-shapes 8 \
  --search-space EXHAUSTIVE --output train.ftd
expect 0 "$foretune" create-validation --family recorded --family-data times.ftd --num-shapes 0 \
  --search-space EXHAUSTIVE --training-data train.ftd --output rest.ftd
quick=(--folds 2 --trees 30 --threads 1 --min-rows-per-leaf 2)
expect 0 "$foretune" train --dataset train.ftd --model model.ftm "${quick[@]}"
expect 0 "$foretune" validate-model --model model.ftm --dataset rest.ftd --family-data times.ftd
grep -q "4 problems" out.txt
expect 0 "$foretune" predict --model model.ftm gemm m=128 n=256 k=128 dtype=f16
# Training also takes them directly, with every feature table that describes them.
for table in gemm-triton-flags gemm-diode gemm-diode-v1; do
  expect 0 "$foretune" train --dataset times.ftd --features $table --model plain.ftm "${quick[@]}"
done
# A checkpoint of torch-diode ranks the configs that its own collector measured.
for checkpoint in v1 deep; do
  expect 0 "$foretune" import-model \
    "$source_dir/foretune/interop/diode/testdata/diode_$checkpoint.pt" --pool times.ftd \
    --output $checkpoint.ftm
  expect 0 "$foretune" validate-model --model $checkpoint.ftm --dataset rest.ftd \
    --family-data times.ftd
done
# A flag makes another config, which is learned separately and written back.
diode_document true 64 128 256 512 1024 2048 >flagged.json
expect 0 "$foretune" convert flagged.json --output flagged.ftd
expect 0 "$foretune" merge times.ftd flagged.ftd --output both.ftd
grep -q "^144 measurements, 0 of them repeats" out.txt
expect 0 "$foretune" train --dataset both.ftd --model both.ftm "${quick[@]}"
expect 0 "$foretune" predict --model both.ftm gemm m=1024 n=2048 k=1024 dtype=f16 --top-k 1
grep -q "allow_tf32=yes" out.txt
expect 0 "$foretune" convert both.ftd --output again.json --to diode-json
test "$(grep -o '"ALLOW_TF32":true' again.json | wc -l)" = 48

# The contents of a file say that it is a model: torch-diode's own models are called .pt.
cp model.ftm model.pt
cp model.ftm model
expect 0 "$foretune" compare model.pt model --dataset rest.ftd
grep -q "0 improved, .* 0 degraded" out.txt
expect 0 "$foretune" inspect model.pt
expect 0 "$foretune" predict --model model.pt gemm m=128 n=256 k=128 dtype=f16
expect 4 "$foretune" compare "$source_dir/foretune/interop/diode/testdata/diode_v1.pt" model.pt \
  --dataset rest.ftd
one_sentence
grep -q "is a checkpoint; foretune import-model" err.txt

# A folder may hold every file that convert reads, under any of its names; a file that is not a data
# set is reported and skipped.
mkdir -p data/more
cp times.json data/chunk_0.json
diode_document false 80 112 144 >data/more/chunk_1.msgpack
gzip -c flagged.json >data/more/chunk_2.json.gz
cp train.ftd data/train.ftd
expect 0 "$foretune" convert train.ftd --output data/train.msgpack
expect 0 "$foretune" convert times.json --role validation --output data/validation.ftd
printf 'epoch,loss\n1,2\n' >data/loss.csv
echo '{"op_type": "gemm_universal"}' >data/feature_spec.json
expect 0 "$foretune" train --data-dir data --model folder.ftm "${quick[@]}"
for line in "read data/chunk_0.json: 96 measurements" "read data/more/chunk_1.msgpack: 24 " \
  "read data/more/chunk_2.json.gz: 48 " "read data/train.ftd: 64 " \
  "skipped data/train.msgpack: train.ftd beside it counts" \
  "skipped data/validation.ftd: a validation set" "skipped data/loss.csv: it has no column" \
  "skipped data/feature_spec.json: the document is no data set"; do
  grep -q "^$line" err.txt || { echo "no line '$line'"; cat err.txt; exit 1; }
done
expect 0 "$foretune" validate-model --model folder.ftm --dataset rest.ftd --training-data data \
  --no-measure
expect 0 "$foretune" create-validation --family recorded --family-data times.json --num-shapes 0 \
  --search-space EXHAUSTIVE --training-data data/more --output unseen.ftd
grep -q " measurements of 6 problems" out.txt
expect 0 "$foretune" train --data-dir data --file-extensions .msgpack json.gz --model folder.ftm \
  "${quick[@]}"
test "$(grep -c "^read " err.txt)" = 4
expect 2 "$foretune" train --dataset train.ftd --file-extensions json --model no.ftm
one_sentence
# Errors name damage, data that do not fit, and files that another command reads.
head -c 2000 times.json >data/broken.json
expect 3 "$foretune" train --data-dir data --model no.ftm
one_sentence
grep -q "data/broken.json: " err.txt
rm data/broken.json
cp "$source_dir/tests/triton_times.csv" data/times.csv
expect 3 "$foretune" train --data-dir data --model no.ftm
grep -q "^foretune: data/times.csv: config schema triton-gemm v1 cannot be merged" err.txt
rm data/times.csv
printf 'PAR1 and more' >data/times.parquet
expect 4 "$foretune" train --data-dir data --model no.ftm
one_sentence
grep -q "data/times.parquet: a Parquet file; foretune-parquet" err.txt
mkdir other
cp data/loss.csv other
expect 3 "$foretune" train --data-dir other --model no.ftm
one_sentence
grep -q "there is no data set (.ftd, .json, .*) below other; .* other/loss.csv is none" err.txt

# A file without measurements makes no data set, and does not hinder a merge.
echo "kernel,problem_idx,N,C,K,G,Hi,Wi,Y,X,stride_h,stride_w,pad_h,pad_w,latency_ms,tflops" >empty.csv
expect 3 "$foretune" convert empty.csv --arch gfx950 --output empty.ftd
one_sentence
grep -q "empty.csv holds no measurement" err.txt
test ! -e empty.ftd
expect 3 "$foretune" merge empty.csv empty.csv --output no.ftd
one_sentence
grep -q "there is no measurement in empty.csv, empty.csv" err.txt
for inputs in "empty.csv times.ftd" "times.ftd empty.csv"; do
  # shellcheck disable=SC2086
  expect 0 "$foretune" merge $inputs --output merged.ftd --overwrite
  grep -q "^96 measurements, 0 of them repeats" out.txt
done
expect 0 "$foretune" convert times.json --merge-with empty.csv --output merged.ftd --overwrite
