# Sourced by scripts that check an installed build. Sets source_root and a temporary folder, work.
source_root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$(basename "$0" .sh): $*" >&2
  exit 1
}
# logged NAME COMMAND...: writes its output to $work/NAME.log, and shows it if it fails.
logged() {
  local name="$1"
  shift
  "$@" >"$work/$name.log" 2>&1 || {
    tail -60 "$work/$name.log"
    fail "$name failed"
  }
}
