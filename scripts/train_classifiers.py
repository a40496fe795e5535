#!/usr/bin/env python3
"""Trains four small image classifiers on Fashion-MNIST and exports them as ONNX:

    scripts/train_classifiers.py train --data FOLDER --output WEIGHTS --all
    scripts/train_classifiers.py export --data FOLDER --weights WEIGHTS --output FOLDER

The networks are lenet5, vgg, resnet20 and mobilenet; each has at most 300,000 parameters. --data is
the folder of the four idx files of the Debian package dataset-fashion-mnist.

The first 50,000 images of the training file are for training. Its last 10,000 are for tuning: no
network is trained on them, and no epoch is chosen by them. Only `export` reads the test file.

An exported network takes "image", float32 of shape [N, 1, 28, 28] with (pixel / 255 - 0.2860) /
0.3530, and gives "logits" of shape [N, 10]. Its batch normalisations are folded into convolutions.

Needs PyTorch, 1.13 or newer. `export` with PyTorch 2 also needs the package onnx, and it evaluates
with onnxruntime when that can be imported.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional

CLASSES, SIDE = 10, 28
MEAN, DEVIATION = 0.2860, 0.3530
TRAINING_IMAGES, TUNING_IMAGES = 50_000, 10_000
MOST_PARAMETERS = 300_000
OPSET = 13
EVALUATION_BATCH = 1000
MOMENTUM = 0.9
WARM_UP = 0.1  # part of the steps during which the learning rate rises


# ---- networks ----


def conv(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1,
         padding: int | None = None) -> list[nn.Module]:
    """A convolution and its batch normalisation; without `padding` the map keeps its size."""
    return [nn.Conv2d(inputs, outputs, side, stride, side // 2 if padding is None else padding,
                      groups=groups, bias=False),
            nn.BatchNorm2d(outputs)]


def conv_relu(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1,
              padding: int | None = None) -> list[nn.Module]:
    return [*conv(inputs, outputs, side, stride, groups, padding), nn.ReLU()]


def head(channels: int) -> list[nn.Module]:
    """Averages every map and classifies the averages."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(channels, CLASSES)]


def lenet5() -> nn.Module:
    """LeNet-5 with ReLU for tanh, maxima for averages, and batch normalisation."""
    return nn.Sequential(
        *conv_relu(1, 6, 5), nn.MaxPool2d(2),
        *conv_relu(6, 16, 5, padding=0), nn.MaxPool2d(2),
        nn.Flatten(1), nn.Linear(16 * 5 * 5, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES))


def vgg() -> nn.Module:
    """Three pairs of 3x3 convolutions of 32, 64 and 128 channels."""
    return nn.Sequential(
        *conv_relu(1, 32, 3), *conv_relu(32, 32, 3), nn.MaxPool2d(2),
        *conv_relu(32, 64, 3), *conv_relu(64, 64, 3), nn.MaxPool2d(2),
        *conv_relu(64, 128, 3), *conv_relu(128, 128, 3), *head(128))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, a 1x1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*conv_relu(inputs, outputs, 3, stride),
                                  *conv(outputs, outputs, 3))
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*conv(inputs, outputs, 1, stride))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(images) + self.shortcut(images))


def resnet20() -> nn.Module:
    """The ResNet-20 of CIFAR-10: three stages of three blocks, with 16, 32 and 64 channels."""
    layers = conv_relu(1, 16, 3)
    inputs = 16
    for outputs in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and outputs != 16 else 1
            layers.append(ResidualBlock(inputs, outputs, stride))
            inputs = outputs
    return nn.Sequential(*layers, *head(inputs))


def mobilenet() -> nn.Module:
    """Blocks of MobileNet V1: a depthwise 3x3 convolution, then a pointwise one."""
    layers = conv_relu(1, 32, 3)
    inputs = 32
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (256, 1)):
        layers += conv_relu(inputs, inputs, 3, stride, groups=inputs)
        layers += conv_relu(inputs, outputs, 1)
        inputs = outputs
    return nn.Sequential(*layers, *head(inputs))


@dataclass(frozen=True)
class Recipe:
    """A network and how it is trained."""

    build: Callable[[], nn.Module]
    batch: int = 256
    learning_rate: float = 0.15
    weight_decay: float = 5e-4
    label_smoothing: float = 0.05
    shift: int = 2  # greatest shift of a training image, in pixels
    erased: float = 0.25  # probability that a training image loses a rectangle


RECIPES = {
    # Small enough to underfit: it sees images that are less disturbed.
    "lenet5": Recipe(lenet5, learning_rate=0.05, label_smoothing=0.0, shift=1, erased=0.0),
    "vgg": Recipe(vgg),
    "resnet20": Recipe(resnet20),
    "mobilenet": Recipe(mobilenet),
}


# ---- images ----


def read_idx(path: Path) -> torch.Tensor:
    """Reads a gzipped idx file of bytes."""
    with gzip.open(path, "rb") as file:
        content = bytearray(file.read())
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: not an idx file of bytes")
    dimensions = content[3]
    shape = [int.from_bytes(content[4 * i:4 * i + 4], "big") for i in range(1, dimensions + 1)]
    values = torch.frombuffer(content, dtype=torch.uint8, offset=4 + 4 * dimensions)
    if values.numel() != math.prod(shape):
        raise SystemExit(f"{path}: {values.numel()} bytes for the shape {shape}")
    return values.reshape(shape)


def read_images(folder: Path, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns images as bytes of shape [N, 28, 28], and labels; `kind` is train or t10k."""
    images = read_idx(folder / f"{kind}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{kind}-labels-idx1-ubyte.gz").long()
    if images.shape[1:] != (SIDE, SIDE) or len(images) != len(labels):
        raise SystemExit(f"{folder}: {kind} has images of {tuple(images.shape)} and "
                         f"{len(labels)} labels")
    return images, labels


def training_and_tuning(folder: Path) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor,
                                               torch.Tensor]:
    """Returns training images and labels, then tuning images and labels."""
    images, labels = read_images(folder, "train")
    if len(images) != TRAINING_IMAGES + TUNING_IMAGES:
        raise SystemExit(f"{folder}: {len(images)} images for training and tuning")
    return (images[:TRAINING_IMAGES], labels[:TRAINING_IMAGES],
            images[TRAINING_IMAGES:], labels[TRAINING_IMAGES:])


def normalised(images: torch.Tensor) -> torch.Tensor:
    """Returns networks' input of bytes of shape [N, 28, 28]."""
    return ((images.float() / 255 - MEAN) / DEVIATION).unsqueeze(1)


def augmented(images: torch.Tensor, order: torch.Tensor, recipe: Recipe,
              generator: torch.Generator) -> torch.Tensor:
    """Returns the images in `order`, each flipped, shifted and partly erased at random.

    Works on a whole epoch at once: a batch at a time would cost more launches than arithmetic.
    """
    count, device = len(order), images.device

    def random(low: int, high: int) -> torch.Tensor:
        """Whole numbers from `low` to `high`, one an image."""
        return torch.randint(low, high + 1, (count, 1), generator=generator, device=device)

    def chosen(probability: float) -> torch.Tensor:
        return torch.rand((count, 1), generator=generator, device=device) < probability

    pixels = torch.arange(SIDE, device=device)
    padded = functional.pad(images, (recipe.shift,) * 4)
    rows = random(0, 2 * recipe.shift) + pixels
    columns = torch.where(chosen(0.5), pixels.flip(0), pixels) + random(0, 2 * recipe.shift)
    out = normalised(padded[order[:, None, None], rows[:, :, None], columns[:, None, :]])
    if recipe.erased:
        # The rectangle becomes the mean of all pixels, which is zero.
        inside = []
        for _ in range(2):
            first, length = random(-4, SIDE - 5), random(5, 14)
            inside.append((pixels >= first) & (pixels < first + length))
        erased = inside[0][:, :, None] & inside[1][:, None, :] & chosen(recipe.erased)[:, :, None]
        out.masked_fill_(erased.unsqueeze(1), 0.0)
    return out


# ---- training ----


def parameters_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def built(name: str) -> nn.Module:
    model = RECIPES[name].build()
    count = parameters_of(model)
    if count > MOST_PARAMETERS:
        raise SystemExit(f"{name} has {count} parameters; at most {MOST_PARAMETERS} are wanted")
    return model


def optimiser_of(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """SGD; biases and batch normalisations do not decay."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.SGD(
        [{"params": matrices, "weight_decay": recipe.weight_decay},
         {"params": others, "weight_decay": 0.0}],
        lr=recipe.learning_rate, momentum=MOMENTUM, nesterov=True)


def rate_at(done: float) -> float:
    """The factor of the learning rate when a part `done` of the steps is behind: a ramp, then a
    cosine down to zero."""
    if done < WARM_UP:
        return done / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def accuracy(predict: Callable[[torch.Tensor], torch.Tensor], images: torch.Tensor,
             labels: torch.Tensor) -> float:
    """Returns the part of `images`, given as bytes, whose greatest logit is the label's."""
    right = 0
    with torch.no_grad():
        for start in range(0, len(images), EVALUATION_BATCH):
            batch = slice(start, start + EVALUATION_BATCH)
            right += int((predict(normalised(images[batch])).argmax(1) == labels[batch]).sum())
    return right / len(images)


def load(path: Path) -> Any:
    """Loads tensors, text and whole numbers, on the CPU; nothing in the file is run.

    PyTorch 1.13 takes no file with other numbers unless it may run what the file says.
    """
    return torch.load(path, map_location="cpu", weights_only=True)


def save(content: Any, path: Path) -> None:
    """Writes a whole file or none."""
    partial = path.with_suffix(".partial")
    torch.save(content, partial)
    os.replace(partial, path)


def on_cpu(model: nn.Module) -> dict[str, torch.Tensor]:
    return {key: value.detach().cpu().contiguous() for key, value in model.state_dict().items()}


class Trainer:
    """Trains one network; its state can be written after an epoch and taken up again."""

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        self.name, self.recipe, self.arguments = name, RECIPES[name], arguments
        self.device = torch.device(arguments.device)
        on_gpu = self.device.type == "cuda"
        torch.manual_seed(arguments.seed)
        torch.backends.cudnn.deterministic = True
        self.half = on_gpu and arguments.precision == "bf16"
        # Tensor cores want channels last; elsewhere that costs time.
        self.layout = torch.channels_last if self.half else torch.contiguous_format
        self.model = built(name).to(self.device, memory_format=self.layout)
        self.optimiser = optimiser_of(self.model, self.recipe)
        self.generator = torch.Generator(self.device)
        self.generator.manual_seed(arguments.seed)
        self.epoch, self.loss, self.seconds = 0, math.nan, 0.0
        self.checkpoint = arguments.output / f"{name}.checkpoint"

    def settings(self) -> dict[str, Any]:
        """Returns what has to be the same when training goes on."""
        return {"epochs": self.arguments.epochs, "seed": self.arguments.seed,
                "steps": self.arguments.steps}

    def write(self) -> None:
        progress = {"settings": self.settings(), "epoch": self.epoch, "loss": self.loss,
                    "seconds": self.seconds}
        momenta = [self.optimiser.state[parameter]["momentum_buffer"].cpu().contiguous()
                   for parameter in self.model.parameters()]
        save({"progress": json.dumps(progress), "model": on_cpu(self.model), "momenta": momenta,
              "random": self.generator.get_state()}, self.checkpoint)

    def take_up(self) -> None:
        """Goes on from the checkpoint, if there is one; it may be of the last epoch."""
        if not self.checkpoint.exists():
            return
        state = load(self.checkpoint)
        progress = json.loads(state["progress"])
        if progress["settings"] != self.settings():
            raise SystemExit(f"{self.checkpoint} is of a training with {progress['settings']}")
        self.model.load_state_dict(state["model"])
        for parameter, momentum in zip(self.model.parameters(), state["momenta"]):
            buffer = torch.empty_like(parameter).copy_(momentum)
            self.optimiser.state[parameter]["momentum_buffer"] = buffer
        self.generator.set_state(state["random"])
        self.epoch, self.loss = progress["epoch"], progress["loss"]
        self.seconds = progress["seconds"]

    def run_epoch(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        batch, epochs = self.recipe.batch, self.arguments.epochs
        steps = self.arguments.steps or len(images) // batch
        order = torch.randperm(len(images), generator=self.generator, device=self.device)
        order = order[:steps * batch]
        inputs = augmented(images, order, self.recipe, self.generator)
        targets = labels[order]
        total = torch.zeros((), device=self.device)
        self.model.train()
        for step in range(steps):
            factor = rate_at((self.epoch + (step + 0.5) / steps) / epochs)
            for group in self.optimiser.param_groups:
                group["lr"] = self.recipe.learning_rate * factor
            these = slice(step * batch, (step + 1) * batch)
            self.optimiser.zero_grad(set_to_none=True)
            with (torch.autocast("cuda", dtype=torch.bfloat16) if self.half
                  else contextlib.nullcontext()):
                logits = self.model(inputs[these].contiguous(memory_format=self.layout))
            loss = functional.cross_entropy(logits.float(), targets[these],
                                            label_smoothing=self.recipe.label_smoothing)
            loss.backward()
            self.optimiser.step()
            total += loss.detach()
        self.loss = float(total) / steps
        self.epoch += 1

    def run(self) -> None:
        """Trains, then writes the weights and a line about them."""
        arguments = self.arguments
        images, labels, *tuning = (tensor.to(self.device)
                                   for tensor in training_and_tuning(arguments.data))
        if arguments.resume:
            self.take_up()
        before = time.monotonic() - self.seconds
        while self.epoch < arguments.epochs:
            self.run_epoch(images, labels)
            self.seconds = time.monotonic() - before
            if self.epoch % arguments.checkpoint_every == 0 or self.epoch == arguments.epochs:
                print(f"{self.name}: {self.epoch} of {arguments.epochs} epochs, training loss "
                      f"{self.loss:.4f}, {self.seconds:.1f} s", file=sys.stderr, flush=True)
                self.write()
        save(on_cpu(self.model), arguments.output / f"{self.name}.pt")
        self.model.eval()
        line = {"network": self.name, "parameters": parameters_of(self.model),
                "epochs": self.epoch, "seed": arguments.seed, "training_loss": round(self.loss, 5),
                "tuning_accuracy": accuracy(self.model, *tuning),
                "seconds": round(self.seconds, 1)}
        (arguments.output / f"{self.name}.json").write_text(json.dumps(line) + "\n",
                                                            encoding="utf-8")
        print(json.dumps(line), flush=True)


def train_together(arguments: argparse.Namespace) -> int:
    """Trains every network in a process of its own, at once; returns how many failed."""
    options = ["--data", str(arguments.data), "--output", str(arguments.output),
               "--epochs", str(arguments.epochs), "--seed", str(arguments.seed),
               "--device", arguments.device, "--precision", arguments.precision,
               "--checkpoint-every", str(arguments.checkpoint_every)]
    if arguments.steps:
        options += ["--steps", str(arguments.steps)]
    if arguments.resume:
        options.append("--resume")
    processes = {name: subprocess.Popen([sys.executable, __file__, "train", *options,
                                         "--network", name])
                 for name in RECIPES}
    failed = [name for name, process in processes.items() if process.wait() != 0]
    for name in failed:
        print(f"{name}: training failed", file=sys.stderr)
    return len(failed)


def train(arguments: argparse.Namespace) -> int:
    arguments.output.mkdir(parents=True, exist_ok=True)
    if arguments.all:
        return 1 if train_together(arguments) else 0
    for name in [arguments.network] if arguments.network else RECIPES:
        Trainer(name, arguments).run()
    return 0


# ---- export ----


def write_onnx(model: nn.Module, path: Path) -> None:
    """Writes a network in evaluation mode, so that the exporter folds batch normalisations."""
    options: dict[str, Any] = {
        "opset_version": OPSET, "input_names": ["image"], "output_names": ["logits"],
        "dynamic_axes": {"image": {0: "batch"}, "logits": {0: "batch"}}}
    # The other exporter of newer PyTorch starts from a newer opset.
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, torch.zeros(1, 1, SIDE, SIDE), str(path), **options)


def onnx_runner(path: Path) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Returns a function that runs the exported network, or None without onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(["logits"], {"image": images.numpy()})[0])


def export(arguments: argparse.Namespace) -> int:
    if not torch.__version__.startswith("1.") and not importlib.util.find_spec("onnx"):
        raise SystemExit(f"PyTorch {torch.__version__} exports only where onnx can be imported")
    arguments.output.mkdir(parents=True, exist_ok=True)
    *_, tuning_images, tuning_labels = training_and_tuning(arguments.data)
    test = read_images(arguments.data, "t10k")
    for name in [arguments.network] if arguments.network else RECIPES:
        model = built(name)
        model.load_state_dict(load(arguments.weights / f"{name}.pt"))
        model.eval()
        path = arguments.output / f"{name}.onnx"
        write_onnx(model, path)
        line: dict[str, Any] = {"network": name, "parameters": parameters_of(model),
                                "bytes": path.stat().st_size}
        runner = onnx_runner(path)
        if runner:
            probe = normalised(tuning_images[:100])
            with torch.no_grad():
                difference = (model(probe) - runner(probe)).abs().max()
            line["difference_from_torch"] = float(difference)
        line["evaluated_with"] = "onnxruntime" if runner else "torch"
        line["tuning_accuracy"] = accuracy(runner or model, tuning_images, tuning_labels)
        line["test_accuracy"] = accuracy(runner or model, *test)
        print(json.dumps(line), flush=True)
    return 0


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int],
                summary: str) -> argparse.ArgumentParser:
        out = commands.add_parser(name, help=summary, description=summary)
        out.set_defaults(run=run)
        out.add_argument("--data", type=Path, required=True, metavar="FOLDER",
                         help="folder of the gzipped idx files")
        out.add_argument("--output", type=Path, required=True, metavar="FOLDER",
                         help="folder to write to; is made if missing")
        return out

    one = command("train", train, "Writes NAME.pt and NAME.json for every network.")
    which = one.add_mutually_exclusive_group()
    which.add_argument("--network", choices=RECIPES, help="trains this one only")
    which.add_argument("--all", action="store_true",
                       help="trains all at once, each in a process (default: one after another)")
    one.add_argument("--epochs", type=positive, default=100, help="default: %(default)s")
    one.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    one.add_argument("--steps", type=positive, help="ends every epoch after so many batches")
    one.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu",
                     help="default: %(default)s")
    one.add_argument("--precision", choices=("bf16", "f32"), default="bf16",
                     help="of arithmetic on a GPU; a CPU always takes f32 (default: %(default)s)")
    one.add_argument("--checkpoint-every", type=positive, default=5, metavar="EPOCHS",
                     help="epochs between two checkpoints (default: %(default)s)")
    one.add_argument("--resume", action="store_true",
                     help="goes on from the checkpoints in the output folder")

    two = command("export", export, "Writes NAME.onnx for every network and prints its accuracy.")
    two.add_argument("--weights", type=Path, required=True, metavar="FOLDER",
                     help="folder of the .pt files that `train` wrote")
    two.add_argument("--network", choices=RECIPES, help="exports this one only")

    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
