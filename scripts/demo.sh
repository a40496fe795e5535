#!/usr/bin/env bash
# Measures real kernels on this CPU, trains a model, and shows how close its picks come to the best
# on problems it never saw. Leaves everything in build/demo. Kernels use the cores that other work
# leaves free. Refuses to measure where that is less than a quarter of them.
#
#   scripts/demo.sh         products of matrices
#   scripts/demo.sh conv    convolutions in three directions, in build/demo-conv
#
#   FORETUNE_BUSY=yes    measures all the same
#   FORETUNE=COMMAND     uses this command instead of installing and building
#   FORETUNE_OUT=FOLDER  instead of build/demo or build/demo-conv
#   FORETUNE_SMALL=yes   a twentieth of the problems, to see whether it works
#   FORETUNE_ISA=avx2    only kernels up to this instruction set (generic, avx2, avx512)
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
kind=${1:-gemm}
case "$kind" in
  # Half a GFLOP keeps one run of a slow config under a quarter of a second.
  gemm)
    problems=(--log-normal --operations mm addmm bmm --max-flops 5e8)
    question=(--m 96 --n 768 --k 512)
    ;;
  conv)
    problems=(--family cpu-conv --log-normal --operations forward backward_data backward_weight
      --max-flops 2e8 --max-bytes 2e7)
    question=(conv n=1 c=96 k=128 hi=28 wi=28 y=3 x=3 pad_h=1 pad_w=1)
    ;;
  *)
    echo "demo: there is one of gemm and one of conv, not of '$kind'" >&2
    exit 2
    ;;
esac
installed=0
built=0
if [[ -z "${FORETUNE:-}" ]]; then
  scripts/install_dependencies.sh
  installed=$((SECONDS - start))
  echo "building (two to twenty minutes on two cores)"
  mkdir -p build
  cmake --preset release >build/configure-release.log || { cat build/configure-release.log; exit 1; }
  cmake --build --preset release --parallel --target foretune | tee build/build-release.log |
    awk -F'[][/]' '/^\[/ && $2 * 10 >= next_tenth * $3 {
      printf "  %d of %d files\n", $2, $3; fflush(); next_tenth = int($2 * 10 / $3) + 1 }' || {
    tail -n 40 build/build-release.log
    exit 1
  }
  built=$((SECONDS - start - installed))
fi
foretune=${FORETUNE:-build/release/tools/foretune/foretune}
out=${FORETUNE_OUT:-build/demo$([[ "$kind" == gemm ]] || echo "-$kind")}
model="$out/$kind.ftm"
rm -rf "$out"
mkdir -p "$out/training"

say() {
  if [[ -n "${NO_COLOR:-}" || ! -t 1 ]]; then
    printf '\n%s\n$ %s\n' "$1" "${*:2}"
  else
    printf '\n\033[1m%s\033[0m\n$ %s\n' "$1" "${*:2}"
  fi
  "${@:2}"
}

part=1
if [[ -n "${FORETUNE_SMALL:-}" ]]; then
  part=20
fi
busy=()
if [[ -z "${FORETUNE_BUSY:-}" ]]; then
  busy=(--max-load "$(awk "BEGIN { print 0.75 * $(nproc) }")")
fi
# A kernel whose threads wait for a core has no time that says anything about it.
kernels=()
free="$("$foretune" doctor --no-peaks 2>/dev/null | awk '$1 == "free" && $2 == "cores" { print $3 }')"
if [[ "$free" -lt "$(nproc)" ]]; then
  echo "other work leaves $free of $(nproc) cores free: measuring kernels of $free thread(s)"
  kernels+=(--threads "$free")
fi
if [[ -n "${FORETUNE_ISA:-}" ]]; then
  kernels+=(--family-option "isa=$FORETUNE_ISA")
fi
say "1. Measure kernels on a few problems, drawn as workloads have them" \
  "$foretune" --seed 49 collect --output "$out/training/first.ftd" --num-shapes $((60 / part)) \
  "${problems[@]}" "${kernels[@]}" --search-space SAMPLE:64 --search-mode fast --budget $((45 / part))s "${busy[@]}" || {
  echo "FORETUNE_BUSY=yes goes on all the same."
  exit 1
}
say "2. Learn which is fastest" \
  "$foretune" --seed 50 train --dataset "$out/training/first.ftd" --model "$out/first.ftm"
say "3. Ask it" \
  "$foretune" predict --model "$out/first.ftm" "${question[@]}"
first_pick=$((SECONDS - start))
say "4. Measure more problems, for a better model" \
  "$foretune" --seed 50 collect --output "$out/training/more.ftd" --num-shapes $((220 / part)) \
  "${problems[@]}" "${kernels[@]}" --search-space SAMPLE:96 --search-mode fast --budget $((150 / part))s "${busy[@]}"
say "5. Learn from all of them" \
  "$foretune" --seed 50 train --data-dir "$out/training" --model "$model"
say "6. Measure problems it has never seen, densely" \
  "$foretune" --seed 51 create-validation --output "$out/validation.ftd" \
  --num-shapes $((44 / part)) "${problems[@]}" "${kernels[@]}" --training-data "$out/training" \
  --model "$model" --budget $((180 / part))s "${busy[@]}"
say "7. How close are the picks to the best?" \
  "$foretune" --seed 50 validate-model --model "$model" "${kernels[@]}" --dataset "$out/validation.ftd" \
  --training-data "$out/training" --html "$out/report.html" --json "$out/summary.json"
# The figures of the demo hold its whole duration, installs and builds included.
python3 - "$out/summary.json" "$installed" "$built" "$first_pick" "$((SECONDS - start))" <<'PYTHON'
import json
import sys

path, *seconds = sys.argv[1:]
with open(path) as file:
    summary = json.load(file)
summary["name"] = "demo"
names = ("seconds_install", "seconds_build", "seconds_to_first_pick", "seconds")
summary["metrics"].update(zip(names, map(int, seconds)))
with open(path, "w") as file:
    json.dump(summary, file, indent=2)
    file.write("\n")
PYTHON
"$foretune" --quiet predict --model "$model" "${question[@]}" --json "$out/pick.json" >"$out/pick.txt"
scripts/demo_picture.py "$out/summary.json" "$out/pick.json" "$out/picture.svg"
printf '\nreport: %s\nfigures: %s\npicture: %s\nfirst pick after %s s, whole demo: %s s\n' \
  "$out/report.html" "$out/summary.json" "$out/picture.svg" "$first_pick" "$((SECONDS - start))"
