"""Products of sparse matrices with NumPy's arrays, on this CPU::

    a = foretune.sparse.Matrix(scipy_array)    # any format of SciPy's that has tocsr()
    y = a @ x                                  # x (columns,) or (columns, n)
    y = foretune.sparse.matmul(a, x, out=y)

The first product of a width chooses a kernel and packs the matrix as it wants it; later ones only
multiply. A model for AVX-512 and one thread is shipped. Values are float32 or float64, and dense operands have the same type. SciPy itself is not
needed: an object with ``tocsr()``, or with ``shape``, ``indptr``, ``indices`` and ``data``, will do.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._dispatcher import CpuDispatcher, chosen_dispatcher
from ._errors import InvalidArgumentError, UnsupportedError
from ._model import Model
from .loops import whole_number

__all__ = ["Dispatcher", "Matrix", "matmul"]

Array = npt.NDArray[Any]


class Dispatcher(CpuDispatcher):
    """Decides which kernel runs a sparse product, and runs it.

    Args:
        threads: threads of a product; None: all cores of the process.
        measure_top: above 1, the first products of a kind try this many configs on the caller's
            arrays, and the fastest stays.
        model: a model that was trained on measurements of ``sparse-cpu``, or its path. None: the
            one shipped for this CPU and this number of threads; where there is none, the family's
            textbook config runs, unless choices or trials know a better one.
        choices: a data set whose fastest configs are chosen for matrices of the same pattern: of
            ``save_trials``, or with ``payloads`` one of ``foretune tune`` or ``foretune collect``.
        payloads: the folder of the files that the problems of ``choices`` name.

    Raises:
        InvalidArgumentError: a number makes no sense; there are fewer cores.
        MismatchError: the model is of another family, the choices are of another machine.
        NotFoundError, CorruptDataError, InputOutputError: a file cannot be read.

    Thread safety: any number of threads; products take turns when they use several threads.
    """

    __slots__ = ()

    def __init__(self, *, threads: int | None = None, measure_top: int = 0,
                 model: Model | str | os.PathLike[str] | None = None,
                 choices: str | os.PathLike[str] | None = None,
                 payloads: str | os.PathLike[str] | None = None) -> None:
        if payloads is not None and choices is None:
            raise InvalidArgumentError("payloads are those of choices, which are missing")
        super().__init__(_foretune.SparseDispatcher, threads, measure_top, model,
                         choices if payloads is None else None)
        if payloads is not None and choices is not None:
            self._native.load_choices_of_files(os.fspath(choices), os.fspath(payloads))


_chosen = functools.partial(chosen_dispatcher, Dispatcher, "foretune.sparse.Dispatcher")


def _rows_of(matrix: Any) -> Any:
    """Returns the matrix by rows, each with rising columns and no place twice."""
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
    if not all(hasattr(matrix, name) for name in ("shape", "indptr", "indices", "data")):
        raise InvalidArgumentError(
            f"a sparse matrix is one of SciPy's, not {type(matrix).__name__}")
    if not getattr(matrix, "has_canonical_format", True):
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


class Matrix:
    """A sparse matrix with the packed forms that its products want.

    Args:
        matrix: a sparse matrix or array of SciPy, of float32 or float64. It is copied: later
            changes to it change nothing here.
        threads: threads of a product; None: all cores of the process.
        dispatcher: chooses the kernels; None: the one for that number of threads.
        once: the matrix is multiplied once or a few times. Then the textbook config runs, which
            packs nothing, and the matrix is not described for a model.

    Attributes:
        shape: rows and columns.
        nnz: number of non-zeros.
        dtype: type of the values.

    Raises:
        InvalidArgumentError: it is no sparse matrix, or its arrays make none.
        UnsupportedError: values of another type; memory is short.

    Thread safety: any number of threads.
    """

    __slots__ = ("_native", "dtype", "nnz", "shape")

    def __init__(self, matrix: Any, *, threads: int | None = None,
                 dispatcher: Dispatcher | None = None, once: bool = False) -> None:
        chosen = _chosen(threads, dispatcher)
        rows = _rows_of(matrix)
        if len(rows.shape) != 2:
            raise InvalidArgumentError(f"a matrix has two axes, not {len(rows.shape)}")
        values = np.ascontiguousarray(rows.data)
        if values.dtype not in (np.float32, np.float64):
            raise UnsupportedError(
                f"values are float32 or float64, not {values.dtype.name}: use astype()")
        index = np.int32 if rows.indptr.dtype == rows.indices.dtype == np.int32 else np.int64
        self.shape = (int(rows.shape[0]), int(rows.shape[1]))
        self.nnz = int(values.size)
        self.dtype = values.dtype
        self._native = chosen._native.matrix(*self.shape,
                                             np.ascontiguousarray(rows.indptr, index),
                                             np.ascontiguousarray(rows.indices, index), values,
                                             bool(once))

    def _dense(self, value: Any, name: str, rows: int) -> Array:
        """Returns a dense operand of one or two axes, without gaps."""
        if not isinstance(value, np.ndarray):
            raise InvalidArgumentError(f"{name} is a NumPy array, not {type(value).__name__}")
        if value.dtype != self.dtype:
            raise InvalidArgumentError(
                f"{name} is {value.dtype.name}, and the matrix {self.dtype.name}")
        if value.ndim not in (1, 2) or value.shape[0] != rows:
            raise InvalidArgumentError(
                f"{name} has the shape {value.shape}; a product with the matrix of "
                f"{self.shape[0]} x {self.shape[1]} takes ({rows},) or ({rows}, n)")
        return np.ascontiguousarray(value)

    def _result(self, out: Array | None, shape: tuple[int, ...]) -> Array:
        if out is None:
            return np.empty(shape, self.dtype)
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype or out.shape != shape:
            raise InvalidArgumentError(f"out is not an array of {self.dtype.name} with {shape}")
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise InvalidArgumentError(
                "out cannot be written to, or has gaps between its elements")
        return out

    def matmul(self, dense: Array, out: Array | None = None) -> Array:
        """Returns the product with a vector (columns,) or a matrix (columns, n); ``out``, where
        given, gets it, and shares no memory with ``dense``."""
        operand = self._dense(dense, "the dense operand", self.shape[1])
        result = self._result(out, (self.shape[0], *operand.shape[1:]))
        if result.size > 0:
            if operand.size == 0:
                result.fill(0)
            elif operand.ndim == 1:
                self._native.spmv(operand, result)
            else:
                self._native.spmm(operand, result)
        return result

    def __matmul__(self, dense: Array) -> Array:
        return self.matmul(dense)

    def sddmm(self, left: Array, right: Array, out: Array | None = None) -> Array:
        """Returns, for each non-zero (r, c) in the order of the matrix by rows, its value times the
        dot product of ``left[r]`` (rows, n) and ``right[c]`` (columns, n)."""
        left = self._dense(left, "left", self.shape[0])
        right = self._dense(right, "right", self.shape[1])
        if left.ndim != 2 or left.shape[1:] != right.shape[1:]:
            raise InvalidArgumentError(
                f"left {left.shape} and right {right.shape} have rows of the same length")
        result = self._result(out, (self.nnz,))
        if left.shape[1] == 0:
            result.fill(0)
        elif self.nnz > 0:
            self._native.sddmm(left, right, result)
        return result

    def explain(self, operation: str = "spmm", n: int = 1) -> str:
        """Returns the config that runs ``"spmv"``, ``"spmm"`` or ``"sddmm"`` with rows of ``n``
        values, and why: ``"default: isa=avx512 ..."``."""
        return self._native.explain(operation, whole_number(n, "n", 1, 2**31 - 1))


def matmul(matrix: Any, dense: Array, *, threads: int | None = None,
           dispatcher: Dispatcher | None = None, out: Array | None = None) -> Array:
    """Returns the product of a sparse matrix with a dense vector or matrix.

    Args:
        matrix: a ``Matrix``, which is packed once, or one of SciPy's, which is copied in every call,
            since its values may have changed. It runs the textbook config, which packs nothing,
            unless ``dispatcher`` decides.
        dense: an array (columns,) or (columns, n) of the matrix' type.
        threads, dispatcher: as for ``Matrix``; a ``Matrix`` has its own.
        out: gets the result, which is returned.

    Raises:
        InvalidArgumentError: a shape or a type does not fit.
        UnsupportedError: values of another type than float32 and float64; memory is short.
    """
    if not isinstance(matrix, Matrix):
        matrix = Matrix(matrix, threads=threads, dispatcher=dispatcher, once=dispatcher is None)
    elif threads is not None or dispatcher is not None:
        raise InvalidArgumentError("a Matrix has its dispatcher and its threads already")
    return matrix.matmul(dense, out)
