"""Figures of what a tuner found. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._errors import UnsupportedError
from ._configs import Config, ValConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._tuner import ApproxTuner, Thresholds

_KEPT, _BEST, _LIMIT = "#4c78a8", "#f58518", "#888888"


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as failure:
        raise UnsupportedError("plot_configs needs the Python package matplotlib, which is not "
                               "installed") from failure
    return Figure


def _scatter(axes: Any, configs: Sequence[Config], x: Callable[[Config], float],
             y: Callable[[Config], float], colour: str, label: str) -> None:
    axes.scatter([x(each) for each in configs], [y(each) for each in configs], s=14, color=colour,
                 label=label)


def _draw_kept(axes: Any, tuner: ApproxTuner, quality: Callable[[Config], float], word: str,
               limit: float, connect: bool) -> None:
    best = sorted(tuner.best_configs, key=quality)
    _scatter(axes, tuner.kept_configs, quality, lambda each: each.speedup, _KEPT, "kept")
    _scatter(axes, best, quality, lambda each: each.speedup, _BEST, "best")
    if connect:
        axes.plot([quality(each) for each in best], [each.speedup for each in best], color=_BEST)
    axes.axvline(limit, color=_LIMIT, linestyle="--", label="threshold")
    axes.set_xlabel(word)
    axes.set_ylabel("speedup")
    axes.legend()


def _draw_pairs(axes: Any, pairs: Sequence[tuple[float, float]], limit: float, x: str,
                y: str) -> None:
    axes.scatter([pair[0] for pair in pairs], [pair[1] for pair in pairs], s=14, color=_BEST)
    axes.axhline(limit, color=_LIMIT, linestyle="--")
    axes.axline((limit, limit), slope=1, color=_LIMIT, linewidth=0.5)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


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
                                               f"predicted {word}", f"measured {word}"))
    tested = [(shown(each.qos, tune), shown(each.test_qos, test)) for each in found
              if each.test_qos is not None]
    if tested:
        panels.append(lambda axes: _draw_pairs(axes, tested, shown(limits.keep_test, test),
                                               f"{word} on tuning inputs",
                                               f"{word} on test inputs"))
    figure = figure_class(figsize=(5 * len(panels), 4), dpi=300, layout="constrained")
    for draw, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        draw(axes)
    figure_made: Figure = figure
    return figure_made
