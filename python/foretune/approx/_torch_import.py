"""Networks of PyTorch's modules, by way of an ONNX file."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._errors import Error, InvalidArgumentError, UnsupportedError
from ..networks import Network

# The first with an operator for layer normalisation, and the last that PyTorch 1.13 writes.
_OPSET = 17


@functools.cache
def torch_or_none() -> Any:
    """Returns the module ``torch``, or None where it is not installed. Thread safety: any."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def need_torch(purpose: str) -> Any:
    """Returns the module ``torch``.

    Raises:
        UnsupportedError: PyTorch is not installed, which ``purpose`` needs.
    """
    torch = torch_or_none()
    if torch is None:
        raise UnsupportedError(f"{purpose} needs PyTorch, which is not installed")
    return torch


def _first_line(failure: Exception) -> str:
    """Returns the first line of an exception's text, or its class where it has none."""
    return (str(failure).strip().splitlines() or [type(failure).__name__])[0]


@contextlib.contextmanager
def _evaluating(torch: Any, module: Any) -> Iterator[None]:
    """Puts the module and those inside it into evaluation mode, and back into their modes.

    PyTorch's attention in a single operator, which cannot be exported, is off meanwhile: it is
    never used where gradients may be wanted, and later versions have a switch.
    """
    modes = [(each, each.training) for each in module.modules()]
    switch = getattr(getattr(torch.backends, "mha", None), "set_fastpath_enabled", None)
    was_on = switch is not None and torch.backends.mha.get_fastpath_enabled()
    module.eval()
    try:
        if switch is not None:
            switch(False)
        with torch.enable_grad():
            yield
    finally:
        if switch is not None:
            switch(was_on)
        for each, training in modes:
            each.training = training


def _example_tensors(torch: Any, module: Any, example: Any) -> tuple[Any, ...]:
    """Returns the example's tensors, on the device of the module's parameters."""
    given = example if isinstance(example, (tuple, list)) else (example,)
    first = next(module.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    tensors = []
    for array in given:
        if isinstance(array, np.ndarray):
            # A copy: torch warns about arrays that cannot be written to.
            array = torch.from_numpy(np.array(array, dtype=np.float32))
        if not isinstance(array, torch.Tensor):
            raise InvalidArgumentError("an example is a tensor or a NumPy array, or several in a "
                                       f"tuple, not {type(array).__name__}")
        if array.dim() == 0 or array.shape[0] == 0:
            raise InvalidArgumentError("the first dimension of an example is the batch, of one "
                                       "image at least")
        tensors.append(array.to(device))
    if not tensors:
        raise InvalidArgumentError("an example has at least one tensor")
    return tuple(tensors)


def _run(torch: Any, module: Any, tensors: tuple[Any, ...], images: int) -> int:
    """Runs the module on so many copies of the first image and returns how many tensors it
    computes, all of which begin with the batch."""
    with torch.no_grad():
        outputs = module(*(torch.cat([each[:1]] * images) for each in tensors))
    given = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    for i, each in enumerate(given):
        if not isinstance(each, torch.Tensor):
            raise UnsupportedError(f"a network returns tensors, not {type(each).__name__}")
        if each.dim() == 0 or each.shape[0] != images:
            raise UnsupportedError(f"the first dimension of {type(module).__name__}'s output {i} "
                                   "is not the batch")
    return len(given)


def _output_count(torch: Any, module: Any, tensors: tuple[Any, ...]) -> int:
    """Returns how many tensors the module computes, after a look at one image and at two."""
    name = type(module).__name__
    try:
        _run(torch, module, tensors, 1)
    except Error:
        raise
    except Exception as failure:
        raise InvalidArgumentError(
            f"{name} does not run on the example: {_first_line(failure)}") from failure
    try:
        return _run(torch, module, tensors, 2)
    except Error:
        raise
    except Exception as failure:
        raise UnsupportedError(
            f"{name} does not run on two images at once: {_first_line(failure)}") from failure


def _export(torch: Any, module: Any, tensors: tuple[Any, ...], path: str) -> None:
    """Writes the module as an ONNX file whose batch is open."""
    inputs = [f"input{i}" for i in range(len(tensors))]
    outputs = [f"output{i}" for i in range(_output_count(torch, module, tensors))]
    options: dict[str, Any] = {
        "input_names": inputs, "output_names": outputs, "opset_version": _OPSET,
        "dynamic_axes": {name: {0: "batch"} for name in [*inputs, *outputs]},
    }
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    try:
        with warnings.catch_warnings():
            # They are about shapes that depend on values, which import checks again.
            warnings.simplefilter("ignore")
            torch.onnx.export(module, tensors, path, **options)
    except Exception as failure:
        if isinstance(failure, ModuleNotFoundError) or "onnx is not installed" in str(failure):
            raise UnsupportedError(
                f"PyTorch {torch.__version__} writes ONNX files only where the Python package "
                "onnx is installed") from failure
        raise UnsupportedError(f"PyTorch {torch.__version__} cannot export "
                               f"{type(module).__name__}: {_first_line(failure)}") from failure


def from_torch(module: Any, example: Any, *, name: str | None = None) -> Network:
    """Returns the network that a module of PyTorch computes in evaluation mode.

    The module runs a few times on the example while PyTorch records its operations; branches on
    values and lengths of Python lists are recorded as they are for it. Constants are copied: later
    changes to the module change nothing here.

    Args:
        module: a ``torch.nn.Module`` that takes and returns tensors of float32. The first dimension
            of each is the batch, which stays open. Its training flags stay as they are.
        example: an input of the right shape with any batch, such as (1, 3, 32, 32): a tensor, a
            NumPy array, or a tuple with one for each input. Values do not matter.
        name: the network's name; None: the name of the module's class.

    Raises:
        InvalidArgumentError: the module or the example is something else; the module does not run
            on the example.
        UnsupportedError: PyTorch is not installed, or cannot export the module; the network has an
            operation that this build lacks, or a result whose first dimension is not the batch.

    Thread safety: one thread at a time for a module, since its training flags change meanwhile;
    PyTorch's exporter is not for several threads either.
    """
    torch = need_torch("from_torch")
    if not isinstance(module, torch.nn.Module):
        raise InvalidArgumentError(
            f"from_torch takes a torch.nn.Module, not {type(module).__name__}")
    tensors = _example_tensors(torch, module, example)
    with tempfile.TemporaryDirectory(prefix="foretune-") as folder:
        path = os.path.join(folder, "network.onnx")
        with _evaluating(torch, module):
            _export(torch, module, tensors, path)
        try:
            return Network.load(path, name=name or type(module).__name__)
        except Error as failure:
            # The file is gone by the time that somebody reads the message.
            reason = str(failure).replace(f"{path}: ", "")
            raise UnsupportedError(
                f"{type(module).__name__} cannot be imported: {reason}") from failure
