#!/usr/bin/env bash
# Measures real kernels on this CPU, trains a model, and shows how close its picks come to the best
# on problems it never saw. Leaves everything in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

scripts/install_dependencies.sh
echo "building"
mkdir -p build
cmake --preset release >build/configure-release.log || { cat build/configure-release.log; exit 1; }
cmake --build --preset release --parallel --target foretune >build/build-release.log || {
  tail -n 40 build/build-release.log
  exit 1
}
foretune=build/release/tools/foretune/foretune
out=build/demo
rm -rf "$out"
mkdir -p "$out"

say() {
  printf '\n\033[1m%s\033[0m\n$ %s\n' "$1" "${*:2}"
  "${@:2}"
}
if [[ -n "${NO_COLOR:-}" || ! -t 1 ]]; then
  say() {
    printf '\n%s\n$ %s\n' "$1" "${*:2}"
    "${@:2}"
  }
fi

# Half a GFLOP keeps one run of a slow config under a quarter of a second.
limit=5e8
say "1. Measure kernels on problems drawn as workloads have them" \
  "$foretune" --seed 50 collect --output "$out/train.ftd" --num-shapes 240 --log-normal \
  --operations mm addmm bmm --max-flops $limit --search-space SAMPLE:128 \
  --search-mode fast --budget 300s
say "2. Learn which is fastest" \
  "$foretune" --seed 50 train --dataset "$out/train.ftd" --model "$out/gemm.ftm"
say "3. Measure problems it has never seen, densely" \
  "$foretune" --seed 51 create-validation --output "$out/validation.ftd" --num-shapes 44 \
  --log-normal --operations mm addmm bmm --max-flops $limit --training-data "$out/train.ftd" \
  --model "$out/gemm.ftm"
say "4. How close are the picks to the best?" \
  "$foretune" --seed 50 validate-model --model "$out/gemm.ftm" --dataset "$out/validation.ftd" \
  --training-data "$out/train.ftd" --html "$out/report.html" --json "$out/summary.json"
say "5. Ask it" \
  "$foretune" predict --model "$out/gemm.ftm" --m 96 --n 768 --k 512
# The figures of the demo hold its whole duration, installs and builds included.
python3 - "$out/summary.json" "$((SECONDS - start))" <<'PYTHON'
import json
import sys

path, seconds = sys.argv[1], int(sys.argv[2])
with open(path) as file:
    summary = json.load(file)
summary["name"] = "demo"
summary["metrics"]["seconds"] = seconds
with open(path, "w") as file:
    json.dump(summary, file, indent=2)
    file.write("\n")
PYTHON
printf '\nreport: %s\nfigures: %s\nwhole demo: %s s\n' "$out/report.html" "$out/summary.json" \
  "$((SECONDS - start))"
