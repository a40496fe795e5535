"""Neural networks on this CPU, exactly or with layers that compute less::

    network = foretune.networks.Network.load("resnet20.ftn")
    plan = network.plan(images=64)
    logits = plan(images)                                  # (64, 1, 28, 28) -> (64, 10)

    ranges = network.calibrate(some_images)                # what layers of integers need
    layers = {"conv2": Layer("i8"), "conv3": Layer("i8", skip_rows=(2, 0))}
    fast = network.plan(images=64, layers=layers, ranges=ranges)

A plan chooses kernels by the dispatchers' models, packs the weights once and plans its memory.
Arrays are float32 with channels first. `Plan.profile` says which step takes how long, and why its
kernel was chosen.
"""

from __future__ import annotations

import dataclasses
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError
from .loops import whole_number

__all__ = ["Controller", "Layer", "Network", "Plan", "Step", "parse_layers"]

Array = npt.NDArray[np.float32]
Ranges = Mapping[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Layer:
    """How a convolution or linear operation computes.

    Attributes:
        dtype: ``"f32"``, ``"f16"`` (of the weights alone), ``"bf16"`` (sums in f32) or ``"i8"`` (sums in i32).
        skip_rows: ``(period, position)``: of so many rows of the output the one at the position
            becomes the mean of its neighbours. ``(0, 0)``: all are computed.
        skip_columns: the same of columns.
        skip_taps: the same of a filter's points, which count as 0 while the others grow.
        zero_weights: the same of all weights of a filter, which saves no time (PredTuner's way).
        before_activation: interpolates before the ReLU, as PredTuner does, in another pass.
    """

    dtype: str = "f32"
    skip_rows: tuple[int, int] = (0, 0)
    skip_columns: tuple[int, int] = (0, 0)
    skip_taps: tuple[int, int] = (0, 0)
    zero_weights: tuple[int, int] = (0, 0)
    before_activation: bool = False

    @classmethod
    def parse(cls, knob: str) -> Layer:
        """Returns the layer of a knob's name, as ``foretune approx`` prints it: ``"i8+rows2.0"``.

        Raises:
            InvalidArgumentError: a part of the name is no part of a knob.
        """
        dtype, *parts = knob.split("+")
        skips: dict[str, Any] = {}
        for part in parts:
            found = re.fullmatch(r"(rows|columns|taps|weights)([2-7])\.([0-6])", part)
            if found is None and part != "before":
                raise InvalidArgumentError(f"a knob has parts like rows2.0, not {part!r}")
            if found is not None:
                skips[_SKIPS[found[1]]] = (int(found[2]), int(found[3]))
        return cls(dtype, **skips, before_activation="before" in parts)


_SKIPS = {"rows": "skip_rows", "columns": "skip_columns", "taps": "skip_taps",
          "weights": "zero_weights"}


def parse_layers(text: str) -> dict[str, Layer]:
    """Returns how layers compute by their names, from a choice as ``foretune approx`` prints it and
    writes it as ``layers``: ``"conv1=i8 conv2=i8+rows2.0"``, or ``"exact"`` for none.

    Raises:
        InvalidArgumentError: a part of the text is not a layer and its knob.
    """
    layers = {}
    for part in [] if text == "exact" else text.split():
        name, equals, knob = part.rpartition("=")
        if not equals:
            raise InvalidArgumentError(f"a choice has parts like conv1=i8, not {part!r}")
        layers[name] = Layer.parse(knob)
    return layers


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of a plan.

    Attributes:
        name: the operation that it runs, or the last of several.
        description: the step's problem, and the kernel with the reason for it.
        nanoseconds: its time for all images of the plan.
    """

    name: str
    description: str
    nanoseconds: float


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of a network.

    Attributes:
        name: unique within the network.
        kind: its operation: ``"conv"``, ``"linear"``, ``"relu"``, ...
        shape: the result's shape, for one image.
        multiply_adds: of one image; 0 for operations that are not counted.
        weights: shape of a layer's weights: (filters, channels of a group, rows, columns) of a
            convolution, (outputs, inputs) of a linear operation; empty for other operations.
        groups: groups of a convolution, else 1.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    multiply_adds: float
    weights: tuple[int, ...] = ()
    groups: int = 1


_lock = threading.Lock()
_executors: dict[tuple[int, int, str], Any] = {}


def _executor(threads: int | None, measure_top: int, isa: str | None) -> Any:
    """Returns the kernels for a number of threads, which all plans share."""
    key = (0 if threads is None else whole_number(threads, "threads", 1, 1024),
           whole_number(measure_top, "measure_top", 0, 10000), isa or "")
    with _lock:
        if key not in _executors:
            _executors[key] = _foretune.Executor(*key)
        return _executors[key]


class Plan:
    """A network made ready for a number of images. `Network.plan` makes it.

    Thread safety: any number of threads may call a plan at once.
    """

    __slots__ = ("_inner", "_inputs", "_outputs")

    def __init__(self, inner: Any, inputs: Sequence[tuple[str, list[int]]],
                 outputs: Sequence[tuple[str, list[int]]]) -> None:
        self._inner = inner
        self._inputs = list(inputs)
        self._outputs = list(outputs)

    @property
    def images(self) -> int:
        """Returns the number of images of a call."""
        return int(self._inner.images)

    @property
    def memory_bytes(self) -> int:
        """Returns the bytes that one pass computes in, beside weights and the caller's arrays."""
        return int(self._inner.memory_bytes)

    def _arrays(self, inputs: Sequence[Any], out: Sequence[Array] | None
                ) -> tuple[list[Array], list[Array]]:
        """Returns the arrays that the library reads and writes."""
        given = [np.ascontiguousarray(array, dtype=np.float32) for array in inputs]
        if out is not None:
            return given, list(out)
        made = [np.empty((shape[0] * self.images, *shape[1:]), dtype=np.float32)
                for _, shape in self._outputs]
        return given, made

    def __call__(self, *inputs: Any, out: Array | Sequence[Array] | None = None) -> Any:
        """Runs the network and returns its output, or a list of several.

        Args:
            inputs: one array for each input of the network, with the plan's images.
            out: contiguous float32 arrays to write into.

        Raises:
            InvalidArgumentError: an array has another number of elements.
        """
        targets = [out] if isinstance(out, np.ndarray) else out
        given, made = self._arrays(inputs, targets)
        self._inner.run(given, made)
        return made[0] if len(made) == 1 else made

    def profile(self, *inputs: Any) -> list[Step]:
        """Runs the network once in one thread and returns its steps with their times."""
        given, made = self._arrays(inputs, None)
        return [Step(*step) for step in self._inner.profile(given, made)]


class Controller:
    """Runs a network by one of several plans, call by call, so that calls take a wanted time::

        controller = Controller([(exact, 91.9), (integers, 91.6)], target_ns=2e5)
        logits = controller(images)

    The mean time of calls over a second stays within 5 % of a target that the plans can reach, while
    other processes start and stop: the plans next to the target take turns. A target below all plans
    gets the fastest one, a target above all the best one.

    Thread safety: any number of threads; their calls take turns, and waiting does not count.
    """

    __slots__ = ("_inner", "_plan")

    def __init__(self, plans: Sequence[tuple[Plan, float]], target_ns: float, *,
                 expected_ns: Sequence[float] | None = None, window_seconds: float = 1) -> None:
        """Times the plans, unless that is given, for nine calls each.

        Args:
            plans: plans of one network for the same number of images, each with its quality, such as
                the percentage of images that it classifies rightly.
            target_ns: the time that a call shall take on average.
            expected_ns: times of the plans' calls while nothing else runs.
            window_seconds: the mean over so much time shall be right.

        Raises:
            InvalidArgumentError: no plans, plans with other arrays, times that are not positive.
        """
        times = [0.0] * len(plans) if expected_ns is None else list(expected_ns)
        if len(times) != len(plans):
            raise InvalidArgumentError(f"{len(plans)} plans have {len(times)} expected times")
        self._inner = _foretune.NetworkSwitch(
            [(plan._inner, float(quality), float(ns))  # noqa: SLF001
             for (plan, quality), ns in zip(plans, times)],
            float(target_ns), 1e9 * window_seconds)
        self._plan = plans[0][0]

    def __call__(self, *inputs: Any, out: Array | Sequence[Array] | None = None) -> Any:
        """Runs the plan whose turn it is; arguments, result and errors are those of a plan.

        The time of the call counts as a whole, with what Python does about arrays.
        """
        begin = time.perf_counter_ns()
        targets = [out] if isinstance(out, np.ndarray) else out
        given, made = self._plan._arrays(inputs, targets)  # noqa: SLF001
        self._inner.run(given, made, float(time.perf_counter_ns() - begin))
        return made[0] if len(made) == 1 else made

    @property
    def target_ns(self) -> float:
        """Returns or sets the time that a call shall take on average."""
        return float(self._inner.target_ns)

    @target_ns.setter
    def target_ns(self, nanoseconds: float) -> None:
        self._inner.set_target(nanoseconds)

    @property
    def chosen(self) -> int | None:
        """Returns the position of the plan that ran last; None before the first call."""
        found = self._inner.last
        return None if found is None else int(found)

    @property
    def history(self) -> list[int]:
        """Returns how many calls each plan has run."""
        return list(self._inner.counts)

    @property
    def expected_ns(self) -> list[float]:
        """Returns the times of the plans that the choice reckons with."""
        return list(self._inner.expected_ns)

    @property
    def slowdown(self) -> float:
        """Returns the time that calls take now over the expected one."""
        return float(self._inner.slowdown)

    @property
    def front(self) -> list[int]:
        """Returns the positions of the plans that can be chosen, from the fastest to the best.

        A plan is left out that is no better than a faster one, or than turns of two others in the
        same time.
        """
        return list(self._inner.front)


class Network:
    """A network of convolutions, products and what stands between them. `load` reads one.

    Thread safety: constant.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, name: str | None = None) -> Network:
        """Reads a network of this project's format (``.ftn``) or of ONNX (``.onnx``).

        Args:
            path: the file.
            name: the network's name, for files of ONNX; None: the one in the file.

        Raises:
            NotFoundError, CorruptDataError, InputOutputError: the file cannot be read.
            UnsupportedError: it has an operation that this build lacks.
            InvalidArgumentError: a name for a file of this project's format.
        """
        file = os.fspath(path)
        if file.endswith(".onnx"):
            return cls(_foretune.Network.read_onnx(file, name or ""))
        if name is not None:
            raise InvalidArgumentError("a file of this project's format has its name already")
        return cls(_foretune.Network.read(file))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network as ``.ftn``, replacing the file at once."""
        self._inner.write(os.fspath(path))

    def save_task(self, path: str | os.PathLike[str], *, tuning: tuple[Any, Any],
                  test: tuple[Any, Any] | None = None, scale: float = 1, shift: float = 0) -> None:
        """Writes the network with the images that judge it (``.ftt``): a payload of ``network-cpu``.

        Args:
            tuning: pixels (uint8, images first) and labels of the images that choose how layers
                compute; None for labels, where the quality reads none (``psnr``, ``ssim``).
            test: the same of those that only report what came of it.
            scale, shift: the network reads ``pixel * scale + shift``.

        Raises:
            InvalidArgumentError: pixels do not fit the input, a label is no class.
        """
        given = [tuning, ((), ()) if test is None else test]
        parts = [part for pixels, labels in given
                 for part in (np.ascontiguousarray(pixels, dtype=np.uint8),
                              np.zeros(len(pixels), np.int32) if labels is None
                              else np.ascontiguousarray(labels, dtype=np.int32))]
        _foretune.write_task(os.fspath(path), self._inner, scale, shift, *parts)

    @property
    def name(self) -> str:
        """Returns the network's name."""
        return str(self._inner.name)

    @property
    def operations(self) -> list[Operation]:
        """Returns the operations in the order in which they run."""
        return [Operation(name, kind, tuple(shape), count, tuple(weights), groups)
                for name, kind, shape, count, weights, groups in self._inner.nodes]

    @property
    def layers(self) -> list[Operation]:
        """Returns the operations that may compute less: convolutions and linear ones."""
        return [each for each in self.operations if each.kind in ("conv", "linear")]

    @property
    def multiply_adds(self) -> float:
        """Returns the multiply-adds of one image."""
        return float(self._inner.multiply_adds)

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of all constants."""
        return int(self._inner.weight_bytes)

    def simplified(self) -> Network:
        """Returns the network with scales folded into weights and unread operations left out."""
        return Network(self._inner.simplified())

    def plan(self, *, images: int = 1, threads: int | None = 1, pass_images: int = 0,
             layers: Mapping[str, Layer] | None = None, ranges: Ranges | None = None,
             measure_top: int = 8, isa: str | None = None) -> Plan:
        """Makes the network ready for calls with `images` images each.

        Args:
            images: images of a call.
            threads: threads of a call; None: all cores of the process.
            pass_images: images that are computed at once; 0: as many as fit the second cache.
            layers: how layers compute, by name; others compute exactly.
            ranges: what `calibrate` returned; layers of ``"i8"`` need it.
            measure_top: how many kernels of each layer are timed before the best one is kept, which
                takes a few passes; 0 trusts the shipped models.
            isa: ``"avx512"``, ``"avx2"`` or ``"generic"``, to measure what a lesser machine would
                do; None: all that this CPU has.

        Raises:
            InvalidArgumentError: a layer cannot compute so, or integers lack their ranges.
            UnsupportedError: no kernel runs an operation.
        """
        variants = {name: (layer.dtype, [*layer.skip_rows, *layer.skip_columns, *layer.skip_taps,
                                       *layer.zero_weights, int(layer.before_activation)])
                    for name, layer in (layers or {}).items()}
        for name, (_, numbers) in variants.items():
            if len(numbers) != 9:
                raise InvalidArgumentError(f"{name}: a period and a position make a pair")
        inner = _foretune.NetworkPlan(self._inner, _executor(threads, measure_top, isa),
                                      whole_number(images, "images", 1, 1 << 24),
                                      whole_number(pass_images, "pass_images", 0, 1 << 24), variants,
                                      dict(ranges or {}))
        return Plan(inner, self._inner.inputs, self._inner.outputs)

    def calibrate(self, *inputs: Any) -> dict[str, tuple[float, float]]:
        """Returns the smallest and largest value of every tensor over the images, by name.

        Args:
            inputs: one array for each input, with any number of images that stand for all.
        """
        arrays = [np.ascontiguousarray(array, dtype=np.float32) for array in inputs]
        shapes = [shape for _, shape in self._inner.inputs]
        images = len(arrays[0]) // shapes[0][0] if arrays and arrays[0].ndim > 0 else 0
        plan = self.plan(images=images)
        outputs = [np.empty((shape[0] * images, *shape[1:]), dtype=np.float32)
                   for _, shape in self._inner.outputs]
        return dict(plan._inner.observe(arrays, outputs, {}))  # noqa: SLF001
