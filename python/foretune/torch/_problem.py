"""Converts Inductor's operations to problems: sizes, data type and layout of the operands.

Operands need ``get_size``, ``get_stride`` and ``get_dtype``; numbers must be ``int`` or sympy's
integers. This module does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# The lowerings that are handled, and the operation of the problem that each computes.
OPERATIONS = {"mm": "mm", "addmm": "addmm", "bmm": "bmm", "baddbmm": None}
# Position of the first matrix among the positional arguments; the second one follows it.
_FIRST_MATRIX = {"mm": 0, "addmm": 1, "bmm": 0, "baddbmm": 1}
_DTYPES = {"torch.bfloat16": "bf16", "torch.float16": "f16", "torch.float32": "f32"}


class Abstention(Exception):
    """The reason why an operation is left to Inductor. Never leaves this package."""


def matrices_of(operation: str, arguments: Sequence[Any]) -> tuple[Any, Any]:
    """Returns the two matrices among the positional arguments of a lowering.

    Raises:
        Abstention: there are too few arguments.
    """
    first = _FIRST_MATRIX[operation]
    if len(arguments) < first + 2:
        raise Abstention("the operands are not where they were expected")
    return arguments[first], arguments[first + 1]


def size_of(value: Any) -> int:
    """Returns a size or stride as a number.

    Raises:
        Abstention: the value is not known before the program runs.
    """
    if isinstance(value, int):
        return value
    if getattr(value, "is_Integer", False):
        return int(value)
    raise Abstention("sizes are dynamic")


def sizes_of(operation: str, a: Any, b: Any) -> tuple[int, int, int, int]:
    """Returns m, n, k and batch.

    Raises:
        Abstention: the operands are dynamic or empty, do not fit each other, or have another rank
            than the operation.
    """
    rank = 3 if operation in ("bmm", "baddbmm") else 2
    first = [size_of(size) for size in a.get_size()]
    second = [size_of(size) for size in b.get_size()]
    if len(first) != rank or len(second) != rank:
        raise Abstention(f"the operands do not have {rank} dimensions")
    m, k = first[-2:]
    n = second[-1]
    batch = first[0] if rank == 3 else 1
    if second[-2] != k or (rank == 3 and second[0] != batch):
        raise Abstention("the operands' sizes do not fit each other")
    if min(m, n, k, batch) < 1:
        raise Abstention("an operand is empty")
    return m, n, k, batch


def dtype_of(a: Any, b: Any, tf32: bool) -> str:
    """Returns the data type as problems name it; ``tf32`` means that f32 may be rounded to it.

    Raises:
        Abstention: the operands have two types, or one without templates.
    """
    names = [str(operand.get_dtype()) for operand in (a, b)]
    if names[0] != names[1]:
        raise Abstention(f"operands of two data types, {names[0]} and {names[1]}")
    dtype = _DTYPES.get(names[0])
    if dtype is None:
        raise Abstention(f"operands of {names[0]}")
    return "tf32" if dtype == "f32" and tf32 else dtype


def letter_of(name: str, operand: Any) -> str:
    """Returns ``r`` for a row-major matrix, ``c`` for a column-major one. Rows or columns may have
    gaps between them, not within.

    Raises:
        Abstention: the matrix is neither, or is a broadcast, whose elements share memory.
    """
    rows, columns = (size_of(size) for size in operand.get_size()[-2:])
    down, across = (size_of(stride) for stride in operand.get_stride()[-2:])
    is_batch = len(operand.get_size()) == 3 and size_of(operand.get_size()[0]) > 1
    if is_batch and size_of(operand.get_stride()[0]) == 0:
        raise Abstention(f"{name} is one matrix for the whole batch")
    # Checks for no gaps first, because a single row or column may match both.
    if (down, across) == (columns, 1):
        return "r"
    if (down, across) == (1, rows):
        return "c"
    # The stride of a dimension with one element is meaningless.
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return "r"
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return "c"
    if 0 in (down, across):
        raise Abstention(f"{name} is a broadcast")
    raise Abstention(f"neither the rows nor the columns of {name} are contiguous")


def problem_text(operation: str, a: Any, b: Any, *, tf32: bool) -> str:
    """Returns the problem: ``gemm op=mm m=512 n=4096 k=4096 batch=1 dtype=bf16 layout=rcr``.

    Raises:
        Abstention: no problem describes this operation.
    """
    if OPERATIONS.get(operation) is None:
        raise Abstention(f"{operation} is no operation that models know")
    m, n, k, batch = sizes_of(operation, a, b)
    dtype = dtype_of(a, b, tf32)
    # The result is always stored by rows.
    layout = letter_of("the first matrix", a) + letter_of("the second matrix", b) + "r"
    return (f"gemm op={OPERATIONS[operation]} m={m} n={n} k={k} batch={batch} dtype={dtype} "
            f"layout={layout}")


def rough_text(operation: str, arguments: Sequence[Any]) -> str:
    """Returns a rough text for reports about an operation that no problem describes."""
    try:
        a, b = matrices_of(operation, arguments)
        sizes = " @ ".join("x".join(str(size) for size in operand.get_size()) for operand in (a, b))
        return f"{operation} {sizes} {str(a.get_dtype()).removeprefix('torch.')}"
    except Exception:  # noqa: BLE001  a report must not break what it reports on
        return operation
