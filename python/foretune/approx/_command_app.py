"""External programs as applications: a command line with knobs, judged by what it prints."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence

from .._errors import Error, InvalidArgumentError, NotFoundError
from ._apps import ApproxApp
from .knobs import ApproxKnob

__all__ = ["CommandApp"]

_PLACE = re.compile(r"\{([^{}]*)\}")


class CommandApp(ApproxApp):
    """A program that computes less as its command line says::

        CommandApp("blur", {"rows": knobs, "taps": knobs},
                   ["./blur", "--rows={rows}", "--taps={taps}"],
                   tune_args=["tune.ppm"], test_args=["test.ppm"], qos_pattern=r"psnr: ([0-9.]+)")

    Its cost is the time from start to end, in seconds, or what ``cost_pattern`` finds. No shell
    reads the command.

    Args:
        name: any name.
        op_knobs: as for ``ApproxApp``.
        command: the program and its arguments; ``{op}`` becomes the name of the operation's knob.
        tune_args, test_args: further arguments for tuning and for test inputs.
        qos_pattern: a regular expression whose first group is the quality, a number, in what the
            program prints; the last match counts.
        timeout: seconds after which a run is stopped, and fails.
        cost_pattern: the same expression for the cost, which is positive and may be of any unit: the
            time of the work without that of starting, an energy. None: the time of the whole run.

    Raises:
        InvalidArgumentError: an argument makes no sense, or the command lacks an operation or names
            an unknown one.

    Thread safety: one thread at a time; it measures time.
    """

    cost_is_seconds = True

    def __init__(self, name: str, op_knobs: Mapping[str, Iterable[ApproxKnob]],
                 command: Sequence[str], tune_args: Sequence[str], test_args: Sequence[str],
                 qos_pattern: str, *, timeout: float = 600.0,
                 cost_pattern: str | None = None) -> None:
        super().__init__(op_knobs)
        self._name = name
        for words, argument in ((command, "command"), (tune_args, "tune_args"),
                                (test_args, "test_args")):
            if isinstance(words, str) or not all(isinstance(word, str) for word in words):
                raise InvalidArgumentError(f"{argument} is a list of texts")
        named = {place for word in command for place in _PLACE.findall(word)}
        wrong = sorted(named ^ set(self.ops))
        if not command or wrong:
            raise InvalidArgumentError("the command names every operation as {operation} and no "
                                       f"other; wrong are {', '.join(wrong) or 'all'}")
        self._qos_pattern = _compiled(qos_pattern, "qos_pattern")
        self._cost_pattern = (None if cost_pattern is None
                              else _compiled(cost_pattern, "cost_pattern"))
        self.cost_is_seconds = cost_pattern is None
        if not timeout > 0:
            raise InvalidArgumentError("timeout is a positive number of seconds")
        self._command, self._timeout = list(command), timeout
        self._arguments = {False: list(tune_args), True: list(test_args)}

    @property
    def name(self) -> str:
        """Returns the application's name."""
        return self._name

    def measure_qos_cost(self, with_approxes: Mapping[str, str], is_test: bool
                         ) -> tuple[float, float]:
        """Runs the program and returns its quality and its cost.

        Raises:
            NotFoundError: there is no such program.
            Error: it fails, runs past the timeout, or prints no quality or cost.
        """
        chosen = self.add_baseline_to_knobs(with_approxes)
        words = [_PLACE.sub(lambda place: chosen[place[1]], word) for word in self._command]
        words += self._arguments[is_test]
        begin = time.perf_counter()
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, timeout=self._timeout, check=False)
        except subprocess.TimeoutExpired as failure:
            raise Error(f"{words[0]} ran for more than {self._timeout:g} s") from failure
        except OSError as failure:
            raise NotFoundError(f"{words[0]} does not start: {failure.strerror}") from failure
        seconds = time.perf_counter() - begin
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
            raise Error(f"{words[0]} ended with {done.returncode}: {last}")
        quality = _number(self._qos_pattern, done.stdout, words[0], "quality")
        if self._cost_pattern is None:
            return quality, seconds
        return quality, _number(self._cost_pattern, done.stdout, words[0], "cost")


def _compiled(pattern: str, argument: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as failure:
        raise InvalidArgumentError(f"{argument} is no expression: {failure}") from failure
    if compiled.groups < 1:
        raise InvalidArgumentError(f"{argument} has a group for the number: (...)")
    return compiled


def _number(pattern: re.Pattern[str], printed: str, program: str, meaning: str) -> float:
    found = list(pattern.finditer(printed))
    if not found:
        raise Error(f"{program} printed nothing like {pattern.pattern}")
    try:
        return float(found[-1][1])
    except (TypeError, ValueError) as failure:
        raise Error(f"{program} printed the {meaning} {found[-1][1]!r}, which is no number"
                    ) from failure
