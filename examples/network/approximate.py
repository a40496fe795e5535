#!/usr/bin/env python3
"""Runs a network from an ONNX file, finds a faster form of it within a budget, and runs both.

    python3 approximate.py lenet5.onnx [BUDGET]

The budget is the share of images, in percentage points, that may change their class (default 5).
"""

import pathlib
import sys
import time

import foretune
import numpy as np
from foretune.approx import ApproxKnob, FP32Baseline, TorchApp, accuracy
from foretune.networks import Layer, Network, Plan

IMAGES = 256
SHAPE = (1, 28, 28)  # of one image: channels, rows, columns


class Way(ApproxKnob):
    """A way in which a layer may compute: a name, and what ``Layer`` takes."""

    def __init__(self, name: str, **how) -> None:
        super().__init__(name)
        self.how = how

    def layer(self, reference: bool = False) -> Layer:
        return Layer(**self.how)

    def is_applicable(self, operation, network) -> tuple[bool, str]:
        if "skip_rows" in self.how and (operation.kind != "conv" or operation.shape[-2] < 2):
            return False, "only images have rows to leave out"
        return operation.kind in ("conv", "linear"), "only layers with weights compute less"


WAYS = [FP32Baseline("exact", baseline_priority=1), Way("8 bits", dtype="i8"),
        Way("1 of 2 rows", skip_rows=(2, 0)), Way("3 of 4 rows", skip_rows=(4, 1)),
        Way("8 bits, 3 of 4 rows", dtype="i8", skip_rows=(4, 1))]


def draw(network: Network, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns smooth random images with the classes that the exact network gives them.

    Put images of your own here, with their true labels. Some choose, others only report.
    """
    random = np.random.default_rng(seed)
    channels, rows, columns = SHAPE
    row, column = np.mgrid[:rows, :columns] / rows
    images = np.zeros((IMAGES, *SHAPE), np.float32)
    for _ in range(4):  # waves of random directions and lengths
        across, along, phase = random.uniform(-2, 2, (3, IMAGES, channels, 1, 1))
        images += np.sin(2 * np.pi * (across * row + along * column + phase))
    return images, network.plan(images=IMAGES)(images).argmax(1)


def milliseconds(plans: list[Plan], images: np.ndarray) -> list[float]:
    """Returns the shortest time of each plan. They take turns, so that noise hits all alike."""
    best = [float("inf")] * len(plans)
    for _ in range(50):
        for number, plan in enumerate(plans):
            begin = time.perf_counter()
            plan(images)
            best[number] = min(best[number], 1e3 * (time.perf_counter() - begin))
    return best


def main(path: str, budget: float) -> None:
    network = Network.load(path, name=pathlib.Path(path).stem)
    print(f"{network.name}: {len(network.layers)} layers, "
          f"{network.multiply_adds / 1e6:.2f} million multiply-adds an image")
    tuning, test = draw(network, seed=1), draw(network, seed=2)

    app = TorchApp(network.name, network, [tuning], [test], WAYS, accuracy)
    tuner = app.get_tuner()
    tuner.tune(40, budget, is_threshold_relative=True, strategy="local")
    # The first of all is the exact network, for when nothing else stays within the budget.
    fastest = min([tuner.all_configs[0], *tuner.best_configs], key=lambda config: config.cost)
    for layer, knob in fastest.knobs.items():
        print(f"  {layer}: {knob}")

    exact, fast = network.plan(images=64), app.plan(fastest.knobs, images=64)
    before, after = milliseconds([exact, fast], test[0][:64])
    print(f"exact {before:.3f} ms, within the budget {after:.3f} ms: {before / after:.2f} times as fast")
    print(f"other images that change their class: {100 - app.measure_qos(fastest.knobs, True):.1f} %")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 5.0)
    except foretune.Error as error:
        sys.exit(f"approximate.py: {error}")
