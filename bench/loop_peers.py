#!/usr/bin/env python3
"""Compares our schedules with NumPy's and TVM's matrix products, f32, one thread.

    python3 -m venv build/tvm && build/tvm/bin/pip install -r scripts/requirements-tvm.txt
    PYTHONPATH=build/dev/python build/tvm/bin/python bench/loop_peers.py --output loop_peers.json

- ours: the fastest of the textbook's schedules, each compiled, verified and timed, for --search
  seconds a product. Timed twice: by a loop in C++ on operands of its own, as TVM's code is, and
  called from Python on NumPy's arrays, as NumPy is.
- policy, policy_10: the schedule of the policy that comes with the package, with nothing measured
  and with ten measurements, and the seconds that these took. Timed in C++.
- TVM, default: the loops as te.create_prim_func writes them, compiled by LLVM for this CPU; then
  one step after another, as LoopTune's comparison takes them: blocks of 32 x 32 x 4, the loops in
  the order m k n within, lanes along n.
- TVM, MetaSchedule: the best of --trials trials (0 leaves it out), and the seconds that they took.
  Its first takes longer than our whole search: processes that build and run have to start.
- NumPy: numpy.matmul with out=, called from Python on the same arrays; its OpenBLAS on one thread,
  with the core type that this CPU has.

Compare times of C++ with times of C++, and calls with calls. All are timed in turns, --rounds
windows of about a millisecond each; the fastest window counts. The peak is the highest of probes
between them. Results are compared with NumPy's in f64.
"""

from __future__ import annotations

import os

# The libraries read these when they are loaded.
os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"})
with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
    if "avx512vl" in cpuinfo.read():
        os.environ["OPENBLAS_CORETYPE"] = "SKYLAKEX"

import argparse
import json
import logging
import pathlib
import tempfile
import time
from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

import numpy as np
import tvm
from foretune import loops
from tvm import s_tir, te
from tvm.s_tir import meta_schedule

WINDOW_S = 1e-3
SHAPES = pathlib.Path(__file__).parent / "shapes" / "loop_test.csv"


def tvm_module(m: int, n: int, k: int) -> tvm.IRModule:
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    function = te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def tvm_target() -> tvm.target.Target:
    mcpu = "skylake-avx512" if "avx512" in loops.instruction_sets() else "haswell"
    return tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": 1})


def tvm_steps(module: tvm.IRModule) -> dict[str, tvm.IRModule]:
    """Returns the product after each step of a textbook's schedule."""
    out = {}
    for name in ("blocked", "permuted", "vectorized"):
        schedule = s_tir.Schedule(module)
        m, n, k = schedule.get_loops(schedule.get_sblock("C"))
        m_out, m_in = schedule.split(m, [None, 32])
        n_out, n_in = schedule.split(n, [None, 32])
        k_out, k_in = schedule.split(k, [None, 4])
        if name == "blocked":
            schedule.reorder(m_out, n_out, k_out, k_in, m_in, n_in)
        else:
            schedule.reorder(m_out, n_out, k_out, m_in, k_in, n_in)
        if name == "vectorized":
            schedule.vectorize(n_in)
        schedule.decompose_reduction(schedule.get_sblock("C"), k_out)
        out[f"tvm_{name}"] = schedule.mod
    return out


def tuned(module: tvm.IRModule, trials: int) -> tuple[Any, float]:
    """Returns MetaSchedule's best, None when it finds nothing, and the seconds it took."""
    begin = time.perf_counter()
    target = tvm_target()
    with tempfile.TemporaryDirectory() as folder:
        database = meta_schedule.tir_integration.tune_tir(
            module, target, folder, max_trials_global=trials, num_trials_per_iter=min(trials, 32),
            num_tuning_cores=os.cpu_count() or 1, cost_model="xgb")
        took = time.perf_counter() - begin
        schedule = meta_schedule.tir_integration.compile_tir(database, module, target)
    return None if schedule is None else tvm.compile(schedule.mod, target=target), took


class Contender:
    """A function that is timed in turns with others."""

    def __init__(self, name: str, window: Callable[[int], float]) -> None:
        self.name = name
        self.window = window  # seconds of a run, from so many of them
        self.seconds = window(1)

    def take_turn(self) -> None:
        self.seconds = min(self.seconds, self.window(max(1, int(WINDOW_S / self.seconds))))


def of_tvm(name: str, library: Any, arrays: list[np.ndarray]) -> tuple[Contender, np.ndarray]:
    device = tvm.cpu()
    tensors = [tvm.runtime.tensor(array, device) for array in arrays]
    tensors.append(tvm.runtime.tensor(np.zeros((arrays[0].shape[0], arrays[1].shape[1]), "float32"),
                                      device))
    module = getattr(library, "mod", library)

    def window(runs: int) -> float:
        return float(module.time_evaluator("main", device, number=runs, repeat=1)(*tensors).mean)

    contender = Contender(name, window)
    return contender, tensors[-1].numpy()


def of_kernel(name: str, kernel: loops.Kernel) -> Contender:
    return Contender(name, lambda _: kernel.time(windows=1, window_seconds=WINDOW_S))


def of_calls(name: str, call: Callable[[], Any]) -> Contender:
    """Times whole calls from Python."""

    def window(runs: int) -> float:
        begin = time.perf_counter()
        for _ in range(runs):
            call()
        return (time.perf_counter() - begin) / runs

    return Contender(name, window)


def compare(m: int, n: int, k: int, options: argparse.Namespace) -> dict[str, Any]:
    product = loops.Computation(f"mm m={m} n={n} k={k}")
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((m, k), "float32"), rng.standard_normal((k, n), "float32")]
    expected = arrays[0].astype("float64") @ arrays[1].astype("float64")

    def check(result: np.ndarray, name: str) -> None:
        if not np.allclose(result, expected, rtol=1e-3, atol=1e-3):
            raise SystemExit(f"{name} computes something else")

    facts: dict[str, Any] = {"m": m, "n": n, "k": k}
    policies = {}
    for name, measurements in (("policy", 0), ("policy_10", 10)):
        begin = time.perf_counter()
        schedule = loops.schedule(product, measurements=measurements)
        facts[f"{name}_s"] = time.perf_counter() - begin
        policies[name] = loops.compile(product, schedule)
        check(policies[name](*arrays), name)
    found = loops.search(product, "textbook", seconds=options.search)
    kernel = loops.compile(product, found.schedule)
    check(kernel(*arrays), "ours")
    out = np.empty((m, n), "float32")
    contenders = [
        of_kernel("ours", kernel),
        *(of_kernel(name, chosen) for name, chosen in policies.items()),
        of_calls("ours_called", lambda: kernel(*arrays, out=out)),
        of_calls("numpy_called", lambda: np.matmul(*arrays, out=out))]
    facts["ours_tried"] = len(found.measurements)
    module = tvm_module(m, n, k)
    libraries = {name: tvm.compile(each, target=tvm_target())
                 for name, each in {"tvm_default": module, **tvm_steps(module)}.items()}
    if options.trials > 0:
        library, facts["metaschedule_s"] = tuned(module, options.trials)
        if library is not None:
            libraries["metaschedule"] = library
    for name, library in libraries.items():
        contender, result = of_tvm(name, library, arrays)
        check(result, name)
        contenders.append(contender)
    peak = 0.0
    for _ in range(options.rounds):
        for contender in contenders:
            contender.take_turn()
            peak = max(peak, loops.measure_peak(seconds=1e-3))
    facts["peak_gflops"] = peak
    for contender in contenders:
        facts[contender.name] = product.flops / contender.seconds / 1e9 / peak
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=0, help="only the first products; 0: all 25")
    parser.add_argument("--search", type=float, default=2, help="seconds of our search")
    parser.add_argument("--trials", type=int, default=0, help="of MetaSchedule")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", help="JSON")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    lines = SHAPES.read_text(encoding="utf-8").splitlines()[1:]
    results = []
    for line in lines[:options.size or None]:
        m, n, k = (int(word) for word in line.split(",")[:3])
        results.append(compare(m, n, k, options))
        shown = {key: round(value, 3) if isinstance(value, float) else value
                 for key, value in results[-1].items()}
        print(shown, flush=True)
    for name in ("ours", "policy", "policy_10", "tvm_default", "tvm_blocked", "tvm_permuted",
                 "tvm_vectorized", "metaschedule", "ours_called", "numpy_called"):
        shares = [result[name] for result in results if name in result]
        if shares:
            print(f"{name:24} {geometric_mean(shares):.3f} of the peak (least {min(shares):.3f}), "
                  f"{len(shares)} products")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
