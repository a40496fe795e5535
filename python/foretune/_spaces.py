"""Spaces of actions and observations that stand in for Gymnasium's when it is not installed.

Implements the part of ``gymnasium.spaces`` that ``foretune.loops`` needs, with the same names.
Agents that use ``n``, ``shape``, ``dtype``, ``spaces``, ``sample()`` and ``contains()`` see no
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


class Space:
    """Base class of the spaces; owns the random number generator of their samples.

    Thread safety: one thread at a time.
    """

    def __init__(self, shape: tuple[int, ...] | None, dtype: npt.DTypeLike | None) -> None:
        self.shape = shape
        self.dtype = None if dtype is None else np.dtype(dtype)
        self._random = np.random.default_rng()

    def seed(self, seed: int | None = None) -> None:
        """Restarts the samples: the same seed gives the same ones."""
        self._random = np.random.default_rng(seed)

    def contains(self, value: Any) -> bool:
        """Returns true when ``value`` is a member."""
        raise NotImplementedError

    def sample(self) -> Any:
        """Returns a random member."""
        raise NotImplementedError

    def __contains__(self, value: Any) -> bool:
        return self.contains(value)


class Discrete(Space):
    """The whole numbers from 0 to ``n`` - 1."""

    def __init__(self, n: int) -> None:
        super().__init__((), np.int64)
        self.n = n

    def contains(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            return False
        return 0 <= int(value) < self.n

    def sample(self, mask: npt.NDArray[Any] | None = None) -> np.int64:
        """Returns a random number whose entry of ``mask`` is set; 0 when no entry is."""
        choices = np.arange(self.n) if mask is None else np.flatnonzero(mask)
        return np.int64(self._random.choice(choices) if len(choices) else 0)

    def __repr__(self) -> str:
        return f"Discrete({self.n})"


class Box(Space):
    """Arrays of one shape, every value from ``low`` to ``high``."""

    def __init__(self, low: float, high: float, shape: tuple[int, ...],
                 dtype: npt.DTypeLike) -> None:
        super().__init__(shape, dtype)
        self.low = np.full(shape, low, dtype)
        self.high = np.full(shape, high, dtype)

    def contains(self, value: Any) -> bool:
        return (isinstance(value, np.ndarray) and value.shape == self.shape
                and value.dtype == self.dtype
                and bool(np.all(value >= self.low) and np.all(value <= self.high)))

    def sample(self) -> npt.NDArray[Any]:
        """Draws values exponentially distributed above ``low``, as Gymnasium does for values
        without an upper bound."""
        values = self.low + self._random.exponential(size=self.shape)
        clipped: npt.NDArray[Any] = np.minimum(values, self.high).astype(self.dtype)
        return clipped

    def __repr__(self) -> str:
        return f"Box({self.low.min()}, {self.high.max()}, {self.shape}, {self.dtype})"


class Text(Space):
    """Texts of at most ``max_length`` characters, all from ``charset``."""

    def __init__(self, max_length: int, *, min_length: int = 0, charset: str) -> None:
        super().__init__(None, None)
        self.max_length = max_length
        self.min_length = min_length
        self.characters = charset

    def contains(self, value: Any) -> bool:
        return (isinstance(value, str) and self.min_length <= len(value) <= self.max_length
                and set(value) <= set(self.characters))

    def sample(self) -> str:
        """Returns a random text of at most 16 characters."""
        length = int(self._random.integers(self.min_length, min(self.max_length, 16) + 1))
        return "".join(self._random.choice(list(self.characters), length))

    def __repr__(self) -> str:
        return f"Text({self.max_length})"


class Dict(Space):
    """Dictionaries with a member of one space for each name."""

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        super().__init__(None, None)
        self.spaces = dict(spaces)

    def seed(self, seed: int | None = None) -> None:
        for i, space in enumerate(self.spaces.values()):
            space.seed(None if seed is None else seed + i)

    def contains(self, value: Any) -> bool:
        return (isinstance(value, dict) and value.keys() == self.spaces.keys()
                and all(space.contains(value[name]) for name, space in self.spaces.items()))

    def sample(self) -> dict[str, Any]:
        return {name: space.sample() for name, space in self.spaces.items()}

    def __getitem__(self, name: str) -> Space:
        return self.spaces[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.spaces)

    def __len__(self) -> int:
        return len(self.spaces)

    def __repr__(self) -> str:
        return f"Dict({self.spaces})"
