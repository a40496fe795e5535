"""Models of cost and quality, and the tables on disk that two of them fill."""

from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .._errors import InputOutputError, InvalidArgumentError
from ._apps import ApproxApp, ICostModel, IQoSModel

__all__ = ["LinearCostModel", "MeasuredCostModel", "QoSModelP1", "QoSModelP2"]

Array = npt.NDArray[Any]
# Float16 ends here; larger differences would become infinite.
_LARGEST_F16 = 65504.0


class LinearCostModel(ICostModel):
    """Predicts the sum over operations of their cost divided by their knob's speedup.

    Args:
        app: the application.
        op_costs: cost of each operation, in any unit; those without a knob count, too.
        knob_speedups: speedup by the name of the knob.

    Raises:
        InvalidArgumentError: a cost is below 0, or a speedup not positive.
    """

    def __init__(self, app: ApproxApp, op_costs: Mapping[str, float],
                 knob_speedups: Mapping[str, float]) -> None:
        if any(not cost >= 0 for cost in op_costs.values()) or not sum(op_costs.values()) > 0:
            raise InvalidArgumentError("costs of operations are numbers from 0 on, not all 0")
        if any(not speedup > 0 for speedup in knob_speedups.values()):
            raise InvalidArgumentError("speedups of knobs are positive")
        self._app = app
        self._op_costs = dict(op_costs)
        self._speedups = {app.baseline_knob.name: 1.0, **knob_speedups}

    @property
    def name(self) -> str:
        """Returns ``"cost_linear"``."""
        return "cost_linear"

    def measure_cost(self, with_approxes: Mapping[str, str]) -> float:
        """Returns the sum, in the unit of the operations' costs."""
        chosen = self._app.add_baseline_to_knobs(with_approxes)
        return sum(cost / (self._speedups[chosen[op]] if op in chosen else 1.0)
                   for op, cost in self._op_costs.items())


class MeasuredCostModel(ICostModel):
    """Predicts the sum of the measured times of all operations with their knobs.

    Args:
        app: the application.
        measure: returns nanoseconds by operation and knob, and those of everything else.
    """

    def __init__(self, app: ApproxApp,
                 measure: Callable[[], tuple[Mapping[tuple[str, str], float], float]]) -> None:
        self._app = app
        self._measure = measure
        self._times: Mapping[tuple[str, str], float] = {}
        self._rest = 0.0

    @property
    def name(self) -> str:
        """Returns ``"cost_measured"``."""
        return "cost_measured"

    def _init(self) -> None:
        self._times, self._rest = self._measure()

    def measure_cost(self, with_approxes: Mapping[str, str]) -> float:
        """Returns the sum in nanoseconds."""
        chosen = self._app.add_baseline_to_knobs(with_approxes)
        return self._rest + sum(self._times[op, knob] for op, knob in chosen.items())


class TableStore:
    """Keeps arrays by name in a folder, each in a file of its own that appears at once.

    A folder belongs to one key, so that arrays of other weights or data are never found.

    Thread safety: several processes may use a folder at once.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, kind: str, key: str) -> None:
        self._folder = None
        if folder is not None:
            digest = hashlib.sha256(key.encode()).hexdigest()[:24]
            self._folder = pathlib.Path(folder) / f"{kind}-{digest}"

    def _path(self, name: str) -> pathlib.Path | None:
        if self._folder is None:
            return None
        return self._folder / (hashlib.sha256(name.encode()).hexdigest()[:24] + ".npy")

    def read(self, name: str) -> Array | None:
        """Returns the array, or None where there is none that can be read."""
        path = self._path(name)
        if path is None:
            return None
        try:
            return np.asarray(np.load(path, allow_pickle=False))
        except (OSError, ValueError, EOFError):
            return None

    def write(self, name: str, values: Array) -> None:
        """Stores the array.

        Raises:
            InputOutputError: the folder cannot be written to.
        """
        path = self._path(name)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".new")
            try:
                with os.fdopen(handle, "wb") as file:
                    np.save(file, values)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as failure:
            raise InputOutputError(f"{path} cannot be written: {failure.strerror}") from failure


def _approximations(app: ApproxApp) -> Iterator[tuple[str, str]]:
    """Yields every operation with each of its knobs but the baseline."""
    for op, knobs in app.op_knobs.items():
        for knob in knobs:
            if knob is not app.baseline_knob:
                yield op, knob.name


class QoSModelP1(IQoSModel):
    """Predicts the output: the exact one plus the change that every knob makes by itself.

    Preparing it runs the application once for each operation and knob. A table on disk is filled
    run by run, so an interrupted preparation goes on later. Changes are kept in float16.

    Args:
        app: the application.
        tensor_output_getter: returns the output (an array) for names of knobs by operation.
        qos_metric: returns the quality of such an array.
        storage: folder of tables; None: they are not stored.
    """

    def __init__(self, app: ApproxApp,
                 tensor_output_getter: Callable[[Mapping[str, str]], Array],
                 qos_metric: Callable[[Array], float],
                 storage: str | os.PathLike[str] | None = None) -> None:
        self._app = app
        self._outputs = tensor_output_getter
        self._metric = qos_metric
        self._storage = storage
        self._exact: Array = np.zeros(0, np.float32)
        self._deltas: dict[tuple[str, str], Array] = {}

    @property
    def name(self) -> str:
        """Returns ``"qos_p1"``."""
        return "qos_p1"

    def _init(self) -> None:
        store = TableStore(self._storage, "p1", self._app.table_key())
        exact = store.read("")
        if exact is None:
            exact = np.asarray(self._outputs({}), np.float32)
            store.write("", exact)
        self._exact = exact
        for op, knob in _approximations(self._app):
            entry = self._app.knob_key(op, knob)
            delta = store.read(entry)
            if delta is None or delta.shape != exact.shape:
                changed = np.asarray(self._outputs({op: knob}), np.float32) - exact
                delta = np.clip(changed, -_LARGEST_F16, _LARGEST_F16).astype(np.float16)
                store.write(entry, delta)
            self._deltas[op, knob] = delta

    def measure_qos(self, with_approxes: Mapping[str, str]) -> float:
        """Returns the quality of the predicted output."""
        output = self._exact.astype(np.float32)
        for chosen in self._app.add_baseline_to_knobs(with_approxes).items():
            if chosen in self._deltas:
                output += self._deltas[chosen]
        return float(self._metric(output))


class QoSModelP2(IQoSModel):
    """Predicts the quality: the exact one plus the change that every knob makes by itself.

    Preparing it and its table work as for ``QoSModelP1``; an entry is a single number.

    Args:
        app: the application.
        storage: folder of tables; None: they are not stored.
        measure_qos: returns the quality on the tuning inputs; None: ``app.measure_qos_cost`` does.
    """

    def __init__(self, app: ApproxApp, storage: str | os.PathLike[str] | None = None,
                 measure_qos: Callable[[Mapping[str, str]], float] | None = None) -> None:
        self._app = app
        self._storage = storage
        self._measure = measure_qos or (
            lambda approxes: app.measure_qos_cost(approxes, False)[0])
        self._exact = 0.0
        self._deltas: dict[tuple[str, str], float] = {}

    @property
    def name(self) -> str:
        """Returns ``"qos_p2"``."""
        return "qos_p2"

    def _init(self) -> None:
        store = TableStore(self._storage, "p2", self._app.table_key())

        def known(entry: str, approxes: Mapping[str, str]) -> float:
            value = store.read(entry)
            if value is None or value.shape != ():
                value = np.asarray(self._measure(approxes), np.float64)
                store.write(entry, value)
            return float(value)

        self._exact = known("", {})
        for op, knob in _approximations(self._app):
            self._deltas[op, knob] = known(self._app.knob_key(op, knob), {op: knob}) - self._exact

    def measure_qos(self, with_approxes: Mapping[str, str]) -> float:
        """Returns the sum of the exact quality and all changes."""
        chosen = self._app.add_baseline_to_knobs(with_approxes)
        return self._exact + sum(self._deltas.get(pair, 0.0) for pair in chosen.items())
