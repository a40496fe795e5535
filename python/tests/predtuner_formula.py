"""PredTuner's knobs by their definitions, with NumPy: slow, and in float64."""

import numpy as np


def half(x):
    """Rounds to float16."""
    return np.asarray(x).astype(np.float16).astype(np.float64)


def convolve(x, weights, stride=1, padding=0, groups=1):
    """Returns the sums of a convolution: x (n, c, h, w), weights (k, c / groups, r, s)."""
    x = np.pad(np.asarray(x, np.float64), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    parts = [np.einsum("nchwrs,kcrs->nkhw", inputs, filters.astype(np.float64))
             for inputs, filters in zip(np.split(windows, groups, 1), np.split(weights, groups))]
    return np.concatenate(parts, 1)


def perforate(sums, direction_is_row, stride, offset):
    """Overwrites the rows or columns offset, offset + stride, ...: by the mean of the neighbours,
    the first by the second, the last by the one before, and a single one by zeros."""
    lines = np.moveaxis(np.array(sums), 2 if direction_is_row else 3, 0)
    for i in range(offset, len(lines), stride):
        if len(lines) == 1:
            lines[i] = 0
        elif i == 0:
            lines[i] = lines[1]
        elif i == len(lines) - 1:
            lines[i] = lines[i - 1]
        else:
            lines[i] = (lines[i - 1] + lines[i + 1]) / 2
    return np.moveaxis(lines, 0, 2 if direction_is_row else 3)


def sample(weights, skip_every, skip_offset, interp_rate=1.0):
    """Zeroes the weights skip_offset, skip_offset + skip_every, ... of each filter, counted across
    channels, rows and columns; the others grow. With filters of 3 x 3 and one in three, each
    channel begins one further, within itself."""
    filters, channels, rows, columns = weights.shape
    flat = np.array(weights, np.float64).reshape(filters, channels * rows * columns)
    if skip_every == rows == columns == 3:
        for channel in range(channels):
            first = 9 * channel + (channel + skip_offset) % 3
            flat[:, first:9 * channel + 9:3] = 0
    else:
        flat[:, skip_offset::skip_every] = 0
    return (flat * (1 + interp_rate / (skip_every - 1))).reshape(weights.shape)


def layer(x, weights, bias, knob, **shape):
    """Returns the result of a convolution with a knob, an entry of the file of knobs."""
    kind = knob["class"]
    # PredTuner samples in float32 whatever the entry says.
    narrow = half if kind == "FP16Approx" or (kind == "PerforateConv2dStride"
                                              and knob["use_fp16"]) else np.asarray
    weights = np.asarray(weights, np.float64)
    if kind == "Conv2dSampling":
        weights = sample(weights, knob["skip_every"], knob["skip_offset"], knob["interp_rate"])
    sums = convolve(narrow(x), narrow(weights), **shape)
    if kind == "PerforateConv2dStride":
        sums = narrow(perforate(narrow(sums), knob["direction_is_row"], knob["stride"],
                                knob["offset"]))
    return narrow(sums + narrow(np.asarray(bias, np.float64)).reshape(1, -1, 1, 1))
