#!/usr/bin/env python3
"""Runs clang-tidy 19 on the sources that changed since the last nightly run, or on all of them:

    scripts/check_tidy.py          what changed since the commit of the nightly step "clang-tidy"
    scripts/check_tidy.py --all    every source: half an hour on two cores

A changed header is checked through its own source, else its test, else a source that includes it.
A change of .clang-tidy, or a clone without history, means all. Needs the preset tidy configured,
and its generated headers built.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # CI's clone stays as it was

from nightly import RESULTS  # noqa: E402
from sources import ROOT, is_test_file  # noqa: E402

BUILD = ROOT / "build/tidy"
# The analyzer takes two thirds of the time that tests need, and tests run under the sanitizers.
FOR_TESTS = ["-checks=-clang-analyzer-*"]
FINDING = re.compile(r"(?:warning|error): ")


def compiled_sources() -> list[str]:
    """Returns the project's own sources that the preset compiles, relative to the root."""
    commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    names = {os.path.relpath(command["file"], ROOT) for command in commands}
    return sorted(name for name in names if not name.startswith(("..", "build")))


def changed_files() -> set[str] | None:
    """Returns what differs from the last nightly run, relative to the root; None if unknown."""
    steps = json.loads(RESULTS.read_text(encoding="utf-8"))["steps"] if RESULTS.exists() else {}
    step = steps.get("clang-tidy")
    if not step or not step["passed"]:
        return None
    diff = subprocess.run(["git", "diff", "--name-only", step["commit"]], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    return None if diff.returncode else set(diff.stdout.split())


def source_for(header: str, sources: list[str]) -> str | None:
    stem = header.removesuffix(".h")
    for name in (f"{stem}.cc", f"{stem}_test.cc"):
        if name in sources:
            return name
    include = f'#include "{header}"'
    return next((name for name in sources
                 if include in (ROOT / name).read_text(encoding="utf-8")), None)


def sources_to_check(everything: bool) -> list[str]:
    sources = compiled_sources()
    changed = None if everything else changed_files()
    if changed is None or ".clang-tidy" in changed:
        return sources
    chosen = {name for name in sources if name in changed}
    for header in (name for name in changed if name.endswith(".h") and (ROOT / name).exists()):
        if source := source_for(header, sources):
            chosen.add(source)
    return sorted(chosen)


def findings_of(source: str) -> list[str]:
    checks = FOR_TESTS if is_test_file(ROOT / source) else []
    run = subprocess.run(["clang-tidy-19", "-quiet", "-p", str(BUILD), *checks, source], cwd=ROOT,
                         capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if FINDING.search(line)]
    if run.returncode and not lines:
        lines = [f"{source}: clang-tidy ended with {run.returncode}: {run.stderr.strip()[-300:]}"]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs clang-tidy on what changed, or on all.")
    parser.add_argument("--all", action="store_true", help="check every source")
    options = parser.parse_args()
    # A misspelt or renamed check would silently check nothing.
    listed = subprocess.run(["clang-tidy-19", "--list-checks"], cwd=ROOT, capture_output=True,
                            text=True, check=True).stdout
    if "readability-identifier-naming" not in listed:
        print("clang-tidy does not know readability-identifier-naming", file=sys.stderr)
        return 2
    sources = sources_to_check(options.all)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        findings = sorted({line for lines in pool.map(findings_of, sources) for line in lines})
    print("\n".join(findings[:80]), end="\n" if findings else "")
    print(f"clang-tidy: {len(sources)} sources, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
