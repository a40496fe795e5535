#!/usr/bin/env python3
"""Schedules one loop nest in four ways, compiles each, and times them.

    python3 schedule.py ["mm m=192 n=96 k=64"]
"""

import sys
import time

import foretune
import numpy as np
from foretune import loops


def main(text: str) -> None:
    nest = loops.Computation(text)
    print(f"{nest.name}: {nest.operation}, {nest.flops / 1e6:.2f} MFLOP")

    def timed(make):
        begin = time.perf_counter()
        schedule = make()
        return schedule, time.perf_counter() - begin

    ways = {
        "as it is": timed(lambda: ""),
        # Register blocks and cache blocks as textbooks have them; nothing is measured.
        "by rule": timed(lambda: loops.textbook_schedules(nest)[0]),
        # The policy that comes with the package builds ten, the fastest of which is kept.
        "by policy": timed(lambda: loops.schedule(nest, measurements=10)),
        # Each new schedule is compiled, compared with the right outputs, and timed.
        "by search": timed(lambda: loops.search(nest, "guided", measurements=100).schedule),
    }
    random = np.random.default_rng(1)
    # Small whole numbers: their sums are exact in any order, so that outputs can be compared.
    inputs = [random.integers(-4, 5, operand.shape).astype(np.float32) for operand in nest.inputs]
    expected = loops.compile(nest)(*inputs)
    for name, (schedule, seconds) in ways.items():
        kernel = loops.compile(nest, schedule)
        assert np.array_equal(kernel(*inputs), expected), f"{name} computes something else"
        gflops = nest.flops / kernel.time() / 1e9
        print(f"{name:9}  {gflops:6.1f} GFLOP/s, found in {1e3 * seconds:7.1f} ms: {schedule}")
    print(loops.tree(nest, ways["by search"][0]))


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "mm m=192 n=96 k=64")
    except foretune.Error as error:
        sys.exit(f"schedule.py: {error}")
