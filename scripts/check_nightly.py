#!/usr/bin/env python3
"""Fails when a step of the last nightly run is missing, failed, ran on another branch or lies more
than 120 commits of code back; documents and data cannot break it. `make nightly` runs them."""

from __future__ import annotations

import json
import subprocess
import sys

sys.dont_write_bytecode = True  # CI's clone stays as it was

from changes import RESULTS  # noqa: E402
from nightly import STEPS  # noqa: E402
from sources import ROOT, report  # noqa: E402

MOST_COMMITS = 120
CODE = ("*.c", "*.cc", "*.h", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt")
# CI checks what changed since these steps, and everything where they never ran.
CHECKED_SINCE = ("clang-tidy", "sanitizers", "benchmarks")


def is_shallow() -> bool:
    """Returns true where the clone lacks the history that ages are counted by."""
    return subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT,
                          capture_output=True, text=True, check=False).stdout.strip() == "true"


def problem_of(step: dict[str, object]) -> str | None:
    commit = str(step["commit"])
    if is_shallow():
        return None if step["passed"] else f"failed: {step['reason']}"
    if subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], cwd=ROOT,
                      capture_output=True, check=False).returncode:
        return f"ran at {commit[:7]}, which is no ancestor of this commit"
    since = int(subprocess.run(["git", "rev-list", "--count", f"{commit}..HEAD", "--", *CODE], cwd=ROOT,
                               capture_output=True, text=True, check=True).stdout)
    if since > MOST_COMMITS:
        return f"ran {since} commits of code ago, more than {MOST_COMMITS}"
    return None if step["passed"] else f"failed: {step['reason']}"


def main() -> int:
    path = RESULTS.relative_to(ROOT)
    steps = json.loads(RESULTS.read_text(encoding="utf-8"))["steps"] if RESULTS.exists() else {}
    problems = []
    for name in STEPS:
        if name == "tidy changes" or (name in CHECKED_SINCE and name not in steps):
            continue
        problem = problem_of(steps[name]) if name in steps else "never ran"
        if problem:
            problems.append(f"{path}: {name} {problem}")
    return report(problems, f"nightly: {len(STEPS)} steps")


if __name__ == "__main__":
    sys.exit(main())
