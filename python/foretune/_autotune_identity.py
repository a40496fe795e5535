"""Identities: kernels by their source, keys and configs by their values.

Triton's own hash of a kernel contains the line number of the kernel, so that a comment further up
would start a new store. The hash here covers what the compiler sees: the source of the kernel and
of all functions that it calls, global values that it reads, and the options of its decorators.

Thread safety: free functions without state.
"""

from __future__ import annotations

import ast
import enum
import hashlib
import inspect
import operator
import re
import textwrap
import types
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ._autotune_mapping import canonical
from ._errors import InvalidArgumentError

# Options of a kernel's decorators that change the generated code.
_OPTIONS = ("version", "do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline")


class Config(Protocol):
    """The part of ``triton.Config`` that the autotuner uses."""

    kwargs: dict[str, Any]
    pre_hook: Any

    def all_kwargs(self) -> dict[str, Any]: ...


class NoTextError(ValueError):
    """A value has no text that distinguishes it from others."""


def plain(value: Any) -> Any:
    """Converts a value to JSON types; values that a kernel cannot tell apart become equal.

    Raises:
        NoTextError: only its address distinguishes the value from others.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.value if isinstance(value, enum.Enum) else value
    if type(value).__name__ == "constexpr" and hasattr(value, "value"):
        return plain(value.value)
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_function(value):
        return f"function {source_digest(value)[:16]}"
    if not is_tensor(value):
        try:
            return operator.index(value)
        except TypeError:
            pass
    text = str(value) if type(value).__name__ == "dtype" else repr(value)
    if " at 0x" in text:
        raise NoTextError(f"{type(value).__name__} has no text of its own")
    return text


def is_tensor(value: Any) -> bool:
    """True when the value has a data type, which belongs to the key in place of the value."""
    return hasattr(value, "dtype") and not isinstance(value, np.generic)


# -- configs --------------------------------------------------------------------------------------


def config_text(config: Config) -> str:
    """Returns the canonical text of a config: its keywords, and the source of its hook.

    Raises:
        InvalidArgumentError: a keyword has a value that has no text.
    """
    try:
        values = {name: plain(value) for name, value in config.all_kwargs().items()}
        if config.pre_hook is not None:
            values["pre_hook"] = plain(config.pre_hook)
    except NoTextError as error:
        raise InvalidArgumentError(f"the config {config} cannot be stored: {error}") from error
    return canonical(values)


def config_label(values: Mapping[str, Any]) -> str:
    """Returns a config as text for people: ``BLOCK_M=128 num_warps=4``."""
    words = sorted(values, key=lambda name: (name.startswith("num_"), name))
    return " ".join(f"{name}={values[name]}" for name in words if values[name] is not None
                    and (name, values[name]) != ("num_ctas", 1))


# -- keys -----------------------------------------------------------------------------------------


def key_text(names: Sequence[str], arguments: Mapping[str, Any], constants: Sequence[str]) -> str:
    """Returns the canonical text of a key: sizes and other values of the arguments ``names``, data
    types of all tensors, and the constants that the caller passes, since each constant value is
    compiled into a kernel of its own.

    Args:
        names: arguments that decide the config, in the user's order.
        arguments: arguments of this call, without those that configs set.
        constants: names of the arguments that are compiled in.

    Raises:
        NoTextError: an argument has no text.
    """
    sizes: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name in names:
        if name in arguments and not is_tensor(arguments[name]):
            value = plain(arguments[name])
            is_size = isinstance(value, int) and not isinstance(value, bool)
            (sizes if is_size else values)[name] = value
    fixed = {name: plain(arguments[name]) for name in constants
             if name in arguments and name not in names}
    dtypes = {name: str(value.dtype) for name, value in arguments.items() if is_tensor(value)}
    return canonical({"sizes": sizes, "values": values, "constants": fixed, "dtypes": dtypes})


# -- kernels --------------------------------------------------------------------------------------


def is_function(value: Any) -> bool:
    """True for a Python function, and for what a decorator made from one."""
    return python_function(value) is not None


def python_function(value: Any) -> types.FunctionType | None:
    """Returns the function below all decorators that keep the decorated object as ``fn``; None when
    there is none."""
    for _ in range(32):
        if inspect.isfunction(value):
            return value
        if isinstance(value, (type, types.ModuleType)):
            return None
        value = getattr(value, "fn", None)
        if value is None:
            return None
    return None


def layers(kernel: Any) -> list[Any]:
    """Returns the decorated objects of a kernel, outermost first, without the Python function."""
    out: list[Any] = []
    while kernel is not None and not inspect.isfunction(kernel) and len(out) < 32:
        out.append(kernel)
        kernel = getattr(kernel, "fn", None)
    return out


def constant_names(kernel: Any) -> list[str]:
    """Returns the names of the arguments that are compiled in (``tl.constexpr``)."""
    for layer in reversed(layers(kernel)):
        positions = getattr(layer, "constexprs", None)
        names = getattr(layer, "arg_names", None)
        if positions is not None and names is not None:
            return [names[position] for position in positions]
    return []


def source_digest(kernel: Any) -> str:
    """Returns the SHA-256 of a kernel's source, its dependencies and its decorators' options."""
    hasher = hashlib.sha256()
    pending, seen = [kernel], set()
    while pending:
        current = pending.pop(0)
        function = python_function(current)
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        source = _source_of(current, function)
        hasher.update(f"\x00source {source}".encode())
        for layer in layers(current):
            for option in _options_of(layer):
                hasher.update(f"\x00option {option}".encode())
        for name, value in _references(source, function):
            if is_function(value):
                hasher.update(f"\x00calls {name}".encode())
                pending.append(value)
            elif (text := _constant_text(value)) is not None:
                hasher.update(f"\x00value {name} {text}".encode())
    return hasher.hexdigest()


def _options_of(layer: Any) -> list[str]:
    out = [f"{name}={getattr(layer, name)!r}" for name in _OPTIONS if getattr(layer, name, None)]
    heuristics = getattr(layer, "values", None)
    if isinstance(heuristics, Mapping):
        for name, value in heuristics.items():
            function = python_function(value)
            if function is not None:
                out.append(f"heuristic {name}={_source_of(value, function)}")
    return out


def _source_of(current: Any, function: types.FunctionType) -> str:
    for layer in reversed(layers(current)):
        if isinstance(source := getattr(layer, "src", None), str):
            return source  # without decorators
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        source = ""
    # The digest leaves out decorators: they list configs, which are not part of the kernel.
    start = re.search(r"^def\s", source, re.MULTILINE)
    if start:
        return source[start.start():]
    code = function.__code__  # for a lambda: a line may hold two, so its source is ambiguous
    return f"{code.co_code.hex()} {code.co_names} {_constants_of(code)}"


def _constants_of(code: types.CodeType) -> str:
    return str([_constants_of(entry) if isinstance(entry, types.CodeType) else entry
                for entry in code.co_consts])


def _references(source: str, function: types.FunctionType) -> list[tuple[str, Any]]:
    """Returns the global and enclosing values that the source names, as ``a`` or ``a.b``, in
    order."""
    scope: dict[str, Any] = dict(function.__globals__)
    try:
        scope.update(inspect.getclosurevars(function).nonlocals)
    except ValueError:
        pass  # a cell that is still empty
    try:
        tree = ast.parse(source)
    except SyntaxError:  # the text is that of code objects, not source
        names = (*function.__code__.co_names, *function.__code__.co_freevars)
        return [(name, scope[name]) for name in names
                if name in scope and not _is_library(scope[name])]
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own.add(function.__name__)
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        path = _path_of(node)
        if path and path[0] not in own and path[0] in scope:
            value = scope[path[0]]
            for name in path[1:]:
                value = getattr(value, name, None)
            if not _is_library(value):
                found.setdefault(".".join(path), value)
    return list(found.items())


def _path_of(node: ast.AST) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _is_library(value: Any) -> bool:
    """True when the version of Triton, or of Python, identifies the value completely."""
    if value is None or isinstance(value, (types.ModuleType, types.BuiltinFunctionType, type)):
        return True
    function = python_function(value)
    module = getattr(value if function is None else function, "__module__", None) or ""
    return function is not None and module.split(".")[0] == "triton"


def _constant_text(value: Any) -> str | None:
    try:
        return canonical(plain(value))
    except (NoTextError, TypeError, ValueError):
        return None
