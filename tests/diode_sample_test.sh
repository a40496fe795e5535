#!/usr/bin/env bash
# The measurements that torch-diode ships, which are not part of the project: skipped without them.
#   diode_sample_test.sh FORETUNE SOURCE_DIR [SHARED_DATA_FOLDER]
set -euo pipefail
foretune="$1"
source_dir="$2"
sample="${3:-}/diode/matmul_dataset.json"
if [[ ! -f "$sample" ]]; then
  echo "skipped: there is no $sample"
  exit 77
fi
source "$source_dir/tests/expect.bash"

expect 0 "$foretune" convert "$sample" --output diode.ftd
grep -q "^84 rows read, 84 kept" out.txt
# Its two sizes are one problem to judge a model by, and one to learn from, which is unlike it: what
# is learned is judged by the same times.
expect 0 "$foretune" convert "$sample" --role validation --output validation.ftd
train=(train --folds 2 --trees 20 --threads 1 --min-rows-per-leaf 2)
expect 0 "$foretune" "${train[@]}" --dataset diode.ftd --model diode.ftm
expect 0 "$foretune" validate-model --model diode.ftm --dataset validation.ftd \
  --family-data "$sample"
expect 0 "$foretune" predict --model diode.ftm gemm m=64 n=64 k=64 dtype=f16
expect 0 "$foretune" import-model "$source_dir/foretune/interop/diode/testdata/diode_v1.pt" \
  --pool diode.ftd --output v1.ftm
expect 0 "$foretune" validate-model --model v1.ftm --dataset validation.ftd --family-data diode.ftd
# Replayed, as if it were measured here.
expect 0 "$foretune" collect --family recorded --family-data "$sample" --num-shapes 0 \
  --search-space EXHAUSTIVE --output train.ftd
grep -q "^84 measurements of 8 problems" out.txt
expect 0 "$foretune" "${train[@]}" --dataset train.ftd --model again.ftm
