#!/usr/bin/env python3
"""Trains policies with several seeds and trainers and says how much the seed decides.

    bench/policy_seeds.py --program build/dev/tools/train_policy/foretune-train-policy \\
        [--trainers ppo,dqn] [--seeds 10] [--seconds 60] [--isa avx2] [--folder DIR] [--json FILE]

Every run learns from nothing on computations that its seed draws (`mixed`), and is judged on LoopTune's
25 test products: the first proposal without a measurement, and the best of ten. The textbook's first
schedule is measured in the same run. Shares are of the peak, `over` is over the textbook; all are
geometric means over the products. Over the seeds they are the mean, the standard deviation, the least and the
greatest.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

COLUMNS = ("start", "unmeasured", "best", "textbook")
RATIOS = ("unmeasured over", "best over")


def train(program: str, trainer: str, seed: int, arguments: argparse.Namespace,
          folder: pathlib.Path) -> dict[str, float]:
    """Returns the shares of one run on the test products."""
    run = folder / f"{trainer}-{seed}"
    command = [program, "--trainer", trainer, "--seed", str(seed), "--seconds", str(arguments.seconds),
               "--test", "mm64_256_16_test25", "--folder", str(run)]
    if arguments.isa:
        command += ["--isa", arguments.isa]
    with open(folder / f"{trainer}-{seed}.log", "w", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdout=log)
    with open(run / "end" / trainer / "test.csv", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    shares = {name: float(rows[-1][rows[0].index(name)]) for name in COLUMNS}
    return shares | {name: shares[name.split()[0]] / shares["textbook"] for name in RATIOS}


def summary(values: list[float]) -> dict[str, float]:
    """Returns mean, standard deviation, least and greatest."""
    return {"mean": statistics.fmean(values), "deviation": statistics.pstdev(values),
            "least": min(values), "greatest": max(values)}


def cpu_name() -> str:
    """Returns the CPU's name from the system, or the machine's."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="foretune-train-policy")
    parser.add_argument("--trainers", default="ppo,dqn", help="names joined by commas")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each trainer")
    parser.add_argument("--seconds", type=float, default=60, help="time of each run")
    parser.add_argument("--isa", default="", help="avx2 or avx512")
    parser.add_argument("--folder", help="keeps what the runs write")
    parser.add_argument("--json", help="file for the figures")
    arguments = parser.parse_args()
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for trainer in arguments.trainers.split(","):
            runs = []
            for seed in range(1, arguments.seeds + 1):
                runs.append(train(arguments.program, trainer, seed, arguments, folder))
                print(f"{trainer:7} seed {seed:2}  " + "  ".join(
                    f"{name} {100 * value:5.1f} %" for name, value in runs[-1].items()), flush=True)
            for name in COLUMNS + RATIOS:
                each = summary([run[name] for run in runs])
                metrics |= {f"{trainer} {name} {key}": value for key, value in each.items()}
                print(f"{trainer:7} {name:15} " + "  ".join(
                    f"{key} {100 * value:5.1f} %" for key, value in each.items()), flush=True)
    if arguments.json:
        content = {"name": "policy_seeds", "metrics": metrics, "machine": {"cpu": cpu_name()},
                   "seconds": arguments.seconds, "seeds": arguments.seeds}
        pathlib.Path(arguments.json).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
