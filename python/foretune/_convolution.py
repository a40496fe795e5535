"""Convolutions of NumPy arrays and their gradients, on this CPU.

All tensors have their channels last; spatial axes may be one, two or three:

    input   (n, [d,] [h,] w, c)
    weight  (k, [z,] [y,] x, c / groups)    k filters, those of a group beside each other
    output  (n, [do,] [ho,] wo, k)
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._dispatcher import CpuDispatcher, chosen_dispatcher
from ._errors import InvalidArgumentError, UnsupportedError
from ._model import Model
from .loops import whole_number

Steps = Union[int, Sequence[int]]
Array = npt.NDArray[Any]

# NumPy's names of types, as problems name them.
_DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8"}
_AXES = (("di", "z", "d"), ("hi", "y", "h"), ("wi", "x", "w"))
_MAX_SIZE = 2**31 - 1
# Input shapes that one Convolution keeps packed weights for.
_MAX_LAYERS = 16


def _steps(value: Steps, name: str, rank: int, lowest: int) -> tuple[int, ...]:
    """Returns one number for each spatial axis."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        return (whole_number(value, name, lowest, _MAX_SIZE),) * rank
    if len(value) != rank:
        raise InvalidArgumentError(
            f"{name} has {len(value)} numbers, and there are {rank} spatial axes")
    return tuple(whole_number(step, name, lowest, _MAX_SIZE) for step in value)


def _array(value: Any, name: str) -> Array:
    if not isinstance(value, np.ndarray):
        raise InvalidArgumentError(f"{name} is a NumPy array, not {type(value).__name__}")
    return value


def _shape(value: Any, name: str) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise InvalidArgumentError(f"{name} is a sequence of sizes, not {type(value).__name__}")
    return tuple(whole_number(size, name, 1, _MAX_SIZE) for size in value)


@functools.lru_cache(maxsize=4096)
def _problem(operation: str, input_shape: tuple[int, ...], weight_shape: tuple[int, ...],
             stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...],
             groups: int, dtype: str, weights: str,
             epilogue: str) -> tuple[str, tuple[int, ...]]:
    """Returns the problem's text and the shape of the output."""
    rank = len(input_shape) - 2
    if weight_shape[-1] * groups != input_shape[-1]:
        raise InvalidArgumentError(
            f"the weight has {weight_shape[-1]} channels in {groups} groups, and the input "
            f"{input_shape[-1]}")
    words = [f"conv op={operation} n={input_shape[0]} c={input_shape[-1]} k={weight_shape[0]} "
             f"g={groups}"]
    for axis, (size, filter_size, suffix) in enumerate(_AXES[3 - rank:]):
        words.append(f"{size}={input_shape[axis + 1]} {filter_size}={weight_shape[axis + 1]} "
                     f"stride_{suffix}={stride[axis]} pad_{suffix}={padding[axis]} "
                     f"dilation_{suffix}={dilation[axis]}")
    for size, filter_size, _ in _AXES[1:3 - rank]:
        words.append(f"{size}=1 {filter_size}=1")
    words.append(f"dtype={dtype} weights={weights} epilogue={epilogue}")
    text = _foretune.canonical_problem(" ".join(words))
    points = tuple(
        (size + 2 * pad - step * (length - 1) - 1) // move + 1
        for size, pad, step, length, move in zip(input_shape[1:-1], padding, dilation,
                                                 weight_shape[1:-1], stride))
    return text, (input_shape[0], *points, weight_shape[0])


class _Geometry:
    """The arguments that say how a weight moves over an input, checked."""

    __slots__ = ("dilation", "groups", "padding", "rank", "stride")

    def __init__(self, rank: int, stride: Steps, padding: Steps, dilation: Steps,
                 groups: int) -> None:
        if not 1 <= rank <= 3:
            raise InvalidArgumentError(
                f"a convolution has one to three spatial axes, not {rank}: arrays have images "
                "first and channels last")
        self.rank = rank
        self.stride = _steps(stride, "stride", rank, 1)
        self.padding = _steps(padding, "padding", rank, 0)
        self.dilation = _steps(dilation, "dilation", rank, 1)
        self.groups = whole_number(groups, "groups", 1, _MAX_SIZE)

    def problem(self, operation: str, input_shape: tuple[int, ...],
                weight_shape: tuple[int, ...], dtype: np.dtype[Any], weights: str = "varying",
                epilogue: str = "none") -> tuple[str, tuple[int, ...]]:
        for name, shape in (("input", input_shape), ("weight", weight_shape)):
            if len(shape) != self.rank + 2:
                raise InvalidArgumentError(
                    f"the {name} has {len(shape)} axes, and not {self.rank + 2}")
        if dtype.name not in _DTYPES:
            raise UnsupportedError(f"no kernel computes convolutions of {dtype.name}")
        return _problem(operation, input_shape, weight_shape, self.stride, self.padding,
                        self.dilation, self.groups, _DTYPES[dtype.name], weights, epilogue)


def _operand(value: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns the array without gaps."""
    array = _array(value, name)
    if array.dtype != dtype:
        raise InvalidArgumentError(f"{name} is {array.dtype.name}, and not {dtype.name}")
    if array.shape != shape:
        raise InvalidArgumentError(f"{name} has the shape {array.shape}, and not {shape}")
    return np.ascontiguousarray(array)


def _result(out: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if out is None:
        return np.empty(shape, dtype)
    if _array(out, "out").dtype != dtype or out.shape != shape:
        raise InvalidArgumentError(
            f"out is {out.dtype.name} of the shape {out.shape}, and not {dtype.name} of {shape}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidArgumentError("out cannot be written to, or has gaps between its elements")
    return out


def _epilogue(bias: Any, relu: bool, add: Any) -> str:
    if add is not None and not relu:
        raise InvalidArgumentError("an array is added before a ReLU only: add=... needs relu=True")
    if add is not None:
        return "bias_add_relu"
    return "bias_relu" if relu else "none" if bias is None else "bias"


class ConvDispatcher(CpuDispatcher):
    """Decides which kernel runs a convolution, and runs it.

    Args:
        threads: threads of a convolution; None: all cores of the process.
        measure_top: above 1, the first calls of a problem try this many configs on the caller's
            arrays, and the fastest stays.
        model: a model that was trained on measurements of ``cpu-conv``, or its path. None: the
            family's textbook config runs, unless choices or trials know a better one.
        choices: a data set of ``foretune tune``, ``foretune collect`` or ``save_trials``, whose
            fastest configs are chosen.

    Raises:
        InvalidArgumentError: a number makes no sense; there are fewer cores.
        MismatchError: the model is of another family, the choices are of another machine.
        NotFoundError, CorruptDataError, InputOutputError: a file cannot be read.

    Thread safety: any number of threads; convolutions take turns when they use several threads.
    """

    __slots__ = ()

    def __init__(self, *, threads: int | None = None, measure_top: int = 0,
                 model: Model | str | os.PathLike[str] | None = None,
                 choices: str | os.PathLike[str] | None = None) -> None:
        super().__init__(_foretune.ConvDispatcher, threads, measure_top, model, choices)

    def explain(self, problem: str) -> str:
        """Returns the config that runs a problem (``"conv n=8 c=64 k=64 hi=56 wi=56 y=3 x=3"``),
        and why: ``"default: isa=avx512 ..."``."""
        return self._native.explain(problem)

    def _run(self, problem: str, dtype: np.dtype[Any], input: Array | None,
             weight: Array | None, output: Array | None, bias: Array | None, add: Array | None,
             result: Array) -> Array:
        _check_type(self._native, problem, dtype)
        self._native.run(problem, input, weight, output, bias, add, result)
        return result


def _check_type(native: _foretune.ConvDispatcher, problem: str, dtype: np.dtype[Any]) -> None:
    """Raises the dispatcher's refusal of a type, or that of this module."""
    if dtype != np.float32:
        native.explain(problem)
        raise UnsupportedError(f"convolutions of arrays are float32, not {dtype.name}")


_chosen = functools.partial(chosen_dispatcher, ConvDispatcher, "ConvDispatcher")


def conv(input: Array, weight: Array, bias: Array | None = None, *, stride: Steps = 1,
         padding: Steps = 0, dilation: Steps = 1, groups: int = 1, relu: bool = False,
         add: Array | None = None, threads: int | None = None,
         dispatcher: ConvDispatcher | None = None, out: Array | None = None) -> Array:
    """Returns the convolution of an input with a weight, channels last::

        y = foretune.conv(x, w, b, stride=2, padding=1, relu=True)    # x (n, h, w, c), w (k, y, x, c)

    Args:
        input: ``(n, [d,] [h,] w, c)``, float32. An array with gaps is copied.
        weight: ``(k, [z,] [y,] x, c / groups)``. It is packed in every call; ``Convolution`` packs
            it once.
        bias: ``(k,)``, added to each filter's points.
        stride, padding, dilation: a number, or one for each spatial axis. Zeros are padded on
            either side.
        groups: parts of the channels that are convolved alone.
        relu: negative results become 0.
        add: an array of the output's shape, added before the ReLU; needs ``relu=True``.
        threads: None: all cores of the process. One dispatcher is kept for each number.
        dispatcher: decides which kernel runs, instead of the one for ``threads``.
        out: array for the result; None makes one. It must not overlap another.

    Raises:
        InvalidArgumentError: types or shapes do not fit each other, or a number makes no sense.
        UnsupportedError: no kernel computes this type.

    Thread safety: any number of threads; other Python threads run meanwhile.
    """
    geometry = _Geometry(_array(input, "input").ndim - 2, stride, padding, dilation, groups)
    dtype = input.dtype
    weight_shape = _array(weight, "weight").shape
    text, shape = geometry.problem("forward", input.shape, weight_shape, dtype,
                                   epilogue=_epilogue(bias, relu, add))
    chosen = _chosen(threads, dispatcher)
    if bias is None and relu:
        bias = np.zeros(weight_shape[0], dtype)
    return chosen._run(
        text, dtype, _operand(input, "input", input.shape, dtype),
        _operand(weight, "weight", weight_shape, dtype), None,
        None if bias is None else _operand(bias, "bias", weight_shape[:1], dtype),
        None if add is None else _operand(add, "add", shape, dtype), _result(out, shape, dtype))


def conv_input_gradient(output_gradient: Array, weight: Array, input_shape: Sequence[int], *,
                        stride: Steps = 1, padding: Steps = 0, dilation: Steps = 1,
                        groups: int = 1, threads: int | None = None,
                        dispatcher: ConvDispatcher | None = None,
                        out: Array | None = None) -> Array:
    """Returns the gradient of a convolution's input.

    Args:
        output_gradient: the gradient of the output, of its shape.
        input_shape: the shape of the input; several may lead to one output.

    The other arguments, and what is raised, are those of ``conv``.
    """
    shape = _shape(input_shape, "input_shape")
    geometry = _Geometry(len(shape) - 2, stride, padding, dilation, groups)
    dtype = _array(output_gradient, "output_gradient").dtype
    weight_shape = _array(weight, "weight").shape
    text, output_shape = geometry.problem("backward_data", shape, weight_shape, dtype)
    return _chosen(threads, dispatcher)._run(
        text, dtype, None, _operand(weight, "weight", weight_shape, dtype),
        _operand(output_gradient, "output_gradient", output_shape, dtype), None, None,
        _result(out, shape, dtype))


def conv_weight_gradient(input: Array, output_gradient: Array, filter_shape: Sequence[int], *,
                         stride: Steps = 1, padding: Steps = 0, dilation: Steps = 1,
                         groups: int = 1, threads: int | None = None,
                         dispatcher: ConvDispatcher | None = None,
                         out: Array | None = None) -> Array:
    """Returns the gradient of a convolution's weight.

    Args:
        output_gradient: the gradient of the output, of its shape.
        filter_shape: the points of a filter, ``([z,] [y,] x)``.

    The other arguments, and what is raised, are those of ``conv``.
    """
    geometry = _Geometry(_array(input, "input").ndim - 2, stride, padding, dilation, groups)
    dtype = input.dtype
    points = _shape(filter_shape, "filter_shape")
    channels, rest = divmod(input.shape[-1], geometry.groups)
    if rest != 0:
        raise InvalidArgumentError(
            f"the input's {input.shape[-1]} channels are no multiple of {geometry.groups} groups")
    filters = _array(output_gradient, "output_gradient").shape[-1:]
    weight_shape = (*filters, *points, channels)
    text, output_shape = geometry.problem("backward_weight", input.shape, weight_shape, dtype)
    return _chosen(threads, dispatcher)._run(
        text, dtype, _operand(input, "input", input.shape, dtype), None,
        _operand(output_gradient, "output_gradient", output_shape, dtype), None, None,
        _result(out, weight_shape, dtype))


class Convolution:
    """A convolution whose weight stays the same: it is packed once for each shape of the input.

        layer = foretune.Convolution(w, b, padding=1, relu=True)
        y = layer(x)

    Arguments and exceptions are those of ``conv``. The weight is copied: changes of the array make
    no difference. Packed weights are kept for the last 16 shapes of the input.

    Thread safety: any number of threads.
    """

    __slots__ = ("_bias", "_dispatcher", "_geometry", "_layers", "_lock", "_relu", "_weight")

    def __init__(self, weight: Array, bias: Array | None = None, *, stride: Steps = 1,
                 padding: Steps = 0, dilation: Steps = 1, groups: int = 1, relu: bool = False,
                 threads: int | None = None, dispatcher: ConvDispatcher | None = None) -> None:
        self._geometry = _Geometry(_array(weight, "weight").ndim - 2, stride, padding, dilation,
                                   groups)
        self._weight = np.array(weight, order="C")
        if bias is None and relu:
            bias = np.zeros(weight.shape[0], weight.dtype)
        self._bias = (None if bias is None
                      else _operand(bias, "bias", weight.shape[:1], weight.dtype).copy())
        self._relu = bool(relu)
        self._dispatcher = _chosen(threads, dispatcher)
        self._layers: dict[str, _foretune.ConvLayer] = {}
        self._lock = threading.Lock()

    def __call__(self, input: Array, *, add: Array | None = None,
                 out: Array | None = None) -> Array:
        """Returns the convolution of an input; ``add`` and ``out`` are those of ``conv``."""
        dtype = self._weight.dtype
        input = _operand(input, "input", _array(input, "input").shape, dtype)
        text, shape = self._geometry.problem(
            "forward", input.shape, self._weight.shape, dtype, weights="constant",
            epilogue=_epilogue(self._bias, self._relu, add))
        self._layer(text, dtype).run(
            input, None, self._bias, None if add is None else _operand(add, "add", shape, dtype),
            result := _result(out, shape, dtype))
        return result

    def _layer(self, problem: str, dtype: np.dtype[Any]) -> _foretune.ConvLayer:
        with self._lock:
            known = self._layers.get(problem)
        if known is not None:
            return known
        native = self._dispatcher._native
        _check_type(native, problem, dtype)
        made = native.layer(problem)
        made.pack(self._weight)
        with self._lock:
            while len(self._layers) >= _MAX_LAYERS:
                del self._layers[next(iter(self._layers))]
            self._layers[problem] = made
        return made
