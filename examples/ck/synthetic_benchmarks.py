#!/usr/bin/env python3
"""Benchmark results as CK Tile's batch runs write them, with times by formula: for trying the
workflow where there is no GPU of AMD's. The times say nothing about any real kernel.

    examples/ck/synthetic_benchmarks.py benchmarks.json [--problems 60] [--seed 1]
"""

import argparse
import itertools
import json
import math
import pathlib
import random

UNITS = 256  # compute units of a gfx950
PEAK_FLOPS_PER_NS = 2.5e6
BYTES_PER_NS = 8000
BLOCK_TILES = [(32, 64, 64), (64, 64, 64), (64, 128, 64), (128, 64, 64), (128, 128, 32),
               (128, 128, 64), (128, 256, 32), (256, 128, 32), (256, 256, 32)]
WAVES = [(2, 2, 1), (4, 1, 1), (1, 4, 1)]


def kernels():
    for tile, waves, pipeline in itertools.product(BLOCK_TILES, WAVES, ("compv3", "compv4", "mem")):
        if tile[0] % (waves[0] * 16) or tile[1] % (waves[1] * 16):
            continue
        pads = "True_True_True" if pipeline == "mem" else "False_False_False"
        sizes = "x".join(map(str, tile)), "x".join(map(str, waves)), "16x16x32"
        name = (f"gemm_universal_fp16_rcr_{pipeline}_cshuffle_intrawave_{pads}_False_"
                + "_".join(sizes))
        yield name, tile, waves, pipeline


def time_ns(problem, tile, waves, pipeline):
    m, n, k = problem
    tiles = math.ceil(m / tile[0]) * math.ceil(n / tile[1])
    rounds = math.ceil(tiles / UNITS)
    steps = math.ceil(k / tile[2])
    # Small tiles load more than they compute; long waves of a flat tile wait for one another.
    rate = tile[0] * tile[1] / (tile[0] + tile[1]) / 64
    compute = 2 * tile[0] * tile[1] * tile[2] * UNITS / PEAK_FLOPS_PER_NS / min(1.0, rate)
    aspect = abs(math.log2(tile[0] / tile[1]) - math.log2(waves[0] / waves[1]))
    load = (tile[0] + tile[1]) * tile[2] * 2 * min(tiles, UNITS) / BYTES_PER_NS
    slow = {"compv3": 1.0, "compv4": 0.92, "mem": 1.15}[pipeline]
    start = {"compv3": 2200, "compv4": 2600, "mem": 1700}[pipeline]
    overlap = max(compute * slow, load * (0.8 if pipeline == "mem" else 1.0))
    return start + rounds * steps * overlap * (1 + 0.05 * aspect)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    problems = set()
    while len(problems) < arguments.problems:
        problems.add((2 ** rng.randint(0, 7) * rng.choice((1, 16, 24)), 256 * rng.randint(1, 28),
                      256 * rng.randint(1, 28)))
    results = []
    for name, tile, waves, pipeline in kernels():
        runs = []
        for m, n, k in sorted(problems):
            fits = pipeline == "mem" or not (m % tile[0] or n % tile[1] or k % tile[2])
            ms = time_ns((m, n, k), tile, waves, pipeline) * rng.uniform(0.99, 1.01) / 1e6
            runs.append({"kernel_name": name, "m": m, "n": n, "k": k,
                         "avg_time_ms": ms if fits else 0.0,
                         "tflops": 2e-9 * m * n * k / ms if fits else 0.0, "is_valid": fits,
                         "error": None if fits else "Arguments not supported"})
        results.append({"kernel_config": {"name": name}, "benchmarks": runs})
    sizes = [{"m": m, "n": n, "k": k} for m, n, k in sorted(problems)]
    document = {"metadata": {"dtype": "fp16", "layout": "rcr", "num_kernels": len(results),
                             "num_problems": len(sizes), "warmup": 10, "repeat": 50,
                             "timestamp": ""},
                "problem_sizes": sizes, "results": results}
    arguments.output.write_text(json.dumps(document), encoding="utf-8")
    print(f"{len(results)} kernels, {len(sizes)} problems: {arguments.output}")


if __name__ == "__main__":
    main()
