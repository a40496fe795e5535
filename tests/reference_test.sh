#!/usr/bin/env bash
# docs/reference/command-line is the output of `foretune reference`, and man renders the manual pages without a
# warning. To write the folder again:
#   build/dev/tools/foretune/foretune reference --output docs/reference/command-line
#   reference_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
pages="$2/docs/reference/command-line"
source "$2/tests/expect.bash"

expect 0 "$foretune" reference --output markdown --man man
diff -r "$pages" markdown || {
  echo "docs/reference/command-line differs: write it again with 'foretune reference --output'"
  exit 1
}
# A page for each command that the help lists, an index, and nobody scrolls for ever.
commands="$("$foretune" --help | sed -n '/^Subcommands:/,/^$/p' | grep -oE '^  [a-z-]+' | wc -l)"
test "$commands" -gt 20
test "$(find markdown -type f | wc -l)" = "$((commands + 1))"
test "$(find man -type f | wc -l)" = "$((commands + 1))"
for page in markdown/*.md; do
  test "$(wc -l <"$page")" -le 400
done

expect 2 "$foretune" reference
one_sentence
expect 1 "$foretune" reference --man /dev/null/man
one_sentence

grep -q '^\.BR foretune\\-collect (1)$' man/foretune.1
if ! command -v groff >/dev/null; then
  echo "groff is not installed: the manual pages were not rendered"
  exit 0
fi
for page in man/*.1; do
  warnings="$(groff -man -Tutf8 -P-cbou -ww "$page" 2>&1 >"$page.txt")"
  test -z "$warnings" || { echo "$warnings"; exit 1; }
  grep -q "SEE ALSO\|COMMANDS" "$page.txt"
done
# No option is lost to troff's escapes, and no line of help to its requests.
test "$(grep -c -- '^ *--[a-z]' man/foretune-collect.1.txt)" -gt 50
