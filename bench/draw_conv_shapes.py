#!/usr/bin/env python3
"""Draws the convolutions that the shipped models of cpu-conv learn from and are judged by.

    bench/draw_conv_shapes.py --role training --seed 20261127 > train.txt
    bench/draw_conv_shapes.py --role validation --seed 20261127 > validation.txt

Layers come from the networks of foretune/problem/conv/networks with that role, in three directions,
up to a GFLOP and 30 MB each. Training takes each layer with one image and part of them with more as
well, and variations with other channels, another map and another number of images: of each layer of
the kinds whose configs differ most and that networks have few of (in groups, depthwise, with few
channels, with a dilation), and of part of the others. Validation takes each weights' shape once that
no training problem of the seed has, with 1, 8 or 32 images. Two thirds of the forward passes and of
the gradients of inputs have weights that stay the same; three tenths of the forward passes have an
epilogue. The same seed gives the same bytes.
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
SHARES = {1: 1.0, 8: 0.3, 32: 0.5}  # of the training layers that have so many images
VARIED = 0.25  # of the training layers that are not rare
IMAGES = (1, 1, 4, 8, 16, 32)  # of variations
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


def work_of(layer: Layer) -> tuple[int, int]:
    """Returns the number of operations, 0 for a layer without outputs, and of the elements of all tensors."""
    size = {name: value for name, value in layer.items() if isinstance(value, int)}
    points = size["n"]
    for axis, length, filter_length in (("d", "di", "z"), ("h", "hi", "y"), ("w", "wi", "x")):
        reach = size[f"dilation_{axis}"] * (size[filter_length] - 1) + 1
        points *= max(0, (size[length] + 2 * size[f"pad_{axis}"] - reach) // size[f"stride_{axis}"] + 1)
    weights = size["k"] * size["c"] // size["g"] * size["z"] * size["y"] * size["x"]
    inputs = size["n"] * size["c"] * size["di"] * size["hi"] * size["wi"]
    return 2 * points * weights, inputs + weights + points * size["k"]


def is_small(layer: Layer) -> bool:
    flops, elements = work_of(layer)
    return 0 < flops <= MAX_FLOPS and 4 * elements <= MAX_BYTES


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
    """Returns the layer with channels, filters, groups and a map up to twice as large or half as large."""

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
        other = max(1, groups * rng.choice((1, 2)) // rng.choice((1, 2)))
        fits = int(layer["c"]) % other == int(layer["k"]) % other == 0
        if groups > 1 and 1 < other < int(layer["c"]) and fits:
            changed["g"] = groups = other
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


def variations(layer: Layer) -> float:
    """Returns how many variations of a layer to draw; a fraction is the chance of one more."""
    if 1 < int(layer["g"]) < int(layer["c"]):
        return 8
    is_dilated = max(int(layer[f"dilation_{axis}"]) for axis in "dhw") > 1
    return 3 if int(layer["g"]) > 1 or int(layer["c"]) <= 4 or is_dilated else VARIED


def draw_training(direction: str, seed: int) -> list[Layer]:
    rng = random.Random(f"{seed} training {direction}")
    layers = read_layers("training")
    drawn = [layer | {"n": images} for layer in layers for images, share in SHARES.items() if rng.random() < share]
    for layer in layers:
        count = variations(layer)
        for _ in range(int(count) + (rng.random() < count % 1)):
            drawn.append(varied(layer, rng) | {"n": rng.choice(IMAGES)})
    return [layer for layer in drawn if is_small(layer)]


def draw_validation(direction: str, seed: int, count: int) -> list[Layer]:
    rng = random.Random(f"{seed} validation {direction}")
    layers = read_layers("validation")
    known = {weights_of(layer) for other in DIRECTIONS for layer in draw_training(other, seed)}
    drawn: list[Layer] = []
    for layer in rng.sample(layers, len(layers)):
        batches = [layer | {"n": images} for images in SHARES if is_small(layer | {"n": images})]
        if batches and weights_of(layer) not in known:
            known.add(weights_of(layer))
            drawn.append(rng.choice(batches))
    return drawn[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", choices=["training", "validation"], required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=120, help="validation problems of each direction")
    options = parser.parse_args()
    print(f"# bench/draw_conv_shapes.py --role {options.role} --seed {options.seed} --count {options.count}")
    for direction in DIRECTIONS:
        if options.role == "validation":
            drawn = draw_validation(direction, options.seed, options.count)
        else:
            drawn = draw_training(direction, options.seed)
        rng = random.Random(f"{options.seed} {options.role} {direction} fields")
        for layer in drawn:
            print(text(layer, direction, rng))


if __name__ == "__main__":
    main()
