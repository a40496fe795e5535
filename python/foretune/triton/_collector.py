"""Which kernels shapes need, compiling them into a file, and measuring with it."""

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
    """What compiling did. Counts are of kernels."""

    path: str
    compiled: int
    failed: int
    """Compiled in vain, or given up after the limit; the file has the reasons."""
    present: int
    """In the file already."""
    seconds: float


def kernel_keys(problems: Iterable[str], device: str = "") -> list[str]:
    """What the legal configs of ``problems`` need, sorted and each once.

    Args:
        problems: as text: ``gemm op=mm m=512 n=4096 k=4096 dtype=bf16 layout=rcr``.
        device: one whose limits count, ``a100`` or ``h200``; "" takes those of an H200.

    Raises:
        InvalidArgumentError: for a text that is no problem.
        NotFoundError: for a device without a profile.
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

    Every kernel is appended as soon as it is done: what ends early loses nothing, and the same call
    continues where it stopped. Kernels that do not compile are records with the reason.

    Args:
        keys: of the kernels (``kernel_keys``).
        output: a file of kernels (``.ftk``).
        target: instruction set of the device.
        jobs: processes; 0 takes one for every core.
        limit_s: seconds that one kernel may take.
        progress: called after every kernel with how many are done, how many there are, and it.
        compile_one: what makes a kernel of a key and a target; importable by other processes.
        compiler: its name with the version; None asks the installed Triton.

    Raises:
        UnsupportedError: Triton is not installed.
        MismatchError: the file is of another target or compiler.
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
    # Not os.cpu_count(): a container may have fewer.
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
    """Measures Triton's GEMM templates on a GPU, beside what cuBLASLt chooses.

    The keywords are those of ``foretune.MatmulDatasetCollector`` (which see), except ``family``.

    Args:
        mode: where the sizes come from; a shape set where ``shapeset`` is given.
        family_options: of the family ``triton``: ``device``, ``cublaslt``, ``workspace_mb``, ...
        options: all others.

    Thread safety: one thread.
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
        """The problems that would be measured, as text. Needs no GPU."""
        drawing = self._drawing
        return list(_foretune.detached_problems(drawing._options, drawing._role, drawing._seed))

    def compile(self, kernels: str | os.PathLike[str], *, device: str = "", target: str = "sm_90",
                jobs: int = 0, limit_s: float = 60.0,
                progress: CompileProgress | None = None) -> CompileSummary:
        """Compiles what the problems need into the file ``kernels``: ``compile_kernels``."""
        return compile_kernels(kernel_keys(self.problems(), device), kernels, target=target,
                               jobs=jobs, limit_s=limit_s, progress=progress)

    def collect(self, output: str | os.PathLike[str], kernels: str | os.PathLike[str],
                budget: str | None = None,
                progress: Progress | None = None) -> CollectionSummary:
        """Measures with the kernels of a file: ``MatmulDatasetCollector.collect``. Configs without
        a kernel there are left out."""
        options = {**self._family_options, "kernels": os.fspath(kernels)}
        collector = MatmulDatasetCollector(**self._arguments, family_options=options)
        return collector.collect(output, budget, progress)
