#!/usr/bin/env python3
"""Runs the commands of an example's README in a copy of its folder, beside an installed Foretune.

    FORETUNE_INSTALLED=PREFIX scripts/check_example.py NAME

The package, where an example needs it, comes by PYTHONPATH. Blocks and their comments are those of
python/tests/page_blocks.py. Ends with 77 where a need is not met.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/tests"))

from page_blocks import INSTALLED, blocks_of, has, run_page  # noqa: E402

SKIPPED = 77
# Code to copy compiles without any, but designated initialisers leave members to their defaults.
WARNINGS = "-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror"


def main() -> int:
    name = sys.argv[1]
    needs = [block.needs for block in blocks_of(ROOT / "examples" / name / "README.md")
             if block.language == "sh"]
    assert needs, f"the README of {name} has no commands"
    missing = sorted({need for each in needs for need in each if not has(need)})
    if missing:
        print(f"skipped: {name} needs {', '.join(missing)}")
        return SKIPPED
    prefix = str(Path(os.environ[INSTALLED]).resolve())
    os.environ |= {INSTALLED: prefix, "CMAKE_PREFIX_PATH": prefix, "CFLAGS": WARNINGS, "CXXFLAGS": WARNINGS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "examples" / name
        shutil.copytree(ROOT / "examples" / name, folder,
                        ignore=shutil.ignore_patterns("build", "__pycache__"))
        (Path(temporary) / "bench").symlink_to(ROOT / "bench")  # its networks
        run_page(folder / "README.md", folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
