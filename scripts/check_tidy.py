#!/usr/bin/env python3
"""Runs clang-tidy 19 on the sources that changed since the last nightly run, or on all of them:

    scripts/check_tidy.py          what changed since a nightly step "clang-tidy" or "tidy changes"
    scripts/check_tidy.py --all    every source: half an hour on two cores

A changed header is checked through its own source, else its test, else a source that includes it.
A change of .clang-tidy, a clone without history, or no nightly result means all. More than 50 sources
are checked without the analyzer, and several of a module at once, as the preset asan compiles them:
headers are parsed once for all of them, which takes a sixth of the time. The nightly run has the
analyzer. Needs the presets tidy and asan configured.

With --all, a source without findings is not checked again until its preprocessed text, comments and
macros included, the checks or clang-tidy change: build/tidy/clean keeps their hashes.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # CI's clone stays as it was

from changes import changed_files  # noqa: E402
from sources import ROOT, included_files, is_test_file  # noqa: E402

BUILD = ROOT / "build/tidy"
UNITY_BUILD = ROOT / "build/asan"
CLEAN = BUILD / "clean"
TIDY_STEPS = ("clang-tidy", "tidy changes")  # of the nightly run
# The analyzer takes two thirds of the time that tests need, and tests run under the sanitizers.
MOST_ANALYZED = 50  # sources, without --all
WITHOUT_ANALYZER = ["-checks=-clang-analyzer-*"]
OF_UNITY = ["-checks=-clang-analyzer-*,-bugprone-suspicious-include",
            r"-header-filter=/(foretune|tools|bench|fuzz|examples)/.*\.(h|cc)$"]
FINDING = re.compile(r"(?:warning|error): ")


COMMANDS: dict[str, dict[str, str]] = {}  # of the project's own sources, relative to the root


def compiled_sources() -> list[str]:
    """Returns the project's own sources that the preset compiles, relative to the root."""
    for command in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        name = os.path.relpath(command["file"], ROOT)
        if not name.startswith(("..", "build")):
            COMMANDS[name] = command
    return sorted(COMMANDS)


def source_for(header: str, sources: list[str]) -> str | None:
    stem = header.removesuffix(".h")
    for name in (f"{stem}.cc", f"{stem}_test.cc"):
        if name in sources:
            return name
    include = f'#include "{header}"'
    return next((name for name in sources
                 if include in (ROOT / name).read_text(encoding="utf-8")), None)


def sources_to_check(changed: set[str] | None) -> list[str]:
    sources = compiled_sources()
    if changed is None:
        return sources
    chosen = {name for name in sources if name in changed}
    for header in (name for name in changed if name.endswith(".h") and (ROOT / name).exists()):
        if source := source_for(header, sources):
            chosen.add(source)
    return sorted(chosen)


def joined(sources: list[str]) -> dict[str, Path]:
    """Maps what to check, relative to the root, to the build folder whose command compiles it: unity
    files of the preset asan for the sources that they have, and the other sources."""
    work: dict[str, Path] = {}
    seen: set[str] = set()
    for command in json.loads((UNITY_BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        file = Path(command["file"])
        if not file.name.startswith("unity_"):
            continue
        parts = {os.path.relpath(part, ROOT) for part in included_files(file)}
        if parts & set(sources):
            work[os.path.relpath(file, ROOT)] = UNITY_BUILD
            seen |= parts
    return work | {name: BUILD for name in sources if name not in seen}


def key_of(source: str, checks: list[str], versions: str) -> str | None:
    """Returns the hash of all that clang-tidy sees of a source; None where it does not compile."""
    command = COMMANDS[source]
    words = [word for word in shlex.split(command["command"])[1:] if word != "-c"]
    if "-o" in words:
        del words[words.index("-o"):words.index("-o") + 2]
    text = subprocess.run(["clang++-19", *words, "-E", "-dD", "-CC", "-w"], cwd=command["directory"],
                          capture_output=True, check=False)
    if text.returncode:
        return None
    return hashlib.sha256(versions.encode() + " ".join(checks).encode() + text.stdout).hexdigest()


def findings_of(source: str, build: Path, analyses: bool, versions: str | None) -> list[str]:
    """`versions` names all that findings depend on beside the source; None: nothing is kept."""
    if build == UNITY_BUILD:
        return check(source, build, OF_UNITY)
    checks = [] if analyses and not is_test_file(ROOT / source) else WITHOUT_ANALYZER
    key = key_of(source, checks, versions) if versions else None
    if key and (CLEAN / key).exists():
        return []
    lines = check(source, build, checks)
    if key and not lines:
        (CLEAN / key).touch()
    return lines


def check(source: str, build: Path, checks: list[str]) -> list[str]:
    run = subprocess.run(["clang-tidy-19", "-quiet", "-p", str(build), *checks, source], cwd=ROOT,
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
    changed = None if options.all else changed_files(*TIDY_STEPS)
    if changed and ".clang-tidy" in changed:
        changed = None
    sources = sources_to_check(changed)
    analyses = options.all or len(sources) <= MOST_ANALYZED
    CLEAN.mkdir(exist_ok=True)
    versions = None
    if options.all:
        versions = (ROOT / ".clang-tidy").read_text(encoding="utf-8") + subprocess.run(
            ["clang-tidy-19", "--version"], capture_output=True, text=True, check=True).stdout
    work = {name: BUILD for name in sources} if analyses else joined(sources)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = pool.map(lambda item: findings_of(*item, analyses, versions), work.items())
        findings = sorted({line for lines in results for line in lines})
    print("\n".join(findings[:80]), end="\n" if findings else "")
    how = "" if analyses else " without the analyzer"
    print(f"clang-tidy: {len(sources)} sources{how}, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
