"""Schedules of loop nests by a learned policy."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from . import _foretune
from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    from .loops import ComputationLike


class Policy:
    """A model of kind policy, as ``foretune train-policy`` writes them.

    Args:
        path: the model file; None takes the one that comes with the package for this CPU.

    Raises:
        MismatchError: the file is a model of another kind.

    Thread safety: any number of threads may use a policy.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._native = _foretune.LoopPolicy(os.fspath(path or shipped_policy()))

    def schedules(self, computation: ComputationLike, count: int = 1, *, seed: int = 1,
                  isa: str | None = None) -> list[str]:
        """Returns at most ``count`` schedules, the most promising first, without measuring any.

        Args:
            isa: instructions to schedule for; None takes those that the policy learned with.

        Raises:
            UnsupportedError: the computation is not a product, convolution, reduction or named
                chain of elementwise operations.
        """
        from .loops import as_computation, isa_text, whole_number

        return self._native.schedules(as_computation(computation)._native,
                                      whole_number(count, "count", 1, 100_000),
                                      whole_number(seed, "seed", 0, 2**63 - 1), isa_text(isa))


def shipped_policy(isa: str | None = None) -> Path:
    """Returns the file of the policy that comes with the package and learned with these
    instructions; None takes the best of this CPU."""
    from .loops import instruction_sets

    chosen = isa or (instruction_sets() or ("avx512",))[-1]
    return Path(__file__).parent / "models" / f"loop-nest-{chosen}.ftm"


@functools.cache
def _default(isa: str | None) -> Policy:
    return Policy(shipped_policy(isa))


def schedule(computation: ComputationLike, *, policy: Policy | None = None, measurements: int = 0,
             isa: str | None = None) -> str:
    """Returns a schedule for a computation that nobody has to have seen before.

    Args:
        policy: who chooses; None takes the policy that comes with the package for ``isa``.
        measurements: so many of its proposals are compiled, verified and timed, and the fastest is
            returned. 0 returns the first proposal.
        isa: instructions to schedule for; None takes the best of this CPU.

    Raises:
        UnsupportedError: the computation has no name as a problem, or with ``measurements`` this
            CPU cannot run the instructions.

    Cost: a millisecond or two, and one or two for each measurement of a small computation.
    """
    from .loops import as_computation, compile, instruction_sets, isa_text, whole_number

    isa = isa_text(isa) or (instruction_sets() or (None,))[-1]
    if isa not in (None, "avx2", "avx512"):
        raise InvalidArgumentError(f"an instruction set is avx2 or avx512, not {isa!r}")
    policy = policy or _default(isa)
    computation = as_computation(computation)
    count = whole_number(measurements, "measurements", 0, 100_000)
    found = policy.schedules(computation, max(1, count), isa=isa)
    if count == 0:
        return found[0]
    return min(found, key=lambda each: compile(computation, each, isa).time(windows=2))
