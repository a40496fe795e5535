#!/usr/bin/env python3
"""Draws matrix products as programs on a GPU run them: training products, or test sets.

    bench/draw_gpu_products.py --seed 20261128 --role training > bench/shapes/gpu_train.csv
    bench/draw_gpu_products.py --seed SEED --role test --exclude bench/shapes/gpu_train.csv \\
      > bench/shapes/gpu_test.csv

Training products are layers of networks, products of attention, and sizes drawn log-uniformly with
an alignment of their own. A layer's product is its forward pass, the gradient of its input or that
of its weights, of the whole layer or of one of 2 to 8 tensor-parallel parts, at a token count from 1
to 16,384. Test sets are `layers` (of networks whose weights no excluded set has, whole or in parts),
`log-uniform` and `log-normal` (the distribution that torch-diode draws from). The same seed gives
the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import sys
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from draw_shapes import log_uniform, read_products  # noqa: E402
from network_layers_gemm import GEMM_MODELS  # noqa: E402
from network_layers_types import TRAINING, VALIDATION  # noqa: E402

# Width, feed-forward width, width of the queries, and of the keys and values, from the
# configurations published with the models.
TRANSFORMERS = {
    "ALBERT xxlarge": (4096, 16384, 4096, 4096),
    "Baichuan 2 13B": (5120, 13696, 5120, 5120),
    "BLOOM 176B": (14336, 57344, 14336, 14336),
    "ChatGLM3 6B": (4096, 13696, 4096, 256),
    "Code Llama 34B": (8192, 22016, 8192, 1024),
    "Command R": (8192, 22528, 8192, 8192),
    "Command R+": (12288, 33792, 12288, 1024),
    "DBRX": (6144, 10752, 6144, 1024),
    "DiT-XL": (1152, 4608, 1152, 1152),
    "DINOv2 giant": (1536, 4096, 1536, 1536),
    "FLUX.1": (3072, 12288, 3072, 3072),
    "Gemma 2 27B": (4608, 36864, 4096, 2048),
    "Gemma 3 4B": (2560, 10240, 2048, 1024),
    "Gemma 3 12B": (3840, 15360, 4096, 2048),
    "GPT-3 175B": (12288, 49152, 12288, 12288),
    "Granite 3 2B": (2048, 8192, 2048, 512),
    "Granite 3 8B": (4096, 12800, 4096, 1024),
    "Grok-1": (6144, 32768, 6144, 1024),
    "InternLM2 20B": (6144, 16384, 6144, 1024),
    "Llama 3.1 405B": (16384, 53248, 16384, 1024),
    "Llama 3.2 3B": (3072, 8192, 3072, 1024),
    "MiniCPM 2B": (2304, 5760, 2304, 2304),
    "MiniLM L6": (384, 1536, 384, 384),
    "Mistral Large 2": (12288, 28672, 12288, 1024),
    "Mistral Nemo": (5120, 14336, 4096, 1024),
    "MPT 30B": (7168, 28672, 7168, 7168),
    "Nemotron-4 15B": (6144, 24576, 6144, 1024),
    "OPT 66B": (9216, 36864, 9216, 9216),
    "Phi-3 medium": (5120, 17920, 5120, 1280),
    "Pythia 12B": (5120, 20480, 5120, 5120),
    "Qwen2.5 32B": (5120, 27648, 5120, 1024),
    "Qwen2.5 72B": (8192, 29568, 8192, 1024),
    "Qwen3 0.6B": (1024, 3072, 2048, 1024),
    "Qwen3 4B": (2560, 9728, 4096, 1024),
    "Qwen3 8B": (4096, 12288, 4096, 1024),
    "SigLIP so400m": (1152, 4304, 1152, 1152),
    "SmolLM2 360M": (960, 2560, 960, 320),
    "StableLM 3B": (2560, 6912, 2560, 2560),
    "T5 11B": (1024, 65536, 16384, 16384),
    "Yi 6B": (4096, 11008, 4096, 512),
}
PARTS = (1, 1, 2, 4, 8)
MOST_TOKENS = 16384
# The most operations of a product, by type: about 2 ms on an H200.
MAX_FLOPS = {"bf16": 1.5e12, "f16": 1.5e12, "f8e4m3": 1.5e12, "tf32": 4e11, "f32": 3e10}
MAX_ELEMENTS = 3e8  # of A, B or C
DTYPES = {"bf16": 58, "f16": 20, "f8e4m3": 9, "tf32": 7, "f32": 6}
LAYOUTS = ("rcr", "rrr", "crr", "ccr")
EPILOGUES = {"mm": 80, "addmm": 10, "addmm_gelu": 6, "addmm_relu": 4}
HEADS = (32, 64, 80, 96, 128, 256)


class Product(NamedTuple):
    regime: str
    operation: str
    m: int
    n: int
    k: int
    batch: int
    dtype: str
    layout: str

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        return self.m, self.n, self.k, self.batch

    def is_wanted(self) -> bool:
        largest = max(self.m * self.k, self.k * self.n, self.m * self.n) * self.batch
        if self.dtype == "f8e4m3" and (self.layout != "rcr" or self.operation == "bmm"
                                       or any(size % 16 for size in (self.m, self.n, self.k))):
            return False
        flops = 2 * self.m * self.n * self.k * self.batch
        return flops <= MAX_FLOPS[self.dtype] and largest <= MAX_ELEMENTS


def pick(rng: random.Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def aligned(size: int, alignment: int) -> int:
    return max(alignment, round(size / alignment) * alignment)


def matrices(role: str) -> list[list[tuple[int, int]]]:
    """Returns the weights of every network as pairs of n and k."""
    networks = [[(matrix.n, matrix.k) for matrix in model.matrices]
                for model in GEMM_MODELS if model.role == role]
    if role == TRAINING:
        for width, inner, queries, keys in TRANSFORMERS.values():
            networks.append([(queries + 2 * keys, width), (queries, width), (keys, width),
                             (width, queries), (inner, width), (2 * inner, width),
                             (width, inner)])
    return networks


def part_of(weights: tuple[int, int], parts: int, by_inputs: bool) -> tuple[int, int] | None:
    """Returns one tensor-parallel part of a matrix; None where it cannot be divided in eights."""
    n, k = weights
    cut = k if by_inputs else n
    if parts > 1 and cut % (8 * parts):
        return None
    return (n, k // parts) if by_inputs else (n // parts, k)


def draw_tokens(rng: random.Random) -> int:
    tokens = log_uniform(rng, 1, MOST_TOKENS)
    # Batches of requests are of any size, batches in training of round ones.
    if rng.random() < 0.5:
        return tokens
    return min(MOST_TOKENS, aligned(tokens, 8 if tokens < 128 else 64))


def draw_layer(rng: random.Random, networks: list[list[tuple[int, int]]]) -> Product | None:
    part = part_of(rng.choice(rng.choice(networks)), rng.choice(PARTS), rng.random() < 0.5)
    if part is None:
        return None
    n, k = part
    tokens = draw_tokens(rng)
    dtype = pick(rng, DTYPES)
    way = rng.random()
    if way < 0.62 or dtype == "f8e4m3":
        operation = pick(rng, EPILOGUES)
        layout = "rcr" if rng.random() < 0.85 or dtype == "f8e4m3" else "rrr"
        return Product("layers", operation, tokens, n, k, 1, dtype, layout)
    if way < 0.8:
        return Product("layers", "mm", tokens, k, n, 1, dtype, "rrr")
    return Product("layers", "mm", n, k, tokens, 1, dtype, "crr")


def draw_attention(rng: random.Random) -> Product:
    heads, length = rng.choice(HEADS), draw_tokens(rng)
    batch = log_uniform(rng, 2, 512)
    keys = length if rng.random() < 0.7 else draw_tokens(rng)
    dtype = rng.choice(("bf16", "bf16", "f16"))
    if rng.random() < 0.5:
        return Product("attention", "bmm", length, keys, heads, batch, dtype, "rcr")
    return Product("attention", "bmm", length, heads, keys, batch, dtype, "rrr")


def draw_sizes(rng: random.Random) -> Product:
    dtype = pick(rng, DTYPES)
    alignment = 16 if dtype == "f8e4m3" else rng.choice((1, 2, 4, 8, 8, 16, 32, 64))
    m, n, k = (aligned(log_uniform(rng, 8, MOST_TOKENS), alignment) for _ in range(3))
    layout = "rcr" if dtype == "f8e4m3" else rng.choice(LAYOUTS)
    return Product("log-uniform", pick(rng, EPILOGUES), m, n, k, 1, dtype, layout)


def draw_log_normal(rng: random.Random) -> Product:
    # Means and deviations of the logarithms, from torch-diode's description of its generator.
    m, n, k = (max(1, min(131072, round(math.exp(rng.gauss(mean, deviation)))))
               for mean, deviation in ((6.57, 2.56), (5.91, 1.67), (6.20, 2.16)))
    return Product("log-normal", "mm", m, n, k, 1, rng.choice(("bf16", "f16")),
                   rng.choice(LAYOUTS[:2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--role", choices=["training", "test"], required=True)
    parser.add_argument("--count", type=int, help="products of each kind (test: 160)")
    parser.add_argument("--exclude", nargs="*", default=[], metavar="CSV")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    known = read_products(options.exclude)
    taken = {tuple(int(row.get(name) or 1) for name in ("m", "n", "k", "batch")) for row in known}
    # A matrix is as known from its gradient as from its forward pass.
    pairs = {frozenset((int(row[a]), int(row[b])))
             for row in known for a, b in (("n", "k"), ("m", "n"))}
    is_test = options.role == "test"
    networks = matrices(VALIDATION if is_test else TRAINING)

    def new_layer() -> Product | None:
        product = draw_layer(rng, networks)
        if product is None or not is_test:
            return product
        weights = (product.m, product.n) if product.layout == "crr" else (product.n, product.k)
        return None if frozenset(weights) in pairs else product

    count = options.count or 160
    wanted = ([(new_layer, count), (lambda: draw_sizes(rng), count),
               (lambda: draw_log_normal(rng), count)] if is_test else
              [(new_layer, 3000), (lambda: draw_attention(rng), 300),
               (lambda: draw_sizes(rng), 2000), (lambda: draw_log_normal(rng), 300)])
    products = []
    for draw, number in wanted:
        drawn = 0
        while drawn < number:
            product = draw()
            if product is None or product.sizes in taken or not product.is_wanted():
                continue
            taken.add(product.sizes)
            products.append(product)
            drawn += 1
    rng.shuffle(products)
    print(f"# bench/draw_gpu_products.py --seed {options.seed} --role {options.role}")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Product._fields)
    writer.writerows(products)


if __name__ == "__main__":
    main()
