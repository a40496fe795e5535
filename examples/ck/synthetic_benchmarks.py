#!/usr/bin/env python3
"""Benchmark results as CK Tile's batch runs write them, with times by formula: for trying the
workflow where there is no GPU of AMD's. The times say nothing about any real kernel.

    examples/ck/synthetic_benchmarks.py benchmarks.json [--problems 60] [--seed 1] [--dtype fp8]
    examples/ck/synthetic_benchmarks.py benchmarks.log           as a log of the benchmark programs
    examples/ck/synthetic_benchmarks.py times.csv --direction bwd_data     convolutions, also as .json
"""

import argparse
import csv
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


CONV_TILES = [(16, 64, 64), (32, 64, 64), (64, 64, 64), (32, 128, 64), (64, 128, 64),
              (128, 128, 64), (128, 64, 128)]


def kernels(dtype):
    for tile, waves, pipeline in itertools.product(BLOCK_TILES, WAVES, ("compv3", "compv4", "mem")):
        if tile[0] % (waves[0] * 16) or tile[1] % (waves[1] * 16):
            continue
        pads = "True_True_True" if pipeline == "mem" else "False_False_False"
        sizes = "x".join(map(str, tile)), "x".join(map(str, waves)), "16x16x32"
        name = (f"gemm_universal_{dtype}_rcr_{pipeline}_cshuffle_intrawave_{pads}_False_"
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


def gemm_problems(rng, count):
    problems = set()
    while len(problems) < count:
        problems.add((2 ** rng.randint(0, 7) * rng.choice((1, 16, 24)), 256 * rng.randint(1, 28),
                      256 * rng.randint(1, 28)))
    return sorted(problems)


def gemm_results(arguments, rng):
    """Yields a kernel's name and its runs."""
    problems = gemm_problems(rng, arguments.problems)
    for name, tile, waves, pipeline in kernels(arguments.dtype):
        runs = []
        for m, n, k in problems:
            fits = pipeline == "mem" or not (m % tile[0] or n % tile[1] or k % tile[2])
            ms = time_ns((m, n, k), tile, waves, pipeline) * rng.uniform(0.99, 1.01) / 1e6
            runs.append({"kernel_name": name, "m": m, "n": n, "k": k,
                         "avg_time_ms": ms if fits else 0.0,
                         "tflops": 2e-9 * m * n * k / ms if fits else 0.0, "is_valid": fits,
                         "error": None if fits else "Arguments not supported"})
        yield name, runs


def conv_problems(rng, count):
    problems = {}
    while len(problems) < count:
        size, filter_size = rng.choice((7, 14, 28, 56)), rng.choice((1, 3))
        problem = {"N": 2 ** rng.randint(0, 6), "C": 64 * rng.randint(1, 8),
                   "K": 64 * rng.randint(1, 8), "G": 1, "Hi": size, "Wi": size, "Y": filter_size,
                   "X": filter_size, "stride_h": 1, "stride_w": 1, "pad_h": filter_size // 2,
                   "pad_w": filter_size // 2}
        problems[tuple(problem.values())] = problem
    return [problems[key] for key in sorted(problems)]


def conv_results(arguments, rng):
    """Yields a kernel's name and its runs. A convolution takes what its product takes."""
    problems = conv_problems(rng, arguments.problems)
    for tile, pipeline in itertools.product(CONV_TILES, ("compv3", "mem")):
        sizes = "x".join(map(str, tile))
        name = (f"grouped_conv_{arguments.direction}_{arguments.dtype}_2d_{sizes}_{pipeline}"
                "_intrawave")
        runs = []
        for problem in problems:
            points = problem["N"] * problem["Hi"] * problem["Wi"]
            product = (points, problem["K"], problem["C"] * problem["Y"] * problem["X"])
            ms = time_ns(product, tile, (2, 2, 1), pipeline) * rng.uniform(0.99, 1.01) / 1e6
            runs.append({"kernel_name": name, **problem, "avg_time_ms": ms,
                         "tflops": 2e-9 * math.prod(product) / ms, "is_valid": True, "error": None})
        yield name, runs


def write_csv(path, results):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for name, runs in results:
            for index, run in enumerate(runs):
                sizes = {key: value for key, value in run.items()
                         if key not in ("kernel_name", "avg_time_ms", "tflops", "is_valid", "error")}
                row = {"kernel": name, "problem_idx": index, **sizes,
                       "latency_ms": run["avg_time_ms"], "tflops": run["tflops"], "non_zero": 1}
                if writer is None:
                    writer = csv.DictWriter(file, row.keys())
                    writer.writeheader()
                writer.writerow(row)


def write_log(path, results):
    with path.open("w", encoding="utf-8") as file:
        for name, runs in results:
            for run in runs:
                if not run["is_valid"]:
                    continue
                document = {"name": name,
                            "problem": {"split_k": 1, "m": run["m"], "n": run["n"], "k": run["k"]},
                            "perf_result": {"latency(ms)": round(run["avg_time_ms"], 2),
                                            "tflops(TFlops)": round(run["tflops"], 2),
                                            "bandwidth(GB/s)": 0}}
                file.write(json.dumps(document, indent=1) + "\n")


def write_json(path, results, dtype):
    shown = ("kernel_name", "avg_time_ms", "tflops", "is_valid", "error")
    sizes = [{key: value for key, value in run.items() if key not in shown}
             for run in results[0][1]]
    document = {"metadata": {"dtype": dtype, "layout": "rcr", "num_kernels": len(results),
                             "num_problems": len(sizes), "warmup": 10, "repeat": 50,
                             "timestamp": ""},
                "problem_sizes": sizes,
                "results": [{"kernel_config": {"name": name}, "benchmarks": runs}
                            for name, runs in results]}
    path.write_text(json.dumps(document), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dtype", default="")
    parser.add_argument("--direction", choices=("forward", "bwd_data", "bwd_weight"))
    arguments = parser.parse_args()
    arguments.dtype = arguments.dtype or ("bf16" if arguments.direction else "fp16")
    rng = random.Random(arguments.seed)
    results = list((conv_results if arguments.direction else gemm_results)(arguments, rng))
    if arguments.output.suffix == ".csv":
        write_csv(arguments.output, results)
    elif arguments.output.suffix == ".log":
        write_log(arguments.output, results)
    else:
        write_json(arguments.output, results, arguments.dtype)
    print(f"{len(results)} kernels, {len(results[0][1])} problems: {arguments.output}")


if __name__ == "__main__":
    main()
