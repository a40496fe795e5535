#!/usr/bin/env bash
# --threads limits the measured kernels, and data sets record the limit in force.
#   thread_limit_test.sh FORETUNE
set -euo pipefail
foretune="$1"
source "$(dirname "${BASH_SOURCE[0]}")/expect.bash"
cores="$(nproc)"

# Prints the values of a column of a data set, each once, on one line.
values_of() {
  expect 0 "$foretune" convert "$1" --output values.csv --overwrite
  local column
  column="$(head -1 values.csv | tr , '\n' | grep -nx "$2" | cut -d: -f1)"
  tail -n +2 values.csv | cut -d, -f"$column" | sort -nu | xargs
}
# Checks that a data set has configs and contexts of one thread only.
is_single() {
  test "$(values_of "$1" threads)" = 1
  test "$(values_of "$1" context_threads)" = 1
}

echo "m,n,k
96,192,160" >shape.csv
problem=(--shapeset shape.csv --num-shapes 0 --search-mode fast)
collect=(collect --output single.ftd "${problem[@]}" --search-space SAMPLE:24)
expect 0 "$foretune" "${collect[@]}" --threads 1
is_single single.ftd
expect 0 "$foretune" collect --output option.ftd "${problem[@]}" --search-space SAMPLE:6 \
  --family-option threads=1
is_single option.ftd
expect 0 "$foretune" train --dataset single.ftd --folds 0 --trees 10 --threads 1 --model single.ftm
expect 0 "$foretune" create-validation --output judge.ftd --shapeset shape.csv --num-shapes 0 \
  --search-space SAMPLE:4 --search-mode fast --threads 1 --confirm-top 0
# Measurements that are added later have the limit of the data set.
expect 0 "$foretune" validate-model --model single.ftm --dataset judge.ftd --measure-top 6
grep -q "measured [1-9][0-9]* missing pick" err.txt
is_single judge.ftd
expect 0 "$foretune" tune --m 96 --n 192 --k 160 --threads 1 --budget 12 --rounds 2 --finalists 3 \
  --output tuned.ftd
is_single tuned.ftd
expect 0 "$foretune" search --model single.ftm --m 96 --n 192 --k 160 --measure --rounds 1 --top-k 4
grep -q "threads=1" out.txt
if grep -q "threads=2\|another machine" out.txt err.txt; then exit 1; fi
expect 0 "$foretune" collect --active --rounds 2 --configs-per-problem 8 --output active.ftd \
  --shapeset shape.csv --num-shapes 0 --search-mode fast --threads 1 --policy random
is_single active.ftd

if [[ "$cores" -gt 1 ]]; then
  expect 0 "$foretune" collect --output all.ftd "${problem[@]}" --search-space SAMPLE:24
  test "$(values_of all.ftd context_threads)" = "$cores"
  values_of all.ftd threads | grep -q " "
  # A file keeps to one limit.
  cp single.ftd before.ftd
  expect 3 "$foretune" "${collect[@]}"
  one_sentence
  grep -q "with the threads of 1 core of this machine, not of $cores" err.txt
  cmp single.ftd before.ftd
  expect 2 "$foretune" collect --output no.ftd --threads 1 --family-option threads=2
  one_sentence
  grep -q "contradict each other" err.txt
fi
expect 2 "$foretune" collect --output no.ftd --threads $((cores + 1))
one_sentence
grep -q "threads is a number from 1 to" err.txt
# A family without threads and recorded times accept no number of threads but their own.
expect 0 "$foretune" collect --output null.ftd --family null --num-shapes 1 --search-space SAMPLE:3 \
  --threads 1
expect 2 "$foretune" collect --output no.ftd --family null --threads 2
one_sentence
grep -q "family null use 1 thread" err.txt
replay=(collect --family recorded --family-data single.ftd --num-shapes 0 --search-space EXHAUSTIVE)
expect 0 "$foretune" "${replay[@]}" --output replayed.ftd
is_single replayed.ftd
expect 2 "$foretune" "${replay[@]}" --threads 2 --output no.ftd
one_sentence
test ! -e no.ftd
echo "thread limit: all as expected"
