#!/usr/bin/env bash
# Families that are files: flags of a compiler and an approximation are measured, learnt from, asked
# for and tuned, by the command line alone.
#   command_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
cp -r "$source_dir/examples/command" examples

# A sum in C with three knobs: quick to compile and to run, so that a model can be trained on it.
mkdir sum
cat >sum/sum.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  const long n = atol(argv[1]) * 1000;
  double chains[8] = {0};
  for (long i = 0; i < n; ++i) chains[i % CHAINS] += (double)(i % 10);
  double sum = 0;
  for (int c = 0; c < CHAINS; ++c) sum += chains[c];
  printf("sum %.0f\n", sum);
  return argc > 2;
}
END
cat >sum/sum.toml <<'END'
name = "chained-sum"
description = "sums with several chains"
[problem]
n = {max = 100000, draw = [10, 3000], help = "thousands of numbers"}
[parameters]
chains = [1, 2, 4, 8]
opt = {values = ["-O0", "-O1", "-O2"], default = "-O1"}
[[constraints]]
expression = "chains <= n"
reason = "more chains than thousands of numbers"
[build]
command = ["gcc", "{opt}", "-DCHAINS={chains}", "-o", "sum", "{source}/sum.c"]
[run]
command = ["{build}/sum", "{n}"]
time_limit_s = 10
[metrics.sum]
from = {regex = "^sum ([0-9]+)$"}
[metrics.code_bytes]
unit = "B"
stage = "evaluation"
command = ["size", "{build}/sum"]
from = {regex = "^ *([0-9]+)"}
[check]
prepare = ["gcc", "-O0", "-DCHAINS=1", "-o", "reference", "{source}/sum.c"]
reference = ["./reference", "{n}"]
END
sum=(--plugin sum/sum.toml)
expect 0 "$foretune" "${sum[@]}" collect --family chained-sum --num-shapes 12 \
  --search-space EXHAUSTIVE --output train.ftd
expect 0 "$foretune" "${sum[@]}" collect --family chained-sum --num-shapes 12 \
  --search-space EXHAUSTIVE --output train.ftd # resumed: nothing is measured twice
expect 0 "$foretune" "${sum[@]}" create-validation --family chained-sum --num-shapes 4 \
  --training-data train.ftd --search-space EXHAUSTIVE --output validation.ftd
expect 0 "$foretune" "${sum[@]}" train --dataset train.ftd --model sum.ftm --trees 40
expect 0 "$foretune" "${sum[@]}" validate-model --model sum.ftm --dataset validation.ftd \
  --training-data train.ftd --no-measure
expect 0 "$foretune" "${sum[@]}" predict --model sum.ftm chained_sum n=500
grep -q "chains=" out.txt
expect 0 "$foretune" "${sum[@]}" tune --family chained-sum --budget 8 chained_sum n=500
grep -q "^times are those of whole processes, their start included: .*sum/sum.toml has no \[time\]" err.txt
expect 0 "$foretune" "${sum[@]}" tune --family chained-sum --budget 8 \
  --objective "minimise code_bytes subject to time_ns <= 2 * baseline" chained_sum n=500
expect 0 "$foretune" "${sum[@]}" convert train.ftd --output train.csv
grep -q "chains" train.csv
# Without the file nobody knows the family.
expect 2 "$foretune" tune --family chained-sum chained_sum n=500
one_sentence
# An option that it does not have.
expect 2 "$foretune" "${sum[@]}" tune --family-option x=1 --family chained-sum chained_sum n=500
one_sentence

# The examples.
expect 0 "$foretune" --plugin examples/two_metrics/heat.toml tune --family heat --strategy exhaustive \
  --objective "minimise time_ns subject to error <= 0.01" heat size=40
grep -q "error" out.txt
if grep -q "whole processes" err.txt; then fail "a file with [time] got the note"; fi
expect 0 "$foretune" --plugin examples/compiler_flags/flags.toml tune --family compiler-flags \
  --budget 12 compiler_flags n=80

# A program that crashes on some of its configs is measured to the end.
cat >crash.toml <<'END'
name = "crashing"
[parameters]
code = {min = 0, max = 3}
[run]
command = ["sh", "-c", "exit {code}"]
END
expect 0 "$foretune" --plugin crash.toml collect --family crashing --search-space EXHAUSTIVE \
  --num-shapes 0 --output crash.ftd
expect 0 "$foretune" --plugin crash.toml convert crash.ftd --output crash.csv
[[ "$(grep -c "exit code" crash.csv)" -eq 3 ]]

# Files that make no sense: one sentence with file, line and key.
sed 's/^prepare/prepair/' sum/sum.toml >sum/wrong.toml
expect 3 "$foretune" --plugin sum/wrong.toml tune --family chained-sum chained_sum n=500
one_sentence
grep -q "sum/wrong.toml:[0-9]*: check.prepair is no key; did you mean prepare?" err.txt
echo "families that are files: as expected"

# The file in the README works as it stands there.
mkdir readme
cp "$source_dir/examples/command/compiler_flags/kernel.c" readme
awk '/^```toml$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source_dir/README.md" >readme/flags.toml
expect 0 "$foretune" --plugin readme/flags.toml tune --family compiler-flags compiler_flags n=40 --budget 4
grep -q "best: opt=" out.txt
