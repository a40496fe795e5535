#!/usr/bin/env bash
# The command line over loop nests: schedules by search, as text, as LoopTune's actions, as C that a
# compiler takes; lists of benchmarks; bad input is one sentence. Exits with 77 where no machine
# code can be written.
#
#   loop_workflow_test.sh FORETUNE C_COMPILER SOURCE_DIR
set -euo pipefail
foretune="$1"
compiler="$2"
source "$3/tests/expect.bash"

has() { # has TEXT
  grep -qF -- "$1" out.txt || {
    cat out.txt err.txt >&2
    fail "'$1' is not in the output"
  }
}
refuses() { # refuses CODE TEXT ARGUMENTS... of env
  refuses_any "$1" "$2" env "${@:3}"
}
refuses_any() { # refuses_any CODE TEXT SUBCOMMAND ARGUMENTS...
  local code="$1" text="$2" got=0
  shift 2
  "$foretune" "$@" >out.txt 2>err.txt || got=$?
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

# One observation alone, for other programs.
"$foretune" env "mm m=16 n=24 k=8" --actions split_4,down --observe loop_tree >out.txt 2>err.txt
grep -q '^> *for m1 in 4 by 1$' out.txt || fail "no tree with a cursor: $(cat out.txt)"
"$foretune" env "mm m=16 n=24 k=8" --observe ir_graph_dot >out.txt 2>err.txt
[[ "$(head -n 1 out.txt)" == 'digraph "mm m=16 n=24 k=8" {' ]] || fail "no graph: $(cat out.txt)"
"$foretune" env "mm m=16 n=24 k=8" --observe loops_tensor >out.txt 2>err.txt
[[ "$(wc -lw <out.txt | xargs)" == "10 200" ]] || fail "not a row of numbers for each loop: $(cat out.txt)"
refuses 2 "no observation" "mm m=16 n=24 k=8" --observe loops

# Benchmarks: generated, split, read back by name and by path.
"$foretune" env-generate --dimA 16:32:16,8 --dimB 8,16\|24 --out all.txt --train train.txt --test test.txt \
  --test-share 0.25 --seed 3 >out.txt 2>err.txt
has "wrote all.txt: 4 benchmarks"
has "wrote test.txt: 1 benchmark"
[[ "$(cat train.txt test.txt | grep -c '^mm')" -eq 4 ]] || fail "the parts are not the whole"
"$foretune" env-generate --list >out.txt
has "mm64_256_16_test25"
"$foretune" env --bench all.txt/mm16_24_8 --actions split_4,down,swap_down >out.txt 2>err.txt
has "mm m=16 n=24 k=8"
[[ "$(grep -c '^for m0 in 16 by 4' out.txt)" -eq 3 ]] || fail "not a tree after each action"
"$foretune" env --bench mm64_80_96 >out.txt 2>err.txt
has "mm m=64 n=80 k=96"
"$foretune" env-generate --dimA 16:48:16,24 --dimB "24,8|16" --permute --out orders.txt --train train.txt \
  --test test.txt --test-share 0.3 --seed 7 >out.txt 2>err.txt
has "wrote orders.txt: 36 benchmarks"
has "wrote test.txt: 12 benchmarks"
"$foretune" env --bench orders.txt/mm48_16_24.nkm --schedule "split n0 8" >out.txt 2>err.txt
[[ "$(grep -m 1 '^for' out.txt)" == "for n0 in 16 by 8"* ]] || fail "a schedule forgot where its benchmark starts"

# Searches: a folder of results that is whole, the same schedules for the same seed where times do
# not matter, nothing written over.
"$foretune" env-search --dataset all.txt --eval_size 2 --methods base,random,beam2bfs,guided --measurements 30 --seed 5 \
  --output results --debug >out.txt 2>err.txt
has "guided"
[[ "$(grep -c '^  best: ' out.txt)" -eq 2 ]] || fail "not a schedule for each benchmark"
for file in manifest.json results.csv bars.svg violin.svg gain.svg problems/mm16_16_8.csv \
  graphs/mm16_24_8-guided.dot; do
  [[ -s "results/$file" ]] || fail "there is no results/$file"
done
[[ "$(grep -c . results/results.csv)" -eq 9 ]] || fail "results.csv has $(grep -c . results/results.csv) lines"
[[ -n "$(find results/tensorboard/guided -name 'events.out.tfevents.*')" ]] || fail "no events"
python3 -c 'import json; facts = json.load(open("results/manifest.json")); assert facts["seed"] == 5, facts'
"$foretune" env-search --dataset all.txt --eval-size 2 --methods random --measurements 30 --seed 5 --output again \
  >out.txt 2>err.txt
schedules() { python3 -c '
import csv, sys
print([row["config"] for row in csv.DictReader(open(sys.argv[1])) if row["strategy"] == "random"])' "$1"; }
[[ "$(schedules results/problems/mm16_24_8.csv)" == "$(schedules again/problems/mm16_24_8.csv)" ]] ||
  fail "the same seed tried something else"
refuses_search() { # refuses_search TEXT ARGUMENTS...
  local text="$1"
  shift
  if "$foretune" env-search "$@" >out.txt 2>err.txt; then
    fail "was not refused: $*"
  fi
  grep -qF -- "$text" err.txt || fail "'$text' is not in: $(cat err.txt)"
}
# Benchmarks that start from a schedule, LoopTune's recipe, and actions that name their loop.
"$foretune" env-search --dataset orders.txt --eval-size 2 --methods recipe,greedy2 --measurements 12 >out.txt 2>err.txt
has "recipe"
"$foretune" env-search --dataset mm64_80_96 --actions loops --methods textbook --measurements 8 >out.txt 2>err.txt
has "textbook"
refuses_search "is there and not empty" --dataset all.txt --output results
refuses_search "there is no strategy 'magic'" --dataset all.txt --methods magic
refuses_search "did you mean 'mm64_256_16_test'" --dataset mm64_256_16_tset
refuses_search "is there twice" --dataset all.txt --methods base,base

refuses 2 "no kind of computation" "gemm m=3"
refuses 2 "m is 0" "mm m=0"
refuses 2 "is no loop" "mm m=8 n=8 k=8" --schedule "split q0 2"
refuses 2 "no action" "mm m=8 n=8 k=8" --actions jump
refuses 4 "along m" "mm m=8 n=8 k=8" --schedule "vectorize m0"
refuses 2 "one of" "mm m=8" --search 3 --actions down
refuses 2 "say what to compute"
refuses 2 "say what to compute" "mm m=8" --bench mm64_80_96
refuses 2 "name one: resnet50/" --bench resnet50
refuses 3 "did you mean 'resnet50'" --bench resnet5O
refuses_any 2 "not the same list" env-generate --dimA 8,8 --dimB 9,8 --out none.txt
refuses_any 2 "go together" env-generate --dimA 8,8 --dimB 8,8 --test none.txt
refuses_any 2 "leaves --test nothing" env-generate --dimA 8,8 --dimB 8,8 --train none.txt \
  --test none.txt
[[ ! -e none.txt ]] || fail "a refusal wrote a file"
echo "m=64" >>orders.txt
refuses 2 "orders.txt:38: 'm=64' is a name without" --bench orders.txt
echo "loop workflow: all as expected"
