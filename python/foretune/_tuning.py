"""Tunes one problem by measuring, and measures given configs of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _foretune
from ._keywords import option_texts
from ._plugins import load_installed_plugins
from ._problem import Problem, problem_text
from ._worker import worker_command

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import MeasureOptions, TuneOptions


@dataclass(frozen=True)
class TunedConfig:
    """One config of the final comparison."""

    config: str
    time_ns: float
    """Fastest window of the comparison, in nanoseconds."""
    spread: float
    """Relative interquartile range of the windows; 0 when unknown."""
    metrics: dict[str, float]
    """Every metric that was measured, by name, in the metric's own unit."""


@dataclass(frozen=True)
class TuneResult:
    """The result of tuning one problem."""

    problem: str
    finalists: list[TunedConfig]
    """With one target the best first; with several their Pareto set, in the order of the first."""
    default: TunedConfig | None
    """The family's default config in the same comparison; None where the family has none."""
    measured: int
    """Number of measurements."""
    seconds: float

    @property
    def best(self) -> TunedConfig:
        return self.finalists[0]

    @property
    def speedup(self) -> float | None:
        """The default's time over the best's; None without a default."""
        return None if self.default is None else self.default.time_ns / self.best.time_ns


@dataclass(frozen=True)
class MeasuredConfig:
    """One config that ``measure`` verified and timed against the others."""

    name: str
    """``given``, ``default``, ``model's pick``, or several of them."""
    config: str
    outcome: str
    """One of ``foretune.OUTCOMES``; ``ok`` also says that the result was right."""
    reason: str
    time_ns: float | None
    """None unless the outcome is ``ok``."""
    spread: float | None
    metrics: dict[str, float]


def tune(problem: Problem, *, seed: int = 42,
         progress: Callable[[dict[str, Any]], object] | None = None,
         **options: Unpack[TuneOptions]) -> TuneResult:
    """Finds the best config of a problem: a strategy proposes configs and measures them within the
    budget; then the best are timed against each other and against the family's default.

    Args:
        problem: the problem, as text or as a mapping of its fields.
        seed: seeds every random choice.
        progress: called after every measurement with ``measured``, ``elapsed_s``, ``best_ns`` and
            ``best_config``.
        options: options of ``foretune tune``, with underscores for dashes (``TuneOptions``,
            ``docs/reference/python-options.md``): ``budget="60s"``, ``strategy``, ``objective``, ``model``,
            ``output``, ``family``, ``threads``, ...

    Raises:
        InvalidArgumentError: the problem or an option makes no sense, or has no effect.
        UnsupportedError: the family does not run the problem, or no config ran well.
        KeyboardInterrupt: on Ctrl-C, after the measurement that is running.

    Thread safety: any number of threads may tune at once, but they disturb each other's
    measurements. Other Python threads run meanwhile.
    """
    load_installed_plugins()
    text = problem_text(problem)
    found = _foretune.tune(text, option_texts("tune", dict(options)), int(seed), worker_command(),
                           progress)
    default = found["default"]
    return TuneResult(problem=text, finalists=[TunedConfig(**each) for each in found["finalists"]],
                      default=None if default is None else TunedConfig(**default),
                      measured=found["measured"], seconds=found["seconds"])


def measure(problem: Problem, configs: Sequence[str] = (), *, seed: int = 42,
            **options: Unpack[MeasureOptions]) -> list[MeasuredConfig]:
    """Verifies and times configs of a problem, beside the family's default and a model's pick.

    Each config is verified alone; those with a right result are then timed against each other.

    Args:
        problem: the problem, as text or as a mapping of its fields.
        configs: configs as text, as ``Dataset`` and ``tune`` write them; a default or a model is
            enough.
        seed: seeds the inputs.
        options: options of ``foretune measure``, with underscores for dashes
            (``docs/reference/python-options.md``): ``model``, ``metrics``, ``rounds``, ``family``, ...

    Raises:
        InvalidArgumentError: a config is not legal for the problem, or there is none.
        UnsupportedError: the family does not run the problem.

    Thread safety: as for ``tune``.
    """
    load_installed_plugins()
    found = _foretune.measure(problem_text(problem), list(configs),
                              option_texts("measure", dict(options)), int(seed), worker_command())
    return [MeasuredConfig(**each) for each in found]
