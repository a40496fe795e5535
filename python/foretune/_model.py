"""Models: training, judging, ranking, selecting."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._dataset import Dataset
from ._errors import InvalidArgumentError, MismatchError
from ._plugins import load_installed_plugins
from ._problem import Problem, problem_text

Config = Union[str, Mapping[str, Any]]
TrainProgress = Callable[[dict[str, Any]], object]


class Model:
    """A trained model: what a ``.ftm`` file holds.

    Thread safety: any number of threads may use a model at once.
    """

    __slots__ = ("_native", "metrics", "held_out_scores")

    metrics: dict[str, float]
    """Held-out figures of the training (``mean_efficiency``, ``p10_efficiency``, ...), as shares."""
    held_out_scores: npt.NDArray[np.float64] | None
    """Of ``train``: the score of every row of the data set by a forest that did not see its problem
    (natural logarithm of time, up to a constant per problem); NaN for rows that were not used."""

    def __init__(self, native: _foretune.Model, metrics: dict[str, float] | None = None,
                 held_out_scores: npt.NDArray[np.float64] | None = None) -> None:
        """For the package itself; models come from ``train`` and ``open``."""
        self._native = native
        self.held_out_scores = held_out_scores
        if metrics is None:
            metrics = dict(self.card.get("held_out", {}).get("metrics", {}))
        self.metrics = metrics

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Model:
        """Reads a ``.ftm`` file.

        Raises:
            NotFoundError: there is no such file.
            CorruptDataError: it is damaged, or no model file.
        """
        load_installed_plugins()
        return cls(_foretune.read_model(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``.ftm`` file, for ``foretune predict``, the C++ selector, and ``open``.

        Raises:
            InputOutputError: the operating system refused.
        """
        self._native.write(os.fspath(path))

    def to_bytes(self) -> bytes:
        """What ``save`` writes."""
        return self._native.to_bytes()

    @property
    def info(self) -> dict[str, Any]:
        """Kind, family, config schema, feature table, target, device, seed, pool size and the figures
        of its kind."""
        return {key: value for key, value in self._native.describe().items() if key != "card_json"}

    @property
    def card(self) -> dict[str, Any]:
        """The model card: figures, options and counts of the training."""
        text = self._native.describe()["card_json"]
        return dict(json.loads(text)) if text else {}

    def __repr__(self) -> str:
        info = self.info
        return (f"<foretune.Model {info['kind']} for {info['family']}, pool of "
                f"{info['pool_size']:,} configs>")

    def predict(self, problem: Problem, objective: str = "", top: int = 5) -> list[dict[str, Any]]:
        """What ``Selector(self, objective).predict(problem, top)`` says. To ask more often, keep
        the selector."""
        return Selector(self, objective).predict(problem, top)


def train(
    dataset: Dataset,
    *,
    model_type: str = "gbdt",
    features: str = "",
    target: str = "relative-log",
    objective: str = "auto",
    metrics: Sequence[str] = (),
    folds: int = 5,
    seed: int = 42,
    threads: int = 0,
    trees: int = 1000,
    leaves: int = 63,
    learning_rate: float = 0.05,
    bagging_fraction: float = 0.8,
    feature_fraction: float = 0.8,
    min_rows_per_leaf: int = 10,
    lambda_l2: float = 1.0,
    weight_decay: float = 0.5,
    regret_decay: float = 4.0,
    forests: int = 1,
    portfolio_size: int = 16,
    progress: TrainProgress | None = None,
) -> Model:
    """Learns which config is fastest.

    Args:
        dataset: measurements to learn from; repeats are reduced to their median first.
        model_type: ``gbdt``, boosted trees.
        features: feature table; "" takes the family's.
        target: ``relative-log`` (ln of time over the problem's best), ``log`` (ln of nanoseconds,
            needed for times and TFLOPS), or ``auto``, which cross-validates both.
        objective: ``regret`` (what costs a good pick counts most; for ``relative-log`` alone),
            ``regression``, ``lambdarank`` (likewise for ``relative-log`` alone), or ``auto``:
            ``regret`` where it can be.
        metrics: of the data set, that one model is to predict all of; scores are of the first.
            Selectors of such a model follow objectives. None: time alone.
        folds: group folds of the held-out figures; 0 for none.
        seed: of every random choice; the same data and options give the same model.
        threads: of the trainer; 0 takes all cores.
        trees: at most; early stopping decides, but without folds all of them are grown.
        leaves, learning_rate, bagging_fraction, feature_fraction, min_rows_per_leaf, lambda_l2: of
            the trees; the fractions and the rate are above 0 and at most 1, ``lambda_l2`` is the
            penalty of large leaf values.
        weight_decay: how fast the weight of a row falls with its distance from the problem's best,
            ``exp(-weight_decay * ln(time / best))``, at least 0.05.
        regret_decay: the same of the objective ``regret``. Less than 4 where picks are also made
            among configs that are all far from the best.
        forests: forests whose scores are averaged.
        portfolio_size: configs of the fallback portfolio.
        progress: called after every tree with ``stage``, ``tree``, ``trees``, ``loss``.

    Returns:
        The model, with its held-out figures in ``metrics``.

    Raises:
        MismatchError: ``dataset`` is a validation set.
        InvalidArgumentError: an option makes no sense, or there is nothing to learn from.
        KeyboardInterrupt: on Ctrl-C, after the tree that is being made.

    Thread safety: any number at once; other Python threads run meanwhile.
    """
    if dataset.header["role"] == "validation":
        raise MismatchError(
            "this is a validation set; training on it would make every figure worthless")
    if target not in ("relative-log", "log", "auto"):
        raise InvalidArgumentError(f"a target is relative-log, log or auto, not '{target}'")
    if objective not in ("auto", "regression", "lambdarank", "regret"):
        raise InvalidArgumentError("an objective is auto, regression, lambdarank or regret, not "
                                   f"'{objective}'")
    for name, value in (("learning_rate", learning_rate), ("bagging_fraction", bagging_fraction),
                        ("feature_fraction", feature_fraction)):
        if not 0 < value <= 1:
            raise InvalidArgumentError(f"{name} must be above 0 and at most 1, not {value}")
    for name, value in (("lambda_l2", lambda_l2), ("weight_decay", weight_decay),
                        ("regret_decay", regret_decay)):
        if not 0 <= value <= 1e6:
            raise InvalidArgumentError(f"{name} must be from 0 to a million, not {value}")
    counts = {"folds": (folds, 0), "threads": (threads, 0), "trees": (trees, 1),
              "leaves": (leaves, 2), "min_rows_per_leaf": (min_rows_per_leaf, 1),
              "forests": (forests, 1), "portfolio_size": (portfolio_size, 1), "seed": (seed, 0)}
    keywords = _foretune.TrainKeywords()
    for name, (count, least) in counts.items():
        if not least <= count < 2**31:
            raise InvalidArgumentError(f"{name} must be at least {least}, not {count}")
        setattr(keywords, name, int(count))
    keywords.model_type = model_type
    keywords.features = features
    keywords.target = target
    keywords.objective = objective
    keywords.metrics = [str(metric) for metric in metrics]
    keywords.learning_rate = float(learning_rate)
    keywords.bagging_fraction = float(bagging_fraction)
    keywords.feature_fraction = float(feature_fraction)
    keywords.lambda_l2 = float(lambda_l2)
    keywords.weight_decay = float(weight_decay)
    keywords.regret_decay = float(regret_decay)
    native, metrics, scores = _foretune.train(dataset.merge()._native, keywords, progress)
    return Model(native, metrics, scores)


class Evaluation:
    """How close a model's picks come to the best measured configs."""

    __slots__ = ("_native", "summary", "picks")

    summary: dict[str, Any]
    """What ``foretune validate-model --json`` writes: every figure with its interval."""
    picks: list[dict[str, Any]]
    """Of every problem: ``problem``, ``pick``, ``best_ns`` (nanoseconds), ``efficiency``."""

    def __init__(self, native: _foretune.Report) -> None:
        """For the package itself; evaluations come from ``evaluate``."""
        self._native = native
        self.summary = json.loads(native.json())
        self.picks = native.picks()

    @property
    def efficiencies(self) -> npt.NDArray[np.float64]:
        """Best time over time of the pick, per evaluated problem, in [0, 1]."""
        return np.array([pick["efficiency"] for pick in self.picks], dtype=np.float64)

    @property
    def mean_efficiency(self) -> float:
        return float(self.efficiencies.mean())

    def report(self, color: bool = False) -> str:
        """The text of ``foretune validate-model``."""
        return self._native.text(color)

    def html(self, title: str = "foretune") -> str:
        """The report as one self-contained page."""
        return self._native.html(title)


def evaluate(model: Model, dataset: Dataset, training: Dataset | None = None, *,
             top_n_worst: int = 10, seed: int = 42) -> Evaluation:
    """How good the model's picks are on measured problems that it never saw.

    Nothing is measured: picks that the data set lacks are counted, and the best-ranked measured
    config stands in. ``foretune validate-model`` measures them.

    Args:
        model: the model.
        dataset: measurements, usually of role ``validation``.
        training: what the model was trained on: for the baselines, and to say what leaked.
        top_n_worst: worst problems to list.
        seed: of the bootstrap intervals.

    Raises:
        MismatchError: family, config schema or features are not the model's.
        InvalidArgumentError: no problem has a time.
    """
    return Evaluation(_foretune.evaluate(model._native, dataset._native,
                                         None if training is None else training._native,
                                         int(top_n_worst), int(seed)))


@dataclass(frozen=True)
class Choice:
    """What a selector says to a problem."""

    config: str | None
    """The config as text; on an abstention the fallback, or None when nothing is legal."""
    reason: str | None
    """Why the selector abstains; None when it picked."""
    score: float
    """Natural logarithm of the predicted time, up to a constant of the problem."""
    margin: float
    """Score of the runner-up minus this one's; infinite when nothing else is legal."""

    @property
    def picked(self) -> bool:
        """Whether this is a pick, not a fallback."""
        return self.reason is None


class Selector:
    """Problem in, config out: the run-time part.

    Args:
        model: a model, or the path of a ``.ftm`` file.
        objective: what picks and rankings follow, of the metrics that the model predicts:
            ``minimise time_ns subject to pack_ns <= 2 ms``. "" is the model's own order.

    Raises:
        NotFoundError: the objective names a metric that the model does not predict.
        UnsupportedError: the objective has several targets.

    Thread safety: any number of threads may use a selector at once. ``select`` keeps the
    interpreter lock, because a repeated problem takes less time than giving it away (a new one: up
    to a few milliseconds for thousands of candidates); ``rank`` releases it.

    Configs that are sequences, such as schedules of loop nests, are generated for each problem and
    ranked (``generates``), which takes some 0.1 s the first time; the last 16 problems are kept.
    """

    __slots__ = ("_generated", "_native", "_objective", "generates", "model")

    generates: bool
    """Whether configs are generated for each problem instead of taken from the model's pool."""

    def __init__(self, model: Model | str | os.PathLike[str], objective: str = "") -> None:
        self.model = model if isinstance(model, Model) else Model.open(model)
        self._native = _foretune.make_selector(self.model._native, objective)
        self._objective = objective
        self._generated: dict[str, _foretune.Selector] = {}
        self.generates = _foretune.needs_generating(self.model._native)

    def _native_for(self, problem: str) -> _foretune.Selector:
        """The selector of the model's pool, or of what is generated for the problem."""
        if not self.generates:
            return self._native
        known = self._generated.get(problem)
        if known is None:
            known = _foretune.make_generated_selector(self.model._native, problem, self._objective)
            # Each holds a copy of the model.
            for old in list(self._generated)[:-15]:
                self._generated.pop(old, None)
            self._generated[problem] = known
        return known

    def select(self, problem: Problem) -> Choice:
        """The best legal config, or an abstention with its reason.

        Raises:
            InvalidArgumentError: the problem is none.
            UnsupportedError: configs have to be generated, and no feature table says how.
        """
        text = problem_text(problem)
        return Choice(**self._native_for(text).select(text))

    def rank(self, problem: Problem) -> list[tuple[str, float]]:
        """All legal configs of the model's pool with their scores (as in ``Choice``), best first."""
        text = problem_text(problem)
        configs, scores = self._native_for(text).rank(text)
        return list(zip(configs, scores.tolist()))

    def predict(self, problem: Problem, top: int = 5) -> list[dict[str, Any]]:
        """The best ``top`` legal configs, best first: ``config``, ``score``, ``keeps_bounds`` (of
        the objective, as predicted) and ``metrics``, of each the predicted value with the ends of
        its 95 % interval. All three are NaN where the model knows ratios alone."""
        if top < 1:
            raise InvalidArgumentError(f"top must be at least 1, not {top}")
        text = problem_text(problem)
        return self._native_for(text).predict(text, int(top))


class RankedKernel(NamedTuple):
    """One line of a ranking."""

    name: str
    prediction: float


class Predictor:
    """Ranks kernels of a problem by what a model predicts of them.

    Args:
        model: a model of ours (``Model``, or the path of a ``.ftm`` file), or the path of a
            directory of LightGBM models that composable_kernel's heuristics trained
            (``model_tflops.lgbm[.gz]`` beside ``feature_spec.json``).

    ``unit`` says what predictions are; larger is always better:

    - ``tflops``: 10^12 floating-point operations per second; models of times (target ``log``), and
      directories;
    - ``relative speed``: best time of the problem over the config's time, 1 for the best
      (target ``relative-log``); of models of other targets in units of their own for each problem.

    Thread safety: any number of threads may use a predictor at once; other threads run meanwhile.
    """

    __slots__ = ("_foreign", "_model", "_selector", "unit")

    unit: str

    def __init__(self, model: Model | str | os.PathLike[str]) -> None:
        self._foreign: _foretune.ForeignModels | None = None
        self._model: Model | None = None
        self._selector: Selector | None = None
        if not isinstance(model, Model) and os.path.isdir(model):
            self._foreign = _foretune.open_foreign_models(os.fspath(model))
            self.unit = "tflops"
            return
        self._model = model if isinstance(model, Model) else Model.open(model)
        self._selector = Selector(self._model)
        self.unit = "tflops" if self._model.info["target"] == "log" else "relative speed"

    @property
    def targets(self) -> list[str]:
        """What a directory has models for; of a model of ours, its unit alone."""
        return [self.unit] if self._foreign is None else self._foreign.targets

    def predict(self, problem: Problem, configs: Sequence[Config],
                target: str | None = None) -> npt.NDArray[np.float64]:
        """The predictions for ``configs``, in their order, in ``unit``.

        Args:
            problem: text or mapping (``foretune.problem_text``).
            configs: texts, or mappings. For a model of ours the parameters of its config schema by
                name, further keys are passed over. For a directory, kernel names, or mappings with
                ``kernel_name`` (and ``split_k``, for a GEMM).
            target: of a directory, ``tflops`` unless said otherwise: ``latency`` and ``bandwidth``
                are in the unit that the model learnt.

        Raises:
            InvalidArgumentError: a config lacks a parameter, or its name makes no sense.
            MismatchError: a problem of another type.
        """
        if self._foreign is not None:
            return self._predict_foreign(self._foreign, problem, configs, target or "tflops")
        if target is not None and target != self.unit:
            raise InvalidArgumentError(f"this model predicts {self.unit}, not '{target}'")
        assert self._model is not None
        names = self._model._native.config_columns()
        text = problem_text(problem)
        self._check_type(text)
        scores = self._model._native.score(text, [_config_text(entry, names) for entry in configs])
        return self._in_unit(text, scores)

    def rank_kernels(self, problem: Problem,
                     configs: Sequence[Config] | None = None) -> list[RankedKernel]:
        """The kernels, best first, as ``(name, prediction)``. Whether a kernel of ``configs`` can
        run the problem at all is the caller's to know.

        Args:
            problem: as in ``predict``.
            configs: as in ``predict``. None takes the model's own pool, as far as it is legal for
                the problem; a directory has none.

        Raises:
            As ``predict``.
        """
        if configs is None:
            if self._selector is None:
                raise InvalidArgumentError("a directory of models has no kernels of its own to rank")
            text = problem_text(problem)
            self._check_type(text)
            ranked = self._selector.rank(text)
            values = self._in_unit(text, np.array([score for _, score in ranked]))
            return [RankedKernel(name, float(value))
                    for (name, _), value in zip(ranked, values)]
        values = self.predict(problem, configs)
        order = np.argsort(-values, kind="stable")
        names = [_name_of(entry) for entry in configs]
        return [RankedKernel(names[i], float(values[i])) for i in order]

    def select_best(self, problem: Problem,
                    configs: Sequence[Config] | None = None) -> RankedKernel | None:
        """The first of ``rank_kernels``; None when there is nothing to rank."""
        ranked = self.rank_kernels(problem, configs)
        return ranked[0] if ranked else None

    def _check_type(self, text: str) -> None:
        assert self._model is not None
        wanted = self._model.info["problem_type"]
        if text.split()[0] != wanted:
            raise MismatchError(f"the model is for {wanted} problems, not for '{text}'")

    def _in_unit(self, text: str, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if self.unit == "tflops":
            return _foretune.problem_flops(text) / np.exp(scores) * 1e-3
        return np.exp(-scores)

    def _predict_foreign(self, models: _foretune.ForeignModels, problem: Problem,
                         configs: Sequence[Config], target: str) -> npt.NDArray[np.float64]:
        # Directories of our own say the direction; theirs may, in the name of the operation.
        operation = models.direction if models.direction not in ("", "mixed") else None
        if models.op_type.startswith("grouped_conv_"):
            operation = models.op_type.removeprefix("grouped_conv_")
        if isinstance(problem, Mapping) and not _has(problem, "dtype"):
            problem = {**problem, "dtype": models.dtype}
        split_k = [int(entry.get("split_k", 1)) if isinstance(entry, Mapping) else 1
                   for entry in configs]
        names = [_name_of(entry) for entry in configs]
        return models.predict(target, problem_text(problem, operation), names, split_k)


def _has(mapping: Mapping[str, Any], name: str) -> bool:
    return any(str(key).lower() == name for key in mapping)


def _name_of(config: Config) -> str:
    if isinstance(config, str):
        return config
    for key in ("kernel_name", "kernel", "name"):
        if key in config:
            return str(config[key])
    return " ".join(f"{key}={value}" for key, value in config.items())


def _config_text(config: Config, names: Sequence[str]) -> str:
    if isinstance(config, str):
        return config
    if missing := [name for name in names if name not in config]:
        raise InvalidArgumentError("a config lacks " + ", ".join(missing))
    return " ".join(f"{name}={config[name]}" for name in names)


def select(model: Model | Selector | str | os.PathLike[str], problem: Problem) -> Choice:
    """One answer of a selector. To ask more often, keep a ``Selector``: opening a model takes longer
    than asking it."""
    return (model if isinstance(model, Selector) else Selector(model)).select(problem)
