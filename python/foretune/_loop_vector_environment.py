"""Many episodes of loop nests at once, with the interface of Gymnasium's vector environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError
from ._loop_environment import _peak, _several, _spaces
from .loops import Computation, ComputationLike, as_computation, isa_text, whole_number

try:
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector import VectorEnv as _Base
    from gymnasium.vector.utils import batch_space

    _AUTORESET: Any = AutoresetMode.SAME_STEP
except ImportError:
    _Base = object  # type: ignore[assignment,misc]
    batch_space = None
    _AUTORESET = "SameStep"

LEVELS, LOOP_COLUMNS, WHOLE_COLUMNS, ACTIONS = _foretune.loop_action_sizes()
STOP = ACTIONS - 1


class LoopNestVectorEnv(_Base):
    """Builds schedules in many episodes at once, by actions that name their loop: the environment
    that ``foretune train-policy`` learns in.

    Args:
        computations: one or several computations or texts; each episode draws one of them.
        num_envs: number of episodes.
        max_steps: number of steps after which an episode is truncated.
        reward: ``"log"`` for the logarithm of a step's speed-up, ``"share"`` for the change of
            GFLOPS over the peak (LoopTune's), ``"best"`` for what a step adds to the logarithm of
            the fastest speed of its episode.
        price: taken off the reward of each step that had to measure a new schedule.
        peak_gflops: GFLOPS that count as 1. None measures them, in 50 ms.
        isa: ``avx2`` or ``avx512``; None takes the best of this CPU.
        copy: true returns new arrays; false returns views, which the next step overwrites.

    Observations are dictionaries:

    - ``loops``: float32 [num_envs, 12, 36], a row for each loop, outermost first, zeros behind the
      last;
    - ``whole``: float32 [num_envs, 30], facts of the nest, the machine and what the compiler makes
      of the nest.

    An action is a number from 0 to 336: 28 operations for each of 12 levels, and stopping at last;
    ``action_text()`` says which. ``info`` has

    - ``action_mask``: int8 [num_envs, 337], 1 for actions that are legal and change something;
    - ``log_share``: float32 [num_envs], logarithm of the share of the peak that the last step led
      to (after ``reset``: 0);
    - ``computation``: int64 [num_envs], the computation of each running episode, by its position.

    An episode is terminated by the action ``STOP`` and truncated after ``max_steps``. In the same
    step the next one begins, and the arrays show its start.

    When Gymnasium is installed, this is a ``gymnasium.vector.VectorEnv``. Every schedule is
    compiled, verified and timed once, in this process; times and observations are remembered.

    Raises:
        InvalidArgumentError: a name is unknown, or a number is out of bounds.
        UnsupportedError: nothing can be compiled here.

    Thread safety: one thread at a time; a second one gets an error. Other Python threads run during
    steps.
    """

    metadata: dict[str, Any] = {"autoreset_mode": _AUTORESET}
    STOP = STOP
    """The action that ends an episode."""

    def __init__(self, computations: ComputationLike | Sequence[ComputationLike], *,
                 num_envs: int = 32, max_steps: int = 12, reward: str = "log", price: float = 0.0,
                 peak_gflops: float | None = None, isa: str | None = None,
                 copy: bool = True) -> None:
        self.computations = tuple(as_computation(each) for each in _several(
            computations, (str, Computation), "computations"))
        if not self.computations:
            raise InvalidArgumentError("an environment is of at least one computation")
        if not 0 <= price <= 10:
            raise InvalidArgumentError(f"price is {price}, and goes from 0 to 10")
        self.num_envs = whole_number(num_envs, "num_envs", 1, 65536)
        self.peak_gflops = _peak(peak_gflops, isa)
        """GFLOPS that count as 1."""
        self._copy = copy
        self._native = _foretune.make_loop_vector_environment(
            [each._native for each in self.computations], isa_text(isa), self.peak_gflops,
            self.num_envs, whole_number(max_steps, "max_steps", 1, 1_000_000), reward, float(price))
        self.single_action_space = _spaces.Discrete(ACTIONS)
        self.single_observation_space = _spaces.Dict({
            "loops": _spaces.Box(-np.inf, np.inf, (LEVELS, LOOP_COLUMNS), np.float32),
            "whole": _spaces.Box(-np.inf, np.inf, (WHOLE_COLUMNS,), np.float32)})
        if batch_space is not None:
            self.action_space = batch_space(self.single_action_space, self.num_envs)
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None
              ) -> tuple[dict[str, npt.NDArray[np.float32]], dict[str, Any]]:
        """Begins all episodes. The same seed and times give the same computations."""
        if options:
            raise InvalidArgumentError(f"there are no options, but {', '.join(map(str, options))}")
        if seed is None:
            seed = int(np.random.default_rng().integers(2**62))
        self._native.reset(whole_number(seed, "seed", 0, 2**63 - 1))
        return self._observed(), self._info(np.zeros(self.num_envs, np.float32))

    def step(self, actions: npt.NDArray[Any]) -> tuple[
            dict[str, npt.NDArray[np.float32]], npt.NDArray[np.float64], npt.NDArray[np.bool_],
            npt.NDArray[np.bool_], dict[str, Any]]:
        """Takes an action of each episode. Returns observations, rewards, which episodes the action
        ``STOP`` and the last step ended, and the dictionary ``info``.

        Raises:
            InvalidArgumentError: an action is not legal; nothing changes then.
        """
        numbers = np.asarray(actions)
        if numbers.shape != (self.num_envs,) or numbers.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"actions are {self.num_envs} whole numbers, not {numbers.dtype}{numbers.shape}")
        if numbers.size and (numbers.min() < 0 or numbers.max() >= ACTIONS):
            raise InvalidArgumentError(f"an action is a number from 0 to {ACTIONS - 1}")
        self._native.step(np.ascontiguousarray(numbers, np.uint32))
        ends = self._native.ends.astype(bool)
        stopped = numbers == STOP
        return (self._observed(), self._native.rewards.astype(np.float64), ends & stopped,
                ends & ~stopped, self._info(self._native.log_shares))

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Returns int8 [num_envs, 337], 1 for legal actions."""
        return self._out(self._native.masks).view(np.int8)

    @staticmethod
    def action_text(action: int) -> str:
        """Returns what an action does: ``"split 1 by 4"``, ``"vectorize 3"``, ``"stop"``."""
        return _foretune.loop_action_text(whole_number(action, "action", 0, ACTIONS - 1))

    def schedule(self, episode: int) -> str:
        """Returns the schedule that a running episode has reached."""
        return self._native.schedule(whole_number(episode, "episode", 0, self.num_envs - 1))

    @property
    def evaluations(self) -> int:
        """Number of schedules that were evaluated."""
        return self._native.evaluations

    def close(self, **kwargs: Any) -> None:
        """Does nothing; memory goes with the object."""

    def _out(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values.copy() if self._copy else values

    def _observed(self) -> dict[str, npt.NDArray[np.float32]]:
        return {"loops": self._out(self._native.loops), "whole": self._out(self._native.whole)}

    def _info(self, log_shares: npt.NDArray[np.float32]) -> dict[str, Any]:
        return {"action_mask": self.action_masks(), "log_share": self._out(log_shares),
                "computation": self._native.tasks.astype(np.int64)}
