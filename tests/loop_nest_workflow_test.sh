#!/usr/bin/env bash
# Loop nests as a family like any other: schedules are collected in workers, learned from, picked
# without measuring, and searched by every strategy, also along a model of other problems.
#   loop_nest_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
family=(--family loop-nest)
problem="nest_mm m=48 n=64 k=40"

for m in 32 48 64 80; do
  for n in 32 64 96; do echo "nest_mm m=$m n=$n k=$((m + 16))"; done
done >products.txt
expect 0 "$foretune" collect "${family[@]}" --shapeset products.txt --search-mode fast \
  --search-space SAMPLE:20 --output train.ftd
grep -q "of 12 problems" out.txt
expect 0 "$foretune" collect "${family[@]}" --shapeset products.txt --search-mode fast \
  --search-space SAMPLE:20 --output train.ftd
grep -q "^0 measurements" out.txt
expect 0 "$foretune" inspect train.ftd
grep -q "loop-nest v1 (sequences)" out.txt
expect 0 "$foretune" convert train.ftd --output train.csv
head -n 1 train.csv | grep -q "config:loop-nest:1"
expect 0 "$foretune" convert train.csv --family loop-nest --output again.ftd

expect 0 "$foretune" train --dataset train.ftd --model nests.ftm --trees 120
# Nobody listed these schedules: the selector generated them, and says so.
expect 0 "$foretune" predict --model nests.ftm $problem --json predicted.json
grep -q "configs that were generated for this problem and scored" out.txt
python3 - <<'PY'
import json
found = json.load(open("predicted.json"))
assert found["metrics"]["generated"] > 100, found["metrics"]
assert "vectorize" in json.dumps(found) or "block" in json.dumps(found)
PY
# A strategy builds schedules, and the model scores them.
expect 0 "$foretune" search --model nests.ftm $problem --strategy beam-bfs --budget 200 --top-k 3
# Which actions the model likes depends on times.
grep -qE "split|move|block|vectorize|unroll|pack" out.txt
expect 0 "$foretune" create-validation "${family[@]}" --num-shapes 6 --min-size 24 --max-size 96 \
  --training-data train.ftd --search-space SAMPLE:30 --model nests.ftm --output validation.ftd
expect 0 "$foretune" validate-model --model nests.ftm --dataset validation.ftd \
  --training-data train.ftd --no-measure --json judged.json
python3 - <<'PY'
import json
mean = json.load(open("judged.json"))["metrics"]["mean_efficiency"]
assert mean > 0.6, mean
PY

for strategy in local random evolution annealing greedy beam-bfs beam-dfs mcts guided; do
  expect 0 "$foretune" tune $problem "${family[@]}" --strategy $strategy --budget 60 --rounds 2
  grep -q "^best: [a-z]" out.txt
done
expect 0 "$foretune" tune $problem "${family[@]}" --strategy guided --width 2 --max-steps 6 \
  --model nests.ftm --budget 60 --rounds 2 --output tuned.ftd --json tuned.json
grep -q '"description"' tuned.json
expect 0 "$foretune" tune $problem "${family[@]}" --strategy greedy --lookahead 2 --budget 60 \
  --rounds 2
expect 0 "$foretune" tune $problem "${family[@]}" --strategy local --budget 60 --rounds 2 \
  --objective "pareto time_ns code_bytes"
grep -q "code_bytes" out.txt
expect 0 "$foretune" tune nest_conv c=8 h=12 w=12 o=16 r=3 s=3 pad=1 layout=nhwc "${family[@]}" \
  --family-option type=nest_conv --budget 40 --rounds 2

# Strategies against each other, also where configs are not built step by step.
expect 0 "$foretune" tune $problem "${family[@]}" --family-option defaults=start \
  --strategies start,random,beam2bfs,textbook --budget 30 --rounds 2 --folder contest --graphs
grep -q "^beam2bfs" out.txt
for file in manifest.json results.csv bars.svg violin.svg gain.svg; do
  test -s contest/$file
done
test "$(ls contest/graphs | wc -l)" -eq 4
expect 0 "$foretune" tune --family null --strategies random,local --budget 30 --rounds 2 --m 64 --n 64 --k 64
grep -q "^local" out.txt

# One sentence each.
expect 3 "$foretune" tune $problem "${family[@]}" --strategies random,magic --budget 10
expect 2 "$foretune" tune $problem "${family[@]}" --folder somewhere --budget 10
test "$(wc -l <err.txt)" -eq 1
expect 2 "$foretune" tune $problem "${family[@]}" --family-option actions=jump --budget 10
expect 2 "$foretune" tune $problem "${family[@]}" --strategy local --width 3 --budget 10
test "$(wc -l <err.txt)" -eq 1

# A learned policy: without measuring, with a few measurements, and in front of a search.
policy="$source_dir/python/foretune/models/loop-nest-avx512.ftm"
expect 0 "$foretune" predict --model "$policy" nest_mm m=100 n=60 k=40
expect 0 "$foretune" predict --model "$policy" nest_conv c=8 h=12 w=12 o=16 r=3 s=3 pad=1
expect 0 "$foretune" tune $problem "${family[@]}" --family-option defaults=start \
  --model "$policy" --budget 10 --rounds 2
for strategy in guided beam-bfs; do
  expect 0 "$foretune" tune $problem "${family[@]}" --family-option defaults=start \
    --strategy "$strategy" --model "$policy" --budget 20 --rounds 2
done
expect 0 "$foretune" env-search --dataset "mm m=64 n=48 k=32" --methods base,looptune \
  --policy "$policy" --measurements 6
grep -q "^looptune" out.txt
expect 2 "$foretune" env-search --dataset "mm m=64 n=48 k=32" --methods looptune --measurements 6
test "$(wc -l <err.txt)" -eq 1
expect 3 "$foretune" tune $problem "${family[@]}" --strategy policy --model nests.ftm --budget 6
grep -q "takes a model of kind policy" err.txt
