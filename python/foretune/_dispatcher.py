"""Base of the dispatchers for arrays on this CPU."""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar

from ._errors import InvalidArgumentError
from ._model import Model
from .loops import whole_number


class CpuDispatcher:
    """Holds a native dispatcher, its threads and its trials."""

    __slots__ = ("_native",)

    def __init__(self, native: Any, threads: int | None, measure_top: int,
                 model: Model | str | os.PathLike[str] | None,
                 choices: str | os.PathLike[str] | None) -> None:
        if model is not None and not isinstance(model, Model):
            model = Model.open(model)
        self._native = native(0 if threads is None else whole_number(threads, "threads", 1, 1024),
                              whole_number(measure_top, "measure_top", 0, 1000),
                              None if model is None else model._native)
        if choices is not None:
            self._native.load_choices(os.fspath(choices))

    def save_trials(self, path: str | os.PathLike[str]) -> int:
        """Appends the measurements of trials since the last call to the data set at ``path``.
        Returns their number."""
        return self._native.append_trials(os.fspath(path))


Kind = TypeVar("Kind", bound=CpuDispatcher)

_lock = threading.Lock()
_dispatchers: dict[tuple[type[CpuDispatcher], int | None], Any] = {}


def chosen_dispatcher(kind: type[Kind], name: str, threads: int | None,
                      dispatcher: Kind | None) -> Kind:
    """Returns the caller's dispatcher, or the one for a number of threads, which is kept.
    ``name`` is the kind's, for messages."""
    if dispatcher is not None:
        if not isinstance(dispatcher, kind):
            raise InvalidArgumentError(f"dispatcher is a {name}, not {type(dispatcher).__name__}")
        if threads is not None:
            raise InvalidArgumentError("threads are those of the dispatcher; give one of the two")
        return dispatcher
    with _lock:
        if (kind, threads) not in _dispatchers:
            _dispatchers[kind, threads] = kind(threads=threads)
        return _dispatchers[kind, threads]
