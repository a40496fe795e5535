"""A pool of processes that compile kernels; a process that crashes or hangs costs one kernel.

The processes are started anew, not forked, and do not import the program that started them, because
that program may have threads and devices, or be typed into an interpreter.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing.connection
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection

from .._errors import UnsupportedError
from ._compile import CompiledKernel, compile_kernel

Compile = Callable[[str, str], CompiledKernel]

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from foretune.triton._pool import serve
serve(int(sys.argv[2]))
"""


def serve(channel_number: int) -> None:
    """Runs a process of the pool: receives the function and the target, then keys, and sends each
    result."""
    # The process that collects the results handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Connection(channel_number)
    try:
        compile_one, target = channel.recv()
        channel.send(None)
        while True:
            channel.send(compile_one(channel.recv(), target))
    except (EOFError, BrokenPipeError):
        return


class _Worker:
    def __init__(self, compile_one: Compile, target: str, cache: str) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                env={**os.environ, "TRITON_CACHE_DIR": cache})
            self.channel = Connection(ours.detach())
        self.key = ""
        self.deadline = 0.0
        self._send((compile_one, target))

    def _send(self, message: object) -> None:
        # result() notices that a process is gone.
        with contextlib.suppress(OSError):
            self.channel.send(message)

    def begin(self, key: str, limit_s: float) -> None:
        self.key = key
        self.deadline = time.monotonic() + limit_s
        self._send(key)

    def result(self) -> CompiledKernel | None:
        """Returns the kernel that the process sent, or a record with the error when the process has
        ended; None for the message that it has started."""
        try:
            kernel: CompiledKernel | None = self.channel.recv()
        except (EOFError, ConnectionError):
            code = self.process.wait()
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
            return CompiledKernel(self.key, error=f"the compiler ended {how}")
        return kernel

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.channel.close()


class _Pool:
    def __init__(self, keys: Iterable[str], target: str, limit_s: float, compile_one: Compile,
                 cache: str) -> None:
        self._waiting = list(reversed(list(keys)))
        self._target = target
        self._limit_s = limit_s
        self._compile_one = compile_one
        self._cache = cache
        self._workers: list[_Worker] = []
        self._has_started = False

    def fill(self, jobs: int) -> bool:
        """Starts the missing workers; returns true while any is at work."""
        while self._waiting and len(self._workers) < jobs:
            worker = _Worker(self._compile_one, self._target, self._cache)
            # Importing the compiler takes seconds, which must not count for the first kernel.
            worker.begin(self._waiting.pop(), self._limit_s + 30)
            self._workers.append(worker)
        return bool(self._workers)

    def collect(self) -> Iterator[CompiledKernel]:
        """Waits for the next kernel that is done or has exceeded its limit; yields all such."""
        soonest = min(worker.deadline for worker in self._workers)
        ready = multiprocessing.connection.wait([worker.channel for worker in self._workers],
                                                max(0.0, soonest - time.monotonic()))
        for worker in list(self._workers):
            if worker.channel in ready:
                kernel = worker.result()
                if kernel is None:
                    self._has_started = True
                    continue
            elif time.monotonic() >= worker.deadline:
                kernel = CompiledKernel(worker.key,
                                        error=f"compiling took longer than {self._limit_s:g} s")
                worker.process.kill()
                worker.process.wait()
            else:
                continue
            if not self._has_started:
                raise UnsupportedError(f"no process that compiles can be started: {kernel.error}")
            if self._waiting and worker.process.poll() is None:
                worker.begin(self._waiting.pop(), self._limit_s)
            else:
                self._workers.remove(worker)
                worker.stop()
            yield kernel

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


def compile_all(keys: Iterable[str], target: str, jobs: int, limit_s: float,
                compile_one: Compile = compile_kernel) -> Iterator[CompiledKernel]:
    """Compiles the kernels of ``keys`` in ``jobs`` processes; yields them in order of completion.

    Args:
        keys: keys of the kernels.
        target: instruction set, ``sm_90``.
        jobs: number of processes.
        limit_s: seconds that one kernel may take; then its process is killed, and the kernel's
            record has the error.
        compile_one: compiles the kernel of a key; the processes import it.

    Raises:
        UnsupportedError: the processes end before they have started.
    """
    # A temporary cache, because the compiler's own would only grow.
    with tempfile.TemporaryDirectory(prefix="foretune-triton-") as cache:
        pool = _Pool(keys, target, limit_s, compile_one, cache)
        try:
            while pool.fill(jobs):
                yield from pool.collect()
        finally:
            pool.stop()
