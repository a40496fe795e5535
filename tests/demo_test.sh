#!/usr/bin/env bash
# The demo on machines that are less than this one: with one core, and with AVX2 but no AVX-512; the
# demo of convolutions.
#   demo_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

demo() { # demo NAME KIND [COMMAND...]
  expect 0 "${@:3}" env "FORETUNE=$foretune" "FORETUNE_OUT=$work/$1" FORETUNE_SMALL=yes \
    FORETUNE_BUSY=yes "$source_dir/scripts/demo.sh" "$2"
  grep -q "first pick after" out.txt
  grep -q '"seconds_to_first_pick"' "$1/summary.json"
  test -s "$1/report.html"
}

first_core="$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')"
demo one_core gemm taskset -c "$first_core"
expect 0 "$foretune" inspect "$work/one_core/training/first.ftd"
demo avx2 gemm env FORETUNE_ISA=avx2
expect 0 "$foretune" convert "$work/avx2/training/first.ftd" --output rows.csv
test "$(grep -c avx512 rows.csv)" -eq 0
grep -q avx2 rows.csv
demo conv conv
test -s conv/conv.ftm
expect 2 "$source_dir/scripts/demo.sh" sparse
grep -q "not of 'sparse'" err.txt
echo "demo: as expected"
