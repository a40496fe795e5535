"""Convolutions as operators of PyTorch on the CPU, with our kernels. Imports torch.

Operators take tensors in PyTorch's layout, ``(n, c, ...)``. They compute in channels last: a tensor
whose memory format is ``torch.channels_last`` is used where it is, another one is copied, and results
have that format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import torch

from .. import _convolution
from .._convolution import Convolution

Steps = Union[int, Sequence[int]]


def _threads() -> int:
    return min(torch.get_num_threads(), len(os.sched_getaffinity(0)))


def _last(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor with its channels last, copied only where they are not there in memory."""
    return tensor.detach().movedim(1, -1).contiguous()


def _empty_last(like: torch.Tensor, shape: Sequence[Any]) -> torch.Tensor:
    """Returns a new tensor of a shape ``(n, c, ...)``, in channels last."""
    return like.new_empty((shape[0], *shape[2:], shape[1])).movedim(-1, 1)


def _output_shape(input_shape: Sequence[Any], weight_shape: Sequence[Any], stride: Sequence[int],
                  padding: Sequence[int], dilation: Sequence[int]) -> list[Any]:
    return [input_shape[0], weight_shape[0],
            *((size + 2 * pad - step * (length - 1) - 1) // move + 1
              for size, pad, step, length, move in zip(input_shape[2:], padding, dilation,
                                                       weight_shape[2:], stride))]


_MOVES = "int[] stride, int[] padding, int[] dilation, int groups"


@torch.library.custom_op("foretune::conv", mutates_args=(), device_types="cpu",
                         schema=f"(Tensor input, Tensor weight, Tensor? bias, {_MOVES}) -> Tensor")
def _conv(input, weight, bias, stride, padding, dilation, groups):
    out = _empty_last(input, _output_shape(input.shape, weight.shape, stride, padding, dilation))
    if out.numel() > 0:
        _convolution.conv(_last(input).numpy(), _last(weight).numpy(),
                          None if bias is None else bias.detach().contiguous().numpy(),
                          stride=stride, padding=padding, dilation=dilation, groups=groups,
                          threads=_threads(), out=out.movedim(1, -1).numpy())
    return out


@_conv.register_fake
def _(input, weight, bias, stride, padding, dilation, groups):
    return _empty_last(input, _output_shape(input.shape, weight.shape, stride, padding, dilation))


@torch.library.custom_op(
    "foretune::conv_input_gradient", mutates_args=(), device_types="cpu",
    schema=f"(Tensor output_gradient, Tensor weight, SymInt[] input_shape, {_MOVES}) -> Tensor")
def _input_gradient(output_gradient, weight, input_shape, stride, padding, dilation, groups):
    out = _empty_last(output_gradient, input_shape)
    if out.numel() > 0:
        last = out.movedim(1, -1)
        _convolution.conv_input_gradient(
            _last(output_gradient).numpy(), _last(weight).numpy(), tuple(last.shape),
            stride=stride, padding=padding, dilation=dilation, groups=groups, threads=_threads(),
            out=last.numpy())
    return out


@_input_gradient.register_fake
def _(output_gradient, weight, input_shape, stride, padding, dilation, groups):
    return _empty_last(output_gradient, input_shape)


@torch.library.custom_op(
    "foretune::conv_weight_gradient", mutates_args=(), device_types="cpu",
    schema=f"(Tensor input, Tensor output_gradient, SymInt[] weight_shape, {_MOVES}) -> Tensor")
def _weight_gradient(input, output_gradient, weight_shape, stride, padding, dilation, groups):
    out = _empty_last(input, weight_shape)
    if input.numel() == 0:
        return out.zero_()
    _convolution.conv_weight_gradient(
        _last(input).numpy(), _last(output_gradient).numpy(), tuple(weight_shape[2:]),
        stride=stride, padding=padding, dilation=dilation, groups=groups, threads=_threads(),
        out=out.movedim(1, -1).numpy())
    return out


@_weight_gradient.register_fake
def _(input, output_gradient, weight_shape, stride, padding, dilation, groups):
    return _empty_last(input, weight_shape)


# Each of the three is linear in two tensors, and its derivatives are the other two.


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    first, second = inputs[:2]
    ctx.save_for_backward(first, second)
    ctx.moves = tuple(inputs[3:])


def _conv_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    input, weight = ctx.saved_tensors
    wanted = ctx.needs_input_grad
    return (
        _input_gradient(gradient, weight, input.shape, *ctx.moves) if wanted[0] else None,
        _weight_gradient(input, gradient, weight.shape, *ctx.moves) if wanted[1] else None,
        gradient.sum([0, *range(2, gradient.dim())]) if wanted[2] else None,
        None, None, None, None)


def _input_gradient_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    output_gradient, weight = ctx.saved_tensors
    wanted = ctx.needs_input_grad
    return (
        _conv(gradient, weight, None, *ctx.moves) if wanted[0] else None,
        _weight_gradient(gradient, output_gradient, weight.shape, *ctx.moves) if wanted[1] else None,
        None, None, None, None, None)


def _weight_gradient_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    input, output_gradient = ctx.saved_tensors
    wanted = ctx.needs_input_grad
    return (
        _input_gradient(output_gradient, gradient, input.shape, *ctx.moves) if wanted[0] else None,
        _conv(input, gradient, None, *ctx.moves) if wanted[1] else None,
        None, None, None, None, None)


_conv.register_autograd(_conv_backward, setup_context=_keep)
_input_gradient.register_autograd(_input_gradient_backward, setup_context=_keep)
_weight_gradient.register_autograd(_weight_gradient_backward, setup_context=_keep)


def _each(value: Steps, rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def convolution(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
                stride: Steps = 1, padding: Steps = 0, dilation: Steps = 1,
                groups: int = 1) -> torch.Tensor:
    """Does what ``torch.nn.functional.conv1d``, ``conv2d`` or ``conv3d`` do on the CPU, with our
    kernels. It is the operator ``foretune::conv``, which autograd differentiates any number of
    times and ``torch.compile`` keeps in its graph.

    Args:
        input: ``(n, c, [d,] [h,] w)``, float32.
        weight: ``(k, c / groups, [z,] [y,] x)``; packed in every call.
        bias: ``(k,)``.
        stride, padding, dilation: a number, or one for each spatial axis.

    Raises:
        InvalidArgumentError: types or shapes do not fit each other, or a number makes no sense.
        UnsupportedError: no kernel computes this type.

    Thread safety: any number of threads. A call uses ``torch.get_num_threads()`` threads.
    """
    rank = input.dim() - 2
    return _conv(input, weight, bias, _each(stride, rank), _each(padding, rank),
                 _each(dilation, rank), groups)


def _padding_of(module: Any) -> list[int] | None:
    """Returns the zeros on either side, or None where the two sides differ."""
    if module.padding == "valid":
        return [0] * len(module.kernel_size)
    if module.padding != "same":
        return list(module.padding)
    reach = [step * (length - 1) for step, length in zip(module.dilation, module.kernel_size)]
    return None if any(both % 2 for both in reach) else [both // 2 for both in reach]


class _Layer:
    """Replaces the computation of a convolution module; a base class before that of the module."""

    _foretune_constant = False
    _foretune_packed: tuple[Any, Convolution] | None = None

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor,
                      bias: torch.Tensor | None) -> torch.Tensor:
        rank = len(self.kernel_size)
        padding = _padding_of(self)
        if (padding is None or self.padding_mode != "zeros"
                or input.dim() not in (rank + 1, rank + 2)
                or any(tensor is not None and (tensor.dtype != torch.float32
                                               or tensor.device.type != "cpu")
                       for tensor in (input, weight, bias))
                or torch.is_autocast_enabled("cpu")):
            return super()._conv_forward(input, weight, bias)
        images = input if input.dim() == rank + 2 else input.unsqueeze(0)
        if (self._foretune_constant and not torch.is_grad_enabled()
                and not torch.compiler.is_compiling() and images.numel() > 0):
            out = self._packed(weight, bias, padding)(_last(images).numpy())
            out = torch.from_numpy(out).movedim(-1, 1)
        else:
            out = _conv(images, weight, bias, list(self.stride), padding, list(self.dilation),
                        self.groups)
        return out if input.dim() == rank + 2 else out.squeeze(0)

    def _packed(self, weight: torch.Tensor, bias: torch.Tensor | None,
                padding: list[int]) -> Convolution:
        key = (_threads(), *(None if tensor is None else
                             (id(tensor), tensor.data_ptr(),
                              None if tensor.is_inference() else tensor._version)
                             for tensor in (weight, bias)))
        if self._foretune_packed is None or self._foretune_packed[0] != key:
            self._foretune_packed = (key, Convolution(
                _last(weight).numpy(), None if bias is None else bias.detach().numpy(),
                stride=self.stride, padding=padding, dilation=self.dilation, groups=self.groups,
                threads=_threads()))
        return self._foretune_packed[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_foretune_packed"}


class Conv1d(_Layer, torch.nn.Conv1d):
    """``torch.nn.Conv1d`` on our kernels; ``use_convolutions`` makes it."""


class Conv2d(_Layer, torch.nn.Conv2d):
    """``torch.nn.Conv2d`` on our kernels; ``use_convolutions`` makes it."""


class Conv3d(_Layer, torch.nn.Conv3d):
    """``torch.nn.Conv3d`` on our kernels; ``use_convolutions`` makes it."""


_CLASSES = {torch.nn.Conv1d: Conv1d, torch.nn.Conv2d: Conv2d, torch.nn.Conv3d: Conv3d}


def use_convolutions(model: torch.nn.Module, *, constant_weights: bool = False) -> int:
    """Makes the convolution modules of a model compute with our kernels, in place, and returns
    their number.

    A module keeps its parameters, hooks and name. It computes by itself, as before, what our kernels
    do not: other types and devices, padding with other values than zeros or with unequal sides, and
    everything under autocast. Subclasses of PyTorch's modules stay as they are.

    Args:
        model: a module; itself or any module in it.
        constant_weights: packs a weight once, for calls without gradients. It is packed again when
            PyTorch's version counter says that it has changed, which misses changes by way of
            ``weight.data`` and those of weights made in inference mode.

    Thread safety: nothing else may use the model meanwhile.
    """
    count = 0
    for module in model.modules():
        if type(module) in _CLASSES:
            module.__class__ = _CLASSES[type(module)]
        if isinstance(module, _Layer):
            module._foretune_constant = bool(constant_weights)
            count += 1
    return count
