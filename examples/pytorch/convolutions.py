#!/usr/bin/env python3
"""Lets a PyTorch network on the CPU compute its convolutions with Foretune's kernels.

    python3 convolutions.py
"""

import copy
import time

import foretune.torch
import torch
from torch import nn


def milliseconds(network: nn.Module, images: torch.Tensor) -> float:
    """Returns the shortest of some calls."""
    best = float("inf")
    for _ in range(20):
        begin = time.perf_counter()
        network(images)
        best = min(best, 1e3 * (time.perf_counter() - begin))
    return best


def main() -> None:
    torch.manual_seed(1)
    network = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.Conv2d(64, 128, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    # Channels last in memory: our kernels read such tensors where they are.
    network = network.to(memory_format=torch.channels_last)
    images = torch.rand(4, 3, 64, 64).contiguous(memory_format=torch.channels_last)

    ours = copy.deepcopy(network)
    # In place; for inference alone, so that weights are packed once.
    count = foretune.torch.use_convolutions(ours, constant_weights=True)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), network(images), atol=1e-4, rtol=1e-4)
        before, after = milliseconds(network, images), milliseconds(ours, images)
    print(f"{count} convolutions replaced; the outputs agree")
    print(f"PyTorch {before:.2f} ms, with Foretune's kernels {after:.2f} ms")

    # Training works as well: gradients are kernels of ours.
    labels = torch.tensor([1, 2, 3, 4])
    for each in (network, ours):
        nn.functional.cross_entropy(each(images), labels).backward()
    for theirs, mine in zip(network.parameters(), ours.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-4, rtol=1e-3)
    print("the gradients agree")


if __name__ == "__main__":
    main()
