#!/usr/bin/env bash
# docs/command-line.md is the output of `foretune reference`. To write it again:
#   build/dev/tools/foretune/foretune reference > docs/command-line.md
#   reference_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
"$1" reference | diff "$2/docs/command-line.md" - || {
  echo "docs/command-line.md differs: write it again with 'foretune reference'"
  exit 1
}
