#!/usr/bin/env python3
"""Measures this CPU, trains a model, judges it, and uses it: the whole pipeline in a minute.

    python3 quickstart.py [FOLDER]

The numbers are small, so that it ends soon; a model for use takes a few hundred problems.
"""

import pathlib
import sys
import tempfile

import foretune
from foretune import CollectionMode, Dataset, MatmulDatasetCollector


def main(folder: pathlib.Path) -> None:
    # The arguments of every collection below. Sizes have the distribution of workloads, but are
    # small.
    common = {"mode": CollectionMode.LOG_NORMAL, "operations": ["mm", "addmm"],
              "log_normal_m_mean": 4.5, "log_normal_m_std": 1.0, "log_normal_n_mean": 4.5,
              "log_normal_n_std": 1.0, "log_normal_k_mean": 4.5, "log_normal_k_std": 1.0,
              "max_flops": 2e7, "search_mode": "fast"}

    # Every measurement is saved at once: stop this with Ctrl-C, start it again, and it continues.
    training = MatmulDatasetCollector(num_shapes=12, seed=50, search_space="SAMPLE:10", **common)
    summary = training.collect(folder / "train.ftd", budget="20s")
    print(f"{summary.measured} measurements of {summary.problems} problems: {summary.outcomes}")

    # The fastest configs, with pandas.
    dataset = Dataset.open(folder / "train.ftd")
    frame = dataset.to_pandas()
    ok = frame[frame["outcome"] == "ok"]
    print(ok.loc[ok.groupby(["m", "n", "k"])["time_ns"].idxmin(), ["m", "n", "k", "time_ns"]])

    model = foretune.train(dataset, folds=3, trees=60, seed=50, threads=1)
    model.save(folder / "gemm.ftm")

    # Measures how close the picks come to the best config, on problems that training never saw.
    validation = MatmulDatasetCollector(
        num_shapes=3, seed=51, role="validation", training_data=folder / "train.ftd",
        search_space="SAMPLE:16", **common)
    validation.collect(folder / "validation.ftd", budget="20s")
    evaluation = foretune.evaluate(model, Dataset.open(folder / "validation.ftd"), dataset)
    print(f"mean efficiency of the picks: {100 * evaluation.mean_efficiency:.1f} %")

    choice = foretune.Selector(folder / "gemm.ftm").select({"m": 80, "n": 96, "k": 112})
    print("pick:" if choice.picked else f"abstains ({choice.reason}); fallback:", choice.config)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
