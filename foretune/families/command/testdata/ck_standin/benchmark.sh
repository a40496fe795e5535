#!/usr/bin/env bash
# A benchmark program of CK's tile engine as far as its command line and its report go; the time is
# a formula. Its own name says which kernel it is.
set -euo pipefail
name="$(basename "$0")"
name="${name#benchmark_}"
m=3840 n=4096 k=2048 json=false
for word in "$@"; do
  case "$word" in
    -m=*) m="${word#*=}" ;;
    -n=*) n="${word#*=}" ;;
    -k=*) k="${word#*=}" ;;
    -warmup=* | -repeat=* | -verify=*) ;;
    -json_output=*) json="${word#*=}" ;;
    *) echo "unknown argument $word" >&2; exit 1 ;;
  esac
done
IFS=_ read -r _ _ dtype layout _ _ _ pad_m pad_n pad_k _ tile _ <<<"$name"
IFS=x read -r tile_m tile_n tile_k <<<"$tile"
# As the real one it says so, and ends well.
if [[ ($pad_m == False && $((m % tile_m)) -ne 0) || ($pad_n == False && $((n % tile_n)) -ne 0) ||
  ($pad_k == False && $((k % tile_k)) -ne 0) ]]; then
  echo "Benchmark failed: Wrong! Arguments not supported!" >&2
  exit 0
fi
[[ "$json" == true ]] || { echo "Running kernel $name"; exit 0; }
order() { [[ "$1" == r ]] && echo RowMajor || echo ColumnMajor; }
awk -v m="$m" -v n="$n" -v k="$k" -v tm="$tile_m" -v tn="$tile_n" -v name="$name" -v dtype="$dtype" \
  -v a="$(order "${layout:0:1}")" -v b="$(order "${layout:1:1}")" -v c="$(order "${layout:2:1}")" '
BEGIN {
  ms = 0.05 + 2 * m * n * k / 1e11 * (1 + 64 / tm + 64 / tn)
  printf "{\n \"name\": \"%s\",\n \"problem\": {\n   \"split_k\":1,\n   \"m\":%d,\n   \"n\":%d,\n   \"k\":%d,\n", name, m, n, k
  printf "   \"dtype_a\":\"%s\",\n   \"dtype_b\":\"%s\",\n   \"dtype_acc\":\"fp32\",\n   \"dtype_c\":\"%s\",\n", dtype, dtype, dtype
  printf "   \"layout_a\":\"%s\",\n   \"layout_b\":\"%s\",\n   \"layout_c\":\"%s\"\n},\n", a, b, c
  printf " \"perf_result\": {\n   \"latency(ms)\": %.2f,\n   \"tflops(TFlops)\": %.2f,\n   \"bandwidth(GB/s)\": %.2f\n}\n}\n", ms, 2 * m * n * k / ms / 1e9, 2 * (m * k + k * n + m * n) / ms / 1e6
}'
