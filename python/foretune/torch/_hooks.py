"""Finds, checks, changes and restores the parts of PyTorch that this package touches.

There are two hooks into Inductor. While a session is open, the lowerings of matrix products are
wrapped, so that an operation that the session leaves alone takes exactly its path without Foretune.
While an operation with picks is lowered, a choices handler, derived from the class of the previous
handler, makes the final selection, under settings that make Inductor offer the choices.

Compiled graphs are cached by Inductor under keys that hold ``torch.compiler.config.cache_key_tag``;
the tag names the model and k of every open session.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol
from weakref import WeakMethod

from .._errors import UnsupportedError
from .._tile import PARAMETERS
from ._problem import OPERATIONS, Abstention
from ._ranking import Words
from ._rows import Machine

WRITTEN_FOR = ("2.11", "2.15")
# Parameters of _finalize_template_configs, passed by name or in this order.
_FINALIZE = ("self", "template_choices", "kernel_inputs", "templates", "op_name")
# Settings that are read or changed, here and in _collection.py.
_SETTINGS = (
    "max_autotune", "max_autotune_gemm", "max_autotune_gemm_backends",
    "max_autotune_gemm_search_space", "max_autotune_prune_choices_based_on_shared_mem",
    "max_autotune_conv_backends", "autotune_local_cache", "autotune_num_choices_displayed",
    "deterministic", "triton.num_decompose_k_splits", "triton.enable_persistent_tma_matmul",
    "triton.native_matmul")


@dataclass(frozen=True)
class Inductor:
    """The parts of PyTorch that this package uses; tests provide their own."""

    version: str
    config: Any
    """``torch._inductor.config``"""
    compiler_config: Any
    """``torch.compiler.config``"""
    lowerings: dict[Any, Callable[..., Any]]
    operations: dict[str, Sequence[Any]]
    """Keys into ``lowerings`` by the name of the operation."""
    virtualized: Any
    """``torch._inductor.virtualized.V``"""
    algorithms: Any
    """``torch._inductor.select_algorithm``"""
    allows_tf32: Callable[[], bool]
    device_facts: Callable[[Any], DeviceFacts | None]
    """Returns the facts of a device (None is the current one); None unless it is an NVIDIA GPU."""
    machine: Callable[[], Machine]
    """Returns the current device, for a data set; ``UnsupportedError`` unless NVIDIA made it."""
    cache_hits: Callable[[], int]
    """Returns how many graphs Inductor has taken from its cache in this process."""
    heuristic: Callable[[str, str, str], Any]
    """Returns the object that makes a template's candidates. Arguments: uid, type of device,
    operation."""


@dataclass(frozen=True)
class DeviceFacts:
    """Identifies a GPU."""

    name: str
    isa: str
    """``sm_90``"""


class Lowerer(Protocol):
    """The interface of a session to the wrapped lowerings."""

    tag: str

    def lower(self, operation: str, original: Callable[..., Any], arguments: tuple[Any, ...],
              keywords: dict[str, Any]) -> tuple[Any] | None:
        """Returns the lowered operation, or None to leave it to others. Must not raise."""


def open_inductor() -> Inductor:
    """Returns PyTorch's parts, after checking that all hooks are there.

    Raises:
        UnsupportedError: PyTorch is missing, or its version has other hooks.
    """
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError(f"foretune.torch needs PyTorch: {error}") from error
    version = str(torch.__version__)
    try:
        inductor = _bind()
        wrong = _what_differs(inductor)
    except (ImportError, AttributeError, KeyError) as error:
        wrong = f"{type(error).__name__}: {error}"
        raise UnsupportedError(_refusal(version, wrong)) from error
    if wrong:
        raise UnsupportedError(_refusal(version, wrong))
    return inductor


def _refusal(version: str, wrong: str) -> str:
    return (f"PyTorch {version} does not have the hooks that foretune.torch needs, which was "
            f"written for {' and '.join(WRITTEN_FOR)}: {wrong}")


def _bind() -> Inductor:
    import torch._dynamo.utils
    import torch._inductor.choices
    import torch._inductor.compile_fx
    import torch._inductor.config
    import torch._inductor.lowering
    import torch._inductor.select_algorithm
    import torch._inductor.virtualized
    import torch.compiler.config
    # Imported from the module that calls it: the defining module differs between versions.
    from torch._inductor.choices import get_template_heuristic

    mode = torch._inductor.compile_fx.fx_compile_mode.name
    if mode != "NORMAL":
        raise UnsupportedError(f"TORCHINDUCTOR_FX_COMPILE_MODE is {mode}: Inductor may compile in "
                               "another process, where foretune.torch is not")
    lowerings = torch._inductor.lowering.lowerings
    operations = {name: _keys_of(getattr(torch.ops.aten, name), lowerings) for name in OPERATIONS}

    def allows_tf32() -> bool:
        return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")

    def heuristic(uid: str, device_type: str, operation: str) -> Any:
        return get_template_heuristic(uid, device_type, operation)

    def cache_hits() -> int:
        return int(torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"])

    return Inductor(str(torch.__version__), torch._inductor.config, torch.compiler.config,
                    lowerings, operations, torch._inductor.virtualized.V,
                    torch._inductor.select_algorithm, allows_tf32,
                    lambda device: _device_facts(torch, device), lambda: _machine(torch),
                    cache_hits, heuristic)


def _properties(torch: Any, device: Any) -> Any:
    """Returns CUDA's properties of a device (None is the current one); None unless NVIDIA made
    it."""
    if torch.version.hip is not None or not torch.cuda.is_available():
        return None
    if device is not None and device.type != "cuda":
        return None
    return torch.cuda.get_device_properties(
        torch.cuda.current_device() if device is None else device)


def _device_facts(torch: Any, device: Any) -> DeviceFacts | None:
    properties = _properties(torch, device)
    if properties is None:
        return None
    return DeviceFacts(properties.name, f"sm_{properties.major}{properties.minor}")


# Names of hw. values, CUDA's names of them, and the factors between their units.
_HARDWARE = (("cores", "multi_processor_count", 1), ("warp_size", "warp_size", 1),
             ("threads_per_core", "max_threads_per_multi_processor", 1),
             ("register_file_bytes", "regs_per_multiprocessor", 4),
             ("shared_bytes_per_block", "shared_memory_per_block_optin", 1),
             ("l1_bytes", "shared_memory_per_multiprocessor", 1),
             ("l2_bytes", "L2_cache_size", 1), ("memory_bytes", "total_memory", 1))


def _machine(torch: Any) -> Machine:
    properties = _properties(torch, None)
    if properties is None:
        raise UnsupportedError("there is no GPU of NVIDIA's here to measure on")
    import triton

    hardware = {name: float(getattr(properties, theirs)) * factor
                for name, theirs, factor in _HARDWARE if hasattr(properties, theirs)}
    isa = (f"sm_{properties.major}{properties.minor} triton-{triton.__version__} "
           f"inductor-{torch.__version__}")
    return Machine(properties.name, isa, hardware)


def _keys_of(packet: Any, lowerings: dict[Any, Any]) -> Sequence[Any]:
    """Returns the operation and those of its overloads that the same function lowers."""
    function = lowerings[packet.default]
    return [key for key in (packet, *(getattr(packet, name) for name in packet.overloads()))
            if lowerings.get(key) is function]


def _what_differs(inductor: Inductor) -> str:
    """Returns how the hooks differ from the versions in ``WRITTEN_FOR``; "" when they do not."""
    from torch._inductor.choices import InductorChoices
    from torch._inductor.kernel_template_choice import KernelTemplateChoice

    parameters = tuple(inspect.signature(InductorChoices._finalize_template_configs).parameters)
    if parameters[: len(_FINALIZE)] != _FINALIZE:
        return ("InductorChoices._finalize_template_configs takes " + ", ".join(parameters[1:]))
    if not hasattr(InductorChoices, "get_template_configs"):
        return "InductorChoices has no get_template_configs"
    if "params" not in inspect.signature(KernelTemplateChoice.__init__).parameters:
        return "KernelTemplateChoice has no params"
    if not hasattr(inductor.virtualized, "set_choices_handler"):
        return "V has no set_choices_handler"
    if not isinstance(inductor.compiler_config.cache_key_tag, str):
        return "torch.compiler.config.cache_key_tag is no text"
    for name in (*_SETTINGS, fusion_setting(inductor.config)):
        setting(inductor.config, name)
    return ""


def setting(config: Any, name: str) -> Any:
    """Returns one of Inductor's settings, by its dotted name.

    Raises:
        AttributeError: there is no setting of that name.
    """
    value = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def fusion_setting(config: Any) -> str:
    """Returns the name of the setting that defers measuring until an operation's fusions are known.
    PyTorch renamed it after 2.11 and deprecated the old name."""
    renamed = "benchmark_template_fusion"
    return renamed if hasattr(config, renamed) else "benchmark_epilogue_fusion"


@contextmanager
def narrowed(heuristic: Any, wanted: Sequence[Words], count: int) -> Iterator[None]:
    """Narrows a template's exhaustive search space to the first ``count`` configs of ``wanted``
    that it contains. Inductor takes about ten milliseconds to make all candidates, and only a few
    are kept. Does nothing where the heuristic has no such list.
    """
    whole = getattr(heuristic, "exhaustive_configs", None)
    if not isinstance(whole, list):
        yield
        return
    by_words = _by_words(whole)
    seeds = [by_words[words[1:]] for words in wanted if words[1:] in by_words]
    heuristic.exhaustive_configs = seeds[:count] or whole
    try:
        yield
    finally:
        heuristic.exhaustive_configs = whole


_BY_WORDS: dict[int, tuple[list[Any], dict[Words, Any]]] = {}


def _by_words(whole: list[Any]) -> dict[Words, Any]:
    """Returns a search space indexed by its configs' parameters; cached while the list is the
    same object."""
    known, found = _BY_WORDS.get(id(whole), (None, {}))
    if known is not whole:
        found = {tuple(getattr(config, name, 0) for name in PARAMETERS): config
                 for config in whole}
        _BY_WORDS[id(whole)] = (whole, found)
    return found


class _UnderWay(threading.local):
    """Per-thread state."""

    asked = False
    """True while a session lowers an operation."""


class Installation:
    """The open sessions of this process, and the changes to PyTorch while there are any.

    Inductor's lowerings and settings belong to the process, and so do sessions: the session that
    was opened last serves all threads that compile; where it abstains, the earlier ones do.
    Sessions may end in any order.

    Thread safety: any number of threads.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._sessions: list[Lowerer] = []
        self._wrapped: list[tuple[Any, Callable[..., Any], Callable[..., Any]]] = []
        self._base_tag = ""
        self._own_tag = ""
        self._under_way = _UnderWay()

    def add(self, inductor: Inductor, session: Lowerer) -> None:
        """Adds a session, which then receives every matrix product that is lowered."""
        with self._lock:
            if not self._sessions:
                self._base_tag = self._own_tag = inductor.compiler_config.cache_key_tag
                self._wrap(inductor)
            self._sessions.append(session)
            self._tag(inductor)

    def remove(self, inductor: Inductor, session: Lowerer) -> None:
        """Removes a session; restores PyTorch when no other session is open."""
        with self._lock:
            self._sessions.remove(session)
            self._tag(inductor)
            if not self._sessions:
                self._unwrap(inductor)

    def _tag(self, inductor: Inductor) -> None:
        # A tag that other code has set meanwhile stays.
        if inductor.compiler_config.cache_key_tag == self._own_tag:
            self._own_tag = self._base_tag + "".join(session.tag for session in self._sessions)
            inductor.compiler_config.cache_key_tag = self._own_tag

    def _wrap(self, inductor: Inductor) -> None:
        for operation, keys in inductor.operations.items():
            for key in keys:
                original = inductor.lowerings[key]
                wrapper = self._wrapper(operation, original)
                inductor.lowerings[key] = wrapper
                self._wrapped.append((key, original, wrapper))

    def _unwrap(self, inductor: Inductor) -> None:
        for key, original, wrapper in self._wrapped:
            if inductor.lowerings.get(key) is wrapper:
                inductor.lowerings[key] = original
        self._wrapped.clear()

    def _wrapper(self, operation: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def lowered(*arguments: Any, **keywords: Any) -> Any:
            if self._under_way.asked:
                # Inductor lowers one operation through another (addmm without its bias is mm).
                # Sessions must receive the inner one, under the settings that hold outside, so the
                # outer one is given up and lowered again without the session.
                raise Abstention(f"Inductor lowers it as {operation}")
            with self._lock:
                sessions = self._sessions[::-1]
            for session in sessions:
                self._under_way.asked = True
                try:
                    done = session.lower(operation, original, arguments, keywords)
                finally:
                    self._under_way.asked = False
                if done is not None:
                    return done[0]
            return original(*arguments, **keywords)

        return lowered


INSTALLATION = Installation()
"""The only one in the process, because there is only one Inductor in it."""


def handler_with(previous: Any, finalize: Callable[..., list[Any]],
                 check: Callable[[list[Any]], None]) -> Any:
    """Returns a choices handler that differs from the previous one in two methods.

    ``finalize`` replaces ``_finalize_template_configs`` and receives the previous one as its first
    argument; ``check`` receives the result of ``get_template_configs``. Both handlers share their
    attributes. ``finalize`` and ``check`` are methods of an object that outlives the use of the
    handler.
    """
    base = type(previous)
    # Classes are parts of reference cycles: they must not keep a session and its model alive.
    weak_finalize: Any = WeakMethod(finalize)
    weak_check: Any = WeakMethod(check)

    def finalize_template_configs(self: Any, template_choices: Any, kernel_inputs: Any,
                                  templates: Any, op_name: str, *rest: Any,
                                  **keywords: Any) -> list[Any]:
        def previous_finalize() -> list[Any]:
            return list(previous._finalize_template_configs(
                template_choices, kernel_inputs, templates, op_name, *rest, **keywords))

        return list(weak_finalize()(previous_finalize, template_choices, kernel_inputs, op_name))

    def get_template_configs(self: Any, *arguments: Any, **keywords: Any) -> list[Any]:
        choices = base.get_template_configs(self, *arguments, **keywords)
        weak_check()(choices)
        return list(choices)

    def own_first(self: Any, name: str) -> Any:
        # A handler composed of several others looks its methods up in those, not in its class.
        if name == "_finalize_template_configs":
            return object.__getattribute__(self, name)
        return base.__getattribute__(self, name)

    kind = type("ForetuneChoices", (base,), {
        "__getattribute__": own_first,
        "_finalize_template_configs": finalize_template_configs,
        "get_template_configs": get_template_configs})
    handler: Any = object.__new__(kind)
    handler.__dict__ = previous.__dict__
    return handler
