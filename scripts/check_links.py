#!/usr/bin/env python3
"""Checks that every file that a page names is there: relative links with their anchors, and paths in
backticks that begin with a folder of the project.

    scripts/check_links.py
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

from sources import report

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`((?:foretune|tools|scripts|bench|cmake|docs|examples|fuzz|python|tests)/[\w./-]+)`")
CODE = re.compile(r"`[^`\n]*`")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
# Made by a build or a run, or named as the place of something new.
NOT_THERE = re.compile(r"^(foretune/families/mine|foretune/model/ridge)")


@functools.cache
def anchors(page: Path) -> set[str]:
    """Returns the anchors of the headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    out = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        words = re.sub(r"[`*]|\]\([^)]*\)", "", heading).replace("[", "").strip().lower()
        out.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return out


def main() -> int:
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split()
    problems = []
    links = 0
    for name in sorted(set(names)):
        page = ROOT / name
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for link in LINK.findall(CODE.sub("", text)):
            if "://" in link:
                continue
            links += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                problems.append(f"{name}: {link} is not there")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                problems.append(f"{name}: {link}: there is no such heading")
        # The changelog names files of earlier versions.
        if name != "CHANGELOG.md":
            for path in QUOTED.findall(text):
                links += 1
                # A program of bench/ has a source of its name; the package's files lie below python/.
                places = (path.rstrip("."), f"{path}.cc", f"python/{path}")
                if not NOT_THERE.match(path) and not any((ROOT / place).exists() for place in places):
                    problems.append(f"{name}: `{path}` is not there")
    return report(problems, f"links: {len(names)} pages, {links} links")


if __name__ == "__main__":
    sys.exit(main())
