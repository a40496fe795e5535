#!/usr/bin/env python3
"""Looks into the libraries that a product links for the selector: every symbol they need of ours
must be in one of them, and none may belong to training, search, measuring, data sets or JSON.

    scripts/check_select_closure.py build/dev
"""

import pathlib
import re
import subprocess
import sys

from check_layering import closure, read_modules
from sources import report

FORBIDDEN = re.compile(r"LGBM_|LightGBM|nlohmann|\bfmt::|\bCLI::|\bgz(open|read|dopen)|\binflate|"
                       r"GOMP_|omp_get|testing::")
OURS = re.compile(r"\bforetune(::|_)")


def symbols(archive, *options):
    text = subprocess.run(["nm", "--demangle", "--format=posix", *options, str(archive)],
                          check=True, capture_output=True, text=True).stdout
    found = set()
    for line in text.splitlines():
        # Name, kind, then value and size in hexadecimal, where a lone letter is no kind.
        match = re.match(r"(.+?) ([A-Za-z?])(?: [0-9a-f]+){0,2}\s*$", line)
        if match:
            found.add(match.group(1))
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1])
    modules = read_modules(build / "modules.txt")
    names = sorted(closure("select", modules) | {"select"})
    archives = {}
    for name in names:
        archive = build / modules[name][0] / f"libforetune_{name}.a"
        if archive.exists():
            archives[name] = archive
    problems = []
    if "select" not in archives:
        problems.append("libforetune_select.a has not been built")
    defined, undefined = set(), {}
    for name, archive in archives.items():
        defined |= symbols(archive, "--defined-only")
        for symbol in symbols(archive, "--undefined-only"):
            undefined.setdefault(symbol, name)
    for symbol in sorted(defined | set(undefined)):
        if FORBIDDEN.search(symbol):
            problems.append(f"{symbol}: has no place in what a product links")
    for symbol, name in sorted(undefined.items()):
        if OURS.match(symbol) and symbol not in defined:
            problems.append(f"{symbol}: needed by {name}, defined in none of {', '.join(archives)}")
    return report(problems, f"select closure: {', '.join(archives)}: {len(defined)} symbols")


if __name__ == "__main__":
    sys.exit(main())
