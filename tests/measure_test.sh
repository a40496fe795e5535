#!/usr/bin/env bash
# foretune measure: given configs beside the default and a model's pick, failures as exit codes.
#   measure_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

null=(--family null --family-option metrics=1)
problem=(gemm m=256 n=512 k=128)
expect 0 "$foretune" collect "${null[@]}" --num-shapes 30 --search-space SAMPLE:40 --output null.ftd
expect 0 "$foretune" train --dataset null.ftd --model null.ftm --trees 30 --folds 2
expect 0 "$foretune" predict --model null.ftm "${problem[@]}"
pick="$(sed -n 's/^pick: \(block_m=[0-9]* block_n=[0-9]* block_k=[0-9]* unroll=[0-9]*\).*/\1/p' out.txt)"
given="block_m=64 block_n=64 block_k=32 unroll=2"
expect 0 "$foretune" measure "${problem[@]}" "${null[@]}" --config "$given" --model null.ftm \
  --metrics accuracy --rounds 3 --json measured.json
grep -q "^given[a-z', ]*: $given$" out.txt
grep -q "model's pick: $pick$" out.txt
test "$(grep -c 'result verified' out.txt)" -ge 2
grep -q "^  accuracy " out.txt
grep -q "\"$given time_ns\"" measured.json
# The same config under two names is measured once.
expect 0 "$foretune" measure "${problem[@]}" "${null[@]}" --config "$pick" "$pick" --model null.ftm
test "$(grep -c "$pick" out.txt)" -eq 1

expect 2 "$foretune" measure "${problem[@]}" "${null[@]}" --config "block_m=17 block_n=64 block_k=32 unroll=2"
grep -q "block_m=17 is not one of its values" err.txt
one_sentence
expect 2 "$foretune" measure "${problem[@]}" "${null[@]}" --config "block_m=64"
one_sentence
expect 1 "$foretune" measure "${problem[@]}" --family null --family-option wrong=1 --config "$given"
grep -q "wrong" out.txt
