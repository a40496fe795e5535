"""The definition of convolutions in float64, channels last."""

import itertools

import numpy as np


def taps(input_shape, weight_shape, stride, padding, dilation):
    """Yields each point of a filter with the slices of the padded input that it multiplies."""
    points = weight_shape[1:-1]
    out = [(size + 2 * pad - step * (length - 1) - 1) // move + 1
           for size, length, move, pad, step in zip(input_shape[1:-1], points, stride, padding,
                                                    dilation)]
    for point in itertools.product(*map(range, points)):
        yield point, tuple(slice(at * step, at * step + (count - 1) * move + 1, move)
                           for at, step, count, move in zip(point, dilation, out, stride))


def padded(x, padding):
    return np.pad(x.astype(np.float64), [(0, 0), *((pad, pad) for pad in padding), (0, 0)])


def groups_of(channels, groups):
    each = channels // groups
    return [slice(group * each, (group + 1) * each) for group in range(groups)]


def forward(x, w, stride, padding, dilation, groups):
    wide = padded(x, padding)
    total = None
    for point, place in taps(x.shape, w.shape, stride, padding, dilation):
        part = np.concatenate(
            [wide[(slice(None), *place, c)] @ w[(k, *point)].astype(np.float64).T
             for c, k in zip(groups_of(x.shape[-1], groups), groups_of(w.shape[0], groups))],
            axis=-1)
        total = part if total is None else total + part
    return total


def input_gradient(dy, w, input_shape, stride, padding, dilation, groups):
    wide = padded(np.zeros(input_shape), padding)
    for point, place in taps(input_shape, w.shape, stride, padding, dilation):
        for c, k in zip(groups_of(input_shape[-1], groups), groups_of(w.shape[0], groups)):
            wide[(slice(None), *place, c)] += (
                dy[..., k].astype(np.float64) @ w[(k, *point)].astype(np.float64))
    inner = tuple(slice(pad, pad + size) for pad, size in zip(padding, input_shape[1:-1]))
    return wide[(slice(None), *inner)]


def weight_gradient(x, dy, weight_shape, stride, padding, dilation, groups):
    wide = padded(x, padding)
    out = np.zeros(weight_shape)
    for point, place in taps(x.shape, weight_shape, stride, padding, dilation):
        for c, k in zip(groups_of(x.shape[-1], groups), groups_of(weight_shape[0], groups)):
            rows = dy[..., k].reshape(-1, k.stop - k.start).astype(np.float64)
            values = wide[(slice(None), *place, c)]
            out[(k, *point)] = rows.T @ values.reshape(-1, values.shape[-1])
    return out
