#!/usr/bin/env python3
"""Measures four image classifiers (bench/networks/) beside ONNX Runtime, and each way that their
layers have to compute less.

    apt-get install dataset-fashion-mnist
    python3 -m venv build/networks && build/networks/bin/pip install -r scripts/requirements-networks.txt
    PYTHONPATH=build/dev/python taskset -c 1 build/networks/bin/python bench/networks.py --json FILE

Calls take turns with ONNX Runtime's, one thread each; medians count. The times of layers are those
of plans in which all layers compute one way, by turns with the exact plan's; rows that convert
between types belong to the layer that asks for them. Accuracy is that of the 10,000 test images,
which no training and no choice has seen; integers are calibrated on 512 of the images for tuning.
"""

from __future__ import annotations

import math
import pathlib
import statistics
import time
from statistics import geometric_mean
from typing import Any

import numpy as np
import onnxruntime
from fashion_mnist import (CALIBRATION_IMAGES, FOLDER, NAMES, accuracy_of, as_input, parser_of,
                           test_set, tuning_set, write_json)
from foretune.networks import Layer, Network, Plan

BATCH = 64

WAYS = {
    "f16": Layer("f16"),
    "bf16": Layer("bf16"),
    "i8": Layer("i8"),
    "rows 1 of 2": Layer(skip_rows=(2, 0)),
    "rows 1 of 3": Layer(skip_rows=(3, 1)),
    "rows 1 of 4": Layer(skip_rows=(4, 1)),
    "columns 1 of 2": Layer(skip_columns=(2, 0)),
    "columns 1 of 3": Layer(skip_columns=(3, 1)),
    "columns 1 of 4": Layer(skip_columns=(4, 1)),
    "taps 1 of 2": Layer(skip_taps=(2, 1)),
    "taps 1 of 3": Layer(skip_taps=(3, 0)),
    "taps 1 of 4": Layer(skip_taps=(4, 1)),
    "i8, rows 1 of 2": Layer("i8", skip_rows=(2, 0)),
    "i8, columns 1 of 2": Layer("i8", skip_columns=(2, 0)),
    "i8, taps 1 of 2": Layer("i8", skip_taps=(2, 1)),
}


def session_of(path: pathlib.Path) -> Any:
    """Returns ONNX Runtime's session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def in_turns(calls: list[Any], rounds: int) -> list[float]:
    """Returns the median seconds of each call."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, own in zip(calls, times):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def layer_times(network: Network, ways: dict[str, Plan], images: np.ndarray, rounds: int
                ) -> dict[str, dict[str, float]]:
    """Returns, for each way, the median ns of each layer by name."""
    layers = {layer.name for layer in network.layers}
    times: dict[str, dict[str, list[float]]] = {way: {name: [] for name in layers} for way in ways}
    for _ in range(rounds):
        for way, plan in ways.items():
            sums: dict[str, float] = {}
            for step in plan.profile(images):
                sums[step.name] = sums.get(step.name, 0) + step.nanoseconds
            for name in layers:
                times[way][name].append(sums[name])
    return {way: {name: statistics.median(own) for name, own in of.items()}
            for way, of in times.items()}


def ways_of(network: Network, ranges: Any, isa: str | None) -> dict[str, tuple[Plan, set[str]]]:
    """Returns, for each way, a plan in which all layers that can compute so do, and their names."""
    plans = {}
    for way, layer in WAYS.items():
        able = set()
        for each in network.layers:
            try:
                network.plan(layers={each.name: layer}, ranges=ranges, measure_top=0, isa=isa)
            except Exception:  # noqa: BLE001  a layer that cannot
                continue
            able.add(each.name)
        plans[way] = (network.plan(images=BATCH, layers={name: layer for name in able},
                                   ranges=ranges, isa=isa), able)
    return plans


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--networks", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--isa", choices=("avx512", "avx2", "generic"),
                        help="instructions of our kernels; ONNX Runtime keeps its own")
    parser.add_argument("--rounds", type=int, default=41, help="turns of a call with 64 images")
    parser.add_argument("--layer-rounds", type=int, default=11, help="turns of the layers' times")
    arguments = parser.parse_args()

    test, labels = test_set(arguments.data)
    test = as_input(test)
    tuning = as_input(tuning_set(arguments.data)[0][:CALIBRATION_IMAGES])

    figures: dict[str, Any] = {"onnxruntime": onnxruntime.__version__, "networks": {}}
    ratios: dict[int, list[float]] = {BATCH: [], 1: []}
    speedups: dict[str, list[float]] = {way: [] for way in WAYS}
    worst = 0.0
    for name in arguments.networks:
        network = Network.load(FOLDER / f"{name}.onnx")
        session = session_of(FOLDER / f"{name}.onnx")
        own: dict[str, Any] = {"multiply_adds": network.multiply_adds}
        for images in (BATCH, 1):
            given = np.ascontiguousarray(test[:images])
            plan = network.plan(images=images, isa=arguments.isa)
            out = np.empty((images, 10), np.float32)
            plan(given, out=out)
            wanted = session.run(None, {"image": given})[0]
            worst = max(worst, float(np.abs(out - wanted).max() / np.abs(wanted).max()))
            ours, theirs = in_turns([lambda: plan(given, out=out),
                                     lambda: session.run(None, {"image": given})],
                                    arguments.rounds if images > 1 else 20 * arguments.rounds)
            ratios[images].append(theirs / ours)
            own[f"us_b{images}"] = 1e6 * ours
            own[f"onnxruntime_us_b{images}"] = 1e6 * theirs
            print(f"{name}, {images} images: {1e6 * ours:.0f} us, ONNX Runtime "
                  f"{1e6 * theirs:.0f} us, {theirs / ours:.3f} times its speed", flush=True)
        exact = network.plan(images=BATCH, isa=arguments.isa)
        own["accuracy"] = accuracy_of(exact, test, labels)
        ranges = network.calibrate(tuning)
        plans = ways_of(network, ranges, arguments.isa)
        times = layer_times(network, {"f32": exact, **{way: plan for way, (plan, _) in
                                                       plans.items()}},
                            np.ascontiguousarray(test[:BATCH]), arguments.layer_rounds)
        own["ways"] = {}
        for way, (plan, able) in plans.items():
            first = network.layers[0].name  # its input has a single channel
            gains = {layer: times["f32"][layer] / times[way][layer] for layer in able
                     if layer != first}
            if name != "lenet5":
                speedups[way] += [gain for layer, gain in gains.items()
                                  if next(each for each in network.layers
                                          if each.name == layer).kind == "conv"]
            own["ways"][way] = {"accuracy": accuracy_of(plan, test, labels),
                                "layers": gains, "applied_to": len(able)}
            gain = geometric_mean(list(gains.values())) if gains else math.nan
            print(f"  {way:20s} layers {gain:5.2f}x (least "
                  f"{min(gains.values(), default=math.nan):.2f}, most "
                  f"{max(gains.values(), default=math.nan):.2f}), accuracy "
                  f"{own['ways'][way]['accuracy']:.2f} of {own['accuracy']:.2f}", flush=True)
        figures["networks"][name] = own
        figures[f"accuracy_{name.removesuffix('5')}"] = own["accuracy"]
    figures["f32_vs_onnxruntime_b64"] = geometric_mean(ratios[BATCH])
    figures["f32_vs_onnxruntime_b1"] = geometric_mean(ratios[1])
    figures["worst_difference"] = worst
    means = {way: geometric_mean(own) for way, own in speedups.items() if own}
    figures["ways"] = means
    figures["int8_layer_speedup"] = means.get("i8")
    figures["int8_rows2_layer_speedup"] = means.get("i8, rows 1 of 2")
    print(f"speed over ONNX Runtime's, geometric mean: {figures['f32_vs_onnxruntime_b64']:.3f} "
          f"with {BATCH} images, {figures['f32_vs_onnxruntime_b1']:.3f} with one; largest difference "
          f"{worst:.1e}")
    for way, mean in means.items():
        print(f"  {way:20s} {mean:.2f}x in the convolutions of vgg, resnet20 and mobilenet, without "
              "their first")
    write_json(arguments.json, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
