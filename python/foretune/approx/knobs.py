"""Knobs: the ways in which an operation may compute less.

The knobs and the names of their file are PredTuner's. Each describes a ``foretune.networks.Layer``
in two forms. The executed form saves time. The reference form has the numbers that PredTuner
simulates, to compare with.

================================ ========================================== =====================
knob                             executed form                              reference form
================================ ========================================== =====================
FP32Baseline                     float32                                    the same
FP16Approx                       weights are stored as float16              also inputs and outputs
                                                                            are rounded to float16
PerforateConv2dStride            rows or columns are interpolated behind    in front of the
                                 the activation                             activation
Conv2dSampling                   the same points of all filters' channels   weights are left out
                                 are left out                               across channels
PromiseSim                       refused                                    refused
================================ ========================================== =====================
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from .._errors import (CorruptDataError, InputOutputError, InvalidArgumentError, NotFoundError,
                       UnsupportedError)
from ..loops import whole_number
from ..networks import Layer, Network, Operation

__all__ = ["ApproxKnob", "Conv2dSampling", "FP16Approx", "FP32Baseline", "PerforateConv2dStride",
           "PromiseSim", "get_knobs_from_file"]

DEFAULT_KNOB_FILE = pathlib.Path(__file__).parent / "default_knobs.json"

# PredTuner's constant for float16 beside float32.
_FP16_SPEEDUP = 1.5
_MAX_PERIOD = 1 << 20

_YES = (True, "")


def _no(*parts: Any) -> tuple[bool, str]:
    return False, "".join(str(part) for part in parts)


class ApproxKnob:
    """A way in which an operation may compute less.

    A knob by itself is only a name, which is all that an application of one's own needs
    (``ApproxApp``). One for networks derives from this and has two methods, ``layer`` and
    ``is_applicable``::

        class Int8(ApproxKnob):
            def is_applicable(self, operation, network):
                if operation.kind in ("conv", "linear"):
                    return True, ""
                return False, f"{operation.kind} has no integers"

            def layer(self, reference=False):
                return Layer("i8")

        knobs = get_knobs_from_file() | {Int8("int8", exp_speedup=4.0)}

    A file of knobs may name it, too: ``{"class": "Int8", "name": "int8"}``, read with
    ``get_knobs_from_file(path, {"Int8": Int8})``. Its other keys are arguments of the constructor.

    Args:
        name: unique among the knobs of a network; PredTuner's are numbers such as ``"121"``.
        devices: PredTuner's devices that have it, ``"cpu"`` and ``"gpu"``; None: all. Foretune runs
            either on the CPU.
        baseline_priority: the knob with the highest is what others are compared with; None: it is
            no baseline.
        exp_speedup: time of the exact operation divided by the operation's time, expected without
            a measurement; None: what the knob computes of its share of work.

    Raises:
        InvalidArgumentError: an argument makes no sense.

    Thread safety: constant.
    """

    def __init__(self, name: str, devices: Iterable[str] | None = None,
                 baseline_priority: int | None = None, exp_speedup: float | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError("the name of a knob is a text that is not empty")
        if isinstance(devices, str):
            raise InvalidArgumentError(f"knob {name}: devices are a list, not one text")
        if exp_speedup is not None and (isinstance(exp_speedup, bool)
                                        or not isinstance(exp_speedup, (int, float))
                                        or not 0 < exp_speedup < float("inf")):
            raise InvalidArgumentError(f"knob {name}: exp_speedup is a positive number")
        self._name = name
        self._devices = None if devices is None else tuple(devices)
        self._baseline_priority = baseline_priority
        self._exp_speedup = exp_speedup

    @property
    def name(self) -> str:
        """Returns the knob's name."""
        return self._name

    @property
    def devices(self) -> tuple[str, ...] | None:
        """Returns the devices that have the knob; None: all."""
        return self._devices

    @property
    def baseline_priority(self) -> int | None:
        """Returns the priority among baselines; None: the knob is no baseline."""
        return self._baseline_priority

    @property
    def expected_speedup(self) -> float:
        """Returns the exact operation's time divided by this one's, without a measurement."""
        return 1.0 if self._exp_speedup is None else float(self._exp_speedup)

    @property
    def hpvm_type(self) -> str:
        """Returns the word for the knob's numbers in HPVM's files, such as ``"perf_fp16"``."""
        return "knob"

    def exists_on_device(self, device: str) -> bool:
        """Returns true when the device has the knob."""
        return self._devices is None or device in self._devices

    def is_applicable(self, operation: Operation, network: Network) -> tuple[bool, str]:
        """Returns true and an empty text when the executed form fits the operation and changes it;
        else false and the reason, one sentence.

        Args:
            operation: one of ``network.operations``.
            network: the network that has it.
        """
        return _no("knob ", self.name, " is only a name, which no network computes by")

    def layer(self, reference: bool = False) -> Layer:
        """Returns how an operation with the knob computes.

        Args:
            reference: true for the form with PredTuner's numbers, false for the one that saves
                time.

        Raises:
            UnsupportedError: no layer computes so.
        """
        raise UnsupportedError(f"knob {self.name} is only a name, which no network computes by")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"


class FP32Baseline(ApproxKnob):
    """Computes exactly, in float32."""

    @property
    def hpvm_type(self) -> str:
        """Returns ``"fp32"``."""
        return "fp32"

    def is_applicable(self, operation: Operation, network: Network) -> tuple[bool, str]:
        """Returns true: every operation computes exactly."""
        return _YES

    def layer(self, reference: bool = False) -> Layer:
        """Returns the exact layer, in both forms."""
        return Layer()


class FP16Approx(ApproxKnob):
    """Keeps weights in float16, and computes with them in float32.

    In the reference form inputs and outputs are rounded to float16 as well.
    """

    @property
    def expected_speedup(self) -> float:
        """Returns the constructor's number, or PredTuner's constant for float16."""
        return _FP16_SPEEDUP if self._exp_speedup is None else float(self._exp_speedup)

    @property
    def hpvm_type(self) -> str:
        """Returns ``"fp16"``."""
        return "fp16"

    def is_applicable(self, operation: Operation, network: Network) -> tuple[bool, str]:
        """Returns true for convolutions and linear operations."""
        if operation.kind in ("conv", "linear"):
            return _YES
        return _no(operation.name, " has no weights that float16 could hold")

    def layer(self, reference: bool = False) -> Layer:
        """Returns the layer of float16."""
        return Layer("f16", before_activation=reference)


class _Sparser(ApproxKnob):
    """A knob that leaves out one of so many pieces of the work."""

    _period: int
    _use_fp16: bool

    @property
    def expected_speedup(self) -> float:
        """Returns the constructor's number, or the reciprocal share of the work that is left."""
        if self._exp_speedup is not None:
            return float(self._exp_speedup)
        kept = self._period / (self._period - 1)
        return kept * (_FP16_SPEEDUP if self._use_fp16 else 1.0)


class PerforateConv2dStride(_Sparser):
    """Computes all but one of so many rows or columns of a convolution, and interpolates it.

    The one becomes the mean of its neighbours; the first becomes a copy of the second, the last a
    copy of the one before. Any convolution may compute so, with groups and depthwise as well.

    Args:
        name: as for ``ApproxKnob``.
        direction_is_row: true for rows, false for columns.
        stride: one of so many, at least 2.
        offset: the first that is left out, below the stride.
        use_fp16: true for weights in float16.
        exp_speedup, devices, baseline_priority: as for ``ApproxKnob``.
    """

    def __init__(self, name: str, direction_is_row: bool, stride: int, offset: int,
                 use_fp16: bool = False, exp_speedup: float | None = None,
                 devices: Iterable[str] | None = None,
                 baseline_priority: int | None = None) -> None:
        super().__init__(name, devices, baseline_priority, exp_speedup)
        self._is_row = bool(direction_is_row)
        self._period = whole_number(stride, "stride", 2, _MAX_PERIOD)
        self._offset = whole_number(offset, "offset", 0, self._period - 1)
        self._use_fp16 = bool(use_fp16)

    @property
    def hpvm_type(self) -> str:
        """Returns ``"perf"`` or ``"perf_fp16"``."""
        return "perf_fp16" if self._use_fp16 else "perf"

    def is_applicable(self, operation: Operation, network: Network) -> tuple[bool, str]:
        """Returns true for convolutions whose output has a row or column to leave out."""
        if operation.kind != "conv":
            return _no(operation.name, " is no convolution")
        lines = "rows" if self._is_row else "columns"
        extent = operation.shape[2 if self._is_row else 3]
        if extent < 2:
            return _no(operation.name, " has only ", extent, " ", lines)
        if self._offset >= extent:
            return _no("none of the ", extent, " ", lines, " of ", operation.name, " is left out")
        return _YES

    def layer(self, reference: bool = False) -> Layer:
        """Returns the layer; it interpolates in front of the activation in the reference form."""
        skip = (self._period, self._offset)
        return Layer("f16" if self._use_fp16 else "f32",
                     skip_rows=skip if self._is_row else (0, 0),
                     skip_columns=(0, 0) if self._is_row else skip, before_activation=reference)


class Conv2dSampling(_Sparser):
    """Leaves out one of so many weights of a convolution's filters; the others grow.

    The executed form leaves out the same points (rows and columns of a filter) for all channels.
    The reference form counts across the channels of a filter, as PredTuner does, and like it stays
    in float32 also with ``use_fp16``.

    Args:
        name: as for ``ApproxKnob``.
        skip_every: one of so many, at least 2.
        skip_offset: the first that is left out, below ``skip_every``.
        interp_rate: share of the growth by ``skip_every / (skip_every - 1)``; 1 is the only one
            that runs.
        use_fp16: true for weights in float16.
        exp_speedup, devices, baseline_priority: as for ``ApproxKnob``.
    """

    def __init__(self, name: str, skip_every: int, skip_offset: int, interp_rate: float = 1.0,
                 use_fp16: bool = False, exp_speedup: float | None = None,
                 devices: Iterable[str] | None = None,
                 baseline_priority: int | None = None) -> None:
        super().__init__(name, devices, baseline_priority, exp_speedup)
        self._period = whole_number(skip_every, "skip_every", 2, _MAX_PERIOD)
        self._offset = whole_number(skip_offset, "skip_offset", 0, self._period - 1)
        self._interp_rate = float(interp_rate)
        self._use_fp16 = bool(use_fp16)

    @property
    def hpvm_type(self) -> str:
        """Returns ``"samp"`` or ``"samp_fp16"``."""
        return "samp_fp16" if self._use_fp16 else "samp"

    def is_applicable(self, operation: Operation, network: Network) -> tuple[bool, str]:
        """Returns true for convolutions of one group whose filters have a point to leave out."""
        if operation.kind != "conv":
            return _no(operation.name, " is no convolution")
        if self._interp_rate != 1.0:
            return _no("weights grow by their full share only, not by an interp_rate of ",
                       self._interp_rate)
        if operation.groups > 1:
            return _no(operation.name, " has ", operation.groups,
                       " groups; points of filters are left out in a single one only")
        rows, columns = operation.weights[2:]
        if rows * columns < 2:
            return _no("filters of ", operation.name, " have only one point")
        if self._offset >= rows * columns:
            return _no("none of the ", rows * columns, " points of filters of ", operation.name,
                       " is left out")
        return _YES

    def layer(self, reference: bool = False) -> Layer:
        """Returns the layer; its weights are left out across channels in the reference form.

        Raises:
            UnsupportedError: ``interp_rate`` is not 1.
        """
        if self._interp_rate != 1.0:
            raise UnsupportedError(f"knob {self.name}: weights grow by their full share only, not "
                                   f"by an interp_rate of {self._interp_rate}")
        skip = (self._period, self._offset)
        if reference:
            return Layer(zero_weights=skip)
        return Layer("f16" if self._use_fp16 else "f32", skip_taps=skip)


class PromiseSim(ApproxKnob):
    """Stands for PredTuner's analog accelerator PROMISE, which no layer computes like.

    Args:
        name: as for ``ApproxKnob``.
        noise_level: the accelerator's swing, 0 (most noise) to 8.
        exp_speedup, devices, baseline_priority: as for ``ApproxKnob``.
    """

    _REASON = "PROMISE is an analog accelerator with random noise, which this CPU does not imitate"

    def __init__(self, name: str, noise_level: int, exp_speedup: float | None = None,
                 devices: Iterable[str] | None = None,
                 baseline_priority: int | None = None) -> None:
        super().__init__(name, devices, baseline_priority, exp_speedup)
        self.noise_level = whole_number(noise_level, "noise_level", 0, 8)

    def is_applicable(self, operation: Operation, network: Network) -> tuple[bool, str]:
        """Returns false and the reason."""
        return False, self._REASON

    def layer(self, reference: bool = False) -> Layer:
        """Raises UnsupportedError with the reason."""
        raise UnsupportedError(f"knob {self.name}: {self._REASON}")


_CLASSES: dict[str, type[ApproxKnob]] = {
    each.__name__: each
    for each in (FP32Baseline, FP16Approx, PromiseSim, PerforateConv2dStride, Conv2dSampling)
}


def _knob(entry: Any, position: int, classes: Mapping[str, type[ApproxKnob]],
          path: str) -> ApproxKnob:
    """Returns the knob of one entry of a file."""
    if not isinstance(entry, dict) or not isinstance(entry.get("class"), str):
        raise CorruptDataError(f"{path}: entry {position} is no object with a key \"class\"")
    arguments = {key: value for key, value in entry.items() if key != "class"}
    if entry["class"] not in classes:
        raise NotFoundError(f"{path}: there is no class of knobs {entry['class']!r}; there are "
                            + ", ".join(sorted(classes)))
    try:
        return classes[entry["class"]](**arguments)
    except (TypeError, ValueError) as failure:
        raise InvalidArgumentError(f"{path}: entry {position}: {failure}") from failure


def get_knobs_from_file(filepath: str | os.PathLike[str] | None = None,
                        extra_name_to_class: Mapping[str, type[ApproxKnob]] | None = None
                        ) -> set[ApproxKnob]:
    """Reads knobs from a file of JSON.

    The file has a list of objects. ``class`` names the knob's class, and the other keys are the
    arguments of its constructor.

    Args:
        filepath: the file; None: PredTuner's 56 knobs. Half have the device ``"cpu"`` and float32,
            half ``"gpu"`` and float16. Each half has a baseline, 18 that leave out rows or columns,
            and 9 that leave out weights. Their expected speedups are those of HPVM's table; for
            float32 PredTuner's own file has the larger ones of float16.
        extra_name_to_class: classes of one's own by the names that the file has for them.

    Raises:
        NotFoundError: the file is missing, or has an unknown class.
        InputOutputError: it cannot be read.
        CorruptDataError: it is no such list.
        InvalidArgumentError: an argument does not fit its knob, two knobs have the same name, or a
            name of ``extra_name_to_class`` is one of this module's.

    Thread safety: any number of threads.
    """
    extra = dict(extra_name_to_class or {})
    taken = sorted(set(extra) & set(_CLASSES))
    if taken:
        raise InvalidArgumentError(f"{', '.join(taken)} are classes of foretune.approx already")
    path = os.fspath(DEFAULT_KNOB_FILE if filepath is None else filepath)
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as failure:
        raise NotFoundError(f"there is no file {path}") from failure
    except OSError as failure:
        raise InputOutputError(f"{path} cannot be read: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise CorruptDataError(f"{path} is no text") from failure
    try:
        entries = json.loads(text)
    except ValueError as failure:
        raise CorruptDataError(f"{path} is no JSON: {failure}") from failure
    if not isinstance(entries, list):
        raise CorruptDataError(f"{path} holds no list of knobs")
    knobs: dict[str, ApproxKnob] = {}
    for position, entry in enumerate(entries):
        knob = _knob(entry, position, {**_CLASSES, **extra}, path)
        if knob.name in knobs:
            raise InvalidArgumentError(f"{path}: two knobs are called {knob.name!r}")
        knobs[knob.name] = knob
    return set(knobs.values())
