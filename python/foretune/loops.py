"""Loop nests: computations, schedules as text, machine code for NumPy arrays, an environment.

A schedule defines the order of a computation's loops and how each is transformed
(docs/guides/loop-nests.md lists the actions); the empty text is the unscheduled nest::

    from foretune import loops

    product = loops.Computation("mm m=192 n=96 k=64")
    schedule = loops.textbook_schedules(product)[0]
    print(loops.tree(product, schedule))
    kernel = loops.compile(product, schedule)
    c = kernel(a, b)                       # float32 arrays, as ``product.inputs`` says
    print(product.flops / kernel.time() / 1e9, "GFLOPS of", loops.measure_peak())

    env = loops.LoopNestEnv("mm m=192 n=96 k=64")     # needs no other package
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("split_16")

Functions that take a computation also take its text. Compiling needs an x86-64 CPU with AVX2 or
AVX-512 (``instruction_sets()``); texts, trees and C do not.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._loop_environment import Best, CacheInfo, LoopNestEnv, Taken
    from ._loop_vector_environment import LoopNestVectorEnv

__all__ = [
    "Best", "CacheInfo", "Computation", "Found", "Kernel", "LoopNestEnv", "LoopNestVectorEnv",
    "Observation", "Operand", "Policy", "Taken", "Variable", "canonical", "compile", "instruction_sets", "legal", "measure_peak",
    "observations", "schedule", "search", "textbook_schedules", "to_c", "tree", "why_not",
]


class Variable(NamedTuple):
    """A loop variable that runs from 0 to ``extent`` - 1."""

    name: str
    extent: int
    is_reduction: bool


class Operand(NamedTuple):
    """An input or the output: a float32 array in row-major order without gaps."""

    name: str
    shape: tuple[int, ...]


class Computation:
    """A computation, defined by its text.

    Args:
        text: ``"mm m=192 n=96 k=64 [batch=2] [ta] [tb] [bias] [relu]"``, ``"conv b=1 c=64 h=56 w=56
            o=64 r=3 s=3 [stride=2] [dilation=1] [pad=1] [groups=1] [nhwc] [bias] [relu]"``,
            ``"reduce r=64 c=512 [op=add|max|min] [of_columns]"``,
            ``"map r=64 c=512 chain=bias_relu"`` or ``"elementwise r=64 c=512 add=in1 max=0"``.
            Sizes that are left out are 1.

    Raises:
        InvalidArgumentError: a kind or word is unknown, or a size is invalid.
        UnsupportedError: a tensor has more than the addressable 2^28 elements.

    Computations with the same name are equal. Thread safety: any number of threads may use one.
    """

    __slots__ = ("_native",)

    def __init__(self, text: str) -> None:
        self._native = _foretune.parse_loop_computation(
            plain_text(text, 'a computation is a text, "mm m=192 n=96 k=64"'))

    @property
    def name(self) -> str:
        """The canonical text."""
        return self._native.name

    @property
    def flops(self) -> float:
        """Floating-point operations of one run."""
        return self._native.flops

    @property
    def points(self) -> float:
        """Total number of iterations of the unscheduled nest's innermost loop."""
        return self._native.points

    @property
    def operation(self) -> str:
        """The operation at one point: ``"c = reduce add(multiply(a, b))"``."""
        return self._native.operation

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The loops of the unscheduled nest, outermost first."""
        return tuple(Variable(*entry) for entry in self._native.variables)

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The inputs, in the order in which a kernel takes them."""
        return tuple(Operand(*entry) for entry in self._native.inputs)

    @property
    def output(self) -> Operand:
        """The array that a kernel writes."""
        return Operand(*self._native.output)

    def __repr__(self) -> str:
        return f"Computation({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Computation) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[type[Computation], tuple[str]]:
        return Computation, (self.name,)


ComputationLike = Union[Computation, str]


def as_computation(computation: ComputationLike) -> Computation:
    """Returns the computation, made from its text when a text is given."""
    return computation if isinstance(computation, Computation) else Computation(computation)


def plain_text(value: Any, wanted: str) -> str:
    """Returns ``value`` when it is a text that has UTF-8; raises InvalidArgumentError otherwise."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{wanted}, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{wanted}, and {value!r} has no UTF-8") from None
    return value


def isa_text(isa: str | None) -> str:
    """Returns the text that the extension module takes: empty for the best of this CPU."""
    if isa is None:
        return ""
    if not isa:
        raise InvalidArgumentError(f"an instruction set is avx2 or avx512, not {isa!r}")
    return plain_text(isa, "an instruction set is avx2 or avx512")


def whole_number(value: Any, name: str, lowest: int, highest: int) -> int:
    """Returns ``value`` as an int; raises InvalidArgumentError when it is none or out of bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name} is a whole number, not {value!r}") from None
    if not lowest <= number <= highest:
        raise InvalidArgumentError(f"{name} is {number}, and goes from {lowest} to {highest}")
    return number


def positive(value: Any, name: str, highest: float) -> float:
    """Returns ``value`` as a number above 0 and at most ``highest``, or raises
    InvalidArgumentError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} is a number, not {value!r}") from None
    if not 0 < number <= highest:
        raise InvalidArgumentError(f"{name} is {number}, and is above 0 and at most {highest}")
    return number


def schedule_text(schedule: Any) -> str:
    """Returns ``schedule`` when it is a text; raises InvalidArgumentError otherwise."""
    return plain_text(schedule, 'a schedule is a text, "split n0 16, swap m0"')


def tree(computation: ComputationLike, schedule: str = "") -> str:
    """Returns the scheduled loops as an indented tree, for people.

    Raises:
        InvalidArgumentError: ``schedule`` is no schedule of this computation.
        UnsupportedError: an action is not legal; the message has the reason.
    """
    return _foretune.loop_tree(as_computation(computation)._native, schedule_text(schedule))


def canonical(computation: ComputationLike, schedule: str = "") -> str:
    """Returns the canonical text, which all schedules that lead to the same nest share.

    Raises:
        As ``tree``.
    """
    return _foretune.loop_canonical(as_computation(computation)._native, schedule_text(schedule))


def to_c(computation: ComputationLike, schedule: str = "", name: str = "kernel") -> str:
    """Returns the schedule as a C11 function ``void name(const float *const *inputs, float
    *output)``.

    Raises:
        InvalidArgumentError: ``name`` is no identifier of C.
        As ``tree``.
    """
    return _foretune.loop_to_c(as_computation(computation)._native, schedule_text(schedule),
                               plain_text(name, "a function's name is a text"))


def why_not(computation: ComputationLike, schedule: str, isa: str | None = None) -> str | None:
    """Returns why a schedule is not valid for this computation; None when it is.

    Args:
        isa: ``avx2`` or ``avx512`` also checks that the schedule compiles for these instructions,
            on whatever CPU. None checks the actions alone.

    Raises:
        InvalidArgumentError: ``computation`` is no computation.
    """
    native = as_computation(computation)._native
    return _foretune.loop_refusal(native, schedule_text(schedule), isa_text(isa)) or None


def legal(computation: ComputationLike, schedule: str, isa: str | None = None) -> bool:
    """Returns true when ``why_not`` returns None."""
    return why_not(computation, schedule, isa) is None


def instruction_sets() -> tuple[str, ...]:
    """Returns the instruction sets that kernels can be compiled for and run with here, the best
    last; empty when there is none."""
    return tuple(_foretune.loop_instruction_sets())


def measure_peak(isa: str | None = None, seconds: float = 0.05) -> float:
    """Measures the GFLOPS of multiply-adds in registers on one core, which no kernel can exceed.

    Args:
        isa: ``avx2`` or ``avx512``; None takes the best of this CPU.
        seconds: how long to measure; the fastest of probes of 1 ms counts.

    Other Python threads run meanwhile.

    Raises:
        UnsupportedError: this CPU lacks the instructions.
    """
    return _foretune.measure_loop_peak(isa_text(isa), positive(seconds, "seconds", 60))


def textbook_schedules(computation: ComputationLike, isa: str | None = None,
                       count: int = 16) -> list[str]:
    """Returns schedules of textbooks: blocks of outputs in registers, cache blocks around them.

    Args:
        isa: instructions to choose the blocks for; None takes the best of this CPU.
        count: maximum number of schedules. The first one is the best guess without measuring.

    Raises:
        UnsupportedError: ``isa`` is None and nothing can be compiled for this CPU.
    """
    return _foretune.loop_textbook_schedules(as_computation(computation)._native, isa_text(isa),
                                             whole_number(count, "count", 0, 100_000))


class Found(NamedTuple):
    """The result of a search."""

    schedule: str
    gflops: float  #: timed again, in turns with the next ones; 0 where nothing could be compiled
    measurements: tuple[tuple[float, float], ...]  #: GFLOPS (0: refused) and seconds since it began
    is_finished: bool  #: nothing was left to try


def search(computation: ComputationLike, method: str = "guided", *, measurements: int = 0,
           seconds: float = 0, seed: int = 1, max_steps: int = 10, actions: str = "cursor",
           isa: str | None = None) -> Found:
    """Searches for the fastest schedule; compiles, verifies and times each that it tries.

    Args:
        method: "guided" (boosted trees that learn from the measurements), "beam4dfs", "beam2bfs",
            "greedy2" (any numbers), "mcts", "evolution", "annealing", "random", "bruteforce",
            "textbook" (register tiles by rule), "recipe" (LoopTune's), "base".
        measurements: maximum number of measurements; 0 sets no limit.
        seconds: time limit; 0 sets none. When neither limit is set, it is 2.
        max_steps: maximum number of actions in a schedule.
        actions: "cursor" for LoopTune's seven, "loops" for actions that name their loop.

    Raises:
        NotFoundError: there is no such method.
        InvalidArgumentError: a limit is invalid.
        UnsupportedError: this CPU cannot run compiled schedules.

    Searches with the same seed and number of measurements try the same schedules only as long as
    the measured times agree. Thread safety: any number of threads may search at once, but work that
    runs at the same time disturbs the times.
    """
    if actions not in ("cursor", "loops"):
        raise InvalidArgumentError(f"there are no actions {actions!r}; there are cursor and loops")
    limit = whole_number(measurements, "measurements", 0, 2**31 - 1)
    time_limit = 0.0 if seconds == 0 else positive(seconds, "seconds", 1e9)
    if limit == 0 and time_limit == 0:
        time_limit = 2.0
    schedule, gflops, steps, is_finished = _foretune.search_loops(
        as_computation(computation)._native, plain_text(method, "a method is a name, \"guided\""),
        limit, time_limit, whole_number(seed, "seed", 0, 2**63 - 1),
        whole_number(max_steps, "max_steps", 1, 100), actions == "loops", isa_text(isa))
    return Found(schedule, gflops, tuple(steps), is_finished)


class Kernel:
    """A schedule as machine code; ``compile`` makes it.

    A call takes the inputs in their order and returns the output::

        c = kernel(a, b)
        kernel(a, b, out=c)

    Arrays are float32, row-major (C-contiguous), and have exactly the shapes of
    ``computation.inputs`` and ``computation.output``: nothing is converted or copied. Sums are
    accumulated in float32, in the order of the schedule.

    Thread safety: any number of threads may call a kernel at once, and other Python threads run
    meanwhile. A kernel with ``threads`` above 1 runs one call at a time.
    """

    __slots__ = ("_native", "computation")

    computation: Computation

    def __init__(self, computation: Computation, native: _foretune.LoopKernel) -> None:
        self.computation = computation
        self._native = native

    @property
    def schedule(self) -> str:
        """The schedule in canonical form."""
        return self._native.schedule

    @property
    def isa(self) -> str:
        """The instruction set that it is compiled for."""
        return self._native.isa

    @property
    def code_bytes(self) -> int:
        """Size of the machine code."""
        return self._native.code_bytes

    def __call__(self, *inputs: npt.NDArray[np.float32],
                 out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Runs once.

        Args:
            inputs: one array per input of the computation.
            out: array for the result; None makes one. It must not overlap an input.

        Raises:
            InvalidArgumentError: the number of arrays, or the type, shape or layout of one is
                wrong.
        """
        wanted = self.computation.inputs
        if len(inputs) != len(wanted):
            names = ", ".join(operand.name for operand in wanted)
            raise InvalidArgumentError(
                f"{self.computation.name} takes {len(wanted)} inputs ({names}), not {len(inputs)}")
        for array, operand in zip(inputs, wanted):
            _check(array, operand)
        result = self.computation.output
        if out is None:
            out = np.empty(result.shape, np.float32)
        else:
            _check(out, result)
            if not out.flags.writeable:
                raise InvalidArgumentError(f"{result.name} cannot be written to")
            for array, operand in zip(inputs, wanted):
                if np.may_share_memory(array, out):
                    raise InvalidArgumentError(f"{result.name} overlaps the input {operand.name}")
        self._native.run(inputs, out)
        return out

    def time(self, windows: int = 5, window_seconds: float = 200e-6) -> float:
        """Returns the seconds of one run, on operands that the kernel allocates.

        Args:
            windows: number of timed windows of repeated runs; the fastest window counts.
            window_seconds: length of a window, which has at least one run.

        The first call verifies the results, which takes about 10 ns per point (at most 0.3 s).
        Other Python threads run meanwhile, and may disturb the time.

        Raises:
            InternalError: the results are wrong.
        """
        return self._native.time(whole_number(windows, "windows", 1, 1_000_000),
                                 positive(window_seconds, "window_seconds", 60))

    def __repr__(self) -> str:
        return f"<Kernel of {self.computation.name!r} for {self.isa}: {self.schedule!r}>"


def _check(array: Any, operand: Operand) -> None:
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(
            f"{operand.name} is a NumPy array, not {type(array).__name__}")
    if array.dtype != np.float32:
        raise InvalidArgumentError(
            f"{operand.name} is float32, not {array.dtype}: .astype(numpy.float32)")
    if array.shape != operand.shape:
        raise InvalidArgumentError(
            f"{operand.name} has the shape {operand.shape}, not {array.shape}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise InvalidArgumentError(
            f"{operand.name} is stored by rows without gaps: numpy.ascontiguousarray does that")


def compile(computation: ComputationLike, schedule: str = "",  # noqa: A001
            isa: str | None = None, threads: int = 1) -> Kernel:
    """Compiles a schedule to machine code, in some ten microseconds.

    Args:
        computation: the computation or its text.
        schedule: its schedule; the empty text is the unscheduled nest.
        isa: ``avx2`` or ``avx512``; None takes the best of this CPU.
        threads: number of threads that share the iterations of a parallel loop, the calling one
            included.

    Raises:
        InvalidArgumentError: ``schedule`` is no schedule of this computation, or ``isa`` is no
            instruction set.
        UnsupportedError: an action is not legal or the schedule cannot be compiled (the message has
            the reason), or this CPU lacks the instructions.

    Thread safety: any number of threads may compile at once.
    """
    made = as_computation(computation)
    return Kernel(made, _foretune.compile_loops(made._native, schedule_text(schedule),
                                                isa_text(isa),
                                                whole_number(threads, "threads", 1, 1024)))


class Observation(NamedTuple):
    """An observation that an environment offers of its state."""

    name: str
    kind: str
    """``tensor`` (float32), ``number`` (an array of one float64) or ``text``."""
    shape: tuple[int, ...]
    """Shape of the array of a tensor or number; empty for texts."""
    unit: str
    """Unit; empty when there is none."""
    what: str


def observations(max_loops: int = 10, actions: str = "") -> list[Observation]:
    """Returns all observations of ``LoopNestEnv``.

    Args:
        max_loops: ``max_loops`` of the environment; shapes follow from it.
        actions: the environment's actions as one text; empty for LoopTune's.
    """
    entries = _foretune.loop_observations(actions, whole_number(max_loops, "max_loops", 1, 255))
    return [Observation(name, kind, (1,) if kind == "number" else shape, unit, what)
            for name, kind, shape, unit, what in entries]


def __getattr__(name: str) -> Any:
    # Importing Gymnasium, when it is installed, takes a third of a second.
    if name in ("Best", "CacheInfo", "LoopNestEnv", "Taken"):
        from . import _loop_environment

        globals().update({each: getattr(_loop_environment, each)
                          for each in ("Best", "CacheInfo", "LoopNestEnv", "Taken")})
        return globals()[name]
    if name == "LoopNestVectorEnv":
        from ._loop_vector_environment import LoopNestVectorEnv

        return LoopNestVectorEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# At the end, since it takes its helpers from here.
from ._loop_policy import Policy, schedule  # noqa: E402
