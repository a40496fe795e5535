#!/usr/bin/env python3
"""Draws the convolutions that the shipped models of cudnn learn from and are judged by.

    bench/draw_cudnn_layers.py --role training --seed 20261129 --count 640 > bench/shapes/cudnn_train.txt
    bench/draw_cudnn_layers.py --role test --seed 1795960784 --count 150 > bench/shapes/cudnn_test.txt

Layers come from the networks of foretune/problem/conv/networks with 1 to 256 images. Training takes `count` layers for each
direction from training networks, a quarter of them with other channels and another map, and more of the kinds that networks
have few of. Tests take `count` layers for each direction and type from validation networks, no two of them with the same
shape of weights (channels, filters, groups, points of a filter) and none with a shape that a training network, a training
layer of the seed, or bench/shapes/cudnn_layers.txt has. Directions alternate, so that any beginning of the list has all of
them; types of a test come one after another. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import random

import draw_conv_shapes as conv

MEASURED = pathlib.Path(__file__).parent / "shapes/cudnn_layers.txt"
TRAINING_SEED = 20261129
TRAINING_COUNT = 640
SHAPE = ("c", "k", "g", "z", "y", "x")
IMAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# The type and layout of training layers, and how many of 20 have them.
TRAINING_TYPES = ("bf16",) * 9 + ("f16",) * 5 + ("tf32",) * 2 + ("f32",) * 2 + ("f16 first", "tf32 first")
TEST_TYPES = ("bf16", "f16")
VARIED = 0.25
# The most operations of a layer, by type: about a millisecond on an H200.
MAX_FLOPS = {"bf16": 3e11, "f16": 3e11, "tf32": 1.5e11, "f32": 3e10}
MAX_ELEMENTS = 2.5e8  # of all tensors

Layer = conv.Layer


def shape_of(layer: Layer) -> tuple[int | str, ...]:
    return tuple(layer[name] for name in SHAPE)


def is_wanted(layer: Layer, dtype: str) -> bool:
    flops, elements = conv.work_of(layer)
    return 0 < flops <= MAX_FLOPS[dtype] and elements <= MAX_ELEMENTS


def with_images(layer: Layer, dtype: str, rng: random.Random) -> Layer | None:
    fits = [layer | {"n": images} for images in IMAGES if is_wanted(layer | {"n": images}, dtype)]
    return rng.choice(fits) if fits else None


def weight_of(layer: Layer) -> float:
    """Returns how much more often than others a layer is drawn for training."""
    if 1 < int(layer["g"]) < int(layer["c"]):
        return 6
    is_dilated = max(int(layer[f"dilation_{axis}"]) for axis in "dhw") > 1
    return 2 if is_dilated or int(layer["z"]) > 1 or int(layer["c"]) <= 4 else 1


def text(layer: Layer, direction: str, kind: str) -> str:
    dtype, _, layout = kind.partition(" ")
    fields = {"op": direction, "n": layer["n"]}
    fields |= {name: value for name, value in layer.items()
               if name not in ("op", "y", "x") and conv.DEFAULTS.get(name) != value}
    fields |= {"y": layer["y"], "x": layer["x"], "dtype": dtype}
    if layout:
        fields["layout"] = "channels_first"
    return "conv " + " ".join(f"{name}={value}" for name, value in fields.items())


def draw_training(direction: str, seed: int, count: int) -> list[tuple[Layer, str]]:
    rng = random.Random(f"{seed} cudnn training {direction}")
    layers = conv.read_layers("training")
    # Without replacement: the largest keys of u^(1/weight).
    order = sorted(layers, key=lambda layer: math.log(rng.random()) / weight_of(layer), reverse=True)
    drawn: list[tuple[Layer, str]] = []
    known: set[str] = set()
    while len(drawn) < count:
        for layer in order:
            kind = rng.choice(TRAINING_TYPES)
            chosen = conv.varied(layer, rng) if rng.random() < VARIED else layer
            found = with_images(chosen, kind.partition(" ")[0], rng)
            if found is not None and len(drawn) < count and text(found, direction, kind) not in known:
                known.add(text(found, direction, kind))
                drawn.append((found, kind))
    return drawn


def measured_shapes() -> set[tuple[int | str, ...]]:
    shapes = set()
    for line in MEASURED.read_text(encoding="utf-8").splitlines():
        if line.startswith("conv "):
            fields = dict(field.split("=") for field in line.split()[1:])
            layer = conv.DEFAULTS | {name: int(value) for name, value in fields.items() if value.isdigit()}
            shapes.add(tuple(layer[name] for name in SHAPE))
    return shapes


def draw_test(direction: str, dtype: str, seed: int, count: int) -> list[tuple[Layer, str]]:
    rng = random.Random(f"{seed} cudnn test {direction} {dtype}")
    known = measured_shapes() | {shape_of(layer) for layer in conv.read_layers("training")}
    for other in conv.DIRECTIONS:
        known |= {shape_of(layer) for layer, _ in draw_training(other, TRAINING_SEED, TRAINING_COUNT)}
    layers = conv.read_layers("validation")
    drawn: list[tuple[Layer, str]] = []
    for layer in rng.sample(layers, len(layers)):
        found = with_images(layer, dtype, rng)
        if found is not None and shape_of(layer) not in known and len(drawn) < count:
            known.add(shape_of(layer))
            drawn.append((found, dtype))
    if len(drawn) < count:
        raise SystemExit(f"validation networks have only {len(drawn)} new shapes of weights for {direction} in {dtype}")
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", choices=["training", "test"], required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="layers for each direction (and type, of a test)")
    options = parser.parse_args()
    print(f"# bench/draw_cudnn_layers.py --role {options.role} --seed {options.seed} --count {options.count}")
    kinds = [""] if options.role == "training" else list(TEST_TYPES)
    for kind in kinds:
        columns = []
        for direction in conv.DIRECTIONS:
            drawn = draw_test(direction, kind, options.seed, options.count) if kind \
                else draw_training(direction, options.seed, options.count)
            columns.append([text(layer, direction, kind_of) for layer, kind_of in drawn])
        for row in zip(*columns):
            print("\n".join(row))


if __name__ == "__main__":
    main()
