#!/usr/bin/env bash
# The command line over loop nests: schedules by search, as text, as LoopTune's actions, as C that a
# compiler takes; bad input is one sentence. Exits with 77 where no machine code can be written.
#
#   loop_workflow_test.sh FORETUNE C_COMPILER
set -euo pipefail
foretune="$1"
compiler="$2"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
has() { # has TEXT
  grep -qF -- "$1" out.txt || {
    cat out.txt err.txt >&2
    fail "'$1' is not in the output"
  }
}
refuses() { # refuses CODE TEXT ARGUMENTS...
  local code="$1" text="$2" got=0
  shift 2
  "$foretune" env "$@" >out.txt 2>err.txt || got=$?
  [[ "$got" -eq "$code" ]] || fail "exit $got instead of $code: $*"
  grep -qF -- "$text" err.txt || fail "'$text' is not in: $(cat err.txt)"
  [[ "$(wc -l <err.txt)" -le 1 ]] || fail "more than one sentence: $(cat err.txt)"
}

if ! "$foretune" env "mm m=8 n=8 k=8" >out.txt 2>err.txt; then
  grep -q "loop nests are compiled for" err.txt || fail "$(cat err.txt)"
  exit 77
fi

"$foretune" env "mm m=40 n=48 k=24 bias relu" --search 12 --c kernel.c >out.txt 2>err.txt
has "GFLOP/s"
has "block"
has "wrote kernel.c"
"$compiler" -std=c11 -O1 -Wall -Wextra -Werror -c kernel.c -o kernel.o
schedule="$(grep '^split' out.txt | tail -n 1)"
"$foretune" env "mm m=40 n=48 k=24 bias relu" --schedule "$schedule" >out.txt 2>err.txt
has "$schedule"
"$foretune" env "mm m=128 n=128 k=128" --actions split_4,down,down,split_16,swap_up >out.txt 2>err.txt
has "swap_up"
has "for m0 in 128 by 4"
"$foretune" env "conv c=8 h=10 w=10 o=16 r=3 s=3 pad=1 nhwc" --isa avx2 --search 4 >out.txt 2>err.txt
has "avx2"

refuses 2 "no kind of computation" "gemm m=3"
refuses 2 "m is 0" "mm m=0"
refuses 2 "is no loop" "mm m=8 n=8 k=8" --schedule "split q0 2"
refuses 2 "no action" "mm m=8 n=8 k=8" --actions jump
refuses 4 "along m" "mm m=8 n=8 k=8" --schedule "vectorize m0"
refuses 2 "one of" "mm m=8" --search 3 --actions down
echo "loop workflow: all as expected"
