#!/usr/bin/env bash
# Configs that are sequences of hundreds of words: collected, resumed, measured in workers, tuned,
# converted, merged and shown.
#   sequence_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
family=(--family null --family-option sequence=yes)
problem="gemm m=64 n=512 k=256"

expect 0 "$foretune" collect "${family[@]}" --num-shapes 5 --search-space SAMPLE:20 --dry-run \
  --output a.ftd
expect 0 "$foretune" collect "${family[@]}" --num-shapes 5 --search-space SAMPLE:20 --output a.ftd
grep -q '^105 measurements of 5 problems' out.txt
expect 0 "$foretune" collect "${family[@]}" --num-shapes 5 --search-space SAMPLE:20 --output a.ftd
grep -q '^0 measurements' out.txt
# Crashes for real, so in workers.
expect 0 "$foretune" collect "${family[@]}" --family-option crash=0.1 --num-shapes 3 \
  --search-space SAMPLE:20 --seed 7 --output b.ftd
grep -q 'crashed' out.txt
expect 4 "$foretune" collect "${family[@]}" --num-shapes 2 --search-space EXHAUSTIVE --output c.ftd
grep -q 'null-layers is too large to be listed' err.txt

# No line of what inspect prints holds a whole sequence; the file does.
expect 0 "$foretune" inspect a.ftd
grep -q 'null-layers v1 (sequences)' out.txt
expect 0 "$foretune" tune $problem "${family[@]}" --budget 100 --strategy local --output t.ftd
grep -q 'times as fast as the default config' out.txt
expect 0 "$foretune" inspect t.ftd --problem "$problem"
grep -q '(221 words)' out.txt
test "$(awk '{ print length }' out.txt | sort -n | tail -1)" -lt 150
for strategy in random evolution annealing; do
  expect 0 "$foretune" tune $problem "${family[@]}" --budget 60 --strategy "$strategy"
done
expect 4 "$foretune" tune $problem "${family[@]}" --budget 60 --strategy exhaustive
one_sentence

# Two metrics, as text, JSON and page.
expect 0 "$foretune" tune $problem "${family[@]}" --family-option metrics=1 --budget 80 \
  --strategy local --objective 'pareto time_ns accuracy' --json t.json --report t.html
grep -q 'hypervolume' out.txt
python3 - <<'END'
import json
document = json.load(open("t.json"))
texts = [text for text in json.dumps(document).split('"') if text.count(",") == 220]
assert texts and all(set(text.split(",")) <= set("012345") for text in texts), len(texts)
END
grep -q '<mark>' t.html

# Trees read the words pooled over the sequence; nobody but the family knows which are legal.
expect 0 "$foretune" train --dataset a.ftd --model layers.ftm --trees 60
expect 0 "$foretune" create-validation "${family[@]}" --num-shapes 3 --training-data a.ftd \
  --search-space SAMPLE:20 --output v.ftd
expect 0 "$foretune" validate-model --model layers.ftm --dataset v.ftd --training-data a.ftd \
  --no-measure --json judged.json
python3 - <<'END'
import json
mean = json.load(open("judged.json"))["metrics"]["mean_efficiency"]
assert mean > 0.8, mean
END
expect 0 "$foretune" tune $problem "${family[@]}" --budget 60 --model layers.ftm
expect 0 "$foretune" tune $problem "${family[@]}" --budget 40 --strategy guided --width 1 --max-steps 2 \
  --model layers.ftm
expect 4 "$foretune" predict --model layers.ftm $problem
one_sentence

# Other formats hold them, and merging knows them again.
for format in csv json msgpack; do
  expect 0 "$foretune" convert a.ftd --output "a.$format"
  expect 0 "$foretune" convert "a.$format" --output "back.$format.ftd"
  expect 0 "$foretune" merge a.ftd b.ftd --output merged.ftd --overwrite
  grep -q '168' out.txt
done
grep -q 'config:null-layers:1' a.csv
expect 0 "$foretune" convert a.csv --output again.json
expect 2 "$foretune" convert "$source_dir/fuzz/corpus/csv/sequence_twice.csv" --output x.ftd
one_sentence
grep -q 'second column of configs' err.txt
