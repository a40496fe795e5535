#!/usr/bin/env python3
"""Lists the C++ files of the project, one a line (also where there is no git)."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("foretune", "tools", "tests", "fuzz", "bench", "examples", "python")
INCLUDE = re.compile(r'^#include "(.*)"$', re.M)


def sources(suffixes=(".h", ".cc", ".c")):
    return sorted(path.relative_to(ROOT) for folder in FOLDERS
                  for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def included_files(path):
    """Returns the project's own files that a file includes, under the names in its #includes."""
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def is_test_file(path):
    """Returns True for tests and for the files that only they use, which lie in folders testing/."""
    return path.stem.endswith("_test") or "testing" in path.parts


def report(problems, summary):
    """Prints the problems, then the summary with their number; returns the exit code of a check."""
    for problem in problems:
        print(problem)
    print(f"{summary}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    print("\n".join(map(str, sources())))
