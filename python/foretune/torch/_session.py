"""``autotune``: a model picks the kernels of matrix products while Inductor compiles them."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from .._errors import InvalidArgumentError, UnsupportedError
from .._model import Model
from . import _hooks
from ._problem import (OPERATIONS, Abstention, dtype_of, matrices_of, problem_text, rough_text,
                       sizes_of)
from ._ranking import Ranker, Words
from ._selection import LIBRARY_PREFIX, NO_TEMPLATE, TEMPLATES, Selection, select

# Part of the keys of cached graphs: must change when the same model would pick other choices.
_VERSION = 2
# Number of candidates beyond k to request, because Inductor may reject some that the model ranks.
_SPARE = 32
_MODELS = Path(__file__).parents[1] / "models"


@dataclass(frozen=True)
class Decision:
    """The decision about one matrix product."""

    operation: str
    """``mm``, ``addmm``, ``bmm``, ``baddbmm``"""
    problem: str
    """The problem's text; a rough description where no problem describes the operation."""
    picks: tuple[str, ...]
    """The choices left for Inductor, best prediction first; empty on an abstention."""
    candidates: int
    """Number of configs of Inductor's templates that the model ranked."""
    speedup: float | None
    """Predicted speed of the first pick over ATen; None when the model does not know ATen."""
    ranking_seconds: float
    """Time from offer to pick; a few milliseconds for the first operation of a problem."""
    reason: str | None
    """Why the operation was left to Inductor; None when it was not."""


class Session:
    """The context manager that ``autotune`` returns; a session may be entered once.

    Thread safety: sessions belong to the process, see ``autotune``; ``decisions`` may be read while
    other threads compile.
    """

    def __init__(self, model: Model | str | os.PathLike[str] | None, k: int, tolerance: float,
                 other_devices: bool) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InvalidArgumentError(f"k must be a whole number from 1, not {k!r}")
        if not tolerance >= 0:
            raise InvalidArgumentError(f"tolerance must be at least 0, not {tolerance!r}")
        self.k = k
        self.tolerance = float(tolerance)
        self.decisions: list[Decision] = []
        """One decision per lowered matrix product, in the order of lowering."""
        self.tag = ""
        self._model = model
        self._other_devices = other_devices
        self._inductor: _hooks.Inductor | None = None
        self._ranker: Ranker | None = None
        self._devices: dict[str, str | None] = {}
        self._hits_before = 0
        self._hits: int | None = None
        self._lock = threading.Lock()

    # -- the context ------------------------------------------------------------------------------

    def __enter__(self) -> Session:
        if self._inductor is not None:
            raise InvalidArgumentError("a session can be entered once; call autotune() again")
        inductor = _hooks.open_inductor()
        model, data = _opened(self._model, inductor)
        self._ranker = Ranker(model)
        identity = hashlib.sha256(data).hexdigest()[:16]
        self.tag = f"+foretune{_VERSION}:{identity}:k{self.k}:t{self.tolerance:g}"
        if self._other_devices:
            self.tag += ":any"
        self._inductor = inductor
        self._hits_before = inductor.cache_hits()
        _hooks.INSTALLATION.add(inductor, self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        assert self._inductor is not None
        _hooks.INSTALLATION.remove(self._inductor, self)
        self._hits = self._inductor.cache_hits() - self._hits_before

    @property
    def cached_graphs(self) -> int:
        """Number of graphs that Inductor took from its cache since the session began. The same
        model with the same k made their decisions, and nothing is decided again."""
        if self._inductor is None:
            return 0
        return self._inductor.cache_hits() - self._hits_before if self._hits is None else self._hits

    # -- one operation ----------------------------------------------------------------------------

    def lower(self, operation: str, original: Callable[..., Any], arguments: tuple[Any, ...],
              keywords: dict[str, Any]) -> tuple[Any] | None:
        """Called by the wrapped lowerings. Never raises: every failure is an abstention, and the
        lowering without the session then shows whether the operation itself is at fault."""
        request = _Request(self, operation)
        try:
            return (request.lower(original, arguments, keywords),)
        except _LibraryWins:
            self._note(request, rough_text(operation, arguments))
        except Abstention as abstention:
            self._note(request, rough_text(operation, arguments), str(abstention))
        except Exception as error:  # noqa: BLE001  compilation goes on without the session
            self._note(request, rough_text(operation, arguments),
                       f"it failed: {type(error).__name__}: {_first_line(error)}")
        return None

    def _note(self, request: _Request, rough: str, reason: str | None = None) -> None:
        selection = request.selection if reason is None else None
        decision = Decision(
            request.operation, request.problem or rough,
            selection.picks if selection else (), selection.candidates if selection else 0,
            selection.speedup if selection else None, request.seconds, reason)
        with self._lock:
            self.decisions.append(decision)

    def _check_device(self, device: Any) -> None:
        """Checks that the model applies to a device; the result is cached per device.

        Raises:
            Abstention: the device is not an NVIDIA GPU, or the model was trained on another one.
        """
        assert self._inductor is not None and self._ranker is not None
        key = str(device)
        if key not in self._devices:
            facts = self._inductor.device_facts(device)
            reason = None
            if facts is None:
                reason = f"the operands are on {key}, which is no GPU of NVIDIA's"
            elif not self._other_devices and not _same_device(self._ranker.device, facts.name):
                reason = f"the model was trained on {self._ranker.device}, not on {facts.name}"
            self._devices[key] = reason
        if (reason := self._devices[key]) is not None:
            raise Abstention(reason)

    # -- report -----------------------------------------------------------------------------------

    def report(self) -> str:
        """Returns the decisions as a table, equal ones in one line."""
        with self._lock:
            decisions = list(self.decisions)
        return _report(decisions, self.k, self.cached_graphs)


class _LibraryWins(Exception):
    """The model picks ATen, which Inductor takes without the session, too: its own path is
    cheaper."""


class _Request:
    """One operation on its way through Inductor."""

    def __init__(self, session: Session, operation: str) -> None:
        assert session._inductor is not None and session._ranker is not None
        self.operation = operation
        self.problem = ""
        self.selection: Selection | None = None
        self.seconds = 0.0
        self._session = session
        self._inductor = session._inductor
        self._ranker = session._ranker
        self._autotuning = False
        # ATen's choices, held back until Inductor offers templates to compare them with.
        self._library: dict[str, list[Any]] = {}
        self._waiting = False
        self._answer: list[Any] = []

    def lower(self, original: Callable[..., Any], arguments: tuple[Any, ...],
              keywords: dict[str, Any]) -> Any:
        """Lowers the operation with the model's picks.

        Raises:
            Abstention, _LibraryWins: the operation must be lowered without the session.
            Whatever ``original`` raises.
        """
        self._check(arguments, keywords)
        config = self._inductor.config
        self._autotuning = bool(config.max_autotune or config.max_autotune_gemm)
        virtualized = self._inductor.virtualized
        handler = _hooks.handler_with(virtualized.choices, self._finalize, self._check_choices)
        with config.patch(self._settings()), virtualized.set_choices_handler(handler):
            try:
                lowered = original(*arguments, **keywords)
            except (Abstention, _LibraryWins):
                raise
            except Exception as error:
                # ATen's choices were held back, so Inductor fails because it has no choices.
                if self._waiting:
                    raise Abstention(NO_TEMPLATE) from error
                raise
        if self.selection is None:
            raise Abstention(NO_TEMPLATE if self._waiting else "Inductor did not ask for choices")
        self._session._note(self, "")
        return lowered

    def _check(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Checks everything that does not depend on the operands' layout; cheap.

        Raises:
            Abstention: the model cannot pick for the operation.
        """
        if OPERATIONS[self.operation] is None:
            raise Abstention(f"{self.operation} is no operation that models know")
        a, b = matrices_of(self.operation, arguments)
        self._session._check_device(a.get_device())
        result = keywords.get("out_dtype")
        if self.operation != "addmm" and len(arguments) > 2:
            result = arguments[2]
        if result is not None and result != a.get_dtype():
            raise Abstention(f"the result is {result}, not of the operands' type")
        dtype_of(a, b, False)
        sizes_of(self.operation, a, b)
        config = self._inductor.config
        if config.triton.native_matmul:
            raise Abstention("triton.native_matmul is on")
        # Inductor removes Triton where a nested graph must not be tuned.
        if "TRITON" not in _backends(config):
            raise Abstention("Triton is not among the GEMM backends")

    def _settings(self) -> dict[str, Any]:
        config = self._inductor.config
        # Without autotuning Inductor uses ATen, whatever the setting.
        library = not self._autotuning or "ATEN" in _backends(config)
        settings = {
            "max_autotune_gemm": True,
            "max_autotune_gemm_backends": "ATEN,TRITON" if library else "TRITON",
            "max_autotune_gemm_search_space": "EXHAUSTIVE",
            "max_autotune_prune_choices_based_on_shared_mem": True,
            # Where decompose-K is offered, Inductor leaves out the templates that the model ranks.
            "triton.num_decompose_k_splits": 0,
        }
        if self.operation != "bmm" and self._ranker.knows_library:
            settings["triton.enable_persistent_tma_matmul"] = True
        return settings

    def _finalize(self, previous: Callable[[], list[Any]],
                  offered: Mapping[str, Iterable[Any]], kernel_inputs: Any,
                  operation: str) -> list[Any]:
        """Called by Inductor; returns the offered choices to build."""
        if operation != self.operation:
            return previous()
        started = time.perf_counter()
        try:
            self._answer = self._answer_to(offered, kernel_inputs)
        finally:
            self.seconds += time.perf_counter() - started
        if self.selection and self.selection.library_alone and not self._autotuning:
            raise _LibraryWins
        return self._answer

    def _answer_to(self, offered: Mapping[str, Iterable[Any]], kernel_inputs: Any) -> list[Any]:
        """Returns the choices to build, as far as this call offers enough to decide.

        Some versions of Inductor offer all choices of an operation in one call. Others first offer
        ATen's, with operands of their own (a bias that is not expanded), and then the templates.
        The pick compares all of them, so ATen's are held back until the templates are there. Each
        choice holds its operands, so any call may return it.
        """
        a, b = kernel_inputs.mat1mat2()
        self.problem = problem_text(self.operation, a, b, tf32=self._inductor.allows_tf32())
        scores = self._ranker.rank(self.problem)
        library = {uid: list(choices) for uid, choices in offered.items()
                   if uid.startswith(LIBRARY_PREFIX)}
        templates = {uid: choices for uid, choices in offered.items() if uid in TEMPLATES}
        if self.selection is not None and (library or templates):
            raise Abstention("Inductor offered more choices after the model had picked")
        self._library.update(library)
        if not templates:
            self._waiting = self.selection is None
            return []
        self._waiting = False
        self.selection = self._select({**self._library, **templates}, scores,
                                      a.get_device().type)
        return self.selection.choices

    def _select(self, offered: Mapping[str, Iterable[Any]], scores: Mapping[Words, float],
                device_type: str) -> Selection:
        best = self._ranker.ordered(self.problem)
        # Deterministic mode measures nothing: given several choices, some versions of Inductor take
        # the first, others ATen, whatever the model predicts.
        k = 1 if self._inductor.config.deterministic else self._session.k

        def made(uid: str, choices: Iterable[Any]) -> Iterator[Any]:
            wanted = best.get(TEMPLATES[uid], ())
            heuristic = self._inductor.heuristic(uid, device_type, self.operation)
            with _hooks.narrowed(heuristic, wanted, k + _SPARE):
                yield from choices if wanted else ()

        return select({uid: made(uid, choices) if uid in TEMPLATES else choices
                       for uid, choices in offered.items()},
                      scores, k, knows_library=self._ranker.knows_library,
                      tolerance=self._session.tolerance)

    def _check_choices(self, choices: list[Any]) -> None:
        answer, self._answer = self._answer, []
        if answer and not choices:
            raise Abstention("Inductor could not make any kernel that was picked")


def autotune(model: Model | str | os.PathLike[str] | None = None, k: int = 5, *,
             tolerance: float = 0.05, other_devices: bool = False) -> Session:
    """Lets a model pick the kernels of matrix products that are compiled inside the ``with``.

    ``mm``, ``addmm`` and ``bmm`` on NVIDIA GPUs get the best ``k`` choices among ATen and the
    exhaustive search space of Inductor's Triton templates:

    - 1: only the predicted winner, ATen or a template. Nothing is measured, so that compiling
      takes hardly longer than without autotuning.
    - 2 and more: ATen and the best ``k`` - 1 templates, as far as they may win (``tolerance``).
      Inductor compiles, measures and chooses, as with its own lists; ATen's variants count as one.

    Choices that no model can score (decompose-K, backends other than ATen and Triton) are left out
    wherever the model picks. Where the model does not cover the device, operation, type, layout or
    sizes, and for dynamic shapes, Inductor lowers the operation as without the session, under the
    settings that hold outside. Nothing else is tuned: pointwise kernels, reductions and
    convolutions keep their settings.

    Inductor's caches stay on: a graph is reused only with the same model, ``k``, ``tolerance`` and
    ``other_devices``.

    Args:
        model: a model of Triton's GEMM templates, or its path. None takes the one shipped for the
            device (``foretune/models/triton-sm_90.ftm``).
        k: number of choices per operation, ATen included.
        tolerance: templates that the model expects to take more than this share longer than ATen
            are not measured; where no template is left, ATen is taken without measuring. Infinite
            always keeps ``k``.
        other_devices: True trusts the model on devices other than the one it was trained on.

    Raises (on entering):
        UnsupportedError: PyTorch is missing or has other hooks, there is no shipped model for the
            device, or the model is for other kernels.
        NotFoundError, CorruptDataError: as ``Model.open``.
    Raises:
        InvalidArgumentError: ``k`` is not a whole number of at least 1, or ``tolerance`` is
            negative.

    Thread safety: Inductor's hooks belong to the process, and so does a session. The session that
    was opened last serves whatever compiles while it is open, on any thread; where it abstains, the
    earlier ones do.
    """
    return Session(model, k, tolerance, other_devices)


def _opened(model: Model | str | os.PathLike[str] | None,
            inductor: _hooks.Inductor) -> tuple[Model, bytes]:
    """Returns the model, and the bytes of its file."""
    if isinstance(model, Model):
        return model, model.to_bytes()
    path = _shipped(inductor) if model is None else Path(model)
    return Model.open(path), path.read_bytes()


def _shipped(inductor: _hooks.Inductor) -> Path:
    facts = inductor.device_facts(None)
    if facts is None:
        raise UnsupportedError("there is no GPU of NVIDIA's here to take the shipped model of; "
                               "name a model")
    path = _MODELS / f"triton-{facts.isa}.ftm"
    if not path.exists():
        raise UnsupportedError(f"no model is shipped for {facts.name} ({facts.isa}); name a model")
    return path


def _backends(config: Any) -> set[str]:
    return {name.strip().upper() for name in config.max_autotune_gemm_backends.split(",")}


def _same_device(trained: str, found: str) -> bool:
    """True when a device is the one that a model was trained on; form factors are ignored. A model
    without a device matches any."""
    first, second = (name.upper().replace("NVIDIA", "").split() for name in (trained, found))
    shorter = min(len(first), len(second))
    return not first or (shorter > 0 and first[:shorter] == second[:shorter])


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]


def _report(decisions: list[Decision], k: int, cached: int) -> str:
    lines = []
    rows = [("operation", "candidates", "over ATen", "ranked in", "picks")]
    for decision, count in _grouped(decisions):
        times = f"{count} x " if count > 1 else ""
        if decision.reason is not None:
            rows.append((times + decision.problem, "", "", "", "left to Inductor: "
                         + decision.reason))
            continue
        more = f" (+{len(decision.picks) - 1})" if len(decision.picks) > 1 else ""
        rows.append((times + decision.problem, f"{decision.candidates:,}",
                     "" if decision.speedup is None else f"{decision.speedup:.2f} x",
                     f"{decision.ranking_seconds * 1e3:.1f} ms", decision.picks[0] + more))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        lines.append("  ".join([row[0].ljust(widths[0]),
                                *(row[i].rjust(widths[i]) for i in range(1, 4)), row[4]]).rstrip())
    picked = sum(decision.reason is None for decision in decisions)
    lines.append(f"{len(decisions)} matrix products, k={k}: {picked} picked, "
                 f"{len(decisions) - picked} left to Inductor")
    if cached:
        lines.append(f"{cached} graphs came from Inductor's cache, with what was decided when they "
                     "were compiled")
    return "\n".join(lines)


def _grouped(decisions: list[Decision]) -> list[tuple[Decision, int]]:
    """Groups decisions with equal problem, picks and reason; returns the first and the number of
    each group."""
    def key(decision: Decision) -> tuple[Any, ...]:
        return (decision.problem, decision.picks, decision.reason)

    counts = Counter(key(decision) for decision in decisions)
    first: dict[tuple[Any, ...], Decision] = {}
    for decision in decisions:
        first.setdefault(key(decision), decision)
    return [(decision, counts[group]) for group, decision in first.items()]
