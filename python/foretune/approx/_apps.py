"""Applications that a tuner approximates: operations with knobs, judged by quality and cost."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._errors import InvalidArgumentError, NotFoundError
from .knobs import ApproxKnob

if TYPE_CHECKING:
    from ._tuner import ApproxModeledTuner, ApproxTuner

__all__ = ["ApproxApp", "ICostModel", "IQoSModel", "ModeledApp"]

BASELINE = "__baseline__"


def _checked(op_knobs: Any) -> dict[str, list[ApproxKnob]]:
    """Returns a copy of the knobs of all operations, after a look at their types and names."""
    if not isinstance(op_knobs, Mapping) or not op_knobs:
        raise InvalidArgumentError("op_knobs is a mapping of at least one operation to its knobs")
    found: dict[str, ApproxKnob] = {}
    copied: dict[str, list[ApproxKnob]] = {}
    for op, knobs in op_knobs.items():
        if not isinstance(op, str):
            raise InvalidArgumentError(f"an operation is a name, not {type(op).__name__}")
        copied[op] = list(knobs)
        for knob in copied[op]:
            if not isinstance(knob, ApproxKnob):
                raise InvalidArgumentError(f"{op}: a knob is an ApproxKnob, not "
                                           f"{type(knob).__name__}")
            if found.setdefault(knob.name, knob) is not knob:
                raise InvalidArgumentError(f"two knobs are called {knob.name!r}")
        if len({knob.name for knob in copied[op]}) != len(copied[op]):
            raise InvalidArgumentError(f"{op} has a knob twice")
    return copied


class ApproxApp(abc.ABC):
    """An application whose operations may compute less, each with one knob at a time.

    A class of one's own has a ``name`` and ``measure_qos_cost``; ``get_tuner().tune(...)`` does the
    rest.

    Args:
        op_knobs: knobs by operation. The baseline joins those of every operation that lacks it.
        target_device: leaves out knobs that this device lacks, such as ``"cpu"``; None: none.

    Attributes:
        cost_is_seconds: true where a measured cost is a time in seconds.

    Raises:
        InvalidArgumentError: the knobs are no such mapping, or two have the same name.

    Thread safety: as for the application's own methods.
    """

    cost_is_seconds = False

    def __init__(self, op_knobs: Mapping[str, Iterable[ApproxKnob]],
                 target_device: str | None = None) -> None:
        given = _checked(op_knobs)
        if target_device is not None:
            given = {op: [knob for knob in knobs if knob.exists_on_device(target_device)]
                     for op, knobs in given.items()}
        self._baseline = _baseline_of(given)
        # Weak knobs come first: strategies that use distances between choices profit.
        self.op_knobs: dict[str, list[ApproxKnob]] = {
            op: [self._baseline, *sorted((knob for knob in knobs if knob is not self._baseline),
                                         key=lambda knob: (knob.expected_speedup, knob.name))]
            for op, knobs in given.items()}

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Returns the application's name."""

    @abc.abstractmethod
    def measure_qos_cost(self, with_approxes: Mapping[str, str], is_test: bool
                         ) -> tuple[float, float]:
        """Returns quality (more is better) and cost (less is better; positive, in any unit).

        Args:
            with_approxes: names of knobs by operation; others compute as the baseline.
            is_test: true for the inputs that only report, false for those that choose.
        """

    @property
    def ops(self) -> list[str]:
        """Returns the names of the operations."""
        return list(self.op_knobs)

    @property
    def knobs(self) -> list[ApproxKnob]:
        """Returns all knobs, each once, by name."""
        every = {knob.name: knob for knobs in self.op_knobs.values() for knob in knobs}
        return [every[name] for name in sorted(every)]

    @property
    def baseline_knob(self) -> ApproxKnob:
        """Returns the knob with the highest baseline priority, or a made one where none has any."""
        return self._baseline

    def add_baseline_to_knobs(self, approxes: Mapping[str, str]) -> dict[str, str]:
        """Returns the choice for every operation: the given one, or else the baseline.

        Raises:
            InvalidArgumentError: an operation is unknown, or lacks its knob.
        """
        for op, name in approxes.items():
            if op not in self.op_knobs:
                raise InvalidArgumentError(f"{self.name} has no operation {op!r}")
            if name not in {knob.name for knob in self.op_knobs[op]}:
                raise InvalidArgumentError(f"{op} has no knob {name!r}")
        return {op: approxes.get(op, self._baseline.name) for op in self.op_knobs}

    def table_key(self) -> str:
        """Returns a text of all that measured qualities depend on beside the knobs; tables that
        were stored under another are not used."""
        return self.name

    def knob_key(self, op: str, knob_name: str) -> str:
        """Returns a text of all that says how the operation computes with the knob."""
        knob = next(knob for knob in self.op_knobs[op] if knob.name == knob_name)
        return f"{op} {type(knob).__qualname__} {knob_name}"

    def get_tuner(self) -> ApproxTuner:
        """Returns a new tuner of this application."""
        from ._tuner import ApproxTuner

        return ApproxTuner(self)


def _baseline_of(op_knobs: Mapping[str, list[ApproxKnob]]) -> ApproxKnob:
    """Returns the knob that others are compared with."""
    candidates = [(knob.baseline_priority, knob.name, knob)
                  for knobs in op_knobs.values() for knob in knobs
                  if knob.baseline_priority is not None]
    return max(candidates)[2] if candidates else ApproxKnob(BASELINE)


class ICostModel(abc.ABC):
    """Predicts the cost of a choice of knobs.

    Thread safety: one thread at a time.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Returns the name by which ``tune`` finds the model."""

    @abc.abstractmethod
    def measure_cost(self, with_approxes: Mapping[str, str]) -> float:
        """Returns the predicted cost, positive, in the model's own unit."""

    def _init(self) -> None:
        """Prepares the model; called once before the first prediction."""


class IQoSModel(abc.ABC):
    """Predicts the quality of a choice of knobs on the tuning inputs.

    Thread safety: one thread at a time.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Returns the name by which ``tune`` finds the model."""

    @abc.abstractmethod
    def measure_qos(self, with_approxes: Mapping[str, str]) -> float:
        """Returns the predicted quality; more is better."""

    def _init(self) -> None:
        """Prepares the model; called once before the first prediction."""


class ModeledApp(ApproxApp):
    """An application with models that predict quality or cost without running it.

    A class of one's own has ``get_models`` and ``empirical_measure_qos_cost``.

    Args, Raises, Thread safety: as for ``ApproxApp``.
    """

    def __init__(self, op_knobs: Mapping[str, Iterable[ApproxKnob]],
                 target_device: str | None = None) -> None:
        super().__init__(op_knobs, target_device)
        self._models: dict[str, ICostModel | IQoSModel] | None = None
        self._ready: set[str] = set()

    @abc.abstractmethod
    def get_models(self) -> list[ICostModel | IQoSModel]:
        """Returns the models, each with a name of its own; called once."""

    @abc.abstractmethod
    def empirical_measure_qos_cost(self, with_approxes: Mapping[str, str], is_test: bool
                                   ) -> tuple[float, float]:
        """Runs the application and returns quality and cost, as ``measure_qos_cost`` does."""

    def init_model(self, model_name: str) -> ICostModel | IQoSModel:
        """Returns the model of this name, prepared.

        Raises:
            NotFoundError: there is no such model.
        """
        if self._models is None:
            self._models = {model.name: model for model in self.get_models()}
        if model_name not in self._models:
            raise NotFoundError(f"{self.name} has no model {model_name!r}; it has "
                                + ", ".join(sorted(self._models)))
        model = self._models[model_name]
        if model_name not in self._ready:
            model._init()  # noqa: SLF001
            self._ready.add(model_name)
        return model

    def _cost_model(self, name: str) -> ICostModel:
        model = self.init_model(name)
        if not isinstance(model, ICostModel):
            raise InvalidArgumentError(f"{name} predicts no cost")
        return model

    def _qos_model(self, name: str) -> IQoSModel:
        model = self.init_model(name)
        if not isinstance(model, IQoSModel):
            raise InvalidArgumentError(f"{name} predicts no quality")
        return model

    def check_models(self, qos_model: str | None, cost_model: str | None) -> None:
        """Prepares the named models.

        Raises:
            NotFoundError: there is no such model.
            InvalidArgumentError: a model predicts something else.
        """
        if cost_model is not None:
            self._cost_model(cost_model)
        if qos_model is not None:
            self._qos_model(qos_model)

    def measure_qos_cost(self, with_approxes: Mapping[str, str], is_test: bool,
                         qos_model: str | None = None, cost_model: str | None = None
                         ) -> tuple[float, float]:
        """Returns quality and cost, each predicted by its model or else measured.

        Args:
            with_approxes, is_test: as for ``ApproxApp``.
            qos_model, cost_model: names of models; None: the application runs.

        Raises:
            InvalidArgumentError: a model is asked for test inputs, which it knows nothing of.
            NotFoundError: there is no such model.
        """
        if is_test and (qos_model is not None or cost_model is not None):
            raise InvalidArgumentError("test inputs are measured; no model knows them")
        qos = None if qos_model is None else self._qos_model(qos_model).measure_qos(with_approxes)
        cost = (None if cost_model is None
                else self._cost_model(cost_model).measure_cost(with_approxes))
        if qos is None and cost is None:
            return self.empirical_measure_qos_cost(with_approxes, is_test)
        if qos is None:
            qos = self.measure_qos(with_approxes, is_test)
        if cost is None:
            cost = self.measure_cost(with_approxes, is_test)
        return qos, cost

    def measure_qos(self, with_approxes: Mapping[str, str], is_test: bool) -> float:
        """Runs the application and returns the quality alone."""
        return self.empirical_measure_qos_cost(with_approxes, is_test)[0]

    def measure_cost(self, with_approxes: Mapping[str, str], is_test: bool) -> float:
        """Runs the application and returns the cost alone."""
        return self.empirical_measure_qos_cost(with_approxes, is_test)[1]

    def get_tuner(self) -> ApproxModeledTuner:
        """Returns a new tuner of this application."""
        from ._tuner import ApproxModeledTuner

        return ApproxModeledTuner(self)
