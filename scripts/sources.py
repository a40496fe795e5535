#!/usr/bin/env python3
"""Lists the C++ files of the project, one a line (also where there is no git)."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("foretune", "tools", "tests", "fuzz", "bench", "examples", "python")


def sources(suffixes=(".h", ".cc", ".c")):
    return sorted(path.relative_to(ROOT) for folder in FOLDERS
                  for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def is_test_file(path):
    """Tests, and what only they use: x_test.cc, test_x.cc, x_for_test.h."""
    return path.stem.endswith("_test") or path.stem.startswith("test_")


if __name__ == "__main__":
    print("\n".join(map(str, sources())))
