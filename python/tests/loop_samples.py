"""Shared by the tests of loop nests: computations, and their results by NumPy."""

import numpy as np
import pytest
from foretune import loops

needs_vectors = pytest.mark.skipif(not loops.instruction_sets(),
                                   reason="this CPU has neither AVX2 nor AVX-512")


def operands(computation, seed=0):
    """Returns small whole numbers, whose sums are exact in float32 in any order."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-4, 5, operand.shape).astype(np.float32) for operand in computation.inputs]


def words_of(computation):
    kind, *words = computation.name.split()
    return kind, dict(word.partition("=")[::2] for word in words)


def expected(computation, inputs):
    """Returns the result by NumPy in float32; exact for ``operands``."""
    kind, words = words_of(computation)
    if kind == "reduce":
        reduce = {"add": np.sum, "max": np.max, "min": np.min}[words.get("op", "add")]
        return reduce(inputs[0], axis=0 if "of_columns" in words else 1)
    out = product(inputs, words) if kind == "mm" else convolution(inputs, words)
    if "bias" in words:
        bias = inputs[2]
        channels_first = kind == "conv" and "nhwc" not in words
        out = out + (bias[:, None, None] if channels_first else bias)
    return np.maximum(out, 0) if "relu" in words else out


def product(inputs, words):
    a, b = inputs[:2]
    return ((a.swapaxes(-1, -2) if "ta" in words else a)
            @ (b.swapaxes(-1, -2) if "tb" in words else b))


def convolution(inputs, words):
    stride, dilation, pad, groups = (int(words.get(name, default)) for name, default in
                                     (("stride", 1), ("dilation", 1), ("pad", 0), ("groups", 1)))
    image, weight = inputs[:2]
    if "nhwc" in words:
        image, weight = image.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1)
    image = np.pad(image, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    batch, channels, height, width = image.shape
    out_channels, _, rows, columns = weight.shape
    high = (height - dilation * (rows - 1) - 1) // stride + 1
    wide = (width - dilation * (columns - 1) - 1) // stride + 1
    image = image.reshape(batch, groups, channels // groups, height, width)
    weight = weight.reshape(groups, out_channels // groups, channels // groups, rows, columns)
    out = np.zeros((batch, groups, out_channels // groups, high, wide), np.float32)
    for r in range(rows):
        for s in range(columns):
            part = image[..., r * dilation:r * dilation + stride * (high - 1) + 1:stride,
                         s * dilation:s * dilation + stride * (wide - 1) + 1:stride]
            out += np.einsum("bgcyx,goc->bgoyx", part, weight[..., r, s])
    out = out.reshape(batch, out_channels, high, wide)
    return out.transpose(0, 2, 3, 1) if "nhwc" in words else out
