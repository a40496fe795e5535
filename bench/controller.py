#!/usr/bin/env python3
"""Holds the time of a network's calls while a second process starts and stops on the same core.

    apt-get install dataset-fashion-mnist
    PYTHONPATH=build/dev/python build/venv/bin/python bench/controller.py --core 1 --json FILE

Several plans of one network take turns (docs/guides/networks.md): the exact one, one with all layers in 8-bit
integers, and one that also leaves out every second row. Their qualities are accuracies on images for
tuning. The second process computes without end on the same core. It starts and stops every few seconds.
The core should have nothing else to do.

The target is the geometric mean of the slowest plan's time alone and the fastest plan's time beside the
second process, both measured before; `--target-us` gives another one. A target below the second of
those times or above the first cannot be held all the time, which the program says.

The program prints the mean of each second relative to the target. A window counts where it begins at
least half a second after a start or a stop; it may hold the next one. One begins every 50 ms.

The cost of switching has two parts: the time of a call beyond the plan's run (the choice, and Python's
work on arrays), and the processor time of a run behind another plan's beyond that of the plan's next
run, while the second process is off: a plan's weights and memory have left the caches. The second part is
measured afterwards: reading that clock is a system call, at which schedulers like to switch.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from fashion_mnist import (CALIBRATION_IMAGES, FOLDER, NAMES, accuracy_of, as_input, parser_of,
                           tuning_set, write_json)
from foretune.networks import Controller, Layer, Network, Plan

ALTERNATIVES = {
    "f32": None,
    "i8": Layer("i8"),
    "i8, rows 1 of 2": Layer("i8", skip_rows=(2, 0)),
}
SETTLED_SECONDS = 0.5
WINDOW_SECONDS = 1.0
STEP_SECONDS = 0.05
BOUND = 0.05


class Neighbour:
    """A process that computes without end while it is on, on the core of this one."""

    def __init__(self, nice: int) -> None:
        program = f"import os\nos.nice({nice})\nwhile True: pass"
        self._process = subprocess.Popen([sys.executable, "-c", program])
        self.set_on(False)

    def set_on(self, is_on: bool) -> None:
        self._process.send_signal(signal.SIGCONT if is_on else signal.SIGSTOP)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def able_layers(network: Network, layer: Layer, ranges: Any) -> dict[str, Layer]:
    """Returns how each layer computes: as `layer` says, or in its type alone where no more fits."""
    chosen = {}
    for each in network.layers:
        for way in (layer, Layer(layer.dtype)):
            try:
                network.plan(layers={each.name: way}, ranges=ranges, measure_top=0)
            except Exception:  # noqa: BLE001, S112  a layer that cannot
                continue
            chosen[each.name] = way
            break
    return chosen


def mean_seconds(plan: Plan, images: np.ndarray, seconds: float) -> float:
    """Returns the mean time of calls over so many seconds."""
    out = np.empty((len(images), 10), np.float32)
    plan(images, out=out)
    begin = time.perf_counter()
    calls = 0
    while time.perf_counter() < begin + seconds:
        plan(images, out=out)
        calls += 1
    return (time.perf_counter() - begin) / calls


def run(controller: Controller, images: np.ndarray, neighbour: Neighbour, seconds: float,
        period: float) -> tuple[np.ndarray, np.ndarray, list[float], int]:
    """Calls back to back; returns when calls began and ended, when the load changed, and how often the
    plan did."""
    begins, ends, steps = [], [], []
    changes, last = 0, None
    out = np.empty((len(images), 10), np.float32)
    first = time.perf_counter()
    next_step, is_on = period, False
    while True:
        begin = time.perf_counter() - first
        if begin >= seconds:
            break
        if begin >= next_step:
            is_on = not is_on
            neighbour.set_on(is_on)
            steps.append(begin)
            next_step += period
            # Waking the other process is no part of a call.
            begin = time.perf_counter() - first
        controller(images, out=out)
        ends.append(time.perf_counter() - first)
        begins.append(begin)
        changes += controller.chosen != last
        last = controller.chosen
    neighbour.set_on(False)
    return np.array(begins), np.array(ends), steps, changes


def window_means(begins: np.ndarray, ends: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Returns the mean time of the calls that begin and end within the second from each moment."""
    sums = np.concatenate([[0.0], np.cumsum(ends - begins)])
    low = np.searchsorted(begins, at)
    high = np.searchsorted(ends, at + WINDOW_SECONDS, side="right")
    return (sums[high] - sums[low]) / (high - low)


def switching_costs(plans: list[Plan], images: np.ndarray, rounds: int = 100) -> list[float]:
    """Returns the processor time of each call behind another plan's beyond that of the next one."""
    out = np.empty((len(images), 10), np.float32)
    costs: list[float] = []
    for before, plan in itertools.permutations(plans, 2):
        first, second = [], []
        for _ in range(rounds):
            before(images, out=out)
            for own in (first, second):
                begin = time.thread_time()
                plan(images, out=out)
                own.append(time.thread_time() - begin)
        costs += [behind_other - behind_own for behind_other, behind_own in zip(first, second)]
    return costs


def call_overhead(controller: Controller, plan: Plan, images: np.ndarray, calls: int = 2001) -> float:
    """Returns the median time of a controller's call, whose only plan is `plan`, beyond the plan's."""
    out = np.empty((len(images), 10), np.float32)
    beyond = []
    for _ in range(calls):
        begin = time.perf_counter()
        plan(images, out=out)
        middle = time.perf_counter()
        controller(images, out=out)
        beyond.append(time.perf_counter() - middle - (middle - begin))
    return statistics.median(beyond)


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--network", choices=NAMES, default="resnet20")
    parser.add_argument("--images", type=int, default=4, help="images of a call")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--period", type=float, default=3,
                        help="seconds between a start and a stop of the second process")
    parser.add_argument("--nice", type=int, default=0, help="niceness that the second process adds")
    parser.add_argument("--core", type=int, help="the core of both processes; default: the first allowed")
    parser.add_argument("--target-us", type=float, help="wanted time of a call")
    arguments = parser.parse_args()

    core = min(os.sched_getaffinity(0)) if arguments.core is None else arguments.core
    subprocess.run(["taskset", "-pc", str(core), str(os.getpid())], check=True,
                   stdout=subprocess.DEVNULL)
    tuning, labels = tuning_set(arguments.data)
    tuning = as_input(tuning)
    network = Network.load(FOLDER / f"{arguments.network}.onnx")
    ranges = network.calibrate(tuning[:CALIBRATION_IMAGES])
    given = np.ascontiguousarray(tuning[:arguments.images])
    plans, qualities = {}, {}
    for name, layer in ALTERNATIVES.items():
        layers = {} if layer is None else able_layers(network, layer, ranges)
        plans[name] = network.plan(images=arguments.images, layers=layers, ranges=ranges)
        judge = network.plan(images=100, layers=layers, ranges=ranges, measure_top=0)
        qualities[name] = accuracy_of(judge, tuning, labels)

    neighbour = Neighbour(arguments.nice)
    try:
        alone = {name: mean_seconds(plan, given, 0.5) for name, plan in plans.items()}
        neighbour.set_on(True)
        beside = {name: mean_seconds(plan, given, 1) for name, plan in plans.items()}
        neighbour.set_on(False)
        for name in plans:
            print(f"{name:16s} {1e6 * alone[name]:8.1f} us alone, {1e6 * beside[name]:8.1f} us beside "
                  f"the second process, {qualities[name]:.2f} % right")
        least, most = min(beside.values()), max(alone.values())
        target = 1e-6 * arguments.target_us if arguments.target_us else math.sqrt(least * most)
        is_attainable = least <= target <= most
        print(f"target {1e6 * target:.1f} us" +
              ("" if is_attainable else ", which cannot be held all the time: see --nice"))
        pairs = [(plan, qualities[name]) for name, plan in plans.items()]
        controller = Controller(pairs, 1e9 * target,
                                expected_ns=[1e9 * alone[name] for name in plans])
        begins, ends, steps, changes = run(controller, given, neighbour, arguments.seconds,
                                           arguments.period)
        single = Controller(pairs[:1], 1e9 * target)
        costs = switching_costs(list(plans.values()), given)
        overhead = call_overhead(single, pairs[0][0], given)
    finally:
        neighbour.end()

    # The first half second counts as one after a step.
    for second, mean in enumerate(window_means(begins, ends, np.arange(0.0, ends[-1] - 1, 1.0))):
        is_on = "".join(", load changes" for step in steps if second <= step < second + 1)
        print(f"  {second:3d} s: {mean / target:.4f} of the target{is_on}")
    at = np.arange(SETTLED_SECONDS, ends[-1] - WINDOW_SECONDS, STEP_SECONDS)
    at = at[[not any(step <= moment < step + SETTLED_SECONDS for step in steps) for moment in at]]
    ratios = window_means(begins, ends, at) / target
    share = float(np.mean(np.abs(ratios - 1) <= BOUND))
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    history = dict(zip(plans, controller.history))
    print(f"{len(at)} windows of 1 s: {100 * share:.2f} % within {100 * BOUND:.0f} %, farthest {worst:.4f}")
    print(f"{changes} changes of the plan; without load one costs {1e6 * np.median(costs):.1f} us in the "
          f"median, 99 % below {1e6 * np.quantile(costs, 0.99):.1f} us, largest {1e6 * max(costs):.1f} us; "
          f"the controller's call takes {1e6 * overhead:.2f} us more than the plan's")
    print("calls: " + ", ".join(f"{name}: {count}" for name, count in history.items()))
    figures = {
        "network": arguments.network, "images": arguments.images, "target_us": 1e6 * target,
        "is_attainable": is_attainable, "windows": len(at), "share_within": share,
        "worst_ratio": worst, "ratios": [round(float(each), 5) for each in ratios],
        "changes": changes, "switch_us_median": 1e6 * float(np.median(costs)),
        "switch_us_p99": 1e6 * float(np.quantile(costs, 0.99)),
        "switch_us_largest": 1e6 * max(costs), "overhead_us": 1e6 * overhead,
        "calls": history, "quality": qualities,
        "alone_us": {name: 1e6 * each for name, each in alone.items()},
        "beside_us": {name: 1e6 * each for name, each in beside.items()}}
    write_json(arguments.json, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
