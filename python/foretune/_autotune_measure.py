"""Measures one config of a kernel: the hooks around a launch, the clock, and failures.

Thread safety: one measurement at a time per object; several on one device disturb each other.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

from . import _foretune
from ._autotune_store import Measurement
from ._errors import InvalidArgumentError

# Share of a full measurement's time; the minimum of a rough measurement is within a few per cent of
# that of a full one.
_ROUGH_SHARE = 1 / 20
# Defaults of Triton's benchmark functions, in milliseconds.
_WARMUP_MS = 25
_REPETITION_MS = 100
# The warm-up of a window, in milliseconds: the rough measurement before has warmed up.
_WINDOW_WARMUP_MS = 1.0

# Outcome and stage by the name of an exception's class or of one of its parents. Names are used
# because Triton has moved these classes between modules, and need not be installed.
_FAILURES = {
    "OutOfResources": ("unsupported", "prepare"),
    "CompilationError": ("prepare failed", "prepare"),
    "PTXASError": ("prepare failed", "prepare"),
}
_LONGEST_REASON = 300


class Timing(NamedTuple):
    """A result that a ``measure`` function may return in place of nanoseconds, also as a tuple."""

    time_ns: float
    """Time of a launch, the least of several windows; with ``censored`` a lower bound of it."""
    spread: float = 0.0
    """Interquartile range of the windows over their median; 0 when unknown."""
    censored: bool = False
    median_ns: float = 0.0
    """Median of the windows; 0 when unknown."""
    samples: int = 0
    """Number of windows; 0 when unknown."""


Measure = Callable[[Callable[[], None], Union[float, None]], Union[Timing, float]]
"""``measure(launch, limit_ns)``: times ``launch()``, which launches the kernel once, hooks
included. It may be imprecise about a launch that surely takes longer than ``limit_ns`` (None: no
limit).
"""


def failure_of(error: BaseException) -> tuple[str, str] | None:
    """Returns outcome and stage of an exception that means that a config does not work here; None
    for all others, which are the caller's to handle."""
    for parent in type(error).__mro__:
        if parent.__name__ in _FAILURES:
            return _FAILURES[parent.__name__]
    return None


def reason_of(error: BaseException) -> str:
    """Returns the message of an exception on one line; keeps the end of a long one, because the
    last lines of a compiler's message matter."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST_REASON else "... " + text[-_LONGEST_REASON:]


class Hooks:
    """Runs before and after a measured launch: the user's hooks, or else the resets of
    ``reset_to_zero`` and ``restore_value``."""

    def __init__(self, reset_to_zero: Sequence[str] | None, restore_value: Sequence[str] | None,
                 pre_hook: Callable[..., object] | None,
                 post_hook: Callable[..., object] | None) -> None:
        self._reset = list(reset_to_zero or ())
        self._restore = list(restore_value or ())
        self._pre_hook = pre_hook
        self._post_hook = post_hook
        self._copies: dict[str, Any] = {}

    def before(self, arguments: Mapping[str, Any]) -> None:
        if self._pre_hook is not None:
            self._pre_hook(arguments)
            return
        self._zero(arguments)
        self._copies = {name: arguments[name].clone() for name in self._restore}

    def after(self, arguments: Mapping[str, Any], error: BaseException | None) -> None:
        if self._post_hook is not None:
            self._post_hook(arguments, exception=error)
            return
        # Empty when the user's own hook ran before.
        for name, copy in self._copies.items():
            arguments[name].copy_(copy)
        self._copies = {}

    def reset(self, arguments: Mapping[str, Any]) -> None:
        """Resets tensors once after all measurements, before the launch whose result counts."""
        if self._pre_hook is not None:
            self._pre_hook(arguments, reset_only=True)
        else:
            self._zero(arguments)

    def _zero(self, arguments: Mapping[str, Any]) -> None:
        for name in self._reset:
            arguments[name].zero_()


@dataclass(frozen=True)
class TritonClock:
    """Measures by the library's timing protocol (docs/explanation/measuring.md) with the benchmark functions of
    ``triton.testing`` as its clock: events and a cold L2 cache, or CUDA graphs.

    A rough measurement of a twentieth of the time comes first. A kernel whose best launch there
    exceeds the limit is not measured any further. Then windows follow, each the median of a
    fifteenth of the time: at least five, and more while they scatter.
    """

    warmup_ms: float | None = None
    repetition_ms: float | None = None
    use_cuda_graph: bool = False
    do_bench: Callable[..., Any] | None = None
    """The user's own ``do_bench(call, quantiles)``, in milliseconds; it is always run in full."""

    def __call__(self, launch: Callable[[], None], limit_ns: float | None) -> Timing:
        bench, is_adjustable = self._benchmark()
        if not is_adjustable:
            times = _milliseconds(bench(launch, quantiles=(0.5, 0.25, 0.75)))
            median = times[0]
            is_known = len(times) > 2 and 0 < median < math.inf
            return Timing(median * 1e6, max(0.0, times[2] - times[1]) / median if is_known else 0.0)
        warmup = self.warmup_ms if self.warmup_ms is not None else _WARMUP_MS
        repetition = self.repetition_ms if self.repetition_ms is not None else _REPETITION_MS

        def rough_ns() -> float:
            rough = max(1.0, repetition * _ROUGH_SHARE)
            return _milliseconds(self._run(bench, launch, warmup, rough, (0.0, 0.5)))[0] * 1e6

        def windows_ns(count: int) -> list[float]:
            length = repetition / _foretune.max_windows
            return [_milliseconds(self._run(bench, launch, _WINDOW_WARMUP_MS, length,
                                            (0.5, 0.25, 0.75)))[0] * 1e6 for _ in range(count)]

        time_ns, median_ns, spread, samples, is_bound = _foretune.time_launch(
            rough_ns, windows_ns, None if limit_ns is None else limit_ns / _foretune.censor_factor,
            repetition * 1e6)
        return Timing(time_ns, spread, is_bound, median_ns, samples)

    def _run(self, bench: Callable[..., Any], launch: Callable[[], None], warmup: float,
             repetition: float, quantiles: tuple[float, ...]) -> Any:
        if self.use_cuda_graph:
            return bench(launch, rep=repetition, quantiles=quantiles)
        return bench(launch, warmup=warmup, rep=repetition, quantiles=quantiles)

    def _benchmark(self) -> tuple[Callable[..., Any], bool]:
        """Returns the benchmark function, and true when it takes warm-up and repetition times."""
        if self.use_cuda_graph:
            from triton.testing import do_bench_cudagraph  # type: ignore[import-not-found]

            return do_bench_cudagraph, True
        if self.warmup_ms is not None or self.repetition_ms is not None:
            from triton.testing import do_bench

            return do_bench, True
        if self.do_bench is not None:
            return self.do_bench, False
        from triton.runtime.driver import driver  # type: ignore[import-not-found]

        bench = driver.active.get_benchmarker()  # Triton's choice for this device
        try:
            taken = inspect.signature(bench).parameters
        except (TypeError, ValueError):
            return bench, False
        return bench, "warmup" in taken and "rep" in taken


def measured(measure: Measure, launch: Callable[[], None], key: str, config: str,
             incumbent_ns: float | None) -> tuple[Measurement, BaseException | None]:
    """Measures a config; an exception that means that the config does not work here becomes an
    outcome.

    Args:
        measure: the clock.
        launch: launches the kernel once.
        key, config: canonical texts.
        incumbent_ns: the fastest time so far; None when there is none.

    Returns:
        The measurement, and the exception behind a failure.

    Raises:
        Whatever a launch raises for reasons other than the config.
        InvalidArgumentError: ``measure`` returned a value that is not a time.
    """
    begin = time.perf_counter()
    try:
        limit_ns = None if incumbent_ns is None else _foretune.censor_factor * incumbent_ns
        result = measure(launch, limit_ns)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        outcome, stage = failure
        seconds = time.perf_counter() - begin
        return Measurement(key, config, outcome, stage=stage, reason=reason_of(error),
                           seconds=seconds), error
    seconds = time.perf_counter() - begin
    timing = Timing(*result) if isinstance(result, tuple) else Timing(float(result))
    if timing.time_ns == math.inf:
        # Some benchmark functions swallow exceptions and return infinity.
        return Measurement(key, config, "unsupported", stage="run", seconds=seconds,
                           reason="the benchmark function returned infinity"), None
    if not 0 < timing.time_ns < 1e30:
        raise InvalidArgumentError(f"a measured time is a positive number, not {timing.time_ns}")
    outcome = "censored" if timing.censored else "ok"
    return Measurement(key, config, outcome, float(timing.time_ns), float(timing.spread),
                       seconds=seconds, median_ns=float(timing.median_ns),
                       samples=timing.samples), None


def _milliseconds(times: Any) -> list[float]:
    """Returns a benchmark function's result as a list; it is one number, or one per quantile."""
    try:
        return [float(entry) for entry in times]
    except TypeError:
        return [float(times)]
