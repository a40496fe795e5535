#!/usr/bin/env python3
"""Runs the commands of an example's README in a copy of its folder, beside an installed Foretune.

    scripts/check_example.py NAME PREFIX

The package, where an example needs it, comes by PYTHONPATH. Blocks and their comments are those of
python/tests/page_blocks.py. Ends with 77 where a need is not met.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/tests"))

from page_blocks import blocks_of, has  # noqa: E402

SKIPPED = 77
# Code to copy compiles without any, but designated initialisers leave members to their defaults.
WARNINGS = "-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror"


def environment_of(work: Path, prefix: Path) -> dict[str, str]:
    tools = work / "tools"
    tools.mkdir()
    # A launcher, not a link: an interpreter of a virtual environment finds it by its own path.
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (tools / "python3").chmod(0o755)
    return {**os.environ, "CMAKE_PREFIX_PATH": str(prefix), "CFLAGS": WARNINGS, "CXXFLAGS": WARNINGS,
            "PATH": f"{tools}:{prefix / 'bin'}:{os.environ['PATH']}"}


def main() -> int:
    name, prefix = sys.argv[1], Path(sys.argv[2]).resolve()
    blocks = [block for block in blocks_of(ROOT / "examples" / name / "README.md")
              if block.language == "sh"]
    assert blocks, f"the README of {name} has no commands"
    missing = sorted({need for block in blocks for need in block.needs if not has(need)})
    if missing:
        print(f"skipped: {name} needs {', '.join(missing)}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        folder = work / "examples" / name
        shutil.copytree(ROOT / "examples" / name, folder,
                        ignore=shutil.ignore_patterns("build", "__pycache__"))
        (work / "bench").symlink_to(ROOT / "bench")  # its networks
        environment = environment_of(work, prefix)
        for block in blocks:
            text = block.text
            for old, new in block.replacements:
                text = text.replace(old, new)
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=folder,
                                  env=environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            print(f"$ {text}{done.stdout}", flush=True)
            if (done.returncode != 0) != block.fails:
                print(f"line {block.line} of the README ended with {done.returncode}")
                return 1
            for shown in block.shows:
                if shown not in done.stdout:
                    print(f"line {block.line} of the README does not print {shown!r}")
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
