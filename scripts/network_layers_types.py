"""Shared by the descriptions of networks: roles, the layers that are listed, and the vocabulary of
convolutional networks, which are programs that pass a map from layer to layer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TRAINING = "training"
VALIDATION = "validation"

Triple = tuple[int, int, int]
Sizes = int | tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """One line of a list. Layers of one `key` differ at most in map size and direction."""

    name: str
    text: str
    key: tuple[object, ...]
    kind: str


@dataclass(frozen=True)
class Map:
    """The channels and the size (depth, height, width) of one activation."""

    c: int
    size: Triple

    def with_channels(self, c: int) -> Map:
        return Map(c, self.size)

    def scaled(self, factor: int) -> Map:
        return Map(self.c, (self.size[0], self.size[1] * factor, self.size[2] * factor))

    def pooled(self, filter: Sizes, stride: Sizes, pad: Sizes = 0, ceil: bool = False) -> Map:
        f, s, p = triple(filter, self, 1), triple(stride, self, 1), triple(pad, self, 0)
        spare = [self.size[i] + 2 * p[i] - f[i] for i in range(3)]
        return Map(self.c, triple_of([(-(-spare[i] // s[i]) if ceil else spare[i] // s[i]) + 1
                                      for i in range(3)]))


def triple_of(values: list[int]) -> Triple:
    depth, height, width = values
    return depth, height, width


def triple(value: Sizes, x: Map, missing: int) -> Triple:
    """Completes a value to (depth, height, width); one number stands for all dimensions of `x`."""
    if isinstance(value, int):
        return triple_of([value if size > 1 else missing for size in x.size])
    return triple_of([missing] * (3 - len(value)) + list(value))


@dataclass(frozen=True)
class Conv:
    """One layer, with total channels as in foretune/problem/conv/conv.h."""

    c: int
    k: int
    size: Triple
    filter: Triple
    stride: Triple
    pad: Triple
    dilation: Triple
    g: int = 1
    backward_data: bool = False

    def output(self) -> Triple:
        return triple_of([(self.size[i] + 2 * self.pad[i] - self.dilation[i] * (self.filter[i] - 1)
                           - 1) // self.stride[i] + 1 for i in range(3)])

    def weights(self) -> int:
        return self.k * self.c // self.g * math.prod(self.filter)

    def macs(self) -> int:
        return self.weights() * math.prod(self.output())

    def key(self) -> tuple[object, ...]:
        """Equal for layers that have the same weights, at whatever map size."""
        return self.c, self.k, self.g, self.filter, self.stride, self.dilation

    def kind(self) -> str:
        """Counts a layer once, under the rarest of its properties."""
        depth, height, width = self.filter
        if self.backward_data:
            return "transposed"
        if self.size[0] > 1:
            return "3-D"
        if self.size[1] == 1:
            return "1-D dilated" if max(self.dilation) > 1 else "1-D"
        if max(self.dilation) > 1:
            return "dilated"
        if self.g > 1:
            return "grouped" if self.g < self.c else \
                "depthwise" if max(height, width) < 7 else "large depthwise"
        return "1x1" if height * width == 1 else "plain" if max(height, width) < 5 else "large"

    def text(self) -> str:
        fields: list[tuple[str, int, int | None]] = [
            ("n", 1, None), ("c", self.c, None), ("k", self.k, None), ("g", self.g, 1)]
        fields += zip(("di", "hi", "wi"), self.size, (1, None, None))
        fields += zip("zyx", self.filter, (1, None, None))
        fields += [(f"{name}_{axis}", value, default)
                   for name, values, default in (("stride", self.stride, 1), ("pad", self.pad, 0),
                                                 ("dilation", self.dilation, 1))
                   for axis, value in zip("dhw", values)]
        op = " op=backward_data" if self.backward_data else ""
        return "conv" + op + "".join(f" {name}={value}" for name, value, default in fields
                                     if value != default)


class Layers:
    """Collects the layers of a network in their order, repeated ones included."""

    def __init__(self) -> None:
        self.convs: list[tuple[str, Conv]] = []
        self.unlisted_macs = 0
        self.unlisted_weights = 0

    def conv(self, name: str, x: Map, k: int, filter: Sizes, stride: Sizes = 1,
             pad: Sizes | None = None, g: int = 1, dilation: Sizes = 1) -> Map:
        """Without `pad` an odd filter keeps the size of the map, up to the stride."""
        f, d = triple(filter, x, 1), triple(dilation, x, 1)
        p = triple_of([d[i] * (f[i] - 1) // 2 for i in range(3)]) if pad is None else \
            triple(pad, x, 0)
        assert pad is not None or all(size % 2 for size in f), f"{name}: an even filter, no pad"
        layer = Conv(x.c, k, x.size, f, triple(stride, x, 1), p, d, g)
        self._add(name, layer)
        return Map(k, layer.output())

    def depthwise(self, name: str, x: Map, filter: Sizes, stride: Sizes = 1,
                  dilation: Sizes = 1) -> Map:
        return self.conv(name, x, x.c, filter, stride, g=x.c, dilation=dilation)

    def transposed(self, name: str, x: Map, k: int, filter: int, stride: int, pad: int = 0,
                   extra: int = 0) -> Map:
        """With `extra` points at the far end, as many as the stride leaves open."""
        f, s = triple(filter, x, 1), triple(stride, x, 1)
        p = triple(pad, x, 0)
        if x.size == (1, 1, 1):
            # A single point that grows to a map says nothing of its dimensions: they are two.
            f, s, p = (1, filter, filter), (1, stride, stride), (0, pad, pad)
        size = triple_of([(x.size[i] - 1) * s[i] - 2 * p[i] + f[i] +
                          (extra if s[i] > 1 else 0) for i in range(3)])
        layer = Conv(k, x.c, size, f, s, p, (1, 1, 1), backward_data=True)
        assert layer.output() == x.size, name
        self._add(name, layer)
        return Map(k, size)

    def squeeze_excite(self, x: Map, squeezed: int) -> None:
        self.linear(x.c, squeezed, x.c)

    def linear(self, *widths: int) -> None:
        """Counts fully connected layers, each from one width to the next."""
        count = sum(a * b for a, b in zip(widths, widths[1:]))
        self.unlisted_macs += count
        self.unlisted_weights += count

    def _add(self, name: str, layer: Conv) -> None:
        assert layer.c % layer.g == 0 and layer.k % layer.g == 0, name
        assert min(layer.output()) >= 1, f"{name}: the filter does not fit"
        self.convs.append((name, layer))


Build = Callable[[Layers], None]


@dataclass(frozen=True)
class ConvNetwork:
    """One network, with published totals (in millions) where they are known."""

    name: str
    title: str
    role: str
    build: Build
    published: Mapping[str, float] = dataclasses.field(default_factory=dict)
    problem_type: str = "conv"

    def layers(self) -> list[Layer]:
        """Returns all layers in their order, repeated ones included."""
        return [Layer(name, conv.text(), conv.key(), conv.kind())
                for name, conv in self._collect().convs]

    def totals(self) -> dict[str, float]:
        collected = self._collect()
        macs = sum(conv.macs() for _, conv in collected.convs) + collected.unlisted_macs
        weights = sum(conv.weights() for _, conv in collected.convs) + collected.unlisted_weights
        return {"macs": macs / 1e6, "weights": weights / 1e6}

    def _collect(self) -> Layers:
        collected = Layers()
        self.build(collected)
        return collected


# In the order of their descriptions, which network() adds.
CONV_NETWORKS: list[ConvNetwork] = []


def network(role: str, title: str, **published: float) -> Callable[[Build], Build]:
    """Registers the program below it as a network of its name."""
    def register(build: Build) -> Build:
        CONV_NETWORKS.append(ConvNetwork(build.__name__, title, role, build, published))
        return build
    return register


def image(size: int, width: int | None = None) -> Map:
    return Map(3, (1, size, width or size))


def divisible(value: float, by: int = 8) -> int:
    """Rounds to a multiple, by at most a tenth downwards (the rule of the MobileNets)."""
    rounded = max(by, int(value + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * value else rounded
