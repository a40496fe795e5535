# For tests of the command line, which source it: a folder of their own, and what a command does.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { # fail MESSAGE
  echo "FAILED: $1" >&2
  exit 1
}
# expect CODE COMMAND...: its output is in out.txt and err.txt.
expect() {
  local code="$1"
  shift
  local status=0
  "$@" >out.txt 2>err.txt || status=$?
  if [[ $status -ne $code ]]; then
    echo "expected exit code $code, got $status: $*"
    cat out.txt err.txt
    exit 1
  fi
}
# The last command said what was wrong, once.
one_sentence() {
  if [[ "$(grep -c '^foretune:' err.txt)" -ne 1 ]]; then
    echo "not one sentence:"
    cat err.txt
    exit 1
  fi
}
