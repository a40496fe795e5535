"""Types of models that Python fits: PyTorch modules, layers of other frameworks, callables."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError
from ._exported_layers import as_array, evaluating, exported_layers

# Number of training rows on which a module's own predictions check the exported network.
_COMPARED = 2000

# Number of arrays in each kind of layer.
_NAMES = {"linear": 2, "relu": 0, "batch_norm": 4, "begin_block": 0, "end_block": 0}

Fit = Callable[["TrainingRows"], Any]

_lock = threading.Lock()
_fits: dict[str, Fit] = {}


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows that the function of ``register_model`` fits, grouped by problem. Held-out rows are
    never among them."""

    inputs: npt.NDArray[np.float32]
    """[row, column]: standardised to mean 0 and deviation 1 over these rows; columns of one value
    (``a=64``) are 0 or 1."""
    columns: list[str]
    """Names of the columns."""
    target: npt.NDArray[np.float32]
    """[row]: the natural logarithm of time over the problem's best, or, for the target ``log``, of
    the time in nanoseconds."""
    weight: npt.NDArray[np.float32]
    """[row]: weight of its squared error; fast configs weigh more."""
    problem: npt.NDArray[np.int64]
    """[row]: number of its problem, from 0, ascending."""
    censored: npt.NDArray[np.bool_]
    """[row]: True where the time is a lower bound."""
    seed: int
    """Seed of all random choices."""
    stage: str
    """``fold 2 of 5``, or ``all data``."""


def register_model(name: str, fit: Fit, description: str = "") -> None:
    """Adds a type of models: ``foretune.train(dataset, model_type=name)`` calls ``fit`` once for
    every fold and once for all data, from the thread that trains.

    Args:
        name: name of the type, for the rest of the process.
        fit: takes ``TrainingRows`` and returns one of

            - a ``torch.nn.Module`` that maps [row, column] to one prediction of the target for each
              row. Its layers are exported (``exported_layers``) and checked against its own
              ``forward``; the model is a network like any other;
            - such layers as a list, from any framework: ``("linear", weight, bias)`` with a
              weight of [output, input], ``("relu",)``, ``("batch_norm", gamma, beta, mean,
              variance, epsilon)``, and ``("begin_block",)`` and ``("end_block",)`` around the
              layers whose result is added to their input;
            - any other callable that maps a float32 array as the module does. Every prediction
              calls it, so that such a model can be evaluated and can rank configs that the caller
              names (``Predictor.predict``), but can be neither saved nor used by a ``Selector``.
        description: a text for people.

    Raises:
        InvalidArgumentError: the name is taken.

    Thread safety: any number of threads; the threads that train and predict call ``fit`` and its
    result, with the interpreter's lock.
    """
    if not callable(fit):
        raise InvalidArgumentError(f"fit must be a function, not {type(fit).__name__}")
    with _lock:
        _foretune.register_model(str(name), str(description))
        _fits[str(name)] = fit


def fit_rows(name: str, columns: list[str], inputs: npt.NDArray[np.float32],
             target: npt.NDArray[np.float32], weight: npt.NDArray[np.float32],
             problem: npt.NDArray[np.uint32], censored: npt.NDArray[np.uint8], seed: int, stage: str
             ) -> tuple[Any, Any, Any]:
    """Returns layers and their owner's own predictions, or a callable. The extension module calls
    this function."""
    with _lock:
        fit = _fits[name]
    rows = TrainingRows(inputs, columns, target, weight, problem.astype(np.int64),
                        censored.astype(np.bool_), seed, stage)
    fitted = fit(rows)
    if _is_module(fitted):
        layers = _plain_layers(name, exported_layers(fitted))
        return layers, _said_by_module(name, fitted, inputs), None
    if isinstance(fitted, (list, tuple)):
        return _plain_layers(name, fitted), None, None
    if callable(fitted):
        return None, None, lambda rows_asked: _predictions(name, fitted(rows_asked),
                                                           len(rows_asked))
    raise InvalidArgumentError(f"the function of '{name}' returned {type(fitted).__name__}, which is "
                               "neither a module nor layers nor a callable")


def _is_module(value: object) -> bool:
    # A module can only exist once torch is imported.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _predictions(name: str, said: Any, rows: int) -> npt.NDArray[np.float64]:
    """Returns the predictions as one finite number per row."""
    values = as_array(said, np.float64)
    if values.shape not in ((rows,), (rows, 1)):
        raise InvalidArgumentError(f"'{name}' predicted an array of shape {values.shape} for {rows} "
                                   "rows")
    if not np.isfinite(values).all():
        raise InvalidArgumentError(f"'{name}' predicted something that is no number")
    return np.ascontiguousarray(values.reshape(rows))


def _said_by_module(name: str, module: Any, inputs: npt.NDArray[np.float32]
                    ) -> npt.NDArray[np.float32]:
    """Returns the module's predictions for some rows, and NaN for the others."""
    import torch

    asked = np.unique(np.linspace(0, len(inputs) - 1, _COMPARED).astype(np.int64))
    like = next(iter(module.parameters()), torch.zeros(0))
    with evaluating(module), torch.no_grad():
        said = module(torch.from_numpy(inputs[asked]).to(device=like.device, dtype=like.dtype))
    out = np.full(len(inputs), np.nan, dtype=np.float32)
    out[asked] = _predictions(name, said, len(asked))
    return out


def _plain_layers(name: str, layers: Sequence[Any]) -> list[tuple[str, list[Any], float]]:
    """Returns the layers with float32 arrays; checks each layer."""
    return [_plain_layer(f"layer {i} of '{name}'", layer) for i, layer in enumerate(layers)]


def _plain_layer(what: str, layer: Any) -> tuple[str, list[Any], float]:
    if not isinstance(layer, (list, tuple)) or not layer or layer[0] not in _NAMES:
        raise InvalidArgumentError(f"{what} is none of {', '.join(_NAMES)}")
    kind, *values = layer
    count = _NAMES[kind]
    epsilon = 0.0
    if kind == "batch_norm" and len(values) == count + 1:
        epsilon = float(values.pop())
    elif kind == "batch_norm" or len(values) != count:
        raise InvalidArgumentError(f"{what}, a {kind}, has {len(values)} values instead of "
                                   f"{count + (kind == 'batch_norm')}")
    try:
        tensors = [np.ascontiguousarray(as_array(value, np.float32)) for value in values]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{what}, a {kind}, holds something that is no array") from error
    for i, tensor in enumerate(tensors):
        wanted = 2 if kind == "linear" and i == 0 else 1
        if tensor.ndim != wanted:
            raise InvalidArgumentError(f"{what}, a {kind}, has an array of {tensor.ndim} dimensions "
                                       f"instead of {wanted}")
    return kind, tensors, epsilon
