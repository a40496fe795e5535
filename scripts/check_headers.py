#!/usr/bin/env python3
"""Compiles public headers alone: those that changed since the last nightly clang-tidy, and those that
include one of these, or all of them:

    scripts/check_headers.py          what changed
    scripts/check_headers.py --all    every header: ten minutes on two cores

Needs the preset tidy configured."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # CI's clone stays as it was

from changes import changed_files  # noqa: E402
from check_tidy import BUILD, TIDY_STEPS  # noqa: E402
from sources import ROOT, included_files  # noqa: E402

OBJECT = re.compile(r"^build (\S+_verify_interface_header_sets/(\S+\.h)\.cxx\.o):", re.M)


def headers_to_check(headers: list[str], changed: set[str] | None) -> list[str]:
    if changed is None:
        return headers
    return [header for header in headers if changed & {header, *included_files(ROOT / header)}]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compiles public headers alone.")
    parser.add_argument("--all", action="store_true", help="compile every header")
    options = parser.parse_args()
    objects = {header: name for name, header in OBJECT.findall(
        (BUILD / "build.ninja").read_text(encoding="utf-8"))}
    if not objects:
        print(f"{BUILD} verifies no header: configure the preset tidy", file=sys.stderr)
        return 2
    chosen = headers_to_check(sorted(objects), None if options.all else changed_files(*TIDY_STEPS))
    lines: list[str] = []
    if chosen:
        run = subprocess.run(["cmake", "--build", str(BUILD), "--parallel", str(os.cpu_count() or 1),
                              "--target", *[objects[header] for header in chosen]], cwd=ROOT,
                             capture_output=True, text=True, check=False)
        if run.returncode:
            lines = sorted({line for line in run.stdout.splitlines()
                            if re.search(r"error:|FAILED", line)}) or [run.stderr.strip()]
    print("\n".join(lines[:40]), end="\n" if lines else "")
    print(f"headers: {len(chosen)} of {len(objects)} compiled alone, {len(lines)} problems")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
