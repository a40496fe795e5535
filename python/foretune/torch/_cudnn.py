"""The C functions of ``foretune/dispatch/cudnn_convolution.h``, called through ctypes.

Plans run without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import _errors

FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT = range(3)
WRONG_ARGUMENTS = 2000
"""``run`` returns this for operands that are not aligned to 16 bytes."""

_CODES = {1: _errors.InvalidArgumentError, 2: _errors.NotFoundError, 3: _errors.CorruptDataError,
          4: _errors.MismatchError, 5: _errors.UnsupportedError, 6: _errors.InputOutputError}
_MESSAGE_BYTES = 1024


class Problem(ctypes.Structure):
    """``foretune_cudnn_problem``"""

    _fields_ = [("operation", ctypes.c_int), ("type", ctypes.c_int), ("tf32", ctypes.c_int),
                ("channels_last", ctypes.c_int), ("deterministic", ctypes.c_int),
                ("spatial", ctypes.c_int), ("batch", ctypes.c_int64),
                ("channels", ctypes.c_int64), ("filters", ctypes.c_int64),
                ("groups", ctypes.c_int64), ("input", ctypes.c_int64 * 3),
                ("filter", ctypes.c_int64 * 3), ("padding", ctypes.c_int64 * 3),
                ("stride", ctypes.c_int64 * 3), ("dilation", ctypes.c_int64 * 3)]


class _Options(ctypes.Structure):
    _fields_ = [("model_path", ctypes.c_char_p), ("cudnn_library", ctypes.c_char_p),
                ("driver_library", ctypes.c_char_p), ("margin", ctypes.c_double),
                ("fast", ctypes.c_int), ("compiles", ctypes.c_int),
                ("workspace_limit", ctypes.c_size_t), ("measure_top", ctypes.c_int),
                ("trials_path", ctypes.c_char_p), ("trial_share", ctypes.c_double)]


class _Facts(ctypes.Structure):
    _fields_ = [("workspace_bytes", ctypes.c_size_t), ("engine", ctypes.c_int),
                ("deterministic", ctypes.c_int), ("is_models_pick", ctypes.c_int),
                ("is_settled", ctypes.c_int)]


_POINTER = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "open_with": (ctypes.c_int, ctypes.POINTER(_Options), _OUT, ctypes.c_char_p, ctypes.c_size_t),
    "prepare": (ctypes.c_int, _POINTER, ctypes.POINTER(Problem), _OUT, ctypes.c_char_p,
                ctypes.c_size_t),
    "plan_facts": (_Facts, _POINTER),
    "plan_text": (ctypes.c_size_t, _POINTER, ctypes.c_char_p, ctypes.c_size_t),
    "run": (ctypes.c_int, *[_POINTER] * 7, ctypes.c_size_t),
    "release": (None, _POINTER),
    "save": (ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_size_t),
}


def _address(name: str) -> int:
    """Returns where a function is: in the package's module, or in the library that
    ``FORETUNE_DISPATCH_LIBRARY`` names (``libforetune_dispatch.so``)."""
    library = os.environ.get("FORETUNE_DISPATCH_LIBRARY")
    if library:
        function = getattr(ctypes.CDLL(library), name)
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    from .. import _foretune

    return int(_foretune.cudnn_functions()[name])


class Functions:
    """The functions, found once."""

    def __init__(self) -> None:
        for name, signature in _SIGNATURES.items():
            prototype = ctypes.CFUNCTYPE(*signature)
            setattr(self, name, prototype(_address(f"foretune_cudnn_{name}")))

    open_with: Any
    prepare: Any
    plan_facts: Any
    plan_text: Any
    run: Any
    release: Any
    save: Any


def _checked(code: int, message: Any) -> None:
    if code != 0:
        raise _CODES.get(code, _errors.InternalError)(message.value.decode(errors="replace"))


@dataclass(frozen=True)
class Choice:
    """The engine that runs a convolution, and why."""

    engine: int
    workspace_bytes: int
    deterministic: bool
    by_model: bool
    """False: cuDNN's heuristic chose."""
    text: str
    is_settled: bool = True
    """False while trials go on. Then the workspace is the most that the next run may need."""


class Plan:
    """A plan, released with this object."""

    def __init__(self, functions: Functions, pointer: int) -> None:
        self._functions = functions
        self.pointer = pointer

    @property
    def choice(self) -> Choice:
        """The engine that runs now; another one may when trials have ended."""
        facts = self._functions.plan_facts(self.pointer)
        text = ctypes.create_string_buffer(_MESSAGE_BYTES)
        self._functions.plan_text(self.pointer, text, _MESSAGE_BYTES)
        return Choice(facts.engine, facts.workspace_bytes, bool(facts.deterministic),
                      bool(facts.is_models_pick), text.value.decode(errors="replace"),
                      bool(facts.is_settled))

    def needs(self) -> tuple[int, bool]:
        """Returns the bytes of workspace of the next run, and False while trials go on."""
        facts = self._functions.plan_facts(self.pointer)
        return facts.workspace_bytes, bool(facts.is_settled)

    def __del__(self) -> None:
        self._functions.release(self.pointer)


class Planner:
    """``foretune_cudnn``. It lives until the process ends, because plans may outlive their
    session in graphs."""

    def __init__(self, model_path: str | None, margin: float, fast: bool, compiles: bool,
                 workspace_bytes: int, measure: int, trials: str | None,
                 share: float) -> None:
        self.functions = Functions()
        options = _Options(model_path=None if model_path is None else os.fsencode(model_path),
                           margin=margin, fast=int(fast), compiles=int(compiles),
                           workspace_limit=workspace_bytes, measure_top=measure,
                           trials_path=None if trials is None else os.fsencode(trials),
                           trial_share=share)
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        opened = ctypes.c_void_p()
        _checked(self.functions.open_with(ctypes.byref(options), ctypes.byref(opened), message,
                                          _MESSAGE_BYTES), message)
        self._pointer = opened.value

    def save(self) -> None:
        """Appends what trials measured since the last call to the file of trials."""
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        _checked(self.functions.save(self._pointer, message, _MESSAGE_BYTES), message)

    def prepare(self, problem: Problem) -> Plan:
        """Raises UnsupportedError for a convolution that cuDNN does not run."""
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        plan = ctypes.c_void_p()
        _checked(self.functions.prepare(self._pointer, ctypes.byref(problem), ctypes.byref(plan),
                                        message, _MESSAGE_BYTES), message)
        return Plan(self.functions, plan.value or 0)


def problem(operation: int, type: int, tf32: bool, channels_last: bool, deterministic: bool,
            input: Sequence[int], weight: Sequence[int], padding: Sequence[int],
            stride: Sequence[int], dilation: Sequence[int], groups: int) -> Problem:
    """Returns the problem of tensors ``(batch, channels, ...)`` and ``(filters, channels / groups,
    ...)``."""
    made = Problem(operation=operation, type=type, tf32=int(tf32),
                   channels_last=int(channels_last), deterministic=int(deterministic),
                   spatial=len(input) - 2, batch=input[0], channels=input[1], filters=weight[0],
                   groups=groups)
    for numbers, values in ((made.input, input[2:]), (made.filter, weight[2:]),
                            (made.padding, padding), (made.stride, stride),
                            (made.dilation, dilation)):
        numbers[:len(values)] = values
    return made
