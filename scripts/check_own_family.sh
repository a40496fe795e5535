#!/usr/bin/env bash
# Takes examples/own_family from its sources to picks as docs/guides/extending/family.md says: runs every
# command of the page in a copy of the example, beside an installation, and selects with what came
# out of it from C++, C and Python. Python imports the package by PYTHONPATH.
#
#   scripts/check_own_family.sh PREFIX g++ [PYTHON]
set -euo pipefail
if [[ $# -lt 2 || $# -gt 3 ]]; then
  echo "usage: scripts/check_own_family.sh PREFIX CXX_COMPILER [PYTHON]" >&2
  exit 2
fi
prefix="$(cd "$1" && pwd)"
export CXX="$2"
python="${3:+$(cd "$(dirname "$3")" && pwd)/$(basename "$3")}"
source "$(dirname "$0")/check_functions.sh"

lines="$(cat "$source_root"/examples/own_family/*.{h,cc} | wc -l)"
[[ $lines -le 250 ]] || fail "the example has $lines lines of C++; the page promises a short one"

export CMAKE_PREFIX_PATH="$prefix" PATH="$prefix/bin:$PATH"

# Copies, so that no path leads back into the repository by accident.
mkdir -p "$work/source/examples"
cp -r "$source_root/examples/own_family" "$work/source/examples/own_family"
cd "$work"
page="$source_root/docs/guides/extending/family.md"
# blocks LANGUAGE: the code of the page, block after block.
blocks() {
  awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } $0 == "```" { inside = 0 } inside' "$page"
}
{ echo 'set -euxo pipefail' && blocks sh; } >"$work/page.sh"
[[ $(grep -c '^foretune ' "$work/page.sh") -ge 7 ]] || fail "the page has lost its commands"
logged page bash "$work/page.sh"
cd "$work/my_family"
grep -q "adds problem type stencil2d, feature table stencil2d-plain, family stencil2d" \
  "$work/page.log" || fail "doctor does not list the plug-in"
grep -Eq "Efficiency of the model's picks on 4 problems" "$work/page.log" ||
  fail "the model was not judged"
exported="$(nm -D --defined-only build/stencil2d.so | awk '{ print $3 }')"
[[ "$exported" == foretune_plugin_1 ]] || fail "the plug-in exports $exported"
# No kernel crashed or computed a wrong cell, and the files say how they were made.
for file in train validation; do
  foretune inspect "$file.ftd" --plugin build/stencil2d.so >"$work/$file.txt"
  grep -q "made by  *foretune --plugin build/stencil2d.so" "$work/$file.txt" || fail "$file.ftd lost --plugin"
  grep -Eq "wrong|crash|timed out|failed" "$work/$file.txt" && fail "kernels fail: $(cat "$work/$file.txt")"
done

# All configs of odd and of the smallest grids are right.
for problem in "37 101 4 2 mirror" "16 16 2 1 wrap" "61 300 4 1 wrap"; do
  read -r rows columns steps radius border <<<"$problem"
  logged exhaustive foretune --plugin build/stencil2d.so tune --family stencil2d --rows "$rows" \
    --columns "$columns" --steps "$steps" --radius "$radius" --border "$border" \
    --strategy exhaustive --repeat 1 --output all.ftd
  grep -q "all of them tried" "$work/exhaustive.log" || fail "not all configs of $problem were tried"
  foretune --plugin build/stencil2d.so inspect all.ftd >"$work/all.txt"
  grep -Eq "wrong|crash|timed out|failed" "$work/all.txt" && fail "$problem: $(cat "$work/all.txt")"
  rm all.ftd
done
legal="$(grep -oE '[0-9,]+ legal configs' "$work/exhaustive.log" | head -1 | tr -d ', a-z')"
[[ "$legal" -ge 200 ]] || fail "only $legal legal configs"

# The same pick from everywhere.
problem="stencil2d rows=300 columns=500 steps=4 radius=2"
pick="$(foretune --plugin build/stencil2d.so predict --model stencil2d.ftm --rows 300 \
  --columns 500 --steps 4 --radius 2 | sed -n 's/^pick: //p')"
[[ "$pick" == width=* ]] || fail "predict names no config"
cp -r "$source_root/tests/own_family" "$work/select"
logged configure cmake -S "$work/select" -B "$work/select/build" -DCMAKE_BUILD_TYPE=Release
logged select_build cmake --build "$work/select/build"
cc -o "$work/select_shared" "$work/select/select.c" -I"$prefix/include" \
  -L"$prefix/lib" -lforetune_select -Wl,-rpath,"$prefix/lib" ||
  fail "libforetune_select.so does not link"
for program in "$work/select/build/select_cpp" "$work/select/build/select_c" "$work/select_shared"; do
  picked="$("$program" build/stencil2d.so stencil2d.ftm "$problem")"
  [[ "$picked" == "picked: $pick" ]] || fail "$(basename "$program") says '$picked', not '$pick'"
  # One sentence for what is no plug-in.
  if "$program" CMakeLists.txt stencil2d.ftm "$problem" 2>"$work/message"; then
    fail "$(basename "$program") takes any file for a plug-in"
  fi
  grep -q "CMakeLists.txt is not loaded: it is no plug-in" "$work/message" || fail "$(cat "$work/message")"
done
if [[ -n "$python" ]]; then
  blocks python >"$work/page.py"
  picked="$("$python" "$work/page.py")"
  [[ "$picked" == "$pick" ]] || fail "Python says '$picked', not '$pick'"
fi
echo "own family: $legal legal configs, all right; $pick from the command line, C++, C and Python"
