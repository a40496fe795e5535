"""``convolutions``: a model picks cuDNN's engines for PyTorch's convolutions on NVIDIA's GPUs.

While a session is open, kernels of ours stand in the dispatcher for those of
``aten::convolution`` and ``aten::convolution_backward`` on CUDA, below autograd and autocast. Eager
calls, captured graphs and Inductor's generated code all arrive there. Each problem is looked up by
the shapes, strides and types of its tensors; what has no plan takes the kernel that PyTorch had.
Imports torch.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Optional, Union

import torch

from .._errors import Error, InvalidArgumentError, UnsupportedError
from . import _cudnn

_TYPES = {torch.float32: 0, torch.float16: 2, torch.bfloat16: 9}
# Kinds of calls kept with their plans; beyond this number, the oldest are forgotten.
MOST_PLANS = 16384
# Decisions kept for the report.
_MOST_DECISIONS = 4096

_get_stream = torch._C._cuda_getCurrentRawStream if hasattr(
    torch._C, "_cuda_getCurrentRawStream") else None


@dataclass(frozen=True)
class Decision:
    """The decision about one convolution, or one gradient of it."""

    operation: str
    """``forward``, ``input gradient``, ``weight gradient``"""
    problem: str
    choice: str | None
    """The engine, and why it is not the model's first; None when it was left to PyTorch."""
    by_model: bool
    reason: str | None
    """Why it was left to PyTorch; None when it was not."""


class _Device:
    """The parts of PyTorch that a run on the device needs; tests provide their own."""

    key = "CUDA"
    current = staticmethod(getattr(torch._C, "_cuda_getDevice", None))
    guard = staticmethod(torch.cuda.device)
    stream = staticmethod(_get_stream)
    allocate = staticmethod(getattr(torch._C, "_cuda_cudaCachingAllocator_raw_alloc", None))
    free = staticmethod(getattr(torch._C, "_cuda_cudaCachingAllocator_raw_delete", None))
    is_capturing = staticmethod(getattr(torch._C, "_cuda_isCurrentStreamCapturing", None))

    @staticmethod
    def takes(*arguments: Any) -> bool:
        """Returns True when PyTorch itself would give the convolution to cuDNN. The arguments are
        those of ``aten::convolution`` and the sizes of the bias."""
        return bool(torch._C._select_conv_backend(*arguments) == torch._C._ConvBackend.Cudnn)

    @staticmethod
    def memory_format(input: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
        return torch._C._conv_determine_backend_memory_format(input, weight,
                                                              torch._C._ConvBackend.Cudnn)


class _Step:
    """One run of a plan: where its result lies."""

    __slots__ = ("plan", "pointer", "workspace", "is_settled", "shape", "strides")

    def __init__(self, plan: _cudnn.Plan, shape: Sequence[int], strides: Sequence[int]) -> None:
        self.plan = plan
        self.pointer = plan.pointer
        self.workspace, self.is_settled = plan.needs()
        self.shape = tuple(shape)
        self.strides = tuple(strides)


class _Entry:
    """The plans of one kind of call; without any it is left to PyTorch."""

    __slots__ = ("format", "converts", "steps", "bias_shape")

    def __init__(self) -> None:
        self.format = torch.contiguous_format
        # For each operand, True when it has to be brought into the format.
        self.converts: tuple[bool, ...] = ()
        self.steps: list[Optional[_Step]] = []
        self.bias_shape: list[int] = []


def _packed_strides(shape: Sequence[int], channels_last: bool) -> list[int]:
    """Returns the strides that a tensor of PyTorch's has in a format."""
    order = [1, *range(len(shape) - 1, 1, -1), 0] if channels_last else range(len(shape) - 1, -1, -1)
    strides, stride = [0] * len(shape), 1
    for axis in order:
        strides[axis] = stride
        stride *= max(1, shape[axis])
    return strides


def _each(values: Sequence[int], count: int) -> list[int]:
    return list(values) * count if len(values) == 1 else list(values)


class Convolutions:
    """An open session of ``convolutions``: a context manager, or for the whole process by
    ``install()`` and ``uninstall()``.

    Thread safety: the kernels belong to the process and serve all its threads. Sessions may be
    nested; the one installed last decides.
    """

    def __init__(self, planner: _cudnn.Planner, device: Any = _Device) -> None:
        self._planner = planner
        self._device = device
        self._run = planner.functions.run
        self._entries: dict[Any, _Entry] = {}
        # Graphs may hold kernels of these plans.
        self._captured: set[_Entry] = set()
        self._lock = threading.Lock()
        # Operation, problem, plan, and the reason why there is none.
        self._decisions: list[tuple[str, str, _cudnn.Plan | None, str | None]] = []
        self._counts: Counter[str] = Counter()

    @property
    def decisions(self) -> list[Decision]:
        """The decisions so far, one for each kind of call and operation, of the first 4,096."""
        with self._lock:
            decisions = list(self._decisions)
        found = []
        for operation, problem, plan, reason in decisions:
            choice = None if plan is None else plan.choice
            found.append(Decision(operation, problem, choice and choice.text,
                                  choice is not None and choice.by_model, reason))
        return found

    @property
    def is_settled(self) -> bool:
        """True when no trial is left for any of the ``decisions``."""
        with self._lock:
            plans = [plan for _, _, plan, _ in self._decisions if plan is not None]
        return all(plan.needs()[1] for plan in plans)

    def report(self) -> str:
        """Returns how many kinds of convolutions were decided by whom, and why."""
        with self._lock:
            lines = [f"{count:6} {what}" for what, count in self._counts.most_common()]
        return "\n".join(["kinds of convolutions:", *lines]) if lines else "no convolution ran"

    def install(self) -> Convolutions:
        """Opens the session for the process."""
        _install(self)
        return self

    def save_trials(self) -> None:
        """Appends what was measured since the last call to the file that ``trials`` named.

        Raises:
            InvalidArgumentError: no file was named.
            MismatchError: the file is of another machine or family.
            InputOutputError: it cannot be written.
        """
        self._planner.save()

    def uninstall(self) -> None:
        """Closes it. Graphs that were captured meanwhile go on with its plans."""
        _uninstall(self)

    __enter__ = install

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.uninstall()

    # -- decisions -------------------------------------------------------------------------------

    def _note(self, operation: str, problem: str, plan: _cudnn.Plan | None,
              reason: str | None) -> None:
        by = reason
        if plan is not None:
            choice = plan.choice
            by = ("by measuring" if not choice.is_settled else
                  "by the model" if choice.by_model else "by cuDNN")
        with self._lock:
            self._counts[f"{operation}: {by}"] += 1
            if len(self._decisions) < _MOST_DECISIONS:
                self._decisions.append((operation, problem, plan, reason))

    def _keep(self, key: Any, entry: _Entry) -> None:
        with self._lock:
            while len(self._entries) >= MOST_PLANS:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = entry

    def _leave(self, key: Any, operation: str, problem: str, reason: str) -> _Entry:
        entry = _Entry()
        self._keep(key, entry)
        self._note(operation, problem, None, reason)
        return entry

    def _step(self, entry: _Entry, operation: int, name: str, result: Sequence[int],
              input: torch.Tensor, weight: torch.Tensor, moves: Sequence[Sequence[int]],
              groups: int, flags: Any) -> _Step:
        channels_last = entry.format != torch.contiguous_format
        stride, padding, dilation = moves
        described = _cudnn.problem(
            operation, _TYPES[input.dtype], flags[3], channels_last, flags[1], tuple(input.shape),
            tuple(weight.shape), padding, stride, dilation, groups)
        with self._device.guard(input.device):
            plan = self._planner.prepare(described)
        self._note(name, _describe(input, weight, moves, groups), plan, None)
        return _Step(plan, result, _packed_strides(result, channels_last))

    def _prepare(self, key: Any, operation: str, tensors: Sequence[torch.Tensor],
                 arguments: Sequence[Any], wanted: Sequence[bool], flags: Any) -> _Entry:
        """Makes the plans of a kind of call that was not seen before."""
        input, weight, bias, stride, padding, dilation, transposed, _, groups, _ = arguments
        problem = _describe(input, weight, (stride, padding, dilation), groups)
        reason = _unsupported(tensors, transposed, flags) or _misfit(input, weight, bias, groups)
        if reason is None and not self._device.takes(*arguments):
            reason = "PyTorch does not give it to cuDNN"
        if reason is not None:
            return self._leave(key, operation, problem, reason)
        entry = _Entry()
        spatial = input.dim() - 2
        moves = [_each(values, spatial) for values in (stride, padding, dilation)]
        if spatial > 1:
            entry.format = self._device.memory_format(input, weight)
        entry.converts = tuple(not tensor.is_contiguous(memory_format=entry.format)
                               for tensor in tensors)
        try:
            if operation == "forward":
                shape = [input.shape[0], weight.shape[0],
                         *((size + 2 * pad - step * (length - 1) - 1) // move + 1
                           for size, length, move, pad, step in zip(input.shape[2:],
                                                                    weight.shape[2:], *moves))]
                entry.bias_shape = [1, -1, *[1] * spatial]
                entry.steps = [self._step(entry, _cudnn.FORWARD, operation, shape, input, weight,
                                          moves, groups, flags)]
            else:
                entry.steps = [
                    self._step(entry, number, name, tensor.shape, input, weight, moves, groups,
                               flags) if is_wanted else None
                    for number, name, tensor, is_wanted in (
                        (_cudnn.BACKWARD_DATA, "input gradient", input, wanted[0]),
                        (_cudnn.BACKWARD_WEIGHT, "weight gradient", weight, wanted[1]))]
        except Error as error:
            return self._leave(key, operation, problem, str(error))
        if flags[4] and not any(step and (not step.is_settled or step.plan.choice.by_model)
                                for step in entry.steps):
            return self._leave(key, operation, problem, "PyTorch's benchmark mode decides")
        self._keep(key, entry)
        return entry

    # -- runs ------------------------------------------------------------------------------------

    def _execute(self, step: _Step, like: torch.Tensor, operands: Sequence[torch.Tensor | None],
                 stream: int) -> tuple[torch.Tensor, int]:
        """Returns the result and the library's status. `operands` are x, w and y; the one that is
        missing is computed."""
        made = like.new_empty_strided(step.shape, step.strides)
        device = self._device
        if not step.is_settled:
            step.workspace, step.is_settled = step.plan.needs()
        workspace = device.allocate(step.workspace, stream) if step.workspace else None
        x, w, y = (made if operand is None else operand for operand in operands)
        status = self._run(step.pointer, None, stream, x.data_ptr(), w.data_ptr(), y.data_ptr(),
                           workspace, step.workspace)
        if workspace is not None:
            device.free(workspace)  # what follows on the stream may have it
        return made, status

    def _refused(self, key: Any, operation: str, arguments: Sequence[Any], status: int) -> None:
        """Leaves a kind of call to PyTorch after a refusal to run; not where only the addresses
        did not fit."""
        if status != _cudnn.WRONG_ARGUMENTS:
            input, weight, _, *moves = arguments[:6]
            self._leave(key, operation, _describe(input, weight, moves, arguments[8]),
                        f"the library refused to run it ({status})")

    def forward(self, keys: Any, *arguments: Any) -> torch.Tensor:
        """``aten::convolution`` on the device."""
        input, weight, bias, stride, padding, dilation, transposed, _, groups = arguments
        device = self._device
        number = input.get_device()
        flags = _flags(input)
        key = (input.shape, input.stride(), weight.shape, weight.stride(), input.dtype,
               weight.dtype, None if bias is None else (bias.shape, bias.dtype), number,
               tuple(stride), tuple(padding), tuple(dilation), groups, transposed, flags)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._prepare(key, "forward", (input, weight), (*arguments, None), (), flags)
        if not entry.steps:
            return _original.forward(keys, *arguments)
        if number != device.current():
            with device.guard(number):
                return self._forward(keys, key, entry, arguments)
        return self._forward(keys, key, entry, arguments)

    def _forward(self, keys: Any, key: Any, entry: _Entry, arguments: Any) -> torch.Tensor:
        input, weight, bias = arguments[:3]
        if self._device.is_capturing():
            self._captured.add(entry)
        x, w = input, weight
        if entry.converts[0]:
            x = input.contiguous(memory_format=entry.format)
        if entry.converts[1]:
            w = weight.contiguous(memory_format=entry.format)
        step = entry.steps[0]
        assert step is not None
        made, status = self._execute(step, input, (x, w, None),
                                     self._device.stream(input.get_device()))
        if status != 0:
            self._refused(key, "forward", arguments, status)
            return _original.forward(keys, *arguments)
        return made if bias is None else made.add_(bias.view(entry.bias_shape))

    def backward(self, keys: Any, *arguments: Any) -> tuple[torch.Tensor | None, ...]:
        """``aten::convolution_backward`` on the device."""
        (gradient, input, weight, sizes, stride, padding, dilation, transposed, extra, groups,
         mask) = arguments
        device = self._device
        number = input.get_device()
        flags = _flags(input)
        key = (gradient.stride(), input.shape, input.stride(), weight.shape, weight.stride(),
               gradient.dtype, input.dtype, weight.dtype, number, tuple(stride), tuple(padding),
               tuple(dilation), groups, transposed, flags, mask[0], mask[1])
        entry = self._entries.get(key)
        if entry is None:
            entry = self._prepare(key, "backward", (gradient, input, weight),
                                  (input, weight, None, stride, padding, dilation, transposed,
                                   extra, groups, sizes), mask, flags)
        if not entry.steps:
            return _original.backward(keys, *arguments)
        if number != device.current():
            with device.guard(number):
                return self._backward(keys, key, entry, arguments)
        return self._backward(keys, key, entry, arguments)

    def _backward(self, keys: Any, key: Any, entry: _Entry,
                  arguments: Any) -> tuple[torch.Tensor | None, ...]:
        gradient, input, weight = arguments[:3]
        mask = arguments[10]
        if self._device.is_capturing():
            self._captured.add(entry)
        y, x, w = gradient, input, weight
        if entry.converts[0]:
            y = gradient.contiguous(memory_format=entry.format)
        if mask[1] and entry.converts[1]:
            x = input.contiguous(memory_format=entry.format)
        if mask[0] and entry.converts[2]:
            w = weight.contiguous(memory_format=entry.format)
        stream = self._device.stream(input.get_device())
        results: list[torch.Tensor | None] = []
        for step, operands in zip(entry.steps, ((None, w, y), (x, None, y))):
            if step is None:
                results.append(None)
                continue
            made, status = self._execute(step, input, operands, stream)
            if status != 0:
                self._refused(key, "backward", arguments[1:], status)
                return _original.backward(keys, *arguments)
            results.append(made)
        bias = gradient.sum([0, *range(2, gradient.dim())]) if mask[2] else None
        return results[0], results[1], bias


def _flags(input: torch.Tensor) -> tuple[Any, ...]:
    """Returns PyTorch's settings on which the choice depends: cuDNN is on, determinism, that of all
    algorithms, tf32, benchmark mode."""
    c = torch._C
    deterministic = c._get_deterministic_algorithms()
    return (c._get_cudnn_enabled(), c._get_cudnn_deterministic() or deterministic, deterministic,
            input.dtype is torch.float32 and _allows_tf32(), c._get_cudnn_benchmark())


def _allows_tf32() -> bool:
    getter = getattr(torch._C, "_get_fp32_precision_getter", None)
    return bool(torch._C._get_cudnn_allow_tf32() if getter is None
                else getter("cuda", "conv") == "tf32")


def _unsupported(tensors: Sequence[torch.Tensor], transposed: bool, flags: Any) -> str | None:
    """Returns why a call is left to PyTorch whatever the model says."""
    first = tensors[0]
    if transposed:
        return "it is transposed"
    if not flags[0]:
        return "cuDNN is off"
    if first.dim() not in (3, 4, 5) or any(tensor.dim() != first.dim() for tensor in tensors):
        return "it has other than one to three dimensions"
    if first.dtype not in _TYPES or any(tensor.dtype != first.dtype for tensor in tensors):
        return "its types are others than float32, float16 and bfloat16, or differ"
    if any(tensor.numel() == 0 for tensor in tensors):
        return "it is empty"
    if any(tensor.device != first.device for tensor in tensors):
        return "its tensors are on several devices"
    return None


def _misfit(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
            groups: int) -> str | None:
    """Returns a reason for tensors that do not belong together: PyTorch's kernel has the words for
    it."""
    filters, channels = weight.shape[:2]
    fits = input.shape[1] == channels * groups and filters % groups == 0 and (
        bias is None or (bias.shape == (filters,) and bias.dtype == input.dtype
                         and bias.device == input.device))
    return None if fits else "its tensors do not fit each other"


def _describe(input: torch.Tensor, weight: torch.Tensor, moves: Sequence[Sequence[int]],
              groups: int) -> str:
    def text(values: Sequence[int]) -> str:
        return "x".join(map(str, values))

    stride, padding, dilation = moves
    return (f"{text(input.shape)} by {text(weight.shape)} stride {text(stride)} padding "
            f"{text(padding)} dilation {text(dilation)} groups {groups} "
            f"{str(input.dtype).removeprefix('torch.')}")


# -- the kernels in PyTorch's dispatcher -----------------------------------------------------------


class _Original:
    """The kernels that PyTorch had."""

    def __init__(self, key: str) -> None:
        self._forward = torch.library.get_kernel("aten::convolution", key)
        self._backward = torch.library.get_kernel("aten::convolution_backward", key)

    def forward(self, keys: Any, *arguments: Any) -> Any:
        return self._forward.call_boxed(keys, *arguments)

    def backward(self, keys: Any, *arguments: Any) -> Any:
        return self._backward.call_boxed(keys, *arguments)


_lock = threading.RLock()
_installed: list[Convolutions] = []
_library: Any = None
_original: Any = None


def _register(session: Convolutions) -> None:
    """Puts a session's kernels into the dispatcher, in place of another one's."""
    global _library
    if _library is not None:
        _library._destroy()
    _library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        # PyTorch warns of kernels that take the place of its own.
        warnings.filterwarnings("ignore", message="(?s).*[Oo]verriding a previously registered kernel")
        for name, kernel in (("convolution", session.forward),
                             ("convolution_backward", session.backward)):
            _library.impl(name, kernel, session._device.key, with_keyset=True,
                          allow_override=True)


def _install(session: Convolutions) -> None:
    global _original
    with _lock:
        if _original is None:
            if not hasattr(torch.library, "get_kernel"):
                raise UnsupportedError(f"PyTorch {torch.__version__} does not say which kernel it "
                                       "has for an operator; 2.11 does")
            _original = _Original(session._device.key)
        _installed.append(session)
        _register(session)


def _uninstall(session: Convolutions) -> None:
    global _library
    with _lock:
        if session not in _installed:
            raise InvalidArgumentError("this session is not installed")
        _installed.reverse()
        _installed.remove(session)
        _installed.reverse()
        if _installed:
            _register(_installed[-1])
        elif _library is not None:
            _library._destroy()
            _library = None


def convolutions(model: Union[str, os.PathLike[str], Any, None] = None, *, margin: float = 0.02,
                 fast: bool = False, measure: int = 0, trials: str | os.PathLike[str] | None = None,
                 compiles: bool = False, share: float = 0.05,
                 workspace_bytes: int = 1 << 30) -> Convolutions:
    """Makes PyTorch's convolutions on NVIDIA's GPUs run with the engine of cuDNN that a model
    picks.

        with foretune.torch.convolutions("conv.ftm") as session:
            train(network)
        print(session.report())

        foretune.torch.convolutions("conv.ftm").install()      # for the whole process

    Forward passes and both gradients in float32 (tf32 where PyTorch allows it), float16 and
    bfloat16, of one to three dimensions. Everything else, and whatever PyTorch itself does not
    give to cuDNN, takes PyTorch's kernel. Where the model abstains, the first answer of cuDNN's
    heuristic runs, or what benchmark mode finds where it is on.

    Args:
        model: a model file or a ``foretune.Model`` that was trained on data of the family
            ``cudnn``. Without one, the models shipped for the device and this version of cuDNN, if there
            are any.
        margin: gain over the heuristic's first answer, as predicted, below which that runs.
        fast: asks the model's fast mode first, for which a new problem is a matter of microseconds.
            It knows no margin.
        measure: how many engines are tried in the first calls of each convolution, 8 for example:
            the model's best and cuDNN's first answer. Events on the stream time them and no call
            waits; then the fastest stays. Six calls are enough, or four for each engine where one
            takes over a millisecond. 0 and 1 measure nothing. Results of different engines are
            rounded differently, so nothing is measured where PyTorch is told to be deterministic.
        share: the share of the time that trials may take, with the making of their engines. Until
            they have their turn, cuDNN's first answer runs. 1: the first call of each convolution
            makes its engines, and trials begin at once.
        trials: a data set (``.ftd``) with what earlier processes measured, whose fastest engines
            run; ``save_trials()`` appends to it. It need not exist.
        compiles: also picks engines that compile their kernel for each problem, for up to a
            second; up to two of them are tried.
        workspace_bytes: largest workspace of a pick; it comes from PyTorch's allocator.

    Raises:
        NotFoundError, CorruptDataError, MismatchError: the model cannot be used.
        UnsupportedError: there is no driver or no cuDNN, or this PyTorch lacks what is needed.
    """
    if not 0 <= margin < float("inf"):
        raise InvalidArgumentError(f"a margin is a number from 0, not {margin}")
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"a share lies above 0 and is at most 1, not {share}")
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # makes the context, with which the planner makes its handles
    with contextlib.ExitStack() as stack:
        if model is not None and not isinstance(model, (str, os.PathLike)):
            file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".ftm"))
            model.save(file.name)
            model = file.name
        return Convolutions(_cudnn.Planner(None if model is None else os.fspath(model), margin,
                                           fast, compiles, workspace_bytes, measure,
                                           None if trials is None else os.fspath(trials), share))
