"""Exports PyTorch modules as layers of the library's networks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ._errors import UnsupportedError

_KNOWN = "Linear, ReLU, BatchNorm1d, Dropout, Identity and x + block(x)"


def exported_layers(module: Any) -> list[tuple[Any, ...]]:
    """Returns the layers of a ``torch.nn.Module`` in evaluation mode (``eval()``).

    ``torch.fx`` traces the module. It may consist of Linear, ReLU, BatchNorm1d with running
    statistics, Dropout and Identity one after another, and residual blocks ``x + block(x)``.
    Squeezing or flattening the last dimension of size one has no effect.

    Returns:
        The layers in the form of ``register_model``: float32 arrays, copies of the module's.

    Raises:
        UnsupportedError: the module contains anything else; the message names it.
    """
    import torch
    import torch.fx

    with evaluating(module):
        # In a container, torch.fx keeps a module that is a single layer as a layer and does not
        # trace into it.
        holder = torch.nn.Sequential(module)
        try:
            traced = torch.fx.symbolic_trace(holder)
        except Exception as error:  # noqa: BLE001: whatever the module's own code raises
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnsupportedError(
                f"torch.fx cannot trace {type(module).__name__}: {reason}") from error
        traced.graph.eliminate_dead_code()
        exporter = _Exporter(torch, type(module).__name__, dict(holder.named_modules()))
        for node in traced.graph.nodes:
            exporter.take(node)
        return exporter.finish()


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Sets a module to evaluation mode; afterwards restores the mode of each of its parts."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def as_array(value: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Returns a NumPy copy of a value, also of a tensor with gradients or on another device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # Goes through float64, because NumPy lacks some types, such as bfloat16.
        value = (value.double() if value.is_floating_point() else value).numpy()
    return np.array(value, dtype=dtype)


class _Exporter:
    """Takes the nodes of a traced graph one by one. The number of layers before a value identifies
    the value; the current one has all layers before it."""

    def __init__(self, torch: Any, name: str, modules: dict[str, Any]) -> None:
        functional = torch.nn.functional
        self._name = name
        self._modules = modules
        self._layers: list[tuple[Any, ...]] = []
        self._values: dict[Any, int] = {}
        self._begins: list[int] = []
        self._width = 0  # columns of the current value; 0 for the input rows
        linear, batch_norm = torch.nn.Linear, torch.nn.BatchNorm1d
        nothing = (torch.nn.Identity, torch.nn.Dropout, torch.nn.AlphaDropout)
        self._of_module: dict[type, Callable[[Any, Any], None]] = {
            linear: self._linear, batch_norm: self._batch_norm,
            torch.nn.ReLU: lambda node, _: self._relu(node),
            torch.nn.Flatten: lambda node, part: self._flatten(node, part.start_dim),
            **{kind: lambda node, _: self._same(node) for kind in nothing}}
        self._of_call: dict[Any, Callable[[Any], None]] = {
            **{call: self._relu for call in (torch.relu, torch.relu_, functional.relu, "relu",
                                             "relu_")},
            **{call: self._add for call in (operator.add, operator.iadd, torch.add, "add", "add_")},
            **{call: self._squeeze for call in (torch.squeeze, "squeeze")},
            **{call: lambda node: self._flatten(node, _argument(node, 1, "start_dim", 0))
               for call in (torch.flatten, "flatten")},
            functional.dropout: self._dropout, operator.getitem: self._only_column}

    def take(self, node: Any) -> None:
        if node.op == "placeholder":
            self._values[node] = 0
        elif node.op == "output":
            self._output(node)
        elif node.op == "call_module":
            part = self._modules[node.target]
            action = self._of_module.get(type(part))
            if action is None:
                self._refuse(f"has the layer '{node.target.partition('.')[2] or node.target}', a "
                             f"{type(part).__name__}")
            else:
                action(node, part)
        elif node.op in ("call_function", "call_method"):
            call = self._of_call.get(node.target)
            if call is None:
                self._refuse(f"calls {getattr(node.target, '__name__', node.target)}()")
            else:
                call(node)

    def finish(self) -> list[tuple[Any, ...]]:
        out: list[tuple[Any, ...]] = []
        for i, layer in enumerate(self._layers):
            out += [("begin_block",)] * self._begins.count(i)
            out.append(layer)
        return out

    def _refuse(self, reason: str) -> NoReturn:
        raise UnsupportedError(f"{self._name} {reason}, and is no network of {_KNOWN} alone")

    def _same(self, node: Any) -> None:
        """Handles a node that leaves its value unchanged."""
        given = self._values.get(node.args[0]) if node.args and _is_node(node.args[0]) else None
        if given is None:
            self._refuse(f"gives {node.name} something else than a layer does")
        self._values[node] = given

    def _output(self, node: Any) -> None:
        if not _is_node(node.args[0]) or self._values.get(node.args[0]) != len(self._layers):
            self._refuse("returns something else than its last layer does")

    def _append(self, node: Any, *layer: Any) -> None:
        self._same(node)
        if self._values[node] != len(self._layers):
            self._refuse(f"gives {node.name} something else than the layer before does")
        self._layers.append(layer)
        self._values[node] = len(self._layers)

    def _linear(self, node: Any, part: Any) -> None:
        bias = np.zeros(part.out_features) if part.bias is None else part.bias
        self._append(node, "linear", as_array(part.weight, np.float32), as_array(bias, np.float32))
        self._width = part.out_features

    def _batch_norm(self, node: Any, part: Any) -> None:
        if part.running_mean is None:
            self._refuse("has a BatchNorm1d without running statistics")
        gamma = np.ones(part.num_features) if part.weight is None else part.weight
        beta = np.zeros(part.num_features) if part.bias is None else part.bias
        self._append(node, "batch_norm", *(as_array(values, np.float32) for values in (
            gamma, beta, part.running_mean, part.running_var)), float(part.eps))

    def _relu(self, node: Any) -> None:
        self._append(node, "relu")

    def _add(self, node: Any) -> None:
        terms = [self._values.get(term, -1) if _is_node(term) else -1 for term in node.args[:2]]
        now = len(self._layers)
        if node.kwargs or len(terms) != 2 or min(terms) < 0 or max(terms) != now or (
                terms[0] == terms[1]):
            self._refuse(f"adds in {node.name} something else than x + block(x)")
        self._begins.append(min(terms))
        self._layers.append(("end_block",))
        self._values[node] = len(self._layers)

    def _dropout(self, node: Any) -> None:
        if _argument(node, 2, "training", True):
            self._refuse("calls dropout() also when it predicts")
        self._same(node)

    def _squeeze(self, node: Any) -> None:
        if _argument(node, 1, "dim", -1) not in (-1, 1) or self._width != 1:
            self._refuse("squeezes more than a last dimension of size one")
        self._same(node)

    def _flatten(self, node: Any, start: Any) -> None:
        # Flattening from dimension 1 has no effect: a value has the shape [row, column].
        if start not in (1, -1) and self._width != 1:
            self._refuse("flattens more than a last dimension of size one")
        self._same(node)

    def _only_column(self, node: Any) -> None:
        if node.args[1] not in ((slice(None), 0), (Ellipsis, 0)) or self._width != 1:
            self._refuse("takes some of the columns")
        self._same(node)


def _is_node(value: object) -> bool:
    # Checks attributes, because torch.fx is not imported here.
    return hasattr(value, "op") and hasattr(value, "target")


def _argument(node: Any, position: int, name: str, otherwise: Any) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, otherwise)
