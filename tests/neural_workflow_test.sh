#!/usr/bin/env bash
# Neural models by the command line: every type trained with tiny numbers, and asked like any other.
#   neural_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

expect 0 "$foretune" convert "$source_dir/tests/triton_times.csv" --output times.ftd --device h200
small=(--dataset times.ftd --folds 2 --num-epochs 3 --threads 1)
small_standard=("${small[@]}" --model-type standard --hidden-dims 16,8)

expect 0 "$foretune" train "${small_standard[@]}" --model standard.ftm --log-dir log \
  --work-dir kept
grep -q "max_difference_to_libtorch" out.txt
test -n "$(find log -name '*.csv')"
# Two folds and all data: two lines and a mark each, and what the legend has.
test "$(grep -o '<polyline class="series c[01] s[01] thin"' log/loss.svg | wc -l)" = 4
test "$(grep -o '<circle class="mark c0"' log/loss.svg | wc -l)" = 4
expect 0 "$foretune" train "${small_standard[@]}" --model again.ftm --work-dir kept \
  --resume
cmp standard.ftm again.ftm
expect 0 "$foretune" train "${small[@]}" --model-type deep --hidden-dim 16 --num-layers 2 \
  --loss lambdarank --model deep.ftm --weights int8
grep -q "int8_rms_difference" out.txt
expect 0 "$foretune" train "${small[@]}" --model-type two-tower --hidden-dim 16 --loss listmle \
  --model towers.ftm
expect 0 "$foretune" train "${small[@]}" --model-type ensemble --ensemble-with standard \
  --hidden-dims 16,8 --trees 10 --model ensemble.ftm --log-dir ensemble_log
test -s ensemble_log/loss.svg
for model in standard deep towers ensemble; do
  expect 0 "$foretune" inspect $model.ftm
  test "$(grep -c '^  training .* epochs, best [1-3]: training loss [0-9.e-]*, stop' out.txt)" = 3
  test "$(grep -c '"curves"' out.txt || true)" = 0
  expect 0 "$foretune" validate-model --model $model.ftm --dataset times.ftd --html $model.html
  grep -q "Losses of the networks over the epochs" $model.html
  expect 0 "$foretune" predict --model $model.ftm gemm m=200 n=300 k=100 dtype=bf16 --explain
done
grep -q "network, network: standard with [0-9,]* weights, [0-9]* inputs, target" standard.html

# Trees have curves of their own, and nothing of these.
expect 0 "$foretune" train --dataset times.ftd --folds 2 --trees 10 --threads 1 --log-dir tree_log \
  --model trees.ftm
test -s tree_log/loss.csv -a ! -e tree_log/loss.svg
expect 0 "$foretune" inspect trees.ftm
test "$(grep -c '^  training ' out.txt || true)" = 0
expect 0 "$foretune" validate-model --model trees.ftm --dataset times.ftd --html trees.html
test "$(grep -c 'Losses of the networks over the epochs' trees.html || true)" = 0

expect 2 "$foretune" train "${small[@]}" --model-type two-tower --weights int8 --model no.ftm
one_sentence
expect 2 "$foretune" train "${small_standard[@]}" --resume --model no.ftm
one_sentence
expect 3 "$foretune" train "${small_standard[@]}" --trainer nowhere --model no.ftm
one_sentence
test ! -e no.ftm
