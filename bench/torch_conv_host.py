#!/usr/bin/env python3
"""Measures what convolutions of a GPU cost the host: microseconds a call that nobody waits for.

    python bench/torch_conv_host.py --json host.json

Needs an NVIDIA GPU, PyTorch and the package foretune. Convolutions are small, so that the device
never lags behind. A time is the least of five means over 400 calls; modes are PyTorch's first choice
and `foretune.torch.convolutions`, whose parts are timed alone: the plan, called with ready
arguments, the tensor of the result, and a Python kernel that does nothing in PyTorch's dispatcher.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 400
# Channels-last shapes of the input and the weights.
CASES = {"2-D": ((8, 64, 14, 14), (64, 64, 3, 3)), "3-D": ((2, 16, 12, 12, 12), (16, 16, 3, 3, 3))}


def host_us(call: Callable[[], Any]) -> float:
    import torch

    for _ in range(50):
        call()
    found = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - begin) / CALLS * 1e6)
    torch.cuda.synchronize()
    return min(found)


def empty_kernel_us(arguments: tuple[Any, ...]) -> float:
    """Returns the time of a Python kernel with the operands of a convolution that does nothing."""
    import torch

    library = torch.library.Library("foretune_probe", "DEF")
    library.define("convolution(Tensor x, Tensor w, Tensor? b, SymInt[] stride, SymInt[] padding, "
                   "SymInt[] dilation, bool transposed, SymInt[] extra, SymInt groups) -> Tensor")
    library.impl("convolution", lambda keys, x, *rest: x, "CUDA", with_keyset=True)
    try:
        return host_us(lambda: torch.ops.foretune_probe.convolution(*arguments))
    finally:
        library._destroy()


def measure(shape: tuple[int, ...], weights: tuple[int, ...], arguments: argparse.Namespace
            ) -> dict[str, Any]:
    import foretune.torch
    import torch

    last = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x, w = (torch.rand(size, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=last)
            for size in (shape, weights))
    ones, zeros = [1] * (len(shape) - 2), [0] * (len(shape) - 2)
    operands = (x, w, None, ones, ones, ones, False, zeros, 1)

    def forward() -> Any:
        return torch.ops.aten.convolution(*operands)

    gradient = torch.rand_like(forward())

    def backward() -> Any:
        return torch.ops.aten.convolution_backward(gradient, x, w, None, *operands[3:],
                                                   [True, True, False])

    found: dict[str, Any] = {"off": {"forward": host_us(forward), "backward": host_us(backward)}}
    session = foretune.torch.convolutions(measure=arguments.measure, share=1)
    with session:
        for _ in range(20):
            forward()
            backward()
            torch.cuda.synchronize()
        found["foretune"] = {"forward": host_us(forward), "backward": host_us(backward)}
        found["settled"] = session.is_settled
        found["choices"] = [decision.choice for decision in session.decisions]
    step = next(entry.steps[0] for entry in session._entries.values() if len(entry.steps) == 1)
    assert step is not None
    workspace = torch.empty(max(16, step.workspace), device="cuda", dtype=torch.uint8)
    ready = (step.pointer, None, torch.cuda.current_stream().cuda_stream, x.data_ptr(),
             w.data_ptr(), gradient.data_ptr(), workspace.data_ptr(), step.workspace)
    found["parts"] = {
        "plan": host_us(lambda: session._run(*ready)),
        "result": host_us(lambda: x.new_empty_strided(step.shape, step.strides)),
        "empty kernel": empty_kernel_us(operands)}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measure", type=int, default=8, help="engines on trial")
    parser.add_argument("--json", metavar="FILE", help="writes all figures here")
    arguments = parser.parse_args()
    import torch

    measured: dict[str, Any] = {"torch": torch.__version__,
                                "device": torch.cuda.get_device_name(), "unit": "us"}
    with torch.no_grad():
        for name, (shape, weights) in CASES.items():
            measured[name] = found = measure(shape, weights, arguments)
            print(f"{name}: " + "; ".join(
                f"{part} " + ", ".join(f"{key} {us:.1f}" for key, us in found[part].items())
                for part in ("off", "foretune", "parts")))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
