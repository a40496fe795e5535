"""Shared fixtures: small data sets of the family ``null``, which needs no hardware, and a model."""

import pathlib

import foretune
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NULL = {"family": "null", "mode": foretune.CollectionMode.LOG_NORMAL}


def collect(path, **options):
    return foretune.MatmulDatasetCollector(**{**NULL, **options}).collect(path)


def pytest_addoption(parser):
    parser.addoption("--page", action="append", help="a page of documentation, tutorials/first-model")


def pytest_generate_tests(metafunc):
    if "page" in metafunc.fixturenames:
        pages = metafunc.config.getoption("--page") or sorted(
            str(page.relative_to(ROOT / "docs").with_suffix(""))
            for room in ("tutorials", "guides") for page in (ROOT / "docs" / room).rglob("*.md"))
        metafunc.parametrize("page", pages)


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "train.ftd"
    return collect(path, operations=["mm", "addmm"], num_shapes=24, seed=50,
                   search_space="SAMPLE:16").dataset()


@pytest.fixture(scope="session")
def validation(tmp_path_factory, training):
    folder = tmp_path_factory.mktemp("validation")
    training.save(folder / "train.ftd")
    return collect(folder / "validation.ftd", num_shapes=6, seed=51, role="validation",
                   training_data=folder / "train.ftd").dataset()


@pytest.fixture(scope="session")
def model(training):
    return foretune.train(training, trees=40, folds=2, threads=1)


@pytest.fixture(scope="session")
def ck_folder():
    return ROOT / "foretune" / "dataset" / "testdata" / "ck"


def forward(layers, x):
    """Evaluates the layers of a registered network by their definition, slowly."""
    x = x.astype(np.float64)
    entered = None
    for kind, *values in layers:
        if kind == "linear":
            x = x @ np.asarray(values[0]).T + values[1]
        elif kind == "relu":
            x = np.maximum(x, 0)
        elif kind == "batch_norm":
            gamma, beta, mean, variance, epsilon = values
            x = (x - mean) / np.sqrt(variance + epsilon) * gamma + beta
        elif kind == "begin_block":
            entered = x
        else:
            x = x + entered
    return x[:, 0]
