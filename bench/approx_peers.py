#!/usr/bin/env python3
"""Measures 8-bit networks of others beside ours: the four classifiers of bench/networks, quantised by
ONNX Runtime and by NNCF with OpenVINO.

    apt-get install dataset-fashion-mnist
    python3 -m venv build/networks && build/networks/bin/pip install -r scripts/requirements-networks.txt
    PYTHONPATH=build/dev/python taskset -c 1 build/networks/bin/python bench/approx_peers.py --json FILE

ONNX Runtime quantises statically: 8-bit inputs and weights in QDQ form, a scale for each filter, ranges
of 512 images for tuning. NNCF quantises with its accuracy control: layers go back to f32 until at most
one percentage point is lost on the 10,000 images for tuning; OpenVINO runs the result. Ours are the exact
plan, and the plan with all layers in 8-bit integers and the ranges of the same 512 images. Each library's
own f32 stands beside it. OpenVINO multiplies integers with matrix instructions (AMX) where the CPU has
them, which we do not; ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI in the environment leaves them out.

All run by turns in one thread, with 1 and with 64 images; medians count. Accuracy is that of the 10,000
test images, which no choice has seen. Tuning seconds are those from the f32 network to one that can run:
calibration, quantisation and, for ours, the plan of 64 images with its timed kernels.

`--quick` takes few turns and lets accuracy control judge by 1,000 images, to see that all of it works.
"""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import nncf
import numpy as np
import onnxruntime
import openvino
from fashion_mnist import (CALIBRATION_IMAGES, FOLDER, NAMES, accuracy_of, as_input, parser_of,
                           test_set, tuning_set, write_json)
from foretune.networks import Layer, Network
from networks import BATCH, in_turns, session_of
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

MAX_DROP = 0.01  # accuracy that accuracy control may lose
ACCURACY_BATCH = 100
# Threads and precision; without the last one, f32 networks run in bf16 where the CPU has it.
OPENVINO = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}


@dataclasses.dataclass
class Contender:
    """A way to run a network.

    Attributes:
        calls: by number of images: makes a call for given images, which returns the outputs.
        accuracy: percentage of test images that it classifies rightly.
        tuning_seconds: the time that making it took, beyond reading the network.
    """

    calls: dict[int, Callable[[np.ndarray], Callable[[], Any]]]
    accuracy: float
    tuning_seconds: float = 0.0


def percent_right(run: Callable[[np.ndarray], np.ndarray], images: np.ndarray, labels: np.ndarray
                  ) -> float:
    """Returns the percentage of images whose largest output is that of their label."""
    right = 0
    for first in range(0, len(images), ACCURACY_BATCH):
        part = slice(first, first + ACCURACY_BATCH)
        right += int((run(images[part]).argmax(1) == labels[part]).sum())
    return 100 * right / len(images)


# ---- ONNX Runtime ----


class CalibrationImages(quantization.CalibrationDataReader):
    """Hands images to ONNX Runtime's calibration, a batch at a time."""

    def __init__(self, images: np.ndarray, name: str) -> None:
        self._parts = iter([{name: images[first:first + BATCH]}
                            for first in range(0, len(images), BATCH)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._parts, None)


def onnxruntime_contender(path: pathlib.Path, test: np.ndarray, labels: np.ndarray) -> Contender:
    session = session_of(path)

    def call_for(images: np.ndarray) -> Callable[[], Any]:
        return lambda: session.run(None, {"image": images})[0]

    accuracy = percent_right(lambda images: call_for(images)(), test, labels)
    return Contender({1: call_for, BATCH: call_for}, accuracy)


def quantised_by_onnxruntime(name: str, folder: pathlib.Path, tuning: np.ndarray, test: np.ndarray,
                             labels: np.ndarray) -> Contender:
    begin = time.perf_counter()
    prepared, path = folder / f"{name}_prepared.onnx", folder / f"{name}_int8.onnx"
    # Symbolic shapes serve transformers and want another package.
    quant_pre_process(str(FOLDER / f"{name}.onnx"), str(prepared), skip_symbolic_shape=True)
    quantization.quantize_static(
        str(prepared), str(path), CalibrationImages(tuning[:CALIBRATION_IMAGES], "image"),
        quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    seconds = time.perf_counter() - begin
    contender = onnxruntime_contender(path, test, labels)
    contender.tuning_seconds = seconds
    return contender


# ---- OpenVINO ----


def openvino_contender(model: Any, test: np.ndarray, labels: np.ndarray) -> Contender:
    core = openvino.Core()

    def maker(images: int) -> Callable[[np.ndarray], Callable[[], Any]]:
        fixed = model.clone()
        fixed.reshape([images, 1, 28, 28])
        request = core.compile_model(fixed, "CPU", OPENVINO).create_infer_request()

        def call_for(given: np.ndarray) -> Callable[[], Any]:
            tensor = openvino.Tensor(given, shared_memory=True)
            request.set_input_tensor(tensor)

            def call() -> np.ndarray:
                request.infer()
                return request.get_output_tensor(0).data

            # The request reads the tensor's memory for as long as the call lives.
            call.tensor = tensor  # type: ignore[attr-defined]
            return call

        return call_for

    of_batch = maker(ACCURACY_BATCH)
    accuracy = percent_right(lambda images: of_batch(np.ascontiguousarray(images))(), test, labels)
    return Contender({images: maker(images) for images in (1, BATCH)}, accuracy)


def quantised_by_nncf(model: Any, tuning: np.ndarray, tuning_labels: np.ndarray, test: np.ndarray,
                      labels: np.ndarray) -> Contender:
    begin = time.perf_counter()
    calibration = nncf.Dataset([tuning[i:i + 1] for i in range(CALIBRATION_IMAGES)])
    batches = [(tuning[first:first + ACCURACY_BATCH], tuning_labels[first:first + ACCURACY_BATCH])
               for first in range(0, len(tuning), ACCURACY_BATCH)]

    def validate(compiled: Any, items: Iterable[Any]) -> tuple[float, list[float]]:
        shares = [float(np.mean(compiled(images)[0].argmax(1) == wanted)) for images, wanted in items]
        return float(np.mean(shares)), shares

    found = nncf.quantize_with_accuracy_control(
        model, calibration, nncf.Dataset(batches, lambda item: item[0]), validate,
        max_drop=MAX_DROP, drop_type=nncf.DropType.ABSOLUTE, subset_size=CALIBRATION_IMAGES)
    seconds = time.perf_counter() - begin
    contender = openvino_contender(found, test, labels)
    contender.tuning_seconds = seconds
    return contender


# ---- ours ----


def our_contender(network: Network, is_int8: bool, tuning: np.ndarray, test: np.ndarray,
                  labels: np.ndarray) -> Contender:
    begin = time.perf_counter()
    ranges = network.calibrate(tuning[:CALIBRATION_IMAGES]) if is_int8 else {}
    layers = {layer.name: Layer("i8") for layer in network.layers} if is_int8 else {}
    plans = {BATCH: network.plan(images=BATCH, layers=layers, ranges=ranges)}
    seconds = time.perf_counter() - begin
    plans[1] = network.plan(images=1, layers=layers, ranges=ranges)

    def maker(images: int) -> Callable[[np.ndarray], Callable[[], Any]]:
        out = np.empty((images, 10), np.float32)
        return lambda given: lambda: plans[images](given, out=out)

    return Contender({images: maker(images) for images in plans},
                     accuracy_of(plans[BATCH], test, labels), seconds)


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--networks", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--rounds", type=int, default=41, help="turns of a call with 64 images")
    parser.add_argument("--quick", action="store_true", help="few turns, less tuning")
    arguments = parser.parse_args()
    nncf.set_log_level(logging.ERROR)

    tuning_images = 1000 if arguments.quick else 10_000
    rounds = 3 if arguments.quick else arguments.rounds
    tuning, tuning_labels = (each[:tuning_images] for each in tuning_set(arguments.data))
    tuning = as_input(tuning)
    test, labels = test_set(arguments.data)
    test = as_input(test)

    figures: dict[str, Any] = {"onnxruntime": onnxruntime.__version__, "openvino": openvino.__version__,
                               "nncf": nncf.__version__, "quick": arguments.quick, "networks": {}}
    print(f"{'network':10s} {'way':18s} {'1 image us':>11s} {'64 images us':>13s} {'accuracy %':>11s} "
          f"{'tuning s':>9s}")
    for name in arguments.networks:
        path = FOLDER / f"{name}.onnx"
        network = Network.load(path)
        model = openvino.Core().read_model(path)
        with tempfile.TemporaryDirectory() as folder:
            contenders = {
                "onnxruntime f32": onnxruntime_contender(path, test, labels),
                "onnxruntime int8": quantised_by_onnxruntime(name, pathlib.Path(folder), tuning, test,
                                                             labels),
                "openvino f32": openvino_contender(model, test, labels),
                "nncf int8": quantised_by_nncf(model, tuning, tuning_labels, test, labels),
                "ours f32": our_contender(network, False, tuning, test, labels),
                "ours i8": our_contender(network, True, tuning, test, labels)}
        times: dict[int, list[float]] = {}
        for images in (1, BATCH):
            given = np.ascontiguousarray(test[:images])
            calls = [each.calls[images](given) for each in contenders.values()]
            times[images] = in_turns(calls, rounds if images > 1 else 20 * rounds)
        figures["networks"][name] = {}
        for i, (way, contender) in enumerate(contenders.items()):
            own = {"us_b1": 1e6 * times[1][i], f"us_b{BATCH}": 1e6 * times[BATCH][i],
                   "accuracy": contender.accuracy, "tuning_s": contender.tuning_seconds}
            figures["networks"][name][way] = own
            print(f"{name:10s} {way:18s} {own['us_b1']:11.1f} {own[f'us_b{BATCH}']:13.1f} "
                  f"{own['accuracy']:11.2f} {own['tuning_s']:9.1f}", flush=True)
    write_json(arguments.json, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
