#!/usr/bin/env bash
# Measurements in the formats of others, from their files to a judged model.
#   foreign_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

# torch-diode's older schema, in which a config is JSON text: products of SIZE and 2 SIZE in six
# tiles, of which one fails. The flag is true or false.
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

# What was measured elsewhere, replayed: drawn from, learned from, judged.
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
# As they are, too, and in every table that describes them.
for table in gemm-triton-flags gemm-diode gemm-diode-v1; do
  expect 0 "$foretune" train --dataset times.ftd --features $table --model plain.ftm "${quick[@]}"
done
# A checkpoint of torch-diode ranks what its own collector measured.
for checkpoint in v1 deep; do
  expect 0 "$foretune" import-model \
    "$source_dir/foretune/models/exchange/testdata/diode_$checkpoint.pt" --pool times.ftd \
    --output $checkpoint.ftm
  expect 0 "$foretune" validate-model --model $checkpoint.ftm --dataset rest.ftd \
    --family-data times.ftd
done
# A flag makes another config, which is learned apart and written back.
diode_document true 64 128 256 512 1024 2048 >flagged.json
expect 0 "$foretune" convert flagged.json --output flagged.ftd
expect 0 "$foretune" merge times.ftd flagged.ftd --output both.ftd
grep -q "^144 measurements, 0 of them repeats" out.txt
expect 0 "$foretune" train --dataset both.ftd --model both.ftm "${quick[@]}"
expect 0 "$foretune" predict --model both.ftm gemm m=1024 n=2048 k=1024 dtype=f16 --top-k 1
grep -q "allow_tf32=yes" out.txt
expect 0 "$foretune" convert both.ftd --output again.json --to diode-json
test "$(grep -o '"ALLOW_TF32":true' again.json | wc -l)" = 48
