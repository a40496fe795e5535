#!/usr/bin/env python3
"""Lists the programs to build and run again since a step of the nightly run, one target a line:

    scripts/changed_programs.py test sanitizers build/asan
    scripts/changed_programs.py fuzz fuzzing build/asan

A test is listed where its own sources changed, or any of its module. A fuzz target or a benchmark is
listed where its own sources changed, or a header that they name, or the source of that header.
Without a result of the step every program is listed. Needs the build folder configured.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # CI's clone stays as it was

from changes import changed_files  # noqa: E402
from sources import ROOT, included_files  # noqa: E402


@dataclass
class Program:
    target: str
    folder: str
    labels: list[str]
    sources: list[str]


def programs_of(build: Path, kind: str) -> list[Program]:
    out = []
    for line in (build / "programs.txt").read_text(encoding="utf-8").splitlines():
        target, its_kind, folder, labels, sources = line.split("|")
        if its_kind == kind:
            out.append(Program(target, folder, labels.split(","),
                               [os.path.relpath(ROOT / folder / source, ROOT)
                                for source in sources.split(",")]))
    return out


def touched_folders(changed: set[str], folders: set[str]) -> set[str]:
    """Returns, of each changed source, the nearest folder that has programs."""
    out = set()
    for name in changed:
        if name.endswith((".h", ".cc", ".c", "CMakeLists.txt")):
            out |= {next((str(folder) for folder in Path(name).parents if str(folder) in folders), "")}
    return out


def named_files(program: Program) -> set[str]:
    out = set(program.sources)
    for source in program.sources:
        path = ROOT / source
        if path.is_file() and source.endswith((".h", ".cc")):
            for header in included_files(path):
                out |= {header, header.removesuffix(".h") + ".cc"}
    return out


def is_changed(program: Program, kind: str, changed: set[str], touched: set[str]) -> bool:
    if kind == "test":
        return program.folder in touched or bool(changed & set(program.sources))
    return bool(changed & named_files(program))


def main() -> int:
    parser = argparse.ArgumentParser(description="Lists the programs that changed.")
    parser.add_argument("kind", choices=("test", "fuzz", "bench"))
    parser.add_argument("step", help="of the nightly run")
    parser.add_argument("build", type=Path, help="a configured build folder")
    parser.add_argument("--label", help="only programs that have this label")
    options = parser.parse_args()
    programs = programs_of(options.build, options.kind)
    changed = changed_files(options.step)
    touched = touched_folders(changed or set(), {program.folder for program in programs})
    for program in programs:
        if options.label and options.label not in program.labels:
            continue
        if changed is None or is_changed(program, options.kind, changed, touched):
            print(program.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
