"""``collect``: writes Inductor's measurements of matrix products into a data set."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from .._dataset import Dataset
from .._errors import InvalidArgumentError, UnsupportedError
from . import _hooks
from ._problem import OPERATIONS, Abstention, problem_text
from ._ranking import LIBRARY, Words
from ._rows import Machine, Row, check_resumable, new_dataset, with_rows
from ._selection import LIBRARY_PREFIX, TEMPLATES, words_of

_LIBRARY_CLASS = "ExternKernelCaller"


class Collection:
    """The context manager that ``collect`` returns; a collection may be entered once.

    Thread safety: as ``foretune.torch.autotune``; the figures may be read meanwhile.
    """

    def __init__(self, output: str | os.PathLike[str], search_space: str, tma: bool,
                 role: str) -> None:
        if search_space not in ("DEFAULT", "EXHAUSTIVE"):
            raise InvalidArgumentError(
                f"a search space is DEFAULT or EXHAUSTIVE, not '{search_space}'")
        self.path = os.fspath(output)
        self.problems = 0
        """Number of measured problems."""
        self.measurements = 0
        """Number of added rows, failures included."""
        self.failures = 0
        """Number of added rows whose choice did not compile or run."""
        self.known = 0
        """Number of operations that were not measured, because the file already had the problem."""
        self.others = 0
        """Number of operations that the data set cannot hold: other types, dynamic shapes, ..."""
        self.precompile_seconds = 0.0
        """Time that compiling the choices took, summed over all of them."""
        self.errors: list[str] = []
        """One message per operation that failed; its measurements are lost."""
        self._search_space = search_space
        self._tma = tma
        self._role = role
        self._inductor: _hooks.Inductor | None = None
        self._dataset: Dataset | None = None
        self._done: set[str] = set()
        self._offered: list[list[Any]] = []
        self._seen = 0
        self._others: dict[str, int] = {}
        self._undo = ExitStack()
        self._lock = threading.RLock()

    # -- the context ------------------------------------------------------------------------------

    def __enter__(self) -> Collection:
        if self._inductor is not None:
            raise InvalidArgumentError("a collection can be entered once; call collect() again")
        inductor = _hooks.open_inductor()
        machine = inductor.machine()
        self._dataset = self._opened(machine)
        self._done = set(self._dataset.problems)
        self._inductor = inductor
        with ExitStack() as undo:
            undo.enter_context(inductor.compiler_config.patch(force_disable_caches=True))
            undo.enter_context(inductor.config.patch(self._settings(inductor.config)))
            cache = inductor.algorithms.get_algorithm_selector_cache()
            for add, functions, function in (
                    (cache.add_preprocessing_fn, "preprocessing_fns", self._before),
                    (cache.add_feedback_saver, "feedback_saver_fns", self._after)):
                add(function)
                undo.callback(_remove, cache, functions, function)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._undo.close()
        if kind is not None:
            return
        if self.problems == 0 and self.known == 0:
            raise UnsupportedError("nothing was collected: " + self._why_nothing())
        if self.errors:
            warnings.warn(f"{len(self.errors)} operations were measured and lost, the first because"
                          f" {self.errors[0]}", RuntimeWarning, stacklevel=2)

    def dataset(self) -> Dataset:
        """Reads the whole data set from the file."""
        return Dataset.open(self.path)

    def report(self) -> str:
        """Returns a summary of the collection in a few lines."""
        lines = [f"{self.path}: {self.problems} problems, {self.measurements:,} measurements, "
                 f"{self.failures:,} of them failed; compiling took {self.precompile_seconds:.1f}"
                 " s"]
        if self.known:
            lines.append(f"{self.known} operations were in the file already")
        lines.extend(f"{count} operations left out: {reason}"
                     for reason, count in sorted(self._others.items()))
        lines.extend(f"lost: {error}" for error in self.errors)
        return "\n".join(lines)

    def _opened(self, machine: Machine) -> Dataset:
        if not os.path.exists(self.path):
            return new_dataset(machine, self._role)
        dataset = Dataset.open(self.path)
        check_resumable(dataset, machine, self._role, self.path)
        return dataset

    def _settings(self, config: Any) -> dict[str, Any]:
        return {
            "max_autotune_gemm": True,
            "max_autotune_gemm_backends": "ATEN,TRITON",
            "max_autotune_gemm_search_space": self._search_space,
            "max_autotune_prune_choices_based_on_shared_mem": True,
            # Convolutions are not collected, and are slow to tune.
            "max_autotune_conv_backends": "ATEN",
            "triton.num_decompose_k_splits": 0,
            "triton.enable_persistent_tma_matmul": self._tma,
            # Otherwise the cache would return old times as if they were new.
            "autotune_local_cache": False,
            # Measures an operation when it is lowered, not once its possible fusions are known.
            _hooks.fusion_setting(config): False,
            "autotune_num_choices_displayed": 0,
        }

    def _why_nothing(self) -> str:
        if self.errors:
            return f"{len(self.errors)} operations failed, the first because {self.errors[0]}"
        if self._others:
            reason = max(self._others, key=lambda entry: self._others[entry])
            return f"of {self.others} operations none is a problem of the data set: {reason}"
        if self._seen:
            return (f"Inductor measured none of {self._seen} matrix products; it does not where "
                    "torch._inductor.config.deterministic or pipelined tuning is on")
        return ("Inductor tuned no matrix product inside the with: what was compiled before is not "
                "compiled again (torch._dynamo.reset()), and small GPUs are not tuned for")

    # -- Inductor's callbacks ---------------------------------------------------------------------

    def _before(self, choices: list[Any]) -> list[Any]:
        """Receives the choices of every operation before they are compiled, because Inductor drops
        the choices that do not compile. Must not raise."""
        try:
            operation, a, b = _operands(choices)
            problem = self._problem(operation, a, b)
        except Abstention:
            return choices
        except Exception:  # noqa: BLE001  compilation goes on; _after sees what is measured
            return choices
        with self._lock:
            if problem in self._done:
                self.known += 1
                # Inductor does not measure a single choice. ATen's needs no compilation.
                library = [choice for choice in choices if _is_library(choice)]
                return library[:1] or choices
            self._seen += 1
            self._offered.append(list(choices))
        return choices

    def _after(self, *arguments: Any) -> None:
        """Receives the times: timings in ms, name, inputs, choices, a function to measure again,
        and since PyTorch 2.11 the seconds that compiling took. Must not raise."""
        try:
            timings, name, inputs, choices = arguments[:4]
            if OPERATIONS.get(name) is None:
                return
            times = arguments[5] if len(arguments) > 5 else {}
            self._add(name, inputs, timings, self._all_of(choices), times)
        except Abstention as abstention:
            with self._lock:
                self.others += 1
                self._others[str(abstention)] = self._others.get(str(abstention), 0) + 1
        except Exception as error:  # noqa: BLE001  compilation must go on
            with self._lock:
                self.errors.append(f"{type(error).__name__}: {error}")

    def _all_of(self, choices: Sequence[Any]) -> list[Any]:
        """Returns the choices, including the ones that Inductor dropped because they do not
        compile."""
        with self._lock:
            for position, offered in enumerate(self._offered):
                if choices and any(choice is choices[0] for choice in offered):
                    return self._offered.pop(position)
        return list(choices)

    def _problem(self, operation: str, a: Any, b: Any) -> str:
        assert self._inductor is not None
        return problem_text(operation, a, b, tf32=self._inductor.allows_tf32())

    def _add(self, operation: str, inputs: Sequence[Any], timings: Mapping[Any, float],
             choices: Sequence[Any], times: Mapping[Any, float]) -> None:
        problem = self._problem(operation, inputs[-2], inputs[-1])
        rows = []
        for choice in choices:
            words = _words(choice)
            if words is None:
                continue
            compiled = choice in timings
            rows.append(Row(words, float(timings[choice]) if compiled else math.inf,
                            compiled=compiled))
        if not rows:
            raise Abstention("Inductor's choices do not say their parameters")
        with self._lock:
            assert self._dataset is not None
            before = len(self._dataset)
            self._dataset = with_rows(self._dataset, problem, rows)
            self._dataset.save(self.path, "foretune")
            self._done.add(problem)
            self.problems += 1
            self.measurements += len(self._dataset) - before
            self.failures += sum(not math.isfinite(row.milliseconds) for row in rows)
            self.precompile_seconds += sum(float(seconds) for seconds in times.values())


def collect(output: str | os.PathLike[str], *, search_space: str = "EXHAUSTIVE", tma: bool = True,
            role: str = "training") -> Collection:
    """Writes Inductor's measurements inside the ``with`` into a data set.

    Compile the matrix products of interest inside, with ``dynamic=False``, and after
    ``torch._dynamo.reset()`` where they were compiled before. GEMM autotuning is on, whatever the
    mode; Inductor's caches are off, so that every time is new. A graph that is compiled inside is
    correct, but may run slower: for problems that the file already has, only ATen is compiled.

    The file can be trained on (``foretune train``, ``foretune.train``): family ``triton``, times in
    nanoseconds with cold caches, ATen as ``template=0``, choices that did not compile or run as
    outcomes. The file is rewritten atomically after every operation, so that a kill loses at most
    the operation being measured; that takes about 0.15 s per million rows, while measuring takes
    seconds or minutes. An existing file is continued.

    Args:
        output: the data set, ``.ftd``.
        search_space: ``EXHAUSTIVE``, up to about 1,200 configs per template (minutes per
            operation), or ``DEFAULT``, about twenty.
        tma: True also measures the persistent template with tensor descriptors.
        role: ``training`` or ``validation``.

    Raises (on entering):
        UnsupportedError: PyTorch is missing or has other hooks, or there is no NVIDIA GPU.
        MismatchError: the file has another machine, role or writer.
    Raises (on leaving, unless something else was raised inside):
        UnsupportedError: nothing was collected; the message has the reason.
    Warns:
        RuntimeWarning: the measurements of some operations were lost (``errors``).
    """
    return Collection(output, search_space, tma, role)


def _remove(cache: Any, functions: str, function: Callable[..., Any]) -> None:
    """Removes a function from one of the selector's lists. Replaces the list, which may no longer
    be the object that the function was added to."""
    left = [entry for entry in getattr(cache, functions) if entry != function]
    setattr(cache, functions, left)


def _template_choice(choice: Any) -> Any:
    return getattr(choice, "annotations", {}).get("ktc")


def _is_library(choice: Any) -> bool:
    made_of = _template_choice(choice)
    if made_of is not None:
        return str(made_of.template.uid).startswith(LIBRARY_PREFIX)
    return type(choice).__name__ == _LIBRARY_CLASS


def _words(choice: Any) -> Words | None:
    """Returns the config of a choice; None when the family does not have it."""
    if _is_library(choice):
        return LIBRARY
    made_of = _template_choice(choice)
    if made_of is None or made_of.template.uid not in TEMPLATES:
        return None
    return words_of(TEMPLATES[made_of.template.uid], made_of.params.to_kwargs())


def _operands(choices: Sequence[Any]) -> tuple[str, Any, Any]:
    """Infers the operation and the two matrices from choices, which do not name them.

    Raises:
        Abstention: the choices are not those of a matrix product.
    """
    for choice in choices:
        made_of = _template_choice(choice)
        if made_of is not None and made_of.template.uid in TEMPLATES:
            nodes = choice.input_nodes
            rank = len(nodes[-1].get_size())
            operation = {(2, 2): "mm", (3, 2): "addmm", (2, 3): "bmm"}.get((len(nodes), rank))
            if operation is not None:
                return operation, nodes[-2], nodes[-1]
    raise Abstention("these are no choices of a matrix product")
