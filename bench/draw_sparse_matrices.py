#!/usr/bin/env python3
"""Draws the sparse matrices that the shipped model of sparse-cpu learns from, and their products.

    bench/draw_sparse_matrices.py --count 240 --seed 20261130 matrices > products.txt

Writes MatrixMarket patterns into the folder and prints problems that name them: each matrix with a
vector, and with 4 to 512 dense columns for spmm and for sddmm, every second time with 128. A sixth
of the matrices has values of 64 bits. The kinds are those that people bring: grids, meshes, bands,
graphs with hubs, roads, linear programs, triangular factors, pruned weights, masks of attention,
tables of features. Sizes, fill and order (natural or shuffled) are drawn, so that no kind stands
for one size. Matrices have two thousand to a million and a half non-zeros, products up to 300 MFLOP.
The same seed gives the same bytes. Needs NumPy.
"""

from __future__ import annotations

import argparse
import gzip
import pathlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

LEAST, MOST = 2e3, 1.5e6  # non-zeros
MAX_FLOPS = 3e8
WIDTHS = (4, 8, 16, 24, 32, 48, 64, 96, 100, 200, 256, 512)

Places = npt.NDArray[np.int64]
# Rows, columns, and the places of the non-zeros, which may repeat.
Pattern = tuple[int, int, Places, Places]
Generator = np.random.Generator


def log_uniform(rng: Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def whole(rng: Generator, low: float, high: float) -> int:
    return round(log_uniform(rng, low, high))


def band(rng: Generator, size: float) -> Pattern:
    """Diagonals next to each other or scattered, full or with holes."""
    diagonals = whole(rng, 3, 120)
    rows = max(64, int(size / diagonals))
    if rng.random() < 0.5:
        offsets = np.arange(diagonals) - diagonals // 2
    else:
        offsets = np.unique(np.round(rng.normal(0, log_uniform(rng, 4, rows / 4), diagonals)).astype(np.int64))
    row = np.repeat(np.arange(rows), len(offsets))
    column = row + np.tile(offsets, rows)
    fill = rng.choice([1.0, rng.uniform(0.3, 1)])
    kept = (column >= 0) & (column < rows) & (rng.random(len(row)) < fill)
    return rows, rows, row[kept], column[kept]


def grid(rng: Generator, size: float) -> Pattern:
    """Neighbours in two or three dimensions, with several unknowns a point."""
    dimensions = int(rng.integers(2, 4))
    reach = [np.array(step) for step in np.ndindex(*(3,) * dimensions)]
    if rng.random() < 0.5:
        reach = [step for step in reach if np.abs(step - 1).sum() <= 1]
    unknowns = int(rng.choice([1, 1, 1, 2, 3, 4, 6]))
    points = max(16.0, size / (len(reach) * unknowns**2))
    sides = np.maximum(2, np.round(points ** (1 / dimensions) * np.exp(rng.normal(0, 0.4, dimensions)))).astype(np.int64)
    place = np.stack(np.unravel_index(np.arange(sides.prod()), sides))
    rows, columns = [], []
    for step in reach:
        other = place + (step - 1)[:, None]
        inside = np.all((other >= 0) & (other < sides[:, None]), axis=0)
        rows.append(np.flatnonzero(inside))
        columns.append(np.ravel_multi_index(tuple(other[:, inside]), tuple(sides)))
    return in_blocks(int(sides.prod()), np.concatenate(rows), np.concatenate(columns), unknowns)


def in_blocks(points: int, row: Places, column: Places, side: int) -> Pattern:
    """Replaces each non-zero by a dense block."""
    inner_row, inner_column = (part.ravel() for part in np.indices((side, side)))
    return (points * side, points * side, (row[:, None] * side + inner_row).ravel(),
            (column[:, None] * side + inner_column).ravel())


def mesh(rng: Generator, size: float) -> Pattern:
    """Points in the plane or in space, joined to those near them, in an order along a curve."""
    unknowns = int(rng.choice([1, 1, 2, 3, 6]))
    neighbours = whole(rng, 4, 40)
    points = max(64, int(size / (neighbours * unknowns**2)))
    # Cells along a curve stand for the points: a neighbour lies a few cells away along each axis.
    side = max(2, int(points**0.5))
    row = np.repeat(np.arange(points), neighbours)
    spread = neighbours**0.5 / 2
    along = np.round(rng.normal(0, spread, len(row))).astype(np.int64)
    across = np.round(rng.normal(0, spread, len(row))).astype(np.int64)
    column = row + along + across * side
    kept = (column >= 0) & (column < points)
    row, column = np.concatenate([row[kept], column[kept]]), np.concatenate([column[kept], row[kept]])
    half = len(row) // 2
    chosen = rng.permutation(len(row))[:max(half, 1)]
    return in_blocks(points, row[chosen], column[chosen], unknowns)


def popular(rng: Generator, count: int, lines: int, skew: float) -> Places:
    """Draws `count` lines, the k-th with a chance of about k^-skew, in an order of their own."""
    chance = np.arange(1, lines + 1, dtype=np.float64) ** -skew
    drawn = np.searchsorted(np.cumsum(chance) / chance.sum(), rng.random(count))
    return rng.permutation(lines)[np.minimum(drawn, lines - 1)]


def hubs(rng: Generator, size: float) -> Pattern:
    """A graph in which few nodes have most edges."""
    degree = log_uniform(rng, 2, 80)
    nodes = max(128, int(size / degree))
    edges = int(size / 2)
    skew = rng.uniform(0.3, 1.0)
    row, column = popular(rng, edges, nodes, skew), popular(rng, edges, nodes, skew)
    if rng.random() < 0.3:  # communities
        group = max(2, nodes // whole(rng, 4, 200))
        column = np.where(rng.random(edges) < 0.7, row // group * group + column % group, column) % nodes
    if rng.random() < 0.2:
        return nodes, nodes, row, column
    return nodes, nodes, np.concatenate([row, column]), np.concatenate([column, row])


def scattered(rng: Generator, size: float) -> Pattern:
    """Anywhere, square or long."""
    density = log_uniform(rng, 1e-4, 0.3)
    aspect = log_uniform(rng, 1 / 64, 64) if rng.random() < 0.5 else 1
    elements = size / density
    rows = int(np.clip((elements * aspect) ** 0.5, 16, 3e5))
    columns = int(np.clip(elements / rows, 16, 3e5))
    count = int(min(size, 0.5 * rows * columns))
    return rows, columns, rng.integers(0, rows, count), rng.integers(0, columns, count)


def road(rng: Generator, size: float) -> Pattern:
    """Chains with few branches."""
    nodes = max(512, int(size / 2.3))
    row = np.arange(nodes - 1)
    far = rng.integers(0, nodes, int(nodes * rng.uniform(0.02, 0.3)))
    near = np.clip(far + np.round(rng.normal(0, log_uniform(rng, 10, nodes / 2), len(far))).astype(np.int64), 0, nodes - 1)
    left, right = np.concatenate([row, far]), np.concatenate([row + 1, near])
    return nodes, nodes, np.concatenate([left, right]), np.concatenate([right, left])


def program(rng: Generator, size: float) -> Pattern:
    """A linear program: short columns, rows of very unequal length, steps along the diagonal."""
    per_column = log_uniform(rng, 2, 14)
    columns = max(128, int(size / per_column))
    rows = int(np.clip(columns * log_uniform(rng, 1 / 2000, 2), 16, 2e5))
    count = int(min(size, 0.4 * rows * columns))
    column = rng.integers(0, columns, count)
    row = popular(rng, count, rows, rng.uniform(0, 0.9))
    if rng.random() < 0.6:
        steps = column * rows // columns + np.round(rng.normal(0, max(1, rows / 60), count)).astype(np.int64)
        row = np.where(rng.random(count) < 0.7, np.clip(steps, 0, rows - 1), row)
    return (columns, rows, column, row) if rng.random() < 0.25 else (rows, columns, row, column)


def factor(rng: Generator, size: float) -> Pattern:
    """A triangular factor, which fills towards its end."""
    rows = max(128, int((size / log_uniform(rng, 0.2, 1.2)) ** 0.5 * log_uniform(rng, 1, 20)))
    row = np.minimum(rows - 1, (rows * rng.random(int(size)) ** (1 / rng.uniform(1, 3))).astype(np.int64))
    reach = np.maximum(1, (row * rng.uniform(0.02, 1)).astype(np.int64))
    column = row - (reach * rng.random(len(row)) ** rng.uniform(1, 3)).astype(np.int64)
    diagonal = np.arange(rows)
    return rows, rows, np.concatenate([row, diagonal]), np.concatenate([column, diagonal])


def weights(rng: Generator, size: float) -> Pattern:
    """Weights of a network that were pruned one by one, in blocks, or by rows."""
    rows, columns = (int(rng.choice([128, 256, 512, 768, 1024, 2048, 3072, 4096])) for _ in range(2))
    density = np.clip(size / (rows * columns), 0.005, 0.5)
    side = int(rng.choice([1, 1, 1, 4, 8, 16, 32]))
    keep = rng.random((rows // side, columns // side))
    if rng.random() < 0.4:
        keep = keep * np.exp(rng.normal(0, 1, (rows // side, 1)))
    row, column = np.nonzero(keep < np.quantile(keep, density))
    inner_row, inner_column = (part.ravel() for part in np.indices((side, side)))
    return (rows, columns, (row[:, None] * side + inner_row).ravel(), (column[:, None] * side + inner_column).ravel())


def mask(rng: Generator, size: float) -> Pattern:
    """Attention to the words nearby, to every so many, and to the first ones."""
    words = int(rng.choice([512, 1024, 2048, 4096, 8192]))
    each = max(4, int(size / words))
    window = max(1, int(each * rng.uniform(0.2, 0.9)))
    stride = max(1, words // max(1, each - window))
    row = np.arange(words)
    near = np.repeat(row, window), np.concatenate([np.maximum(0, row - window // 2)[:, None] + np.arange(window)], axis=1).ravel()
    far = np.repeat(row, -(-words // stride)), np.tile(np.arange(0, words, stride), words)
    left, right = np.concatenate([near[0], far[0]]), np.concatenate([near[1], far[1]])
    kept = right < words
    return words, words, left[kept], right[kept]


def features(rng: Generator, size: float) -> Pattern:
    """Rows of a table with popular and rare columns."""
    per_row = log_uniform(rng, 4, 120)
    rows = max(64, int(size / per_row))
    columns = whole(rng, 64, 8000)
    count = int(min(size, 0.4 * rows * columns))
    return rows, columns, rng.integers(0, rows, count), popular(rng, count, columns, rng.uniform(0.2, 1.0))


KINDS: tuple[Callable[[Generator, float], Pattern], ...] = (
    band, grid, mesh, hubs, scattered, road, program, factor, weights, mask, features)


def draw(rng: Generator, kind: Callable[[Generator, float], Pattern]) -> Pattern:
    """Returns a pattern by rows, without repeats."""
    rows, columns, row, column = kind(rng, log_uniform(rng, LEAST, MOST))
    if rows == columns and kind not in (factor, mask, weights) and rng.random() < 0.25:
        order = rng.permutation(rows)
        row, column = order[row], order[column]
    places = np.unique(row * columns + column)
    return rows, columns, places // columns, places % columns


def write(path: pathlib.Path, pattern: Pattern) -> None:
    rows, columns, row, column = pattern
    with gzip.GzipFile(path, "wb", 1, mtime=0) as file:
        file.write(f"%%MatrixMarket matrix coordinate pattern general\n{rows} {columns} {len(row)}\n".encode())
        places = np.stack([row + 1, column + 1], axis=1).ravel().tolist()
        file.write(("%d %d\n" * len(row) % tuple(places)).encode())  # ten times as fast as np.savetxt


def products(rng: Generator, name: str, non_zeros: int) -> list[str]:
    dtype = "f64" if rng.random() < 1 / 6 else "f32"
    lines = [f"sparse op=spmv payload=@{name} dtype={dtype}"]
    for operation in ("spmm", "sddmm"):
        width = 128 if rng.random() < 0.5 else int(rng.choice(WIDTHS))
        width = int(min(width, max(4, MAX_FLOPS / (2 * non_zeros))))
        lines.append(f"sparse op={operation} n={width} payload=@{name} dtype={dtype}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the matrices go")
    parser.add_argument("--count", type=int, default=240, help="matrices")
    parser.add_argument("--seed", type=int, default=20261130)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for number in range(arguments.count):
        rng = np.random.default_rng([arguments.seed, number])
        kind = KINDS[number % len(KINDS)]
        pattern = draw(rng, kind)
        name = f"{kind.__name__}{number}.mtx.gz"
        write(arguments.folder / name, pattern)
        print("\n".join(products(rng, name, len(pattern[2]))), flush=True)


if __name__ == "__main__":
    main()
