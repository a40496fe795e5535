#!/usr/bin/env python3
"""Writes the matrices that SuiteSparse's sources come with, as Matrix Market files, to judge picks by:

    apt-get source --download-only suitesparse          # with deb-src in apt's sources
    tar -xf suitesparse_*.orig.tar.xz --wildcards '*/Matrix/*'
    bench/suitesparse_matrices.py SuiteSparse-* out

Complex matrices, those below 1,000 non-zeros and those that the folder --without has are left out,
and a name counts once. Prints a line for each: name, rows, columns, stored entries.
"""

from __future__ import annotations

import argparse
from pathlib import Path

LEAST = 1000
# Lists of entries without a head: the folder, whether one half of the matrix is stored, the number of
# the first row, and lines of a head that is no comment.
LISTS = {"CSparse/Matrix/bcsstk16": (True, 0, 0), "CSparse/Matrix/fs_183_1": (False, 0, 0),
         "CHOLMOD/Tcov/Matrix/C9840": (True, 0, 1),
         "CXSparse/Matrix/neumann": (False, 0, 0), "CXSparse/Matrix/mhd1280b": (True, 0, 0)}


def from_list(path: Path, is_half: bool, first: int, head: int) -> str:
    """Returns a file of Matrix Market; complex values keep their real part."""
    entries: dict[tuple[int, int], str] = {}
    for line in path.read_text(encoding="ascii").splitlines()[head:]:
        if words := line.split():
            row, column = int(words[0]) - first + 1, int(words[1]) - first + 1
            place = (max(row, column), min(row, column)) if is_half else (row, column)
            entries[place] = words[2]
    rows, columns = (max(place[axis] for place in entries) for axis in (0, 1))
    if is_half:
        rows = columns = max(rows, columns)
    lines = [f"{row} {column} {value}" for (row, column), value in sorted(entries.items())]
    kind = "symmetric" if is_half else "general"
    return "\n".join([f"%%MatrixMarket matrix coordinate real {kind}",
                      f"{rows} {columns} {len(entries)}", *lines, ""])


def size_of(text: str) -> tuple[int, int, int] | None:
    """Returns rows, columns and stored entries; None for what is left out."""
    words = text.split("\n", 1)[0].split()
    data = [line for line in text.splitlines() if line.strip() and not line.startswith("%")]
    if words[2:3] != ["coordinate"] or "complex" in words or not data:
        return None
    rows, columns, entries = map(int, data[0].split())
    stored = entries * (1 if "general" in words else 2)
    return (rows, columns, entries) if stored >= LEAST else None


def matrices(folder: Path) -> dict[str, str]:
    """Returns the texts of the matrices that count, by name."""
    found = {Path(name).name: from_list(folder / name, *how) for name, how in LISTS.items()}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            if not file.read(14) == b"%%MatrixMarket":
                continue
        text = path.read_text(encoding="ascii", errors="replace")
        if size_of(text):
            found.setdefault(path.name.removesuffix(".mtx"), text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--without", type=Path, help="a folder with matrices that are known already")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    known = {path.name.split(".mtx")[0] for path in options.without.iterdir()} if options.without else set()
    for name, text in sorted(matrices(options.sources).items()):
        if name not in known and (size := size_of(text)):
            (options.output / f"{name}.mtx").write_text(text, encoding="ascii", errors="replace")
            print(name, *size)


if __name__ == "__main__":
    main()
