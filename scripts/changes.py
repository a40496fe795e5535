"""Tells what changed since a step of the nightly run: CI checks that, the step checked the rest."""

from __future__ import annotations

import json
import subprocess

from sources import ROOT

RESULTS = ROOT / "bench/measured/nightly.json"


def _git(*arguments: str) -> str | None:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return None if run.returncode else run.stdout


def changed_files(*steps: str) -> set[str] | None:
    """Returns what differs from the latest commit at which one of the steps passed, relative to the
    root. None where none passed, or where the clone lacks that commit: then everything changed."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))["steps"] if RESULTS.exists() else {}
    ages = {}
    for name in steps:
        step = results.get(name)
        if step and step["passed"]:
            commit = str(step["commit"])
            since = _git("rev-list", "--count", f"{commit}..HEAD")
            if since is not None:
                ages[commit] = int(since)
    if not ages:
        return None
    diff = _git("diff", "--name-only", min(ages, key=ages.__getitem__))
    return None if diff is None else set(diff.split())
