"""A small network, and images that it mostly classifies rightly."""

import numpy as np
from conftest import ROOT
from foretune.networks import Network

ONNX = ROOT / "bench" / "networks" / "lenet5.onnx"
CLASSES = 10


def stripes(images, seed, shape=(1, 28, 28)):
    """Returns noisy images with stripes, and how wide they are: numbers from 0 on."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(0, CLASSES, images)
    waves = np.sin(2 * np.pi * (1 + widths[:, None]) * np.arange(shape[2]) / shape[2])
    noise = rng.normal(0, 0.2, (images, *shape))
    return (waves[:, None, None, :] + noise).astype(np.float32), widths


def labels_of(logits):
    """Returns what a network says, but for every eighth image, so that it is 7/8 right."""
    labels = np.asarray(logits).argmax(1)
    labels[::8] = (labels[::8] + 1) % CLASSES
    return labels


def batches_of(network, images, seed, size=32):
    """Returns batches of images that the network mostly classifies rightly."""
    pictures, _ = stripes(images, seed)
    labels = labels_of(network.plan(images=images, measure_top=0)(pictures))
    return [(pictures[i:i + size], labels[i:i + size]) for i in range(0, images, size)]


def lenet():
    return Network.load(ONNX)
