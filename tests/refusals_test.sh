#!/usr/bin/env bash
# Every command line is executed or refused. Refused are flags that nothing would read, and commands
# that would do nothing.
#   refusals_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

# refused CODE TEXT ARGUMENTS... checks for one sentence that contains the text, and for no output
# file.
refused() {
  local code="$1" text="$2"
  shift 2
  expect "$code" "$foretune" "$@"
  one_sentence
  grep -qF -- "$text" err.txt || { cat err.txt; exit 1; }
  test ! -e no.ftd
}

expect 0 "$foretune" collect --family null --num-shapes 6 --max-size 256 --search-space SAMPLE:12 \
  --output null.ftd
expect 0 "$foretune" train --dataset null.ftd --folds 0 --trees 20 --model null.ftm

# These flags depend on the contents of files.
refused 2 "--problem has an effect only with a data set" inspect null.ftm --problem "gemm m=4"
refused 2 "--family has an effect only with CSV" convert null.ftd --output no.ftd --family x
refused 2 "--role has an effect only with CSV" convert null.ftd --output no.ftd --role training
refused 2 "--device has an effect only with CSV" convert null.ftd --output no.ftd --device h200
refused 2 "--arch has an effect only with files of CK" convert null.ftd --output no.ftd --arch gfx950
refused 2 "--chunk-size has an effect only with --format" collect --chunk-size 5 --output no.ftd
refused 2 "replays nothing" collect --family null --family-data null.ftd --output no.ftd
refused 2 "--cold-cache would change no time" collect --family null --cold-cache --output no.ftd
# torch-diode's guide has this command line.
expect 0 "$foretune" validate-model --model null.ftm --dataset null.ftd --batch-size 64
test "$(grep -c "warning: --batch-size has no effect" err.txt)" = 1

# The plan keeps to the budget.
expect 0 "$foretune" collect --family null --num-shapes 4 --budget 20 --dry-run --output no.ftd
grep -q "^4 problems, 20 measurements, " out.txt

# There is nothing to do, or nothing that can be done.
refused 4 "runs none of 190 problems: null was asked for gemm problems, not conv (190)" tune --family null \
  --shapeset ck-conv --output no.ftd
refused 3 "no gemm problem in the shape set ck-conv" collect --shapeset ck-conv --family null \
  --output no.ftd
refused 4 "multiplies f32, bf16 and i8, not f64 (3)" collect --num-shapes 3 --dtypes f64 \
  --output no.ftd
refused 4 "not f16 (25)" tune --shapeset ck-25 --output no.ftd
refused 2 "no problem is left to measure; some were over --max-flops" collect --family null \
  --shapeset "$source_dir/tests/small_shapes.csv" --max-flops 1 --output no.ftd
expect 0 "$foretune" convert null.ftd --output null.csv
{
  echo "operation,m,n,k"
  tail -n +2 null.csv | cut -d, -f1-4 | sort -u
} >same.csv
head -1 null.csv | grep -q "^op,m,n,k,"
refused 2 "some are in the training data" create-validation --family null --shapeset same.csv \
  --num-shapes 0 --training-data null.ftd --output no.ftd
# Every kernel fails.
expect 4 "$foretune" collect --family null --family-option prepare_fail=1 --num-shapes 2 \
  --search-space SAMPLE:5 --output failed.ftd
one_sentence
grep -q "nothing could be measured: prepare failed (1[02])" err.txt
expect 4 "$foretune" tune --family null --family-option prepare_fail=1 --budget 4 \
  --shapeset "$source_dir/tests/small_shapes.csv"
one_sentence
grep -q "none of the problems could be tuned: no config of 4 measured ones" err.txt
expect 4 "$foretune" search --model null.ftm --m 64 --n 64 --k 64 --measure \
  --family-option prepare_fail=1
one_sentence
grep -q "no listed config could be timed: prepare failed" err.txt
# Some kernels work: those that are left out are reported once.
{
  echo "operation,m,n,k,dtype"
  for k in 16 24 32; do
    echo "mm,32,32,$k,f32"
    echo "mm,32,32,$k,f64"
  done
} >mixed.csv
expect 0 "$foretune" tune --shapeset mixed.csv --budget 3 --rounds 1
test "$(grep -c "not f64 (3)" err.txt)" = 1
echo "refusals: all as expected"
