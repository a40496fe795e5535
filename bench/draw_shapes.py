#!/usr/bin/env python3
"""Draws a shape set that judges choices made before it was drawn.

    bench/draw_shapes.py --seed 20261123 --exclude bench/shapes/blas.csv bench/shapes/networks.csv \\
      > bench/shapes/blas_fresh.csv

Half of the products are layers of networks at token counts drawn log-uniformly, B stored by columns
as weights are; half have sizes drawn log-uniformly in a layout drawn from two. A product whose m, n
and k are in an excluded set is drawn again. Weights (n and k) in an excluded set are kept: the
benchmarks report them as a class of their own. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import sys

# Width, feed-forward width, and width of keys and values, from the networks' published configs.
NETWORKS = {
    "Qwen2.5 0.5B": (896, 4864, 128),
    "Qwen2.5 1.5B": (1536, 8960, 256),
    "Gemma 2 2B": (2304, 9216, 1024),
    "SmolLM2 360M": (960, 2560, 320),
    "TinyLlama 1.1B": (2048, 5632, 256),
    "ViT-S": (384, 1536, 384),
    "Mistral 7B": (4096, 14336, 1024),
    "BERT base": (768, 3072, 768),
}
MAX_FLOPS = 4e9


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def draw_layer(rng: random.Random) -> tuple[str, int, int, int, str]:
    width, inner, keys = NETWORKS[rng.choice(sorted(NETWORKS))]
    n, k = rng.choice([(width, width), (keys, width), (inner, width), (width, inner)])
    return "llm", log_uniform(rng, 1, 1024), n, k, "rcr"


def draw_sizes(rng: random.Random) -> tuple[str, int, int, int, str]:
    m, n, k = (log_uniform(rng, 4, 3000) for _ in range(3))
    return "log-uniform", m, n, k, rng.choice(["rrr", "rcr"])


def read_products(paths: list[str]) -> list[dict[str, str]]:
    rows = []
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            rows += list(csv.DictReader(line for line in file if not line.startswith("#")))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=30, help="products of each half")
    parser.add_argument("--exclude", nargs="*", default=[], metavar="CSV")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    taken = {(int(row["m"]), int(row["n"]), int(row["k"])) for row in read_products(options.exclude)}
    writer = csv.writer(sys.stdout, lineterminator="\n")
    print(f"# bench/draw_shapes.py --seed {options.seed} --count {options.count}")
    writer.writerow(["regime", "m", "n", "k", "layout"])
    for draw in (draw_layer, draw_sizes):
        drawn = 0
        while drawn < options.count:
            regime, m, n, k, layout = draw(rng)
            if (m, n, k) in taken or 2 * m * n * k > MAX_FLOPS:
                continue
            taken.add((m, n, k))
            writer.writerow([regime, m, n, k, layout])
            drawn += 1


if __name__ == "__main__":
    main()
