"""Finds the kernels that shapes need, compiles them into a file, and measures with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from .. import _foretune
from .._collector import CollectionMode, CollectionSummary, MatmulDatasetCollector, Progress
from .._errors import InvalidArgumentError, UnsupportedError
from ._compile import CompiledKernel, compile_kernel
from ._pool import Compile, compile_all

CompileProgress = Callable[[int, int, CompiledKernel], object]


@dataclass(frozen=True)
class CompileSummary:
    """The result of compiling. Counts are numbers of kernels."""

    path: str
    compiled: int
    failed: int
    """Kernels that do not compile or exceeded the time limit; the file has the reasons."""
    present: int
    """Kernels that the file already had."""
    seconds: float


def kernel_keys(problems: Iterable[str], device: str = "") -> list[str]:
    """Returns the keys of the kernels that the legal configs of ``problems`` need, sorted and
    distinct.

    Args:
        problems: texts, such as ``gemm op=mm m=512 n=4096 k=4096 dtype=bf16 layout=rcr``.
        device: the device whose limits apply, ``a100`` or ``h200``; "" takes those of an H200.

    Raises:
        InvalidArgumentError: a text does not describe a problem.
        NotFoundError: the device has no profile.
    """
    keys: set[str] = set()
    for problem in problems:
        keys.update(_foretune.triton_kernel_keys(problem, device))
    return sorted(keys)


def compile_kernels(keys: Iterable[str], output: str | os.PathLike[str], *, target: str = "sm_90",
                    jobs: int = 0, limit_s: float = 60.0, progress: CompileProgress | None = None,
                    compile_one: Compile = compile_kernel,
                    compiler: str | None = None) -> CompileSummary:
    """Compiles kernels into the file ``output``, or continues it. Needs Triton, but no GPU.

    Every kernel is appended as soon as it is done, so that nothing is lost when the run ends early;
    the same call continues where it stopped. Kernels that do not compile become records with the
    reason.

    Args:
        keys: keys of the kernels (``kernel_keys``).
        output: a file of kernels (``.ftk``).
        target: instruction set of the device.
        jobs: number of processes; 0 takes one for every core.
        limit_s: seconds that one kernel may take.
        progress: called after every kernel with the number of finished kernels, the number of all,
            and the kernel.
        compile_one: compiles the kernel of a key for a target; other processes import it.
        compiler: name and version of the compiler; None takes those of the installed Triton.

    Raises:
        UnsupportedError: Triton is not installed.
        MismatchError: the file was compiled for another target or by another compiler.
        InputOutputError: another process is writing to the file, or the system refused.
    """
    if jobs < 0 or limit_s <= 0:
        raise InvalidArgumentError("jobs must be at least 0 and the limit above 0")
    start = time.monotonic()
    if compiler is None:
        compiler = _triton_version()
    file = _foretune.open_kernel_file(os.fspath(output), target, compiler)
    wanted = list(dict.fromkeys(keys))
    missing = [key for key in wanted if key not in file]
    failed = 0
    # os.cpu_count() would be wrong: a container may have fewer cores.
    workers = min(jobs or len(os.sched_getaffinity(0)), len(missing))
    for done, kernel in enumerate(compile_all(missing, target, workers, limit_s, compile_one), 1):
        file.append(kernel)
        failed += bool(kernel.error)
        if progress is not None:
            progress(done, len(missing), kernel)
    return CompileSummary(os.fspath(output), len(missing) - failed, failed,
                          len(wanted) - len(missing), time.monotonic() - start)


def _triton_version() -> str:
    try:
        return "triton-" + metadata.version("triton")
    except metadata.PackageNotFoundError:
        raise UnsupportedError("Triton is not installed; kernels are compiled with it") from None


class TritonCollector:
    """Measures Triton's GEMM templates on a GPU, and cuBLASLt's choices as baselines.

    The keywords are those of ``foretune.MatmulDatasetCollector``, except ``family``.

    Args:
        mode: where the sizes come from; None takes a shape set where ``shapeset`` is given.
        family_options: parameters of the family ``triton``: ``device``, ``cublaslt``,
            ``workspace_mb``, ...
        options: all other keywords.

    Thread safety: one thread at a time may use a collector.
    """

    def __init__(self, mode: CollectionMode | None = None, *,
                 family_options: dict[str, object] | None = None, **options: Any) -> None:
        if "family" in options:
            raise InvalidArgumentError("the family of this collector is triton")
        if mode is None:
            mode = (CollectionMode.OPERATION_SHAPE_SET if options.get("shapeset") is not None
                    else CollectionMode.RANDOM)
        options.setdefault("search_space", "EXHAUSTIVE")
        options.setdefault("search_mode", "fast")
        self._arguments: dict[str, Any] = {"mode": mode, "family": "triton", **options}
        self._family_options = dict(family_options or {})
        self._drawing = MatmulDatasetCollector(**self._arguments)

    def problems(self) -> list[str]:
        """Returns the problems that ``collect`` would measure, as text. Needs no GPU."""
        drawing = self._drawing
        return list(_foretune.detached_problems(drawing._options, drawing._role, drawing._seed))

    def compile(self, kernels: str | os.PathLike[str], *, device: str = "", target: str = "sm_90",
                jobs: int = 0, limit_s: float = 60.0,
                progress: CompileProgress | None = None) -> CompileSummary:
        """Compiles the kernels that the problems need into the file ``kernels``; see
        ``compile_kernels``."""
        return compile_kernels(kernel_keys(self.problems(), device), kernels, target=target,
                               jobs=jobs, limit_s=limit_s, progress=progress)

    def collect(self, output: str | os.PathLike[str], kernels: str | os.PathLike[str],
                budget: str | None = None,
                progress: Progress | None = None) -> CollectionSummary:
        """Measures with the kernels of a file; see ``MatmulDatasetCollector.collect``. Leaves out
        configs without a kernel there."""
        options = {**self._family_options, "kernels": os.fspath(kernels)}
        collector = MatmulDatasetCollector(**self._arguments, family_options=options)
        return collector.collect(output, budget, progress)
