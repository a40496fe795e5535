#!/usr/bin/env python3
"""Writes the matrix of Laplace's equation on a square grid as a MatrixMarket file.

    python3 laplace.py SIDE >laplace.mtx

It stands for a matrix of yours: SIDE * SIDE rows with at most five non-zeros each.
"""

import sys

side = int(sys.argv[1])
entries = []
for row in range(side * side):
    # Only the lower half: the file says that the matrix is symmetric.
    if row >= side:
        entries.append((row, row - side, -1))
    if row % side:
        entries.append((row, row - 1, -1))
    entries.append((row, row, 4))
print("%%MatrixMarket matrix coordinate real symmetric")
print(side * side, side * side, len(entries))
print("\n".join(f"{row + 1} {column + 1} {value}" for row, column, value in entries))
