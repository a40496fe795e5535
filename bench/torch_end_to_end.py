#!/usr/bin/env python3
"""Measures a model's picks in torch.compile: compile time and run time of whole networks.

    python bench/torch_end_to_end.py --model triton.ftm --output end_to_end.jsonl
    python bench/torch_end_to_end.py --table bench/measured/torch-h200.jsonl

The second form prints the table of earlier measurements, and needs nothing of the following. The
first needs a GPU of NVIDIA's, PyTorch 2.11 and the package foretune. Every mode runs in a process
of its own, in rounds of all modes, so that a drift of the device's clock hits all of them. Every
network in it has its own cache folder, and shapes that no other network has.

- Compile time: seconds from before the session is opened (if any) to the first result. Importing
  PyTorch and foretune, creating the device's context, and Inductor's own imports and worker
  processes come before that: one pointwise function is compiled first, the same in all modes. The
  time to import foretune beside PyTorch is a figure of its own.
- Run time: microseconds a call, replayed from a CUDA graph: median of the rounds of a process, and
  of the processes.
- Results are compared with those of the uncompiled network.

Only a table of the new measurements is printed, at the end; all figures are JSON lines in
--output.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODES = ("default", "max-autotune", "max-autotune-gemm", "foretune-1", "foretune-5", "exhaustive")
DEFAULT_MODES = ("default", "max-autotune", "foretune-1", "foretune-5", "exhaustive")
NETWORKS = ("gemm", "mlp", "attention", "transformer")
GEMM = (1000, 4096, 4096)
# Largest allowed relative error, in the 2-norm, of results in bf16 against the uncompiled
# network's.
MAX_ERROR = 2e-2
# Time limit of one process, for any mode but exhaustive.
PROCESS_SECONDS = 300
ROUNDS = 40
ROUND_US = 4000


# -- networks -------------------------------------------------------------------------------------


def make_network(name: str, gemm: tuple[int, int, int]) -> tuple[Any, Any]:
    """Returns module and input, bf16, the same in every process."""
    import torch
    from torch import nn

    torch.manual_seed(7)
    m, n, k = gemm
    modules: dict[str, Callable[[], tuple[Any, tuple[int, ...]]]] = {
        "gemm": lambda: (nn.Linear(k, n, bias=False), (m, k)),
        "mlp": lambda: (nn.Sequential(nn.Linear(1536, 6144), nn.GELU(), nn.Linear(6144, 1536)),
                        (1111, 1536)),
        "attention": lambda: (attention_class()(1280, 20), (4, 389, 1280)),
        "transformer": lambda: (nn.Sequential(*(block_class()(1024, 16) for _ in range(4))),
                                (3, 437, 1024)),
    }
    module, shape = modules[name]()
    module = module.to(device="cuda", dtype=torch.bfloat16).eval().requires_grad_(False)
    return module, torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def attention_class() -> Any:
    from torch import nn
    from torch.nn import functional

    class Attention(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            batch, tokens, width = x.shape
            split = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
            q, k, v = split.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v)
            return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))

    return Attention


def block_class() -> Any:
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.attention = attention_class()(width, heads)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width))
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norms[0](x))
            return x + self.mlp(self.norms[1](x))

    return Block


# -- one process ----------------------------------------------------------------------------------


@contextlib.contextmanager
def tuning(mode: str, model: str | None) -> Iterator[Any]:
    """Sets up a mode around compiling; yields the session of foretune, if there is one."""
    import torch._inductor.config as config

    if mode.startswith("foretune-"):
        import foretune.torch

        with foretune.torch.autotune(model, k=int(mode.rpartition("-")[2])) as session:
            yield session
    elif mode in ("max-autotune-gemm", "exhaustive"):
        settings: dict[str, Any] = {"max_autotune_gemm": True}
        if mode == "exhaustive":
            settings.update({"max_autotune_gemm_search_space": "EXHAUSTIVE",
                             "max_autotune_gemm_backends": "ATEN,TRITON",
                             "max_autotune_prune_choices_based_on_shared_mem": True})
        with config.patch(settings):
            yield None
    else:
        yield None


def compile_network(network: Any, mode: str) -> Any:
    import torch

    torch_mode = "max-autotune-no-cudagraphs" if mode == "max-autotune" else "default"
    return torch.compile(network, mode=torch_mode, dynamic=False)


def measure_run(function: Callable[[], Any]) -> tuple[float, float, int]:
    """Returns median and interquartile range of a call in microseconds, and the number of calls."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def replay(times: int) -> float:
        begin.record()
        for _ in range(times):
            graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / times

    replay(20)
    times = max(1, round(ROUND_US / replay(20)))
    rounds = [replay(times) for _ in range(ROUNDS)]
    quarters = statistics.quantiles(rounds, n=4)
    return statistics.median(rounds), quarters[2] - quarters[0], times * ROUNDS


def describe(session: Any) -> dict[str, Any]:
    """Returns the decisions of foretune's session."""
    if session is None:
        return {}
    decisions = [{"problem": decision.problem, "picks": list(decision.picks),
                  "candidates": decision.candidates, "speedup": decision.speedup,
                  "ranking_ms": decision.ranking_seconds * 1e3, "reason": decision.reason}
                 for decision in session.decisions]
    return {"decisions": decisions,
            "ranking_ms": sum(decision["ranking_ms"] for decision in decisions)}


def run_network(name: str, mode: str, arguments: argparse.Namespace) -> dict[str, Any]:
    import torch
    from torch._inductor.utils import fresh_cache

    network, example = make_network(name, tuple(arguments.gemm))
    with torch.no_grad(), fresh_cache():
        expected = network(example).float()
        torch.cuda.synchronize()
        started = time.perf_counter()
        with tuning(mode, arguments.model) as session:
            compiled = compile_network(network, mode)
            result = compiled(example)
            torch.cuda.synchronize()
            compile_seconds = time.perf_counter() - started
        error = float((result.float() - expected).norm() / expected.norm())
        run_us, spread_us, calls = measure_run(lambda: compiled(example))
    return {"compile_seconds": compile_seconds, "run_us": run_us, "run_spread_us": spread_us,
            "calls": calls, "error": error, "right": error <= MAX_ERROR, **describe(session)}


def warm_up() -> float:
    """Does the work that every process does once, whatever it compiles; returns the seconds of
    importing foretune."""
    import torch
    import torch._inductor.config as config
    from torch._inductor.utils import fresh_cache

    config.autotune_num_choices_displayed = 0
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    operand = torch.ones(64, 64, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad(), fresh_cache():
        torch.compile(lambda x: x * 2 + 1, dynamic=False)(operand)
        torch.mm(operand, operand)
    torch.cuda.synchronize()
    started = time.perf_counter()
    import foretune.torch  # noqa: F401

    return time.perf_counter() - started


def work(arguments: argparse.Namespace) -> int:
    """Measures one mode on all networks; writes a line of JSON for each."""
    import torch

    import_seconds = warm_up()
    facts = {"mode": arguments.worker, "repetition": arguments.repetition,
             "import_seconds": import_seconds,
             "torch": torch.__version__, "device": torch.cuda.get_device_name()}
    for name in arguments.networks:
        torch._dynamo.reset()
        try:
            found = run_network(name, arguments.worker, arguments)
        except Exception as error:  # noqa: BLE001  the other networks are measured all the same
            found = {"failure": f"{type(error).__name__}: {error}"[:2000]}
        if name == "gemm":
            found["sizes"] = arguments.gemm
        with open(arguments.output, "a", encoding="utf-8") as file:
            file.write(json.dumps({**facts, "network": name, **found}) + "\n")
    return 0


# -- all processes --------------------------------------------------------------------------------


def plan(arguments: argparse.Namespace) -> list[tuple[str, int, list[str]]]:
    """Returns mode, repetition and networks of every process, in order. The exhaustive search runs
    once, last, for the single product alone."""
    processes = [(mode, repetition, list(arguments.networks))
                 for repetition in range(arguments.repetitions)
                 for mode in arguments.modes if mode != "exhaustive"]
    if "exhaustive" in arguments.modes and "gemm" in arguments.networks:
        processes.append(("exhaustive", 0, ["gemm"]))
    return processes


def start(mode: str, repetition: int, networks: list[str], limit: float,
          arguments: argparse.Namespace) -> str:
    """Runs one process; returns why it failed, "" when it succeeded."""
    command = [sys.executable, __file__, "--worker", mode, "--repetition", str(repetition),
               "--networks", *networks, "--output", arguments.output,
               "--gemm", *map(str, arguments.gemm)]
    if arguments.model:
        command += ["--model", arguments.model]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
                       "TRITON_CACHE_DIR": f"{folder}/triton",
                       "TORCHINDUCTOR_AUTOTUNE_NUM_CHOICES_DISPLAYED": "0"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return f"not done after {limit:.0f} s"
    if done.returncode == 0:
        return ""
    return f"exit code {done.returncode}: {(done.stderr or done.stdout)[-1500:]}"


def run_all(arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    for mode, repetition, networks in plan(arguments):
        left = arguments.deadline - (time.monotonic() - began)
        limit = arguments.exhaustive_seconds if mode == "exhaustive" else PROCESS_SECONDS
        failure = "the deadline had passed" if left <= 0 else start(
            mode, repetition, networks, min(limit, max(left, 60)), arguments)
        if failure:
            with open(arguments.output, "a", encoding="utf-8") as file:
                file.write(json.dumps({"mode": mode, "repetition": repetition,
                                       "networks": networks, "failure": failure}) + "\n")


def label(line: dict[str, Any]) -> str:
    """A network, and the sizes of a product."""
    if line["network"] != "gemm":
        return str(line["network"])
    return "x".join(map(str, line.get("sizes", GEMM)))


def median_of(lines: list[dict[str, Any]], figure: str) -> float:
    return statistics.median(line[figure] for line in lines)


def by_run(lines: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The processes of each run of this program: repetitions count from 0 in every one."""
    runs: list[list[dict[str, Any]]] = []
    for line in lines:
        if not runs or line["repetition"] <= runs[-1][-1]["repetition"]:
            runs.append([])
        runs[-1].append(line)
    return runs


def compile_ratios(found: list[dict[str, Any]], default: list[dict[str, Any]]) -> str:
    """Compile time over the default mode's: medians of all processes, and of each run's."""
    over = median_of(found, "compile_seconds") / median_of(default, "compile_seconds")
    runs, of_default = by_run(found), by_run(default)
    if len(runs) == 1 or [len(run) for run in runs] != [len(run) for run in of_default]:
        return f"{over:.2f}"
    each = [median_of(run, "compile_seconds") / median_of(base, "compile_seconds")
            for run, base in zip(runs, of_default)]
    return f"{over:.2f} ({', '.join(f'{ratio:.2f}' for ratio in each)})"


def table(lines: list[dict[str, Any]]) -> str:
    """Medians over the processes; times also against the default mode's."""
    measured: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in lines:
        if "run_us" in line:
            measured.setdefault((label(line), line["mode"]), []).append(line)
    out = [f"{'network':<15} {'mode':<18} {'processes':>9} {'compile':>9} "
           f"{'over default (of each run)':>27} {'run':>10} {'speed':>8}  results"]
    for network in dict.fromkeys(network for network, _ in measured):
        default = measured.get((network, "default"))
        for mode in MODES:
            found = measured.get((network, mode))
            if not found:
                continue
            run = median_of(found, "run_us")
            over = compile_ratios(found, default) if default else ""
            speed = f"{median_of(default, 'run_us') / run:.3f} x" if default else ""
            right = "right" if all(line["right"] for line in found) else "WRONG"
            out.append(f"{network:<15} {mode:<18} {len(found):>9} "
                       f"{median_of(found, 'compile_seconds'):7.2f} s {over:>27} {run:7.1f} us "
                       f"{speed:>8}  {right}")
    failures = [line for line in lines if "failure" in line]
    for line in failures:
        reason = line["failure"].strip().splitlines()
        out.append(f"failed: {line['mode']} {line.get('network', '')} "
                   f"(repetition {line['repetition']}): {reason[-1] if reason else ''}")
    return "\n".join(out)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", default="torch_end_to_end.jsonl",
                        help="JSON lines, appended to")
    parser.add_argument("--table", metavar="FILE",
                        help="measures nothing: prints the table of all lines of this file")
    parser.add_argument("--model", help="a model of the family triton; default: the shipped one")
    parser.add_argument("--networks", "--models", nargs="+", choices=NETWORKS,
                        default=list(NETWORKS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(DEFAULT_MODES))
    parser.add_argument("--gemm", nargs=3, type=int, metavar=("M", "N", "K"),
                        default=list(GEMM), help="sizes of the single product")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=540,
                        help="seconds after which no process is started")
    parser.add_argument("--exhaustive-seconds", type=float, default=180,
                        help="limit of the exhaustive search")
    parser.add_argument("--worker", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--repetition", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.output = str(Path(arguments.output).resolve())
    if arguments.model:
        arguments.model = str(Path(arguments.model).resolve())
    return arguments


def main() -> int:
    arguments = parse()
    if arguments.worker:
        return work(arguments)
    path, before = Path(arguments.output), 0
    if arguments.table:
        path = Path(arguments.table)
    else:
        before = path.stat().st_size if path.exists() else 0
        run_all(arguments)
    with open(path, encoding="utf-8") as file:
        file.seek(before)
        lines = [json.loads(line) for line in file]
    print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
