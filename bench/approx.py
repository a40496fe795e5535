#!/usr/bin/env python3
"""Tunes how four image classifiers (bench/networks/) compute, by `foretune approx`.

    apt-get install dataset-fashion-mnist
    PYTHONPATH=build/dev/python taskset -c 1 build/venv/bin/python bench/approx.py --json FILE

Images 50,000 to 59,999 of the training set are for tuning; no training saw them. The 10,000 test images
judge the networks that are handed out, and choose nothing. Speed-ups are over our own exact network with
the same number of images, by turns in one run. A network keeps its budget when the test images lose no more
than it allows. With `--judge-search`, a search without models measures networks until they are as good as
ours, by measured loss and modelled time; `evaluations_saved` is how many times as many it needs (a lower
bound where it does not get there), beside all networks that ours measured, and those that profiling takes.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from statistics import geometric_mean
from typing import Any

from fashion_mnist import DEVIATION, FOLDER, MEAN, NAMES, parser_of, test_set, tuning_set, write_json
from foretune.networks import Network

ROOT = pathlib.Path(__file__).parent.parent
BUDGETS = (0.5, 1, 2, 3)


def save_tasks(data: pathlib.Path, folder: pathlib.Path, names: list[str]) -> None:
    """Writes a task of each network, with the images that tune and test it."""
    tuning, test = tuning_set(data), test_set(data)
    for name in names:
        Network.load(FOLDER / f"{name}.onnx").save_task(
            folder / f"{name}.ftt", tuning=tuning, test=test,
            scale=1 / 255 / DEVIATION, shift=-MEAN / DEVIATION)


def tuned(program: pathlib.Path, task: pathlib.Path, images: int, judged: int, searched: int
          ) -> dict[str, Any]:
    """Returns the JSON of `foretune approx`, in one thread."""
    output = task.with_suffix(".json")
    subprocess.run([str(program), "approx", str(task), "--threads", "1", "--images", str(images),
                    "--budgets", ",".join(str(budget) for budget in BUDGETS), "--judge", str(judged),
                    "--judge-search", str(searched), "--json", str(output)], check=True)
    made: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return made


def figures_of(runs: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Returns the figures over all runs."""
    configs = [each for run in runs.values() for each in run["configs"]]
    metrics = [run["metrics"] for run in runs.values()]
    figures = {f"speedup_at_{budget}pp":
               geometric_mean([each[f"speedup_at_{budget}"] for each in metrics])
               for budget in BUDGETS}
    figures["configs_handed_out"] = len(configs)
    figures["within_budget_share"] = (
        sum(each["test_loss"] <= each["budget"] for each in configs) / max(len(configs), 1))
    figures["front_ms"] = max(each["front_ms"] for each in metrics)
    figures["tuning_seconds"] = max(each["seconds"] for each in metrics)
    judged = [each for each in metrics if "time_error" in each]
    if judged:
        figures["latency_mape"] = 100 * statistics.fmean(each["time_error"] for each in judged)
    searched = [each for each in metrics if "evaluations_saved" in each]
    for key in ("evaluations_saved", "evaluations_saved_with_profile"):
        if searched:
            figures[key] = geometric_mean([each[key] for each in searched])
    for name, run in runs.items():
        if name.startswith("resnet20") and "p1_error" in run["metrics"]:
            own = run["metrics"]
            figures |= {"p1_mae_pp": own["p1_error"], "p1_spearman": own["p1_spearman"],
                        "quality_mae_pp": own["quality_error"],
                        "quality_spearman": own["quality_spearman"]}
    return figures


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/dev/tools/foretune/foretune")
    parser.add_argument("--networks", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--images", type=int, nargs="+", default=[64, 1], help="images of a call")
    parser.add_argument("--judge", type=int, default=200,
                        help="random networks that judge the models")
    parser.add_argument("--judge-search", type=int, default=0,
                        help="networks that a search without models may measure, to be compared with")
    arguments = parser.parse_args()
    runs: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        save_tasks(arguments.data, folder, arguments.networks)
        for name in arguments.networks:
            for images in arguments.images:
                print(f"\n{name}, {images} images of a call", flush=True)
                runs[f"{name}_b{images}"] = tuned(arguments.program, folder / f"{name}.ftt", images,
                                                  arguments.judge, arguments.judge_search)
    figures = figures_of(runs)
    print()
    for key, value in figures.items():
        print(f"{key:24}{value:10.3f}")
    first = next(iter(runs.values()))
    content = {"name": "approx", "metrics": figures, "machine": first["machine"],
               "command": " ".join(sys.argv), "runs": runs}
    write_json(arguments.json, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
