"""The images of Fashion-MNIST (Debian's dataset-fashion-mnist) and the networks that classify them."""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
from typing import Any

import numpy as np
from foretune.networks import Plan

FOLDER = pathlib.Path(__file__).parent / "networks"
NAMES = ("lenet5", "vgg", "resnet20", "mobilenet")
# The networks read (pixel / 255 - MEAN) / DEVIATION.
MEAN = 0.2860
DEVIATION = 0.3530
CALIBRATION_IMAGES = 512  # the first images for tuning
TRAINING_IMAGES = 50_000  # of the training set; the other 10,000 are for tuning


def read_idx(path: pathlib.Path) -> np.ndarray:
    """Returns the bytes of one of the data set's files: images (n, 784), or labels (n,)."""
    content = gzip.decompress(path.read_bytes())
    if "images" in path.name:
        return np.frombuffer(content, np.uint8, offset=16).reshape(-1, 784)
    return np.frombuffer(content, np.uint8, offset=8)


def tuning_set(data: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns pixels and labels for tuning, which no training saw."""
    return (read_idx(data / "train-images-idx3-ubyte.gz")[TRAINING_IMAGES:],
            read_idx(data / "train-labels-idx1-ubyte.gz")[TRAINING_IMAGES:])


def test_set(data: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns pixels and labels of the test images."""
    return read_idx(data / "t10k-images-idx3-ubyte.gz"), read_idx(data / "t10k-labels-idx1-ubyte.gz")


def as_input(pixels: np.ndarray) -> np.ndarray:
    """Returns images as the networks read them."""
    values = (pixels.astype(np.float32) / 255 - MEAN) / DEVIATION
    return np.ascontiguousarray(values.reshape(-1, 1, 28, 28), dtype=np.float32)


def accuracy_of(plan: Plan, images: np.ndarray, labels: np.ndarray) -> float:
    """Returns the percentage of images whose largest output is that of their label."""
    right = 0
    for first in range(0, len(images), plan.images):
        part = images[first:first + plan.images]
        padded = np.zeros((plan.images, *images.shape[1:]), np.float32)
        padded[:len(part)] = part
        right += int((plan(padded)[:len(part)].argmax(1) ==
                      labels[first:first + len(part)]).sum())
    return 100 * right / len(images)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the options that all benchmarks with these images have."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="folder of Fashion-MNIST's files",
                        default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--json", type=pathlib.Path, help="write the figures into this file")
    return parser


def write_json(path: pathlib.Path | None, figures: dict[str, Any]) -> None:
    """Writes the figures where --json was given."""
    if path:
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
