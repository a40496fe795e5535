#!/usr/bin/env python3
"""Measures training steps of convolutional networks whose sizes vary from step to step.

    python bench/torch_convolutions.py --json steps.json
    python bench/torch_convolutions.py --table steps.json

The first form needs an NVIDIA GPU, PyTorch and the package foretune; the second prints the table of
earlier measurements. Modes are cuDNN's first choice (`off`), PyTorch's benchmark mode (`on`) and
`foretune.torch.convolutions`, with trials that take a share of the time (`foretune`) or as much as
there is (`at once`). Each mode runs in a process of its own per network, so
that none finds the plans of another; the later part is in rounds of all modes, which take turns.

- The first steps: wall-clock seconds of the first 100 steps, from a network, an optimiser and a
  device that have run one step of another size in every mode, so that loading kernels of other
  operations is no part of it. Each step has the next of the sizes, which repeat.
- Choosing: more steps until no trial is left, for `--patience` seconds at most.
- Per step afterwards: milliseconds, the median of rounds over all sizes.

bf16 autocast, channels last, SGD. Networks are those of the papers, in plain PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODES = ("off", "on", "foretune", "at once")
FIRST_STEPS = 100
# Sizes of the images, and how many are in a batch; networks see them in turns.
SIZES_2D = (160, 176, 192, 208, 224, 240, 256, 272)
SIZES_3D = (48, 56, 64, 72, 80)


# -- networks --------------------------------------------------------------------------------------


def normed(nn: Any, channels: int, filters: int, size: int = 3, stride: int = 1, groups: int = 1,
           act: Any = None) -> Any:
    layers = [nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups, bias=False),
              nn.BatchNorm2d(filters)]
    return nn.Sequential(*layers, *([act] if act is not None else []))


def make_resnet(nn: Any, groups: int = 1, width: int = 64) -> Any:
    """ResNet-50, and with 32 groups of 4 ResNeXt-50."""

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, planes: int, stride: int) -> None:
            super().__init__()
            middle, out = planes * width // 64 * groups, planes * 4
            self.body = nn.Sequential(
                normed(nn, channels, middle, 1, act=nn.ReLU(True)),
                normed(nn, middle, middle, 3, stride, groups, nn.ReLU(True)),
                normed(nn, middle, out, 1))
            self.shortcut = (nn.Identity() if stride == 1 and channels == out
                             else normed(nn, channels, out, 1, stride))
            self.act = nn.ReLU(True)

        def forward(self, x: Any) -> Any:
            return self.act(self.body(x) + self.shortcut(x))

    layers: list[Any] = [normed(nn, 3, 64, 7, 2, act=nn.ReLU(True)), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for planes, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            layers.append(Block(channels, planes, stride if i == 0 else 1))
            channels = planes * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def make_convnext(nn: Any) -> Any:
    """ConvNeXt-T."""
    import torch

    class Norm(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(channels, 1e-6)

        def forward(self, x: Any) -> Any:
            return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.norm = Norm(channels)
            self.grow = nn.Conv2d(channels, 4 * channels, 1)
            self.act = nn.GELU()
            self.shrink = nn.Conv2d(4 * channels, channels, 1)
            self.scale = nn.Parameter(torch.full((channels, 1, 1), 1e-6))

        def forward(self, x: Any) -> Any:
            return x + self.scale * self.shrink(self.act(self.grow(self.norm(self.depthwise(x)))))

    layers: list[Any] = [nn.Conv2d(3, 96, 4, 4), Norm(96)]
    channels = 96
    for width, blocks in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != channels:
            layers += [Norm(channels), nn.Conv2d(channels, width, 2, 2)]
            channels = width
        layers += [Block(width) for _ in range(blocks)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(768, 1000))


def make_efficientnet(nn: Any) -> Any:
    """EfficientNet-B0, without its stochastic depth."""

    class Excite(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, squeezed: int) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1),
                                      nn.SiLU(True), nn.Conv2d(squeezed, channels, 1), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            return x * self.body(x)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, filters: int, size: int, stride: int,
                     grow: int) -> None:
            super().__init__()
            middle = channels * grow
            layers = [normed(nn, channels, middle, 1, act=nn.SiLU(True))] if grow > 1 else []
            self.body = nn.Sequential(
                *layers, normed(nn, middle, middle, size, stride, middle, nn.SiLU(True)),
                Excite(middle, max(1, channels // 4)), normed(nn, middle, filters, 1))
            self.adds = stride == 1 and channels == filters

        def forward(self, x: Any) -> Any:
            return x + self.body(x) if self.adds else self.body(x)

    layers: list[Any] = [normed(nn, 3, 32, 3, 2, act=nn.SiLU(True))]
    channels = 32
    for grow, filters, blocks, stride, size in (
            (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
            (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(blocks):
            layers.append(Block(channels, filters, size, stride if i == 0 else 1, grow))
            channels = filters
    return nn.Sequential(*layers, normed(nn, 320, 1280, 1, act=nn.SiLU(True)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def make_unet(nn: Any, dimensions: int, width: int, depth: int) -> Any:
    """A U-Net of two or three dimensions, whose upward steps repeat points."""
    import torch

    conv = nn.Conv2d if dimensions == 2 else nn.Conv3d
    norm = nn.BatchNorm2d if dimensions == 2 else nn.BatchNorm3d
    pool = nn.MaxPool2d if dimensions == 2 else nn.MaxPool3d

    def double(channels: int, filters: int) -> Any:
        return nn.Sequential(conv(channels, filters, 3, padding=1, bias=False), norm(filters),
                             nn.ReLU(True), conv(filters, filters, 3, padding=1, bias=False),
                             norm(filters), nn.ReLU(True))

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            widths = [width << i for i in range(depth + 1)]
            self.down = nn.ModuleList(double(before, after) for before, after
                                      in zip([3, *widths], widths))
            self.up = nn.ModuleList(double(low + high, high) for low, high
                                    in zip(widths[:0:-1], widths[-2::-1]))
            self.pool = pool(2)
            self.grow = nn.Upsample(scale_factor=2)
            self.head = conv(width, 8, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for i, block in enumerate(self.down):
                x = block(x if i == 0 else self.pool(x))
                kept.append(x)
            kept.pop()
            for block in self.up:
                x = block(torch.cat([self.grow(x), kept.pop()], 1))
            return self.head(x)

    return UNet()


# name: the network, images in a batch, and the sizes that steps take in turns
NETWORKS: dict[str, tuple[Callable[[Any], Any], int, tuple[int, ...], int]] = {
    "ResNet-50": (make_resnet, 32, SIZES_2D, 2),
    "ResNeXt-50": (lambda nn: make_resnet(nn, 32, 4), 32, SIZES_2D, 2),
    "ConvNeXt-T": (make_convnext, 32, SIZES_2D, 2),
    "EfficientNet-B0": (make_efficientnet, 32, SIZES_2D, 2),
    "U-Net 2-D": (lambda nn: make_unet(nn, 2, 32, 4), 8, SIZES_2D, 2),
    "U-Net 3-D": (lambda nn: make_unet(nn, 3, 16, 3), 2, SIZES_3D, 3),
}


# -- one process -----------------------------------------------------------------------------------


def trainer(name: str) -> tuple[Callable[[int], None], tuple[int, ...]]:
    """Returns a function that takes a step on images of a size, and the sizes."""
    import torch

    make, count, sizes, dimensions = NETWORKS[name]
    torch.manual_seed(1)
    last = torch.channels_last if dimensions == 2 else torch.channels_last_3d
    network = make(torch.nn).cuda().to(memory_format=last).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    inputs: dict[int, Any] = {}

    def step(size: int) -> None:
        if size not in inputs:
            inputs[size] = torch.randn(count, 3, *[size] * dimensions, device="cuda").contiguous(
                memory_format=last)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = network(inputs[size]).float().square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return step, sizes


def work(arguments: argparse.Namespace) -> int:
    """Measures one mode on one network. Reads a line for each round from standard input and answers
    with a line of JSON, so that the processes of the modes take turns."""
    import torch

    torch.backends.cudnn.benchmark = arguments.worker == "on"
    step, sizes = trainer(arguments.network)
    sizes = sizes[:arguments.sizes]
    session = None
    if arguments.worker in MODES[2:]:
        import foretune.torch

        session = foretune.torch.convolutions(arguments.model, margin=arguments.margin,
                                              fast=arguments.fast, measure=arguments.measure,
                                              compiles=arguments.compiles,
                                              share=1 if arguments.worker == "at once"
                                              else arguments.share).install()
    warm_up = sizes[0] // 2
    step(warm_up)
    torch.cuda.synchronize()

    def timed(steps: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(steps):
            step(sizes[i % len(sizes)])
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "first":
            print(json.dumps({"seconds": timed(int(words[1]))}), flush=True)
        elif words[0] == "choose":
            steps, seconds, most = 0, 0.0, float(words[1])
            while session is not None and not session.is_settled and seconds < most:
                seconds += timed(len(sizes))
                steps += len(sizes)
                step(warm_up)
            print(json.dumps({"choosing_seconds": seconds, "choosing_steps": steps}), flush=True)
        elif words[0] == "round":
            timed(len(sizes))  # trials spend what they saved while other modes ran
            print(json.dumps({"seconds": timed(int(words[1]) * len(sizes)),
                              "steps": int(words[1]) * len(sizes)}), flush=True)
        elif words[0] == "report":
            report = session.report() if session is not None else ""
            print(json.dumps({"report": report,
                              "memory_mb": torch.cuda.max_memory_reserved() / 2**20}), flush=True)
    return 0


# -- all processes ---------------------------------------------------------------------------------


class Worker:
    """The process of a mode."""

    def __init__(self, mode: str, network: str, arguments: argparse.Namespace) -> None:
        command = [sys.executable, __file__, "--worker", mode, "--network", network, "--margin",
                   str(arguments.margin)]
        if arguments.model:
            command += ["--model", arguments.model]
        if arguments.compiles:
            command.append("--compiles")
        if arguments.fast:
            command.append("--fast")
        command += ["--measure", str(arguments.measure), "--share", str(arguments.share)]
        command += ["--sizes", str(arguments.sizes)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended with {self.process.wait()}")
        return dict(json.loads(line))

    def ask(self, *words: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(network: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs all modes on a network. First steps run one mode after another, rounds in turns."""
    found: dict[str, Any] = {"network": network, "first_steps": arguments.first}
    workers: dict[str, Worker] = {}
    try:
        for mode in arguments.modes:
            workers[mode] = Worker(mode, network, arguments)
        for worker in workers.values():
            worker.answer()
        for mode, worker in workers.items():
            found[mode] = {"first_seconds": worker.ask("first", arguments.first)["seconds"],
                           **worker.ask("choose", arguments.patience)}
        rounds: dict[str, list[float]] = {mode: [] for mode in workers}
        for turn in range(arguments.rounds):
            order = list(workers)
            for mode in order[turn % len(order):] + order[:turn % len(order)]:
                answer = workers[mode].ask("round", arguments.repeat)
                rounds[mode].append(answer["seconds"] / answer["steps"] * 1e3)
        for mode, worker in workers.items():
            found[mode].update(step_ms=statistics.median(rounds[mode]), rounds_ms=rounds[mode],
                               **worker.ask("report"))
    finally:
        for worker in workers.values():
            worker.close()
    return found


def lines(measured: dict[str, Any]) -> Iterator[str]:
    """The table: seconds of the first steps and milliseconds a step, and ours over the better of
    the two others."""
    yield (f"{'network':<16} {'first ' + str(measured['first_steps']) + ' steps, s':>35} "
           f"{'a step afterwards, ms':>35} {'of the better':>31}")
    sums: dict[str, list[float]] = {}
    for row in measured["networks"]:
        if "failure" in row:
            yield f"{row['network']:<16} failed: {row['failure']}"
            continue
        modes = [mode for mode in MODES if mode in row]
        first = " ".join(f"{row[mode]['first_seconds']:8.2f}" for mode in modes)
        later = " ".join(f"{row[mode]['step_ms']:8.2f}" for mode in modes)
        shares = ""
        if {"off", "on"} <= set(modes):
            shares = " ".join(f"{row[mode][key] / min(row['off'][key], row['on'][key]):7.3f}"
                              for key in ("first_seconds", "step_ms") for mode in modes[2:])
        for mode in modes:
            sums.setdefault(f"{mode} first", []).append(row[mode]["first_seconds"])
            sums.setdefault(f"{mode} later", []).append(row[mode]["step_ms"])
        yield f"{row['network']:<16} {first:>35} {later:>35} {shares:>31}"
    if sums:
        first, later = (" ".join(f"{sum(sums[f'{mode} {part}']):8.2f}" for mode in MODES
                                 if f"{mode} {part}" in sums) for part in ("first", "later"))
        yield f"{'sum':<16} {first:>35} {later:>35}"
    yield (f"columns: {', '.join(MODES)}; of the better of off and on: the other two, first steps "
           "and a step afterwards")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="writes all figures here")
    parser.add_argument("--table", metavar="FILE",
                        help="measures nothing: prints the table of an earlier --json")
    parser.add_argument("--model", help="a model of the family cudnn; default: the shipped one")
    parser.add_argument("--margin", type=float, default=0.02)
    parser.add_argument("--compiles", action="store_true",
                        help="picks may be engines that compile their kernels")
    parser.add_argument("--fast", action="store_true", help="asks the model's fast mode")
    parser.add_argument("--measure", type=int, default=0,
                        help="engines that take turns in the first calls of a convolution")
    parser.add_argument("--share", type=float, default=0.05,
                        help="share of the time that trials may take")
    parser.add_argument("--patience", type=float, default=120,
                        help="seconds after which choosing is given up")
    parser.add_argument("--sizes", type=int, default=99, help="takes only so many sizes")
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--first", type=int, default=FIRST_STEPS, help="how many first steps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2, help="times of all sizes in a round")
    parser.add_argument("--deadline", type=float, default=3600,
                        help="seconds after which no network is started")
    parser.add_argument("--worker", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--network", choices=list(NETWORKS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.model:
        arguments.model = str(Path(arguments.model).resolve())
    return arguments


def main() -> int:
    arguments = parse()
    if arguments.worker:
        return work(arguments)
    if arguments.table:
        measured = json.loads(Path(arguments.table).read_text(encoding="utf-8"))
    else:
        import torch

        measured = {"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                    "cudnn": torch.backends.cudnn.version(), "margin": arguments.margin,
                    "compiles": arguments.compiles, "fast": arguments.fast,
                    "measure": arguments.measure, "share": arguments.share,
                    "sizes": arguments.sizes, "first_steps": arguments.first,
                    "networks": []}
        began = time.monotonic()
        for network in arguments.networks:
            if time.monotonic() - began > arguments.deadline:
                break
            try:
                row = measure(network, arguments)
            except (RuntimeError, BrokenPipeError) as error:
                row = {"network": network, "failure": str(error)}
            measured["networks"].append(row)
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(measured, indent=1) + "\n",
                                                encoding="utf-8")
    print("\n".join(lines(measured)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
