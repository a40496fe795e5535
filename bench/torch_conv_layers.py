#!/usr/bin/env python3
"""Single convolutions in PyTorch on an NVIDIA GPU: cuDNN's first choice, PyTorch's benchmark mode,
and ``foretune.torch.convolutions``.

    torch_conv_layers.py --shapes bench/shapes/cudnn_trials.txt --measure 8 --compiles --rounds 5 \
        --known bench/shapes/cudnn_calls.txt --json layers.json
    torch_conv_layers.py --table layers.json --known bench/shapes/cudnn_calls.txt

A mode makes its choice in the program's own calls, as often as it takes (at most --patience
seconds). Then its kernels are captured into a CUDA graph, and the graphs of the three modes run in
turns: a time is the median of the turns. Results are compared with those of the first choice.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

MODES = ("off", "on", "foretune")
WINDOW_US = 1000.0  # of a turn, about
MOST_CALLS = 50     # in a turn
CALLS_AT_ONCE = 8
TYPES = {"bf16": "bfloat16", "f16": "float16"}
AXES = ("d", "h", "w")
FILTER = ("z", "y", "x")
WEIGHTS = ("c", "k", "g", *FILTER)


def parse_problem(line: str) -> dict[str, str]:
    """Returns the fields of ``conv op=forward n=16 ...``."""
    return dict(word.split("=", 1) for word in line.split()[1:])


def operation_of(problem: dict[str, str]) -> Callable[[], Any]:
    """Returns a function that computes the convolution."""
    import torch

    def number(name: str, otherwise: int = 1) -> int:
        return int(problem.get(name, otherwise))

    used = [axis for axis, side in enumerate(AXES)
            if f"{side}i" in problem or FILTER[axis] in problem]
    used = used or [2]
    if 0 in used:
        used = [0, 1, 2]
    elif 1 in used:
        used = [1, 2]
    sides = [AXES[axis] for axis in used]
    size = [number(f"{side}i") for side in sides]
    points = [number(FILTER[axis]) for axis in used]
    stride = [number(f"stride_{side}") for side in sides]
    padding = [number(f"pad_{side}", 0) for side in sides]
    dilation = [number(f"dilation_{side}") for side in sides]
    groups, filters = number("g"), number("k")
    out = [(length + 2 * pad - gap * (point - 1) - 1) // step + 1
           for length, pad, gap, point, step in zip(size, padding, dilation, points, stride)]
    dtype = getattr(torch, TYPES[problem["dtype"]])
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(
        len(size) + 2, torch.contiguous_format)
    if problem.get("layout") == "channels_first":
        last = torch.contiguous_format

    def draw(*shape: int) -> Any:
        return (torch.rand(shape, device="cuda") - 0.5).to(dtype).contiguous(memory_format=last)

    x = draw(number("n"), number("c"), *size)
    w = draw(filters, number("c") // groups, *points)
    moves = (stride, padding, dilation, False, [0] * len(size), groups)
    if problem["op"] == "forward":
        return lambda: torch.ops.aten.convolution(x, w, None, *moves)
    y = draw(number("n"), filters, *out)
    is_data = problem["op"] == "backward_data"
    mask = [is_data, not is_data, False]
    return lambda: torch.ops.aten.convolution_backward(y, x, w, None, *moves, mask)[
        0 if is_data else 1]


def graph_of(compute: Callable[[], Any], calls: int) -> Any:
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            compute()
    return graph


def time_graph(graph: Any, calls: int) -> float:
    """Returns microseconds a call."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e3 / calls


def is_settled(session: Any) -> bool:
    """Returns True when no engine is on trial for the last decision."""
    return "trials go on" not in (session.decisions[-1].choice or "")


def measure(problem: dict[str, str], session: Any, arguments: argparse.Namespace,
            row: dict[str, Any]) -> None:
    """Adds the figures of a convolution to its row."""
    import torch

    compute = operation_of(problem)
    graphs: dict[str, Any] = {}
    results: dict[str, Any] = {}
    calls = 1
    for mode in MODES:
        row["mode"] = mode
        torch.backends.cudnn.benchmark = mode == "on"
        # PyTorch finds the plan of either mode in one cache, whose keys tell these two apart; types
        # of 16 bits do not care.
        torch.backends.cudnn.allow_tf32 = mode == "on"
        if mode == "foretune":
            session.install()
        try:
            begin = time.perf_counter()
            runs = 0
            while True:
                # Programs do not wait after each call.
                for _ in range(CALLS_AT_ONCE if mode == "foretune" else 1):
                    results[mode] = compute()
                    runs += 1
                torch.cuda.synchronize()
                seconds = time.perf_counter() - begin
                if mode != "foretune" or is_settled(session) or seconds > arguments.patience:
                    break
            row[f"{mode}_seconds"], row[f"{mode}_calls"] = seconds, runs
            if mode == "off":
                single = graph_of(compute, 1)
                us = min(time_graph(single, 1) for _ in range(3))
                calls = max(1, min(MOST_CALLS, math.ceil(WINDOW_US / max(1.0, us))))
            graphs[mode] = graph_of(compute, calls)
        finally:
            if mode == "foretune":
                decision = session.decisions[-1]
                row["choice"] = decision.choice or f"left to PyTorch: {decision.reason}"
                session.uninstall()
    torch.backends.cudnn.benchmark = False
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for turn in range(arguments.rounds):
        order = MODES[turn % 3:] + MODES[:turn % 3]
        for mode in order:
            times[mode].append(time_graph(graphs[mode], calls))
    row |= {f"{mode}_us": statistics.median(times[mode]) for mode in MODES}
    largest = results["off"].abs().max().clamp_min(1e-30)
    row["difference"] = float((results["foretune"] - results["off"]).abs().max() / largest)
    del row["mode"]


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of some layers; a number above 1 means that Foretune is faster."""
    over_first = [row["off_us"] / row["foretune_us"] for row in rows]
    over_benchmark = [row["on_us"] / row["foretune_us"] for row in rows]
    over_better = [min(pair) for pair in zip(over_first, over_benchmark)]
    best = [min(row[f"{mode}_us"] for mode in MODES) / row["foretune_us"] for row in rows]
    return {"layers": float(len(rows)), "geomean_over_first": geomean(over_first),
            "geomean_over_benchmark": geomean(over_benchmark),
            "benchmark_over_first": geomean(row["off_us"] / row["on_us"] for row in rows),
            "share_below_098": sum(value < 0.98 for value in over_better) / max(1, len(rows)),
            "worst": min(over_better, default=math.nan), "of_best_of_three": geomean(best),
            "median_calls": statistics.median(row["foretune_calls"] for row in rows),
            "median_seconds": statistics.median(row["foretune_seconds"] for row in rows),
            "median_benchmark_seconds": statistics.median(row["on_seconds"] for row in rows)}


def weights_of(line: str) -> tuple[str, ...]:
    """Returns the direction and the shape of the weights."""
    problem = parse_problem(line)
    return tuple(problem.get(name, "1") for name in ("op", *WEIGHTS))


def known_weights(paths: Iterable[str]) -> set[tuple[str, ...]]:
    return {weights_of(line) for path in paths
            for line in Path(path).read_text(encoding="utf-8").splitlines()
            if line.startswith("conv ")}


def kind_of(problem: dict[str, str]) -> str:
    if "di" in problem or "z" in problem:
        return "three dimensions"
    groups = int(problem.get("g", 1))
    if groups == int(problem["c"]) > 1:
        return "depthwise"
    return "in groups" if groups > 1 else "one group"


def groups_of(rows: list[dict[str, Any]], known: set[tuple[str, ...]],
              ) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The layers in all, split by whether their weights' shape is among the known ones, by kind,
    and by direction and type."""
    split: dict[str, list[dict[str, Any]]] = {"all": rows}
    for row in rows:
        problem = parse_problem(row["problem"])
        if known:
            is_known = weights_of(row["problem"]) in known
            split.setdefault("known weights" if is_known else "new weights", []).append(row)
        for name in (kind_of(problem), f"{problem['op']} {problem['dtype']}"):
            split.setdefault(name, []).append(row)
    yield from sorted(split.items(), key=lambda item: (item[0] != "all", "weights" not in item[0],
                                                       item[0].split()[-1][-2:] == "16", item[0]))


def table(measured: dict[str, Any], known: set[tuple[str, ...]]) -> Iterator[str]:
    rows = [row for row in measured["layers"] if "failure" not in row]
    yield (f"{'':<24} {'layers':>6} {'over first':>10} {'over benchmark':>14} "
           f"{'benchmark over first':>20} {'below 0.98':>10} {'worst':>6} {'calls':>6} {'s':>6}")
    for name, chosen in groups_of(rows, known):
        found = figures(chosen)
        yield (f"{name:<24} {int(found['layers']):>6} {found['geomean_over_first']:>10.3f} "
               f"{found['geomean_over_benchmark']:>14.3f} {found['benchmark_over_first']:>20.3f} "
               f"{found['share_below_098']:>10.3f} {found['worst']:>6.2f} "
               f"{found['median_calls']:>6.0f} {found['median_seconds']:>6.2f}")
    failed = [row for row in measured["layers"] if "failure" in row]
    yield f"{len(failed)} failed, largest difference {max(row['difference'] for row in rows):.2g}"
    slower = sorted(rows, key=lambda row: min(row["off_us"], row["on_us"]) / row["foretune_us"])
    for row in slower[:5]:
        yield (f"{min(row['off_us'], row['on_us']) / row['foretune_us']:.2f}  {row['problem']}  "
               f"{row['choice']}")


def write(measured: dict[str, Any], path: str) -> None:
    """Writes JSON with one line for each layer, numbers with five digits."""
    layers = [json.dumps({key: float(f"{value:.5g}") if isinstance(value, float) else value
                          for key, value in row.items()}) for row in measured["layers"]]
    rest = json.dumps({key: value for key, value in measured.items() if key != "layers"}, indent=1)
    Path(path).write_text(rest.removesuffix("\n}") + ',\n "layers": [\n  ' + ",\n  ".join(layers)
                          + "\n ]\n}\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", help="a list of convolutions in bf16 or f16, one on a line")
    parser.add_argument("--json", metavar="FILE", help="writes all figures here")
    parser.add_argument("--table", metavar="FILE",
                        help="measures nothing: prints the table of an earlier --json")
    parser.add_argument("--known", metavar="FILE", nargs="+", default=[],
                        help="lists of convolutions; those with other shapes of weights are figures "
                             "of their own")
    parser.add_argument("--model", help="a model of the family cudnn; default: the shipped one")
    parser.add_argument("--measure", type=int, default=6,
                        help="engines that take turns in the first calls; 0 and 1: none")
    parser.add_argument("--compiles", action="store_true",
                        help="also takes engines that compile their kernel when they are first used")
    parser.add_argument("--margin", type=float, default=0.02)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--patience", type=float, default=4,
                        help="seconds of calls within which a choice has to settle")
    parser.add_argument("--deadline", type=float, default=3600,
                        help="seconds after which no layer is started")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    known = known_weights(arguments.known)
    if arguments.table:
        measured = json.loads(Path(arguments.table).read_text(encoding="utf-8"))
        print("\n".join(table(measured, known)))
        return 0
    if not arguments.shapes:
        print("torch_conv_layers: give --shapes or --table", file=sys.stderr)
        return 2
    import foretune.torch
    import torch

    measured = {"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                "cudnn": torch.backends.cudnn.version(), "measure": arguments.measure,
                "compiles": arguments.compiles, "margin": arguments.margin,
                "rounds": arguments.rounds, "layers": []}
    session = foretune.torch.convolutions(arguments.model, margin=arguments.margin,
                                          measure=arguments.measure,
                                          compiles=arguments.compiles, share=1)
    began = time.monotonic()
    lines = Path(arguments.shapes).read_text(encoding="utf-8").splitlines()
    for line in (line for line in lines if line.startswith("conv ")):
        if time.monotonic() - began > arguments.deadline:
            break
        row: dict[str, Any] = {"problem": line}
        try:
            measure(parse_problem(line), session, arguments, row)
        except RuntimeError as error:
            row["failure"] = f"{row.get('mode', 'operands')}: {str(error).splitlines()[0]}"
        measured["layers"].append(row)
        torch.cuda.empty_cache()
    rows = [row for row in measured["layers"] if "failure" not in row]
    measured["metrics"] = {f"{name} {key}".replace(" ", "_"): value
                           for name, chosen in groups_of(rows, known)
                           for key, value in figures(chosen).items()}
    if arguments.json:
        write(measured, arguments.json)
    print("\n".join(table(measured, known)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
