"""The tuner: searches for choices of knobs that cost less and are good enough."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import math
import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _foretune
from .._errors import InvalidArgumentError
from ..loops import whole_number
from ._apps import ApproxApp, ModeledApp
from ._configs import Config, Path, ValConfig, content_of, dump_hpvm_configs, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ApproxModeledTuner", "ApproxTuner"]

_log = logging.getLogger("foretune.approx")
# Evolution forgets old members, and the best is too good to be forgotten.
_REMIND_EVERY = 32
_MAX_ITERATIONS = 1 << 30

Measure = Callable[[dict[str, str]], tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """The smallest qualities of a tuning, absolute.

    Attributes:
        tuner: below it the search looks for more quality, not for less cost.
        keep: below it a choice is not kept, on tuning inputs.
        keep_test: the same on test inputs.
        given: the arguments of ``tune``.
    """

    tuner: float
    keep: float
    keep_test: float
    given: dict[str, Any]


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or \
            not math.isfinite(float(value)):
        raise InvalidArgumentError(f"{name} is a finite number, not {value!r}")
    return float(value)


class _Search:
    """A strategy of the library over the knobs of an application."""

    def __init__(self, app: ApproxApp, strategy: str, trials: int, seed: int) -> None:
        self._ops = app.ops
        self._names = [[knob.name for knob in app.op_knobs[op]] for op in self._ops]
        # The strategy may ask for the baseline as well, which is no trial.
        self._inner = _foretune.ChoiceSearch(strategy, [len(names) for names in self._names],
                                             trials + 1, seed)
        self._best: tuple[float, float, list[int]] = (math.inf, math.inf, [])
        self._told = 0

    def ask(self) -> tuple[list[int], dict[str, str]] | None:
        """Returns an untried choice, as numbers and as names; None when there is none left."""
        asked = self._inner.ask(1)
        if not asked:
            return None
        return asked[0], {op: names[choice] for op, names, choice
                          in zip(self._ops, self._names, asked[0], strict=True)}

    def tell(self, choices: list[int], cost: float, violation: float) -> None:
        """Takes a result; a violation of the threshold is worse than any cost."""
        self._inner.tell(choices, cost, violation)
        self._best = min(self._best, (violation, cost, choices))
        self._told += 1
        if self._told % _REMIND_EVERY == 0:
            self._inner.tell(self._best[2], self._best[1], self._best[0])


class ApproxTuner:
    """Tunes an application by running it. ``ApproxApp.get_tuner`` makes one.

    Attributes:
        all_configs: all that was tried, the baseline first.
        kept_configs: those with at least the quality to keep.
        best_configs_prefilter: the best of them, before they were measured again.
        best_configs: those that kept their quality then, by falling quality.
        baseline_tune_qos, baseline_test_qos: the baseline's qualities; None: not measured.

    Thread safety: one thread at a time; tuning disturbs other measurements of time.
    """

    def __init__(self, app: ApproxApp) -> None:
        if not isinstance(app, ApproxApp):
            raise InvalidArgumentError(f"a tuner takes an ApproxApp, not {type(app).__name__}")
        self.app = app
        self.all_configs: list[Config] = []
        self.kept_configs: list[Config] = []
        self.best_configs_prefilter: list[Config] = []
        self.best_configs: list[Config] = []
        self.baseline_tune_qos: float | None = None
        self.baseline_test_qos: float | None = None
        self._baseline_cost = 0.0
        self._cost_is_measured = False
        self._thresholds: Thresholds | None = None
        self._header: dict[str, Any] = {}

    @property
    def tuned(self) -> bool:
        """Returns true once ``tune`` has run."""
        return self._thresholds is not None

    def _measured_qos(self, knobs: dict[str, str], is_test: bool) -> float:
        if isinstance(self.app, ModeledApp):
            return self.app.measure_qos(knobs, is_test)
        return self.app.measure_qos_cost(knobs, is_test)[0]

    def tune(self, max_iter: int, qos_tuner_threshold: float,
             qos_keep_threshold: float | None = None, is_threshold_relative: bool = False,
             take_best_n: int | None = None, test_configs: bool = True, *, seed: int = 42,
             strategy: str = "evolution") -> list[Config]:
        """Tries choices of knobs and returns the best ones, by falling quality.

        A choice below the tuner's threshold is worse than any above it, and the better the smaller
        the gap; above it the cheapest is best. Those that are kept and that no other beats in both
        quality and cost are the best; on the test inputs they have to keep the quality as well.

        Args:
            max_iter: choices to try beside the baseline.
            qos_tuner_threshold: quality that the search looks for.
            qos_keep_threshold: quality to keep a choice; None: the tuner's.
            is_threshold_relative: true for thresholds that are subtracted from the baseline's
                quality, of tuning and of test inputs each.
            take_best_n: exactly so many of the kept choices, or all where there are fewer; None:
                those that no other beats.
            test_configs: measures the best ones on the test inputs.
            seed: seeds the search; the same measurements give the same result.
            strategy: a strategy of ``foretune tune`` that needs no model: ``"evolution"``,
                ``"local"``, ``"de"``, ``"annealing"``, ``"random"``.

        Raises:
            InvalidArgumentError: an argument makes no sense.
            NotFoundError: there is no such strategy.
        """
        return self._tune(lambda knobs: self.app.measure_qos_cost(knobs, False), Config,
                          max_iter, (qos_tuner_threshold, qos_keep_threshold,
                                     is_threshold_relative), take_best_n, test_configs, False,
                          seed, strategy, {})

    def _tune(self, measure: Measure, make: type[Config], max_iter: int,
              thresholds: tuple[float, float | None, bool], take_best_n: int | None,
              test_configs: bool, validate: bool, seed: int, strategy: str,
              models: dict[str, Any]) -> list[Config]:
        trials = whole_number(max_iter, "max_iter", 1, _MAX_ITERATIONS)
        count = (None if take_best_n is None
                 else whole_number(take_best_n, "take_best_n", 1, _MAX_ITERATIONS))
        tuner = _finite(thresholds[0], "qos_tuner_threshold")
        keep = (tuner if thresholds[1] is None
                else _finite(thresholds[1], "qos_keep_threshold"))
        search = _Search(self.app, strategy, trials, whole_number(seed, "seed", 0, 2**63 - 1))
        exact = self.app.add_baseline_to_knobs({})
        qos, cost = self._checked(measure(exact))
        self._baseline_cost = cost
        self._cost_is_measured = not models.get("cost_model")
        self.baseline_tune_qos = self._measured_qos(exact, False) if validate else qos
        self.baseline_test_qos = self._measured_qos(exact, True) if test_configs else None
        self._thresholds = self._absolute(tuner, keep, thresholds[2])
        self._header = {**models, "max_iter": trials, "seed": seed, "strategy": strategy}
        self.all_configs = [make(qos, 1.0, exact)]
        search.tell([0] * len(exact), 1.0, max(0.0, self._thresholds.tuner - qos))
        self._try_all(search, measure, make, trials)
        self._choose(count, test_configs, validate)
        return self.best_configs

    @staticmethod
    def _checked(measured: tuple[float, float]) -> tuple[float, float]:
        qos, cost = float(measured[0]), float(measured[1])
        if not math.isfinite(qos) or not 0 < cost < math.inf:
            raise InvalidArgumentError("a measurement is a finite quality and a positive cost, not "
                                       f"{qos} and {cost}")
        return qos, cost

    def _absolute(self, tuner: float, keep: float, is_relative: bool) -> Thresholds:
        """Returns the thresholds in the unit of the quality."""
        given = {"qos_tuner_threshold": tuner, "qos_keep_threshold": keep,
                 "is_threshold_relative": bool(is_relative)}
        if not is_relative:
            return Thresholds(tuner, keep, keep, given)
        tune = self.baseline_tune_qos or 0.0
        test = tune if self.baseline_test_qos is None else self.baseline_test_qos
        return Thresholds(tune - tuner, tune - keep, test - keep, given)

    def _try_all(self, search: _Search, measure: Measure, make: type[Config], trials: int) -> None:
        """Tries as many choices as asked for, or as there are."""
        assert self._thresholds is not None
        while len(self.all_configs) <= trials:
            asked = search.ask()
            if asked is None:
                _log.info("all %d choices are tried", len(self.all_configs))
                return
            choices, knobs = asked
            if not any(choices):
                continue  # the baseline, which is known
            qos, cost = self._checked(measure(knobs))
            config = make(qos, cost / self._baseline_cost, knobs)
            violation = max(0.0, self._thresholds.tuner - qos)
            search.tell(choices, config.cost, violation)
            self.all_configs.append(config)
            _log.debug("iteration %d: quality %g, speedup %.3f", len(self.all_configs) - 1, qos,
                       config.speedup)

    def _choose(self, count: int | None, test_configs: bool, validate: bool) -> None:
        """Sets the kept and the best choices."""
        assert self._thresholds is not None
        limits = self._thresholds
        self.kept_configs = [each for each in self.all_configs if each.qos >= limits.keep]
        best = [self.kept_configs[i] for i in _best_of(self.kept_configs, count)]
        for config in best:
            if self._cost_is_measured and isinstance(self.app, ModeledApp):
                # The cheapest of many noisy times is a lucky one.
                config.cost = (self.app.measure_cost(config.knobs, False) / self._baseline_cost
                               if config is not self.all_configs[0] else 1.0)
            if validate and isinstance(config, ValConfig):
                config.validated_qos = self._measured_qos(config.knobs, False)
            if test_configs:
                config.test_qos = self._measured_qos(config.knobs, True)
        self.best_configs_prefilter = sorted(best, key=lambda each: (-each.qos, each.cost))
        self.best_configs = [
            each for each in self.best_configs_prefilter
            if (each.test_qos is None or each.test_qos >= limits.keep_test)
            and (getattr(each, "validated_qos", None) is None
                 or getattr(each, "validated_qos", math.inf) >= limits.keep)]
        _log.info("%d choices tried, %d kept, %d best, of which %d kept their quality",
                  len(self.all_configs), len(self.kept_configs), len(self.best_configs_prefilter),
                  len(self.best_configs))

    def _need_tuned(self) -> Thresholds:
        if self._thresholds is None:
            raise InvalidArgumentError("tune() comes first")
        return self._thresholds

    def _listed(self, best_only: bool) -> Sequence[Config]:
        self._need_tuned()
        return self.best_configs if best_only else self.kept_configs

    def dump_configs(self, filepath: Path, best_only: bool = True) -> None:
        """Writes the best choices, or all that were kept, as JSON; ``load_configs`` reads it.

        The file also says which application, thresholds, models and versions they come from.

        Raises:
            InvalidArgumentError: ``tune`` has not run.
            InputOutputError: the file cannot be written.
        """
        limits = self._need_tuned()
        header = {
            "app": self.app.name,
            "app_key": hashlib.sha256(self.app.table_key().encode()).hexdigest(),
            "thresholds": dataclasses.asdict(limits),
            "baseline": {"tune_qos": self.baseline_tune_qos, "test_qos": self.baseline_test_qos,
                         "cost": self._baseline_cost, "knob": self.app.baseline_knob.name},
            "tuning": self._header,
            "environment": {"foretune": _foretune.version, "python": platform.python_version(),
                            "numpy": np.__version__, "machine": platform.machine(),
                            "system": platform.system()},
        }
        write_text(filepath, content_of(self._listed(best_only), self.best_configs, header))

    def dump_hpvm_configs(self, filepath: Path, best_only: bool = True) -> None:
        """Writes the best choices, or all that were kept, in HPVM's text, the baseline first.

        Raises:
            InvalidArgumentError: ``tune`` has not run.
            InputOutputError: the file cannot be written.
        """
        configs = self._listed(best_only)
        qos = self.baseline_test_qos
        dump_hpvm_configs(filepath, self.app, configs,
                          1e3 * self._baseline_cost
                          if self._cost_is_measured and self.app.cost_is_seconds else 0.0,
                          float(self.baseline_tune_qos or 0.0) if qos is None else qos)

    def plot_configs(self, show_qos_loss: bool = False,
                     connect_best_points: bool = False) -> Figure:
        """Returns a figure of Matplotlib: speedup over quality of kept and best choices, predicted
        beside measured quality, and tuning beside test inputs, as far as they were measured.

        Args:
            show_qos_loss: shows what is lost against the baseline instead of the quality.
            connect_best_points: draws a line through the best choices.

        Raises:
            InvalidArgumentError: ``tune`` has not run.
            UnsupportedError: Matplotlib is not installed.
        """
        from ._plots import plot

        return plot(self, self._need_tuned(), show_qos_loss, connect_best_points)


def _best_of(configs: Sequence[Config], count: int | None) -> list[int]:
    """Returns the positions of the choices that no other beats, or of so many good ones."""
    points = np.array([(-each.qos, -each.speedup) for each in configs], np.float64).reshape(-1, 2)
    if count is None:
        return list(_foretune.pareto_front(points))
    return list(_foretune.take_best(points, count))


class ApproxModeledTuner(ApproxTuner):
    """Tunes an application with models of quality and cost. ``ModeledApp.get_tuner`` makes one.

    Attributes, Thread safety: as for ``ApproxTuner``.
    """

    app: ModeledApp

    def tune(self, max_iter: int, qos_tuner_threshold: float,
             qos_keep_threshold: float | None = None, is_threshold_relative: bool = False,
             take_best_n: int | None = None, test_configs: bool = True,
             validate_configs: bool | None = None, cost_model: str | None = None,
             qos_model: str | None = None, seed: int = 42, *,
             strategy: str = "evolution") -> list[Config]:
        """Tries choices of knobs and returns the best ones, by falling quality.

        Args:
            max_iter, qos_tuner_threshold, qos_keep_threshold, is_threshold_relative, take_best_n,
                test_configs, seed, strategy: as for ``ApproxTuner.tune``.
            validate_configs: measures the quality of the best choices on the tuning inputs; None:
                where a model predicted it.
            cost_model, qos_model: names of models (``get_models``); None: the application runs. A
                measured cost of the best choices is then measured once more, for the cheapest of
                many noisy times is a lucky one.

        Raises:
            InvalidArgumentError: an argument makes no sense.
            NotFoundError: there is no such model or strategy.
        """
        self.app.check_models(qos_model, cost_model)
        validate = qos_model is not None if validate_configs is None else bool(validate_configs)
        return self._tune(
            lambda knobs: self.app.measure_qos_cost(knobs, False, qos_model, cost_model),
            ValConfig, max_iter,
            (qos_tuner_threshold, qos_keep_threshold, is_threshold_relative), take_best_n,
            test_configs, validate, seed, strategy,
            {"qos_model": qos_model, "cost_model": cost_model})
