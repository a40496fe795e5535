"""LoopTune's environment with Gymnasium's interface; see ``foretune.loops``."""

from __future__ import annotations

import json
import math
import operator
import os
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError, UnsupportedError
from .loops import (Computation, ComputationLike, Observation, as_computation, isa_text,
                    measure_peak, observations, plain_text, positive, schedule_text, whole_number)

try:
    from gymnasium import Env as _Base
    from gymnasium import spaces as _spaces
except ImportError:
    from . import _spaces  # type: ignore[no-redef]

    class _Base:  # type: ignore[no-redef]
        """Draws random numbers like ``gymnasium.Env``: the same seeds give the same numbers."""

        _np_random: np.random.Generator | None = None

        @property
        def np_random(self) -> np.random.Generator:
            if self._np_random is None:
                self._np_random = np.random.default_rng()
            return self._np_random

        @property
        def unwrapped(self) -> Any:
            return self

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
            if seed is not None:
                self._np_random = np.random.default_rng(seed)


# Far above the length of any observation.
_LONGEST_TEXT = 1 << 16
_OPTIONS = ("computation", "schedule", "state")


class Taken(NamedTuple):
    """An action of the episode and its effect."""

    action: str
    gflops: float
    """GFLOPS of the state after it."""
    reward: float


class Best(NamedTuple):
    """The fastest state of an episode, its start included; the earliest of equals."""

    schedule: str
    gflops: float
    seconds: float
    """Time of one run."""
    steps: int
    """Number of actions of ``history`` that lead to it."""


class CacheInfo(NamedTuple):
    """Counts of the cache of measured schedules, over all computations."""

    hits: int
    """Schedules whose times were known, in memory or in the file."""
    misses: int
    """Schedules that were measured."""
    size: int
    """Schedules in memory."""


class LoopNestEnv(_Base):
    """Tunes a loop nest step by step: a cursor moves over the loops, and actions transform the loop
    at the cursor.

    Args:
        computations: one or several computations or texts; each ``reset`` draws one of them.
        actions: names of the actions, in the order of their numbers. None takes LoopTune's seven
            and ``stop``; ``"all"`` takes all actions.
        observation: a name of ``foretune.loops.observations()``, or several names, which make
            observations dictionaries.
        max_steps: number of steps after which an episode is truncated.
        max_loops: maximum number of loops, up to 255; also the rows of ``loops_tensor``.
        peak_gflops: divisor of rewards. None measures it, in 50 ms; pass a number when rewards must
            agree between runs or machines.
        isa: ``avx2`` or ``avx512``; None takes the best of this CPU.
        seed: seeds the draws of computations, as in ``reset``.
        illegal: effect of an action that is not legal. ``"raise"`` raises an error and changes
            nothing. ``"ignore"`` changes nothing, gives no reward and counts as a step; it is for
            agents without masks.
        render_mode: None or ``"ansi"``; ``render()`` returns a text either way.
        cache: file of measured schedules, created when it does not exist, in the format of
            ``foretune tune --cache``. It holds computations of one kind, and one environment or
            program at a time may have it open. None keeps measurements in memory only.

    When Gymnasium is installed, this is a ``gymnasium.Env`` with Gymnasium's spaces; otherwise
    small equivalents replace them. sb3-contrib's MaskablePPO calls ``action_masks()``.

    The reward of a step is the change of GFLOPS divided by the peak, so the rewards of an episode
    add up to the gain of its last state over its start. Every schedule is compiled, verified and
    timed. A schedule that cannot be compiled, or is wrong, counts 0 GFLOPS, with a reason. The
    environment remembers times as long as it lives, and ``cache`` keeps them for ever: the same
    schedule has the same reward every time. Each computation keeps its operands in memory once it
    was drawn.

    ``info`` of every reset and step has

    - ``gflops``: GFLOPS of the new state;
    - ``reason``: why the schedule counts 0, or why the action was ignored; else empty;
    - ``action_mask``: bool [actions], true for actions that are legal and change something;
    - ``schedule``, ``computation``: as texts;
    - ``ignored``: true when the action was not legal and did nothing.

    Raises:
        InvalidArgumentError: a name is unknown, or a number is out of bounds.
        UnsupportedError: nothing can be compiled here, or there is a ``cache`` for a computation
            that no problem type describes.
        MismatchError: the ``cache`` belongs to another machine or to other problems.

    Thread safety: one thread at a time; a second one gets an error. Other Python threads run during
    measurements. Environments share nothing, but disturb each other's times. Every call returns new
    arrays.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}

    def __init__(self, computations: ComputationLike | Sequence[ComputationLike], *,
                 actions: str | Sequence[str] | None = None,
                 observation: str | Sequence[str] = "loops_tensor", max_steps: int = 10,
                 max_loops: int = 10, peak_gflops: float | None = None, isa: str | None = None,
                 seed: int | None = None, illegal: str = "raise",
                 render_mode: str | None = None,
                 cache: str | os.PathLike[str] | None = None) -> None:
        self._native: _foretune.LoopEnvironment | None = None
        self.computations = tuple(as_computation(each) for each in _several(
            computations, (str, Computation), "computations"))
        if not self.computations:
            raise InvalidArgumentError("an environment is of at least one computation")
        text = _actions_text(actions)
        self.actions = tuple(_foretune.loop_actions(text))
        """Names of the actions, by number."""
        self.max_steps = whole_number(max_steps, "max_steps", 1, 1_000_000_000)
        known = {each.name: each
                 for each in observations(whole_number(max_loops, "max_loops", 1, 255), text)}
        self._is_dictionary = not isinstance(observation, str)
        self._observed = [_known(name, known)
                          for name in _several(observation, str, "observations")]
        if not self._observed:
            raise InvalidArgumentError("an environment has at least one observation")
        self._known = known
        for name, value, values in (("illegal", illegal, ("raise", "ignore")),
                                    ("render_mode", render_mode, (None, "ansi"))):
            if value not in values:
                raise InvalidArgumentError(
                    f"{name} is {values[0]!r} or {values[1]!r}, not {value!r}")
        self.render_mode = render_mode
        self._numbers = {name: number for number, name in enumerate(self.actions)}
        self._current = self.computations[0]
        self._gflops = 0.0
        self.peak_gflops = _peak(peak_gflops, isa)
        """Divisor of rewards."""
        self._native = _foretune.make_loop_environment(
            [each._native for each in self.computations], text, isa_text(isa), self.peak_gflops,
            max_loops, self.max_steps, illegal == "ignore", [each.name for each in self._observed],
            "" if cache is None else os.fspath(cache))
        self.action_space = _spaces.Discrete(len(self.actions))
        by_name = {each.name: _space(each) for each in self._observed}
        self.observation_space = (_spaces.Dict(by_name) if self._is_dictionary
                                  else by_name[self._observed[0].name])
        if seed is not None:
            super().reset(seed=_seed(seed))

    def reset(self, *, seed: int | None = None,
              options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: the same seed draws the same computations from here on.
            options: ``computation`` (one of ``computations``, or its number) replaces the draw.
                ``schedule`` (text) starts at this schedule instead of the unscheduled nest, with
                the cursor at the outermost loop. ``state`` (text, as the property) also sets the
                cursor.

        Returns:
            The observation, and ``info``.

        Raises:
            InvalidArgumentError: an option is unknown, or ``computations`` lacks the computation.
            UnsupportedError: the start is not legal; the message has the reason. Nothing changes.
        """
        native = self._opened()
        if options is not None and not isinstance(options, Mapping):
            raise InvalidArgumentError(
                f"options are a mapping of names, not {type(options).__name__}")
        options = dict(options or {})
        if unknown := [name for name in options if name not in _OPTIONS]:
            raise InvalidArgumentError(f"reset has no option {unknown[0]!r}; it has "
                                       + ", ".join(_OPTIONS))
        start = options.get("state", "")
        if options.get("schedule"):
            if start:
                raise InvalidArgumentError(
                    "an episode starts at a schedule or at a state, not both")
            start = options["schedule"]
        start = schedule_text(start)
        super().reset(seed=None if seed is None else _seed(seed))
        index = self._choice(options.get("computation"))
        mask, out = self._memory()
        gflops, reason, schedule = native.reset(index, start, mask, out)
        self._current = self.computations[index]
        return self._observation(out), self._info(gflops, reason, mask, schedule, False)

    def step(self, action: int | str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action, by its number or its name.

        Returns:
            The observation, the reward, whether the episode has ended (``stop``, or no legal action
            is left), whether it was truncated after ``max_steps``, and ``info``.

        Raises:
            InvalidArgumentError: ``action`` is no action, is not legal (the message has the
                reason), or comes after the end of the episode. Nothing changes.
        """
        native = self._opened()
        mask, out = self._memory()
        reward, terminated, truncated, ignored, gflops, reason, schedule = native.step(
            self._number(action), mask, out)
        return (self._observation(out), reward, terminated, truncated,
                self._info(gflops, reason, mask, schedule, ignored))

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Returns bool [actions], true for actions that are legal and change something. After the
        end of an episode all are false."""
        mask = np.empty(len(self.actions), np.bool_)
        self._opened().write_mask(mask)
        return mask

    def observe(self, name: str) -> Any:
        """Returns any observation of the present state by its name: an array or a text.

        Raises:
            InvalidArgumentError: there is no such observation, or ``reset`` was not called yet.
        """
        entry = _known(name, self._known)
        native = self._opened()
        if entry.kind == "tensor":
            array = np.empty(entry.shape, np.float32)
            native.observe(name, array)
            return array
        return _value(entry, native.observe(name, None))

    def observe_networkx(self, name: str = "ir_graph") -> Any:
        """Returns ``ir_graph`` (loops, tensors and the operation) or ``ir_tree`` (the loops) as a
        graph of networkx.

        Raises:
            InvalidArgumentError: ``name`` is another one.
            UnsupportedError: networkx 3.4 or later is not installed.
        """
        kind = name.removesuffix("_networkx") if isinstance(name, str) else name
        if kind not in ("ir_graph", "ir_tree"):
            raise InvalidArgumentError(f"networkx shows ir_graph and ir_tree, not {name!r}")
        try:
            import networkx
        except ImportError:
            raise UnsupportedError(
                "networkx is not installed: pip install foretune[loops]") from None
        data = json.loads(str(self.observe(f"{kind}_networkx")))
        if kind == "ir_tree":
            return networkx.tree_graph(data)
        return networkx.node_link_graph(data, edges="edges")

    def observations(self) -> list[Observation]:
        """Returns all observations of ``observe``, with the shapes of this environment."""
        return list(self._known.values())

    def render(self) -> str:
        """Returns the loops as an indented tree, with the cursor."""
        return str(self.observe("loop_tree"))

    def close(self) -> None:
        """Frees operands, code and times. The environment cannot be used afterwards."""
        self._native = None

    def cache_clear(self) -> None:
        """Forgets the times in memory, so that schedules are measured again; a file keeps its
        times."""
        self._opened().clear_cache()

    def cache_info(self) -> CacheInfo:
        """Returns how often a schedule's time was known or had to be measured."""
        return CacheInfo(*self._opened().cache_info())

    @property
    def computation(self) -> Computation:
        """The computation of this episode."""
        return self._current

    @property
    def history(self) -> list[Taken]:
        """The actions of this episode, oldest first, without ignored ones."""
        return [Taken(*entry) for entry in self._opened().history()]

    @property
    def best(self) -> Best:
        """The fastest state of this episode."""
        return Best(*self._opened().best())

    @property
    def state(self) -> str:
        """The canonical schedule and the loop that the cursor is at: ``"split m0 4 @ m1"``."""
        return self._opened().state

    @property
    def gflops(self) -> float:
        """GFLOPS of the present state; 0 when its schedule was refused."""
        return self._gflops

    @property
    def runtime_seconds(self) -> float:
        """Seconds of one run; infinite when the schedule was refused."""
        return float(self.observe("runtime")[0])

    @property
    def runtime_ns(self) -> float:
        """Nanoseconds of one run; infinite when the schedule was refused."""
        return float(self.observe("runtime_ns")[0])

    def _opened(self) -> _foretune.LoopEnvironment:
        if self._native is None:
            raise InvalidArgumentError("the environment is closed")
        return self._native

    def _memory(self) -> tuple[npt.NDArray[np.bool_], list[Any]]:
        return (np.empty(len(self.actions), np.bool_),
                [np.empty(each.shape, np.float32) if each.kind == "tensor" else None
                 for each in self._observed])

    def _observation(self, out: list[Any]) -> Any:
        if not self._is_dictionary:
            return _value(self._observed[0], out[0])
        return {each.name: _value(each, value) for each, value in zip(self._observed, out)}

    def _info(self, gflops: float, reason: str, mask: npt.NDArray[np.bool_], schedule: str,
              ignored: bool) -> dict[str, Any]:
        self._gflops = gflops
        return {"gflops": gflops, "reason": reason, "action_mask": mask, "schedule": schedule,
                "computation": self._current.name, "ignored": ignored}

    def _choice(self, wanted: Any) -> int:
        count = len(self.computations)
        if wanted is None:
            # A single computation needs no random number.
            return int(self.np_random.integers(count)) if count > 1 else 0
        if isinstance(wanted, (str, Computation)):
            made = as_computation(wanted)
            if made not in self.computations:
                raise InvalidArgumentError(f"{made.name!r} is not among the computations")
            return self.computations.index(made)
        return whole_number(wanted, "computation", 0, count - 1)

    def _number(self, action: int | str) -> int:
        if isinstance(action, str):
            number = self._numbers.get("stop" if action == "terminate" else action)
            if number is None:
                raise InvalidArgumentError(f"there is no action {action!r} here; there are "
                                           + ", ".join(self.actions))
            return number
        try:
            number = operator.index(action)
        except TypeError:
            raise InvalidArgumentError(f"an action is a number or a name, not {action!r}") from None
        if not 0 <= number < len(self.actions):
            raise InvalidArgumentError(
                f"action {number} is not from 0 to {len(self.actions) - 1}")
        return number


def _several(value: Any, one: Any, what: str) -> list[Any]:
    """Returns the values as a list; a single one becomes a list of one."""
    if isinstance(value, one):
        return [value]
    if not isinstance(value, Iterable):
        raise InvalidArgumentError(f"{what} are a list, or one of them, not {value!r}")
    return list(value)


def _actions_text(actions: str | Sequence[str] | None) -> str:
    if actions is None:
        return ""
    names = _several(actions, str, "actions")
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidArgumentError(f"actions are names, at least one, not {actions!r}")
    return plain_text(",".join(names), "actions are names")


def _known(name: str, known: Mapping[str, Observation]) -> Observation:
    if not isinstance(name, str) or name not in known:
        raise InvalidArgumentError(f"{name!r} is no observation; the observations are "
                                   + " ".join(known))
    return known[name]


def _value(entry: Observation, value: Any) -> Any:
    return np.array([value]) if entry.kind == "number" else value


def _space(entry: Observation) -> Any:
    if entry.kind == "text":
        return _spaces.Text(_LONGEST_TEXT, min_length=0, charset=string.printable)
    dtype = np.float32 if entry.kind == "tensor" else np.float64
    return _spaces.Box(0, math.inf, entry.shape, dtype)


def _seed(seed: int) -> int:
    return whole_number(seed, "seed", 0, 2**63 - 1)


def _peak(peak_gflops: float | None, isa: str | None) -> float:
    if peak_gflops is None:
        return measure_peak(isa)
    return positive(peak_gflops, "peak_gflops", 1e9)
