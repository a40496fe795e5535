#!/usr/bin/env bash
# Fuzzes every target for some seconds, from its corpus:
#
#   scripts/fuzz.sh 10             all of them
#   scripts/fuzz.sh 300 csv json   these
#
# As many at once as there are cores. A finding lies in build/asan/findings afterwards, and the exit
# code is not zero. The corpora do not change: other inputs that were found are forgotten.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds for each target}
shift
root="$PWD"
mkdir -p build/asan/findings
cmake --preset asan >build/configure-asan.log 2>&1 || { cat build/configure-asan.log; exit 1; }
targets=("${@/%/_fuzz}")
if [[ $# -eq 0 ]]; then
  targets=(fuzzers)
fi
cmake --build --preset asan --target "${targets[@]}" --parallel "$(nproc)" >build/build-fuzz.log 2>&1 || {
  grep -vE "^\[" build/build-fuzz.log | tail -n 40
  exit 1
}
if [[ $# -eq 0 ]]; then
  for target in build/asan/fuzz/*_fuzz; do
    set -- "$@" "$(basename "$target" _fuzz)"
  done
fi

fuzz_one() {
  local name="$1" work
  work="$(mktemp -d)"
  local log="build/asan/findings/$name.log"
  # Found inputs go to the first folder, seeds come from both.
  if "build/asan/fuzz/${name}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -artifact_prefix="$root/build/asan/findings/$name-" -print_final_stats=1 \
    "$work" "fuzz/corpus/$name" >"$log" 2>&1; then
    printf '%-20s %s runs\n' "$name" "$(awk '/number_of_executed_units/ { print $2 }' "$log")"
    rm -rf "$work"
  else
    tail -n 30 "$log"
    printf '%-20s FAILED\n' "$name"
    rm -rf "$work"
    return 1
  fi
}
export -f fuzz_one
export seconds root
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
