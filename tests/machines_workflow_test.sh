#!/usr/bin/env bash
# Measurements of one CPU with two vector lengths, which count as two machines: one joint model, one a
# machine, and picks on a machine without data.
#   machines_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
trees=(--trees 20 --folds 0)

for isa in generic avx2; do
  expect 0 "$foretune" collect --family cpu-gemm --family-option "isa=$isa" --threads 1 \
    --num-shapes 12 --log-normal --max-flops 2e7 --search-space SAMPLE:12 --search-mode fast --output "$isa.ftd"
done
expect 0 "$foretune" merge generic.ftd avx2.ftd --output both.ftd
expect 0 "$foretune" inspect both.ftd
mapfile -t digests < <(sed -n 's/^  machine .*(digest \([0-9a-f]*\))$/\1/p' out.txt)
test "${#digests[@]}" -eq 2
grep -q 'vector_bytes=32' out.txt
grep -q 'vector_bytes=16' out.txt

# The joint model knows both machines, and picks for this one.
expect 0 "$foretune" train --dataset both.ftd --model joint.ftm "${trees[@]}"
grep -q '2 machines: one joint model' err.txt
expect 0 "$foretune" inspect joint.ftm
test "$(grep -c '^  machine ' out.txt)" -eq 2
expect 0 "$foretune" predict gemm m=256 n=256 k=256 --model joint.ftm
expect 0 "$foretune" validate-model --model joint.ftm --dataset both.ftd --no-measure --html joint.html
for digest in "${digests[@]}"; do
  grep -q "$digest" joint.html
done

expect 0 "$foretune" evaluate --dataset both.ftd --leave-out machine "${trees[@]}" --json left.json
for digest in "${digests[@]}"; do
  grep -q "machine $digest" out.txt
done
expect 3 "$foretune" evaluate --dataset both.ftd --leave-out machine:1234 "${trees[@]}"
one_sentence
expect 2 "$foretune" evaluate --dataset avx2.ftd --leave-out machine \
  "${trees[@]}"
one_sentence

expect 0 "$foretune" train --dataset both.ftd --model models --per-machine "${trees[@]}"
test "$(ls models/*.ftm | wc -l)" -eq 2
for digest in "${digests[@]}"; do
  expect 0 "$foretune" inspect "models/cpu-gemm-$digest.ftm"
  test "$(grep -c '^  machine ' out.txt)" -eq 1
done
# The same as learning from its measurements alone.
expect 0 "$foretune" train --dataset both.ftd --model one.ftm --arch "${digests[1]}" "${trees[@]}"
expect 0 "$foretune" inspect one.ftm
grep -q "digest ${digests[1]}" out.txt

expect 4 "$foretune" train --dataset both.ftd --model net.ftm --model-type standard
one_sentence
grep -q 'learns from one machine' err.txt
expect 3 "$foretune" train --dataset both.ftd --model more.ftm --warm-start one.ftm "${trees[@]}"
grep -q 'several machines is not continued' err.txt
