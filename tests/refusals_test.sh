#!/usr/bin/env bash
# What a command line asks for is done or refused: flags that nobody would read.
#   refusals_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

# refused CODE TEXT ARGUMENTS...: with one sentence that has the text, and no file.
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

# Flags that depend on what files hold.
refused 2 "--problem has an effect only with a data set" inspect null.ftm --problem "gemm m=4"
refused 2 "--family has an effect only with CSV" convert null.ftd --output no.ftd --family x
refused 2 "--role has an effect only with CSV" convert null.ftd --output no.ftd --role training
refused 2 "--device has an effect only with CSV" convert null.ftd --output no.ftd --device h200
refused 2 "--arch has an effect only with files of CK" convert null.ftd --output no.ftd --arch gfx950
refused 2 "--chunk-size has an effect only with --format" collect --chunk-size 5 --output no.ftd
refused 2 "replays nothing" collect --family null --family-data null.ftd --output no.ftd
refused 2 "--cold-cache would change no time" collect --family null --cold-cache --output no.ftd
# As torch-diode's guide has it.
expect 0 "$foretune" validate-model --model null.ftm --dataset null.ftd --batch-size 64
test "$(grep -c "warning: --batch-size has no effect" err.txt)" = 1

# The plan keeps to the budget.
expect 0 "$foretune" collect --family null --num-shapes 4 --budget 20 --dry-run --output no.ftd
grep -q "^4 problems, 20 measurements, " out.txt

echo "refusals: all as expected"
