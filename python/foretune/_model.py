"""Models: training, evaluation, ranking, selection."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._dataset import Dataset
from ._errors import InvalidArgumentError
from ._keywords import option_texts
from ._plugins import load_installed_plugins
from ._problem import Problem, problem_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import TrainOptions

Config = Union[str, Mapping[str, Any]]
TrainProgress = Callable[[dict[str, Any]], object]


class Model:
    """A trained model, the content of a ``.ftm`` file.

    Thread safety: any number of threads may use a model at once.
    """

    __slots__ = ("_native", "metrics", "held_out_scores")

    metrics: dict[str, float]
    """Held-out figures of the training (``mean_efficiency``, ``p10_efficiency``, ...) in [0, 1]."""
    held_out_scores: npt.NDArray[np.float64] | None
    """Set by ``train`` only: for every row of the data set, the score (natural logarithm of time,
    up to a constant per problem) by a forest that did not see its problem; NaN for unused rows."""

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
            CorruptDataError: the file is damaged, or is not a model file.
        """
        load_installed_plugins()
        return cls(_foretune.read_model(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``.ftm`` file, for ``foretune predict``, the C++ selector, and ``open``.

        Raises:
            InputOutputError: the operating system refused.
            UnsupportedError: the model predicts with a function given to ``register_model``.
        """
        self._native.write(os.fspath(path))

    def to_bytes(self) -> bytes:
        """Returns the bytes that ``save`` writes."""
        return self._native.to_bytes()

    @property
    def info(self) -> dict[str, Any]:
        """Kind, family, config schema, feature table, target, device, seed, pool size and the
        figures specific to this kind of model."""
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
        """Returns ``Selector(self, objective).predict(problem, top)``. For repeated calls, keep a
        ``Selector``."""
        return Selector(self, objective).predict(problem, top)


def train(
    dataset: Dataset,
    *,
    seed: int = 42,
    progress: TrainProgress | None = None,
    warm_start: Model | str | os.PathLike[str] | None = None,
    **options: Unpack[TrainOptions],
) -> Model:
    """Learns which config is fastest.

    The keywords are the options of ``foretune train``, with underscores for dashes. ``TrainOptions``
    and ``docs/reference/python-options.md`` list them with their defaults. These are the most useful::

        model_type    gbdt (boosted trees), standard, deep, two-tower (neural networks), ensemble,
                      or a name given to register_model
        target        relative-log (ln of time over the problem's best), log (ln of nanoseconds,
                      needed for times and TFLOPS), or auto, which cross-validates both
        targets       tflops, latency or bandwidth instead of time
        metrics       metrics of the data set that one model predicts together; scores are those of
                      the first, and selectors of such a model take objectives
        features      feature table; the family's where it is not given
        folds         number of group folds for the held-out figures; 0 computes none
        fast          True also distils a small model that answers in a microsecond
        objective, trees, leaves, learning_rate, forests, ...     of boosted trees
        loss, num_epochs, hidden_dims, networks, trainer, ...     of neural networks

    A keyword that would have no effect is an error. Networks are trained by the program
    ``foretune-train-network``, which must be on the PATH, beside Python, or named by ``trainer``.

    Args:
        dataset: measurements to learn from; repeats are reduced to their median first.
        seed: seeds every random choice; the same data and options give the same model.
        progress: called after every tree or epoch with ``stage``, ``tree``, ``trees``, ``loss``.
        warm_start: continues this model, or that of this file, by adding trees.
        options: options of ``foretune train``.

    Returns:
        The model, with its held-out figures in ``metrics``. With ``out_dir`` it is also written
        there, with its figures.

    Raises:
        MismatchError: ``dataset`` is a validation set.
        InvalidArgumentError: an option is unknown, makes no sense, or has no effect; or there is
            nothing to learn from.
        NotFoundError: the program that trains networks is missing.
        KeyboardInterrupt: on Ctrl-C, after the tree that is being grown.
        Exception: whatever the function given to ``register_model`` raises.

    Thread safety: any number of threads may train at once; other Python threads run meanwhile.
    """
    if not 0 <= seed < 2**31:
        raise InvalidArgumentError(f"seed must be from 0 to {2**31 - 1}, not {seed}")
    texts = option_texts("train", dict(options))
    if "," in "".join(texts.get("targets", [])):
        raise InvalidArgumentError("train() returns one model: call it once for every target")
    with contextlib.ExitStack() as cleanup:
        if isinstance(warm_start, Model):
            folder = cleanup.enter_context(tempfile.TemporaryDirectory())
            path = os.path.join(folder, "warm_start.ftm")
            warm_start.save(path)
            texts["warm-start"] = [path]
        elif warm_start is not None:
            texts["warm-start"] = [os.fspath(warm_start)]
        # The trainer of networks is looked for beside this program.
        beside = shutil.which("foretune-train-network") or sys.executable
        native, metrics, scores = _foretune.train(dataset._native, texts, int(seed), [beside],
                                                  progress)
    return Model(native, metrics, scores)


class Evaluation:
    """How close a model's picks come to the best measured configs."""

    __slots__ = ("_native", "summary", "picks")

    summary: dict[str, Any]
    """The JSON of ``foretune validate-model --json``: every figure with its interval."""
    picks: list[dict[str, Any]]
    """One entry per problem: ``problem``, ``pick``, ``best_ns`` (nanoseconds), ``efficiency``."""

    def __init__(self, native: _foretune.Report) -> None:
        """For the package itself; evaluations come from ``evaluate``."""
        self._native = native
        self.summary = json.loads(native.json())
        self.picks = native.picks()

    @property
    def efficiencies(self) -> npt.NDArray[np.float64]:
        """The best time divided by the time of the pick, per evaluated problem, in [0, 1]."""
        return np.array([pick["efficiency"] for pick in self.picks], dtype=np.float64)

    @property
    def mean_efficiency(self) -> float:
        return float(self.efficiencies.mean())

    def report(self, color: bool = False) -> str:
        """Returns the text of ``foretune validate-model``."""
        return self._native.text(color)

    def html(self, title: str = "foretune") -> str:
        """Returns the report as one self-contained page."""
        return self._native.html(title)


def evaluate(model: Model, dataset: Dataset, training: Dataset | None = None, *,
             top_n_worst: int = 10, seed: int = 42) -> Evaluation:
    """Computes how good the model's picks are on measured problems that it never saw.

    Nothing is measured. Picks that the data set lacks are counted, and the best-ranked measured
    config stands in for each; ``foretune validate-model`` measures them instead.

    Args:
        model: the model.
        dataset: measurements, usually of role ``validation``.
        training: the data set that the model was trained on; used for the baselines and to report
            leaked problems.
        top_n_worst: how many of the worst problems to list.
        seed: seeds the bootstrap intervals.

    Raises:
        MismatchError: the family, config schema or features differ from the model's.
        InvalidArgumentError: no problem has a time.
    """
    return Evaluation(_foretune.evaluate(model._native, dataset._native,
                                         None if training is None else training._native,
                                         int(top_n_worst), int(seed)))


@dataclass(frozen=True)
class Choice:
    """The answer of a selector to one problem."""

    config: str | None
    """The config as text; the fallback when the selector abstains; None when nothing is legal."""
    reason: str | None
    """Why the selector abstains; None when it picked."""
    score: float
    """Natural logarithm of the predicted time, up to a constant of the problem."""
    margin: float
    """The score of the runner-up minus this score; infinite when nothing else is legal."""

    @property
    def picked(self) -> bool:
        """True when this is a pick, not a fallback."""
        return self.reason is None


class Selector:
    """Selects configs for problems at run time.

    Args:
        model: a model, or the path of a ``.ftm`` file.
        objective: orders picks and rankings by metrics that the model predicts, such as
            ``minimise time_ns subject to pack_ns <= 2 ms``. "" keeps the model's own order.

    Raises:
        NotFoundError: the objective names a metric that the model does not predict.
        UnsupportedError: the objective has several targets.

    Thread safety: any number of threads may use a selector at once. ``select`` keeps the
    interpreter lock, because a repeated problem takes less time than releasing it (a new problem
    takes up to a few milliseconds for thousands of candidates); ``rank`` releases it.

    Configs that are sequences, such as schedules of loop nests, are generated for each problem and
    ranked (``generates``). That takes about 0.1 s the first time; the last 16 problems are cached.
    """

    __slots__ = ("_generated", "_native", "_objective", "generates", "model")

    generates: bool
    """True when configs are generated for each problem, not taken from the model's pool."""

    def __init__(self, model: Model | str | os.PathLike[str], objective: str = "") -> None:
        self.model = model if isinstance(model, Model) else Model.open(model)
        self._native = _foretune.make_selector(self.model._native, objective)
        self._objective = objective
        self._generated: dict[str, _foretune.Selector] = {}
        self.generates = _foretune.needs_generating(self.model._native)

    def _native_for(self, problem: str) -> _foretune.Selector:
        """Returns the selector of the model's pool, or that of the problem's generated configs."""
        if not self.generates:
            return self._native
        known = self._generated.get(problem)
        if known is None:
            known = _foretune.make_generated_selector(self.model._native, problem, self._objective)
            # Bounds the memory: each selector holds a copy of the model.
            for old in list(self._generated)[:-15]:
                self._generated.pop(old, None)
            self._generated[problem] = known
        return known

    def select(self, problem: Problem) -> Choice:
        """Returns the best legal config, or an abstention with its reason.

        Raises:
            InvalidArgumentError: ``problem`` does not describe a problem.
            UnsupportedError: configs must be generated, but no feature table defines how.
        """
        text = problem_text(problem)
        return Choice(**self._native_for(text).select(text))

    def rank(self, problem: Problem) -> list[tuple[str, float]]:
        """Returns the legal configs of the pool with scores (as in ``Choice``), best first."""
        text = problem_text(problem)
        configs, scores = self._native_for(text).rank(text)
        return list(zip(configs, scores.tolist()))

    def predict(self, problem: Problem, top: int = 5) -> list[dict[str, Any]]:
        """Returns the best ``top`` legal configs, best first.

        Each entry has ``config``, ``score``, ``keeps_bounds`` (true when the predicted metrics
        satisfy the objective's bounds) and ``metrics``: for each metric the predicted value and the
        ends of its 95 % interval. All three are NaN where the model predicts ratios only."""
        if top < 1:
            raise InvalidArgumentError(f"top must be at least 1, not {top}")
        text = problem_text(problem)
        return self._native_for(text).predict(text, int(top))


def select(model: Model | Selector | str | os.PathLike[str], problem: Problem) -> Choice:
    """Selects a config for one problem. For repeated calls keep a ``Selector``: opening a model
    takes longer than a selection."""
    return (model if isinstance(model, Selector) else Selector(model)).select(problem)
