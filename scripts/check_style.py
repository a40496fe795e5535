#!/usr/bin/env python3
"""Rules that no other tool checks: file length, file names, #pragma once, every source in a
CMakeLists.txt, no path of somebody's machine, no address that readers cannot know the purpose of.
"""

import re
import sys

from sources import ROOT, is_test_file, report, sources

MAX_LINES = 600
FILE_NAME = re.compile(r"[a-z0-9_]+\.(h|cc|c)$")
# Absolute paths below a home or a working folder mean something on one machine only.
MACHINE_PATH = re.compile(r"""(?<![\w.$})/*-])/(?:home|root|Users|work|workspace)/""")
ADDRESS = re.compile(r"https?://([^/\s\"'>)]+)")
KNOWN_HOSTS = {"www.apache.org", "apache.org", "github.com", "doi.org", "arxiv.org", "www.w3.org",
               "json-schema.org", "no-color.org", "prng.di.unimi.it"}
TEXT_SUFFIXES = {".h", ".cc", ".c", ".py", ".pyi", ".toml", ".sh", ".md", ".txt", ".cmake", ".json", ".in", ".yml"}
TEXT_FOLDERS = ("foretune", "tools", "tests", "fuzz", "bench", "examples", "scripts", "cmake",
                "docs", "python", ".ci")


def text_files():
    for path in sorted(ROOT.iterdir()):
        if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name == "Makefile"):
            yield path
    for folder in TEXT_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            # Inputs of fuzzers are anything but text.
            if "corpus" in path.parts:
                continue
            if path.is_file() and (path.suffix in TEXT_SUFFIXES or folder == ".ci"):
                yield path


def nearest_list(path):
    folder = path.parent
    while not (folder / "CMakeLists.txt").exists() and folder != ROOT:
        folder = folder.parent
    return folder / "CMakeLists.txt"


def check_source(name, problems):
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MAX_LINES:
        problems.append(f"{name}: {lines} lines; over {MAX_LINES} it is two things")
    if not FILE_NAME.match(path.name):
        problems.append(f"{name}: file names are snake_case")
    # The C header is for C compilers too.
    if path.suffix == ".h" and "#pragma once" not in text and "#ifndef FORETUNE_" not in text:
        problems.append(f"{name}: no #pragma once")
    listing = nearest_list(path)
    relative = str(path.relative_to(listing.parent))
    words = set(re.findall(r"[\w./-]+", listing.read_text(encoding="utf-8")))
    # A folder of its own per problem type: the listing takes all of them.
    takes_folders = "file(GLOB" in listing.read_text(encoding="utf-8") and "/" in relative
    by_functions = takes_folders or str(name) == "fuzz/replay_main.cc" or str(name) == "foretune/version.h"
    if relative not in words and not by_functions:
        # A header of programs or tests needs no listing; a module's must be in its header set.
        if path.suffix != ".h" or str(name).startswith("foretune/") and not is_test_file(path):
            problems.append(f"{name}: not named in {listing.relative_to(ROOT)}")


def main() -> int:
    problems = []
    names = sources()
    for name in names:
        check_source(name, problems)
    for path in text_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            if MACHINE_PATH.search(line) and path.name != "check_style.py":
                problems.append(f"{where}: a path of one machine")
            for host in ADDRESS.findall(line):
                if host not in KNOWN_HOSTS:
                    problems.append(f"{where}: {host} is not among the known hosts")
    return report(problems, f"style: {len(names)} C++ files")


if __name__ == "__main__":
    sys.exit(main())
