#!/usr/bin/env python3
"""Draws the convolutions that the shipped models of cpu-conv learn from and are judged by.

    bench/draw_conv_shapes.py --role training --seed 20261127 > train.txt
    bench/draw_conv_shapes.py --role training --hard --seed 20261127 > hard.txt
    bench/draw_conv_shapes.py --role validation --seed 20261127 > validation.txt

Layers come from the networks of foretune/problem/conv/networks with that role, in three directions,
up to a GFLOP and 30 MB each. Training takes each layer with one image and part of them with 8 and 32 as well,
and of part of them a variation with other channels and another map, which shares no weights' shape
with a layer for validation. --hard draws variations alone, of the layers that a network has few of and
whose configs differ most: in groups, with few channels, with a dilation. Validation takes each weights' shape once, so that no two of its problems share one, with a number of
images drawn from the three. Two thirds of the forward passes and of the gradients of inputs have
weights that stay the same; three tenths of the forward passes have an epilogue. The same seed gives
the same bytes.
"""

from __future__ import annotations

import argparse
import pathlib
import random

NETWORKS = pathlib.Path(__file__).parent.parent / "foretune/problem/conv/networks"
DEFAULTS = {"op": "forward", "n": 1, "g": 1, "di": 1, "z": 1}
DEFAULTS |= {f"{step}_{axis}": low for step, low in (("stride", 1), ("pad", 0), ("dilation", 1)) for axis in "dhw"}
WEIGHTS = ("c", "k", "g", "z", "y", "x", "stride_d", "stride_h", "stride_w", "dilation_d", "dilation_h", "dilation_w")
DIRECTIONS = ("forward", "backward_data", "backward_weight")
SHARES = {1: 1.0, 8: 0.4, 32: 0.2}  # of the training layers that have so many images
VARIED = 0.45  # of the training layers
MAX_FLOPS = 1e9
MAX_BYTES = 3e7  # of the tensors in f32

Layer = dict[str, int | str]


def read_layers(role: str) -> list[Layer]:
    layers: list[Layer] = []
    for path in sorted(NETWORKS.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if f"# role: {role}" not in lines:
            continue
        for line in lines:
            if not line.startswith("#"):
                fields = (field.split("=") for field in line.split()[2:])
                layer = DEFAULTS | {name: int(value) if value.isdigit() else value for name, value in fields}
                if layer not in layers:
                    layers.append(layer)
    return layers


def is_small(layer: Layer) -> bool:
    """Says whether the layer has outputs, and is within the limits."""
    size = {name: value for name, value in layer.items() if isinstance(value, int)}
    points = size["n"]
    for axis, length, filter_length in (("d", "di", "z"), ("h", "hi", "y"), ("w", "wi", "x")):
        reach = size[f"dilation_{axis}"] * (size[filter_length] - 1) + 1
        points *= max(0, (size[length] + 2 * size[f"pad_{axis}"] - reach) // size[f"stride_{axis}"] + 1)
    weights = size["k"] * size["c"] // size["g"] * size["z"] * size["y"] * size["x"]
    inputs = size["n"] * size["c"] * size["di"] * size["hi"] * size["wi"]
    return 0 < 2 * points * weights <= MAX_FLOPS and 4 * (inputs + weights + points * size["k"]) <= MAX_BYTES


def turned(layer: Layer, direction: str) -> str:
    """Swaps forward pass and gradient of the input for a layer of a decoder, which is given as one."""
    if layer["op"] == "forward" or direction == "backward_weight":
        return direction
    return "backward_data" if direction == "forward" else "forward"


def text(layer: Layer, direction: str, rng: random.Random) -> str:
    fields = {"n": layer["n"]}
    fields |= {name: value for name, value in layer.items() if name != "op" and DEFAULTS.get(name) != value}
    operation = turned(layer, direction)
    if operation != "forward":
        fields = {"op": operation} | fields
    is_constant, has_epilogue = rng.random() < 2 / 3, rng.random() < 0.3
    epilogue = rng.choice(["bias", "bias_relu", "bias_add_relu"])
    if operation != "backward_weight" and is_constant:
        fields["weights"] = "constant"
    if operation == "forward" and has_epilogue:
        fields["epilogue"] = epilogue
    return "conv " + " ".join(f"{name}={value}" for name, value in fields.items())


def varied(layer: Layer, rng: random.Random) -> Layer:
    """Returns the layer with channels, filters and a map up to twice as large or half as large."""

    def scaled(name: str, step: int, factor: float | None = None) -> int:
        factor = factor or 2 ** rng.uniform(-1, 1)
        return max(step, round(int(layer[name]) * factor / step) * step)

    changed = dict(layer)
    groups = int(layer["g"])
    if groups == layer["c"] and groups > 1:
        multiplier = int(layer["k"]) // groups
        changed["g"] = changed["c"] = scaled("c", 8)
        changed["k"] = int(changed["c"]) * multiplier
    else:
        for name in ("c", "k"):
            size = int(layer[name])
            changed[name] = scaled(name, 8 * groups if size % (8 * groups) == 0 else groups) if size > 4 else size
    map_factor = 2 ** rng.uniform(-1, 1)
    for length, filter_length in (("hi", "y"), ("wi", "x")):
        if int(layer[length]) > 1:
            changed[length] = max(scaled(length, 1, map_factor), int(layer[filter_length]))
    return changed


def weights_of(layer: Layer) -> tuple[int | str, ...]:
    return tuple(layer[name] for name in WEIGHTS)


def draw_training(layers: list[Layer], rng: random.Random) -> list[Layer]:
    judged = {weights_of(layer) for layer in read_layers("validation")}
    variations = [varied(layer, rng) for layer in layers if rng.random() < VARIED]
    variations = [layer for layer in variations if weights_of(layer) not in judged]
    batches = [layer | {"n": images} for layer in layers for images, share in SHARES.items() if rng.random() < share]
    return [layer for layer in batches + variations if is_small(layer)]


def draw_hard(layers: list[Layer], rng: random.Random) -> list[Layer]:
    judged = {weights_of(layer) for layer in read_layers("validation")}
    drawn: list[Layer] = []
    for layer in layers:
        is_dilated = max(int(layer[f"dilation_{axis}"]) for axis in "dhw") > 1
        few = int(layer["c"]) <= 4 or is_dilated or 1 < int(layer["g"]) < int(layer["c"])
        for _ in range(3 if few else 1 if int(layer["g"]) > 1 else 0):
            drawn.append(varied(layer, rng) | {"n": rng.choice(list(SHARES))})
    return [layer for layer in drawn if is_small(layer) and weights_of(layer) not in judged]


def draw_validation(layers: list[Layer], rng: random.Random, count: int) -> list[Layer]:
    drawn: list[Layer] = []
    known: set[tuple[int | str, ...]] = set()
    for layer in rng.sample(layers, len(layers)):
        batches = [layer | {"n": images} for images in SHARES if is_small(layer | {"n": images})]
        if batches and weights_of(layer) not in known:
            known.add(weights_of(layer))
            drawn.append(rng.choice(batches))
    return drawn[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", choices=["training", "validation"], required=True)
    parser.add_argument("--hard", action="store_true", help="variations of layers that are rare")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=120, help="validation problems of each direction")
    options = parser.parse_args()
    layers = read_layers(options.role)
    print(f"# bench/draw_conv_shapes.py --role {options.role} --seed {options.seed} --count {options.count}")
    for direction in DIRECTIONS:
        rng = random.Random(f"{options.seed} {options.role} {direction}" + " hard" * options.hard)
        if options.role == "validation":
            drawn = draw_validation(layers, rng, options.count)
        else:
            drawn = (draw_hard if options.hard else draw_training)(layers, rng)
        for layer in drawn:
            print(text(layer, direction, rng))


if __name__ == "__main__":
    main()
