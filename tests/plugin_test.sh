#!/usr/bin/env bash
# Plug-ins of every kind on the command line: good ones become options, families and strategies, of
# workers, too; bad ones are one sentence and exit code 3.
#   plugin_test.sh FORETUNE SOURCE_DIR PLUGIN_FOLDER
set -euo pipefail
foretune="$1"
source_dir="$2"
plugins="$3"
source "$source_dir/tests/expect.bash"

# refused CODE TEXT KIND: with one sentence that has the text, whatever the plug-in did.
refused() {
  expect "$1" "$foretune" --plugin "$plugins/test_plugin_$3.so" doctor --no-peaks
  one_sentence
  test "$(wc -l <err.txt)" = 1 || { cat err.txt; exit 1; }
  test ! -s out.txt
  grep -qF -- "$2" err.txt || { cat err.txt; exit 1; }
}
refused 3 "it was built for 'foretune 0.0.1, g++ 4'" VERSION
refused 3 "has no function foretune_plugin_1" NO_ENTRY
refused 3 "foretune_plugin_1 has no answer" EMPTY
refused 3 "it crashes (SIGABRT)" ABORT
refused 3 "it ends the process (exit code 7)" EXIT
refused 3 "it throws: no beads" THROW
refused 3 "there is a family 'cpu-gemm' already" TAKEN
refused 3 "it takes longer than 10.0 s" HANG
refused 3 "it crashes (SIGSEGV)" SEGFAULT
refused 3 "it crashes (SIGSEGV)" EARLY
refused 3 "No such file" absent
expect 3 "$foretune" --plugin="$source_dir/README.md" --help
one_sentence
echo "[[family]]" >families.toml
expect 3 "$foretune" --plugin families.toml --help
one_sentence
expect 2 "$foretune" doctor --plugin
one_sentence
# A field that is called like an option of the subcommand.
expect 3 "$foretune" --plugin "$plugins/test_plugin_CLASH.so" predict --model no.ftm
one_sentence
grep -q "two options of predict have one name" err.txt

# Without it nobody knows the family; with it help does, before and after the subcommand.
good="$plugins/test_plugin_GOOD.so"
expect 2 "$foretune" collect --family ring --output no.ftd
grep -q -- "--plugin FILE" <("$foretune" --help)
for arguments in "--plugin $good collect --help" "collect --plugin=$good --help"; do
  expect 0 "$foretune" $arguments
  grep -q "ring" out.txt
  grep -q -- "--log-normal-beads-mean" out.txt
done
# The description that help prints works as it is.
expect 0 "$foretune" help plugin
cp out.txt blur.toml
printf '#!/bin/sh\ncase "$*" in *rows*) echo 0.01 ;; *) echo 0.02 ;; esac\n' >blur.py
chmod +x blur.py
expect 0 "$foretune" --plugin blur.toml tune --family blur blur size=200 --budget 12 --rounds 2
grep -q "best: .*order=rows" out.txt
# Libraries of devices that doctor opens and closes keep memory of theirs.
expect 0 env ASAN_OPTIONS=detect_leaks=0 "$foretune" doctor --no-peaks --plugin "$good" \
  --plugin "$good"
test "$(grep -c "test_plugin_GOOD.so  *$good" out.txt)" = 1
grep -q "adds problem type ring, feature table ring-plain, strategy backwards, family ring" out.txt
expect 0 "$foretune" --plugin "$good" completion bash
grep -q -- "--beads" out.txt

# From measuring in workers, which load it by its absolute path, to picking.
cp "$good" ring.so
plugin=(--plugin ring.so)
expect 0 "$foretune" "${plugin[@]}" --quiet collect --family ring --log-normal --num-shapes 12 \
  --search-space EXHAUSTIVE --output train.ftd
expect 0 "$foretune" inspect train.ftd "${plugin[@]}"
grep -q "made by  *foretune --plugin ring.so --quiet collect" out.txt
grep -Eq " ok  *[1-9]" out.txt
grep -q "crashed" out.txt && { cat out.txt; exit 1; }
expect 0 "$foretune" "${plugin[@]}" train --dataset train.ftd --folds 0 --trees 20 --model ring.ftm
expect 0 "$foretune" predict "${plugin[@]}" --model ring.ftm --beads 100
grep -q "^pick: step=" out.txt
expect 0 "$foretune" "${plugin[@]}" tune --family ring --beads 64 --strategy backwards --budget 4
grep -q "best: step=" out.txt
# Files of its type are refused in one sentence where it is not loaded.
for command in "predict --model ring.ftm --m 8 --n 8 --k 8" "inspect train.ftd"; do
  status=0
  "$foretune" $command >out.txt 2>err.txt || status=$?
  test $status -eq 3 -o $status -eq 4 || { echo "$command: $status"; cat err.txt; exit 1; }
  one_sentence
done
echo "plug-ins: fine"
