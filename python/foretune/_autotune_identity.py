"""What is the same: kernels by their source, keys and configs by their values.

Triton's own hash of a kernel contains the line at which the kernel stands, so that a remark further
up would start a new store; the one here covers what the compiler sees: the source of the kernel and
of all functions that it calls, global values that it reads, and what its decorators were told.

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

from ._autotune_store import canonical
from ._errors import InvalidArgumentError

# What a decorator of a kernel may be told that changes the code.
_OPTIONS = ("version", "do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline")


class Config(Protocol):
    """What is needed of a ``triton.Config``."""

    kwargs: dict[str, Any]
    pre_hook: Any

    def all_kwargs(self) -> dict[str, Any]: ...


class NoTextError(ValueError):
    """A value that cannot be told from others by a text."""


def plain(value: Any) -> Any:
    """A value as JSON has it, equal for what a kernel cannot tell apart.

    Raises:
        NoTextError: nothing but its address tells it from others.
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
    """Whether a data type belongs to the key and a value does not."""
    return hasattr(value, "dtype") and not isinstance(value, np.generic)


# -- configs --------------------------------------------------------------------------------------


def config_text(config: Config) -> str:
    """The canonical text of a config: its keywords, and its hook by the hook's source.

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
    """A config for people: ``BLOCK_M=128 num_warps=4``."""
    words = sorted(values, key=lambda name: (name.startswith("num_"), name))
    return " ".join(f"{name}={values[name]}" for name in words if values[name] is not None
                    and (name, values[name]) != ("num_ctas", 1))


# -- keys -----------------------------------------------------------------------------------------


def key_text(names: Sequence[str], arguments: Mapping[str, Any], constants: Sequence[str]) -> str:
    """The canonical text of a key: sizes and other values of the arguments ``names``, data types of
    all tensors, and the constants that the caller passes: another constant makes another kernel.

    Args:
        names: arguments that decide, as the user lists them.
        arguments: of this call, without those that configs set.
        constants: arguments that are compiled in.

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
    """Whether it is a Python function, or something made from one by a decorator."""
    return python_function(value) is not None


def python_function(value: Any) -> types.FunctionType | None:
    """The function below decorators that keep what they decorate as ``fn``; None for anything
    else."""
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
    """A kernel and what its decorators decorate, outermost first, without the Python function."""
    out: list[Any] = []
    while kernel is not None and not inspect.isfunction(kernel) and len(out) < 32:
        out.append(kernel)
        kernel = getattr(kernel, "fn", None)
    return out


def constant_names(kernel: Any) -> list[str]:
    """Names of the arguments that are compiled in (``tl.constexpr``)."""
    for layer in reversed(layers(kernel)):
        positions = getattr(layer, "constexprs", None)
        names = getattr(layer, "arg_names", None)
        if positions is not None and names is not None:
            return [names[position] for position in positions]
    return []


def source_digest(kernel: Any) -> str:
    """SHA-256 of a kernel's source, of all it depends on, and of its decorators' options."""
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
    # Decorators say which configs there are, and that is not the kernel's business.
    start = re.search(r"^def\s", source, re.MULTILINE)
    if start:
        return source[start.start():]
    code = function.__code__  # of a lambda, there may be two on a line
    return f"{code.co_code.hex()} {code.co_names} {_constants_of(code)}"


def _constants_of(code: types.CodeType) -> str:
    return str([_constants_of(entry) if isinstance(entry, types.CodeType) else entry
                for entry in code.co_consts])


def _references(source: str, function: types.FunctionType) -> list[tuple[str, Any]]:
    """Global and enclosing values that the source names, as ``a`` or ``a.b``, in order."""
    scope: dict[str, Any] = dict(function.__globals__)
    try:
        scope.update(inspect.getclosurevars(function).nonlocals)
    except ValueError:
        pass  # a cell that is still empty
    try:
        tree = ast.parse(source)
    except SyntaxError:  # no source, but code
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
    """Whether the version of Triton, or of Python, says all about it."""
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
