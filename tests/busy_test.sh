#!/usr/bin/env bash
# Beside work that keeps all cores busy: what measures says so, refuses where it is told to, and the
# demo refuses unless it is told to go on.
#   busy_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

for ((i = 0; i < 2 * $(nproc); ++i)); do
  (while :; do :; done) &
done
trap 'kill $(jobs -p); rm -rf "$work"' EXIT
sleep 0.2

collect=(collect --num-shapes 2 --random --max-flops 1e8 --search-space SAMPLE:3 --search-mode fast)
expect 4 "$foretune" "${collect[@]}" --output refused.ftd --max-load 0.5
one_sentence
grep -qE "other work keeps [0-9.]+ of [0-9]+ cores busy, more than --max-load 0.5" err.txt
test ! -e refused.ftd
expect 0 "$foretune" "${collect[@]}" --output measured.ftd
grep -qE "warning: other work keeps [0-9.]+ of [0-9]+ cores busy" err.txt

demo=(env "FORETUNE=$foretune" "FORETUNE_OUT=$work/demo" FORETUNE_SMALL=yes "$source_dir/scripts/demo.sh")
expect 1 "${demo[@]}"
grep -q "cores busy, more than --max-load" err.txt
grep -q "FORETUNE_BUSY=yes goes on" out.txt
expect 0 env FORETUNE_BUSY=yes "${demo[@]}"
grep -q "first pick after" out.txt
grep -q '"seconds_to_first_pick"' demo/summary.json
echo "busy: as expected"
