"""Problems as text and as mappings, such as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from . import _foretune
from ._errors import InvalidArgumentError
from ._plugins import load_installed_plugins

Problem = Union[str, Mapping[str, Any]]

# composable_kernel's names of data types that Foretune names differently.
_DTYPES = {"fp32": "f32", "fp16": "f16", "fp64": "f64", "fp8": "f8e4m3", "bf8": "f8e5m2",
           "int8": "i8"}
_OPERATIONS = {"bwd_data": "backward_data", "bwd_weight": "backward_weight"}


def problem_text(problem: Problem, operation: str | None = None) -> str:
    """Returns the canonical text of a problem.

    Args:
        problem: text (``"gemm m=128 n=1536 k=7168"``), or a mapping of its fields. A mapping
            without ``type`` is a problem of the first type that has all of its fields. The case of
            names does not matter, and composable_kernel's data types (``fp16``) are understood.
            Fields that are left out take their defaults.
        operation: the ``op`` of a mapping that has none.

    Raises:
        InvalidArgumentError: a field is unknown, or a size makes no sense.
    """
    load_installed_plugins()
    if isinstance(problem, str):
        return _foretune.canonical_problem(problem)
    if not isinstance(problem, Mapping):
        raise InvalidArgumentError(
            f"a problem is a text or a mapping of its fields, not {type(problem).__name__}")
    fields = {str(name).lower(): value for name, value in problem.items() if value is not None}
    kind = fields.pop("type", None)
    for alias in ("direction", "variant"):
        if alias in fields:
            fields.setdefault("op", fields.pop(alias))
    if operation is not None:
        fields.setdefault("op", operation)
    if "op" in fields:
        fields["op"] = _OPERATIONS.get(str(fields["op"]), fields["op"])
    if "dtype" in fields:
        fields["dtype"] = _DTYPES.get(str(fields["dtype"]), fields["dtype"])
    if kind is None:
        kind = next((name for name, known in _foretune.problem_types() if fields.keys() <= set(known)),
                    "gemm")
    words = [kind] + [f"{name}={_value_text(value)}" for name, value in fields.items()]
    return _foretune.canonical_problem(" ".join(words))


def _value_text(value: Any) -> str:
    # Tables with gaps hold whole numbers as floats.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
