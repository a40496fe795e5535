"""Figures of what a tuner found. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .. import _foretune
from .._errors import UnsupportedError
from ._configs import Config, ValConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._tuner import ApproxTuner, Thresholds

# The light colours of the project's other plots (foretune/report/style.cc), and marks that differ
# by shape as well.
_KEPT, _BEST, _LIMIT, _INK, _GRID = "#1c5cb8", "#d4690a", "#c5321c", "#5b606b", "#ecece6"
_KEPT_MARK, _BEST_MARK = "o", "s"


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as failure:
        raise UnsupportedError("plot_configs needs the Python package matplotlib, which is not "
                               "installed") from failure
    return Figure


def _scatter(axes: Any, points: Sequence[tuple[float, float]], colour: str, mark: str,
             label: str) -> None:
    axes.scatter([x for x, _ in points], [y for _, y in points], s=16, color=colour, marker=mark,
                 alpha=0.8, label=label)


def _name(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize="medium", loc="left", wrap=True)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_axisbelow(True)
    axes.grid(color=_GRID)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small")


def _draw_kept(axes: Any, tuner: ApproxTuner, quality: Callable[[Config], float], word: str,
               limit: float, connect: bool) -> None:
    def points(configs: Sequence[Config]) -> list[tuple[float, float]]:
        return sorted((quality(each), each.speedup) for each in configs)

    best = points(tuner.best_configs)
    _scatter(axes, points(tuner.kept_configs), _KEPT, _KEPT_MARK, "kept")
    _scatter(axes, best, _BEST, _BEST_MARK, "best")
    if connect:
        axes.plot([x for x, _ in best], [y for _, y in best], color=_BEST)
    axes.axvline(limit, color=_LIMIT, linestyle="--", label="threshold")
    _name(axes, f"Speed-up by {word}", word, "speed-up over the baseline, times")


def _draw_pairs(axes: Any, pairs: Sequence[tuple[float, float]], limit: float, title: str, x: str,
                y: str) -> None:
    _scatter(axes, pairs, _BEST, _BEST_MARK, "best before the last check")
    axes.axhline(limit, color=_LIMIT, linestyle="--", label="threshold")
    axes.axline((limit, limit), slope=1, color=_INK, linewidth=0.8, label="both are equal")
    _name(axes, title, x, y)


def plot(tuner: ApproxTuner, limits: Thresholds, show_qos_loss: bool,
         connect_best_points: bool) -> Figure:
    """Returns the figure of ``ApproxTuner.plot_configs``.

    Raises:
        UnsupportedError: Matplotlib is not installed.
    """
    figure_class = _figure_class()
    tune = tuner.baseline_tune_qos or 0.0
    test = tune if tuner.baseline_test_qos is None else tuner.baseline_test_qos

    def shown(value: float, baseline: float) -> float:
        return baseline - value if show_qos_loss else value

    word = "loss of quality" if show_qos_loss else "quality"
    panels: list[Callable[[Any], None]] = [
        lambda axes: _draw_kept(axes, tuner, lambda each: shown(each.qos, tune),
                                f"{word} on tuning inputs", shown(limits.keep, tune),
                                connect_best_points)]
    found = tuner.best_configs_prefilter
    validated = [(shown(each.qos, tune), shown(each.validated_qos, tune)) for each in found
                 if isinstance(each, ValConfig) and each.validated_qos is not None]
    if validated:
        panels.append(lambda axes: _draw_pairs(axes, validated, shown(limits.keep, tune),
                                               f"Predicted and measured {word}",
                                               f"predicted {word}", f"measured {word}"))
    tested = [(shown(each.qos, tune), shown(each.test_qos, test)) for each in found
              if each.test_qos is not None]
    if tested:
        panels.append(lambda axes: _draw_pairs(axes, tested, shown(limits.keep_test, test),
                                               f"{word.capitalize()} on tuning and test inputs",
                                               f"{word} on tuning inputs",
                                               f"{word} on test inputs"))
    figure = figure_class(figsize=(5 * len(panels), 4), dpi=300, layout="constrained")
    for draw, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        draw(axes)
    figure.supxlabel(f"Foretune {_foretune.version}; {tuner.app.name}; "
                     f"{datetime.now(tz=timezone.utc):%Y-%m-%d}",
                     fontsize="x-small", color=_INK, x=0.01, ha="left")
    figure_made: Figure = figure
    return figure_made
