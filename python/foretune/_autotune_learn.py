"""Learns from the keys that an autotuner has measured: a model ranks the configs of a new key.

``foretune.train`` trains models on a data set of the store's measurements, at the first ranking and
again when the number of keys has grown by a quarter. Training time is bounded: few trees, and a
sample of the rows where there are very many.

Thread safety: one thread at a time per object.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._autotune_device import Device
from ._autotune_layout import PARAMETERS, Layout, make_layout, scope_of, size_places
from ._autotune_mapping import canonical
from ._autotune_store import Store
from ._dataset import Dataset
from ._errors import Error
from ._model import train
from ._predictor import Predictor

# With fewer configs a model cannot save anything.
FEWEST_CONFIGS = 4
_GROWTH = 1.25
# These keep a training below a second on one core. With few keys, an average of forests of small
# trees picks better than large trees.
_FORESTS = 3
_TREES = 200
_LEAVES = 8
_MOST_ROWS = 6_000
_FEWEST_ROWS_PER_LEAF = 3
# Limits how many configs of one tile come before those of other tiles: configs of one tile are fast
# or slow together, and the next model learns from measurements of other tiles.
_MOST_OF_A_TILE = 2


@dataclass
class _Trained:
    keys: int
    layout: Layout
    predictor: Predictor | None
    """None when the training failed."""


class Learner:
    """Ranks configs by models that learn from a store.

    Args:
        names: arguments that decide the config, in the order of the user's list.
        min_keys: how many keys of a scope must be measured before a model ranks configs.
        device: the device whose hardware facts the features use.
    """

    def __init__(self, names: Sequence[str], min_keys: int, device: Device) -> None:
        self._names = list(names)
        self._min_keys = min_keys
        self._device = device
        self._models: dict[str, _Trained] = {}
        self._status: dict[str, str] = {}

    @property
    def status(self) -> list[str]:
        """The state of the models, one sentence per model."""
        return list(dict.fromkeys(self._status.values()))

    def rank(self, store: Store, key: str, configs: Sequence[str]) -> list[str] | None:
        """Returns the configs of a key in the order in which they are worth measuring: the best
        first, not too many of the same tile among the next; configs that failed on every key so far
        come last.

        Args:
            store: the measurements to learn from.
            key: canonical text.
            configs: canonical texts of the legal configs.

        Returns:
            None while there are too few keys, or when they cannot train a model.
        """
        facts = {text: json.loads(text) for text in dict.fromkeys([*store.keys, key])}
        sizes = size_places(self._names, facts.values())
        if not sizes:
            return None
        scope = scope_of(facts[key], sizes)
        keys = [text for text in store.keys
                if scope_of(facts[text], sizes) == scope and _is_telling(store, text)]
        if len(keys) < self._min_keys:
            self._status[scope] = (f"{len(keys)} of {self._min_keys} keys until a model is asked"
                                   f"{_scope_words(facts[key])}")
            return None
        trained = self._trained(store, scope, keys, facts, sizes, configs)
        if trained.predictor is None:
            return None
        words = {text: trained.layout.words(json.loads(text)) for text in configs}
        speeds = trained.predictor.predict(
            trained.layout.problem(facts[key]),
            [_config_words(entry) for entry in words.values() if entry is not None])
        order = iter(speeds.tolist())
        speed = {text: next(order) if entry is not None else 0.0 for text, entry in words.items()}
        hopeless = _always_failed(store, keys)
        best_first = sorted(configs, key=lambda text: -speed[text])
        return sorted(_spread(best_first, words), key=lambda text: text in hopeless)

    def _trained(self, store: Store, scope: str, keys: Sequence[str],
                 facts: Mapping[str, Mapping[str, Any]], sizes: tuple[tuple[str, str], ...],
                 configs: Sequence[str]) -> _Trained:
        known = self._models.get(scope)
        if (known is not None and len(keys) < _GROWTH * known.keys and known.layout.sizes == sizes
                and all(known.layout.words(json.loads(text)) is not None for text in configs)):
            return known
        every = dict.fromkeys([*configs, *(config for key in keys
                                           for config in store.measurements(key))])
        layout = make_layout(sizes, [json.loads(text) for text in every])
        trained = _Trained(len(keys), layout, None)
        try:
            dataset = dataset_of(store, keys, facts, layout, self._device)
            trained.predictor = Predictor(train(
                dataset, folds=0, threads=1, forests=_FORESTS, trees=_TREES, leaves=_LEAVES,
                learning_rate=0.1, min_rows_per_leaf=_FEWEST_ROWS_PER_LEAF, portfolio_size=1))
            self._status[scope] = (f"a model of {len(keys)} keys and {len(dataset):,} measurements"
                                   f"{_scope_words(facts[keys[0]])}")
        except Error as error:
            self._status[scope] = f"no model, every config is measured: {error}"
        self._models[scope] = trained
        return trained


def dataset_of(store: Store, keys: Sequence[str], facts: Mapping[str, Mapping[str, Any]],
               layout: Layout, device: Device) -> Dataset:
    """Returns the measurements of ``keys`` as a data set: sizes become a matrix product, configs
    become tiles.

    Raises:
        foretune.Error: no measurement can be used.
    """
    problems: list[str] = []
    configs: dict[tuple[int, ...], int] = {}
    rows: list[list[Any]] = []
    for key in _sample(store, keys):
        problems.append(layout.problem(facts[key]))
        for text, entry in store.measurements(key).items():
            words = layout.words(json.loads(text))
            if words is None or not entry.is_timed:
                continue  # failures carry no times
            config = configs.setdefault(tuple(words), len(configs))
            rows.append([len(problems) - 1, config, 0, entry.outcome, "none", 0, "",
                         entry.time_ns, entry.time_ns if entry.is_ok else 0.0, entry.spread, 1])
    facts_text = " ".join(f"{name}={value!r}" for name, value in device.hardware.items())
    document = {
        "format": "foretune-dataset", "version": 1,
        "header": {
            "family": "recorded", "problem_type": "gemm",
            "config_schema": {"name": "autotune", "version": 1, "kind": "parametric",
                              "parameters": [{"name": name, "labels": []} for name in PARAMETERS]},
            "space": "",
            "fingerprint": (f"device: {_line(device.name)}\nisa: {_line(device.arch)}\nsystem: \n"
                            f"hardware: {facts_text}\n"),
            "role": "training", "seed": 0, "created_by": "foretune.autotune"},
        "problems": problems, "configs": [list(words) for words in configs],
        "contexts": [{"machine": 0, "device": _line(device.name), "threads": 0, "cache": "warm",
                      "clock_mhz": 0, "fidelity": 0}],
        "columns": ["problem", "config", "context", "outcome", "stage", "flags", "reason",
                    "time_ns", "median_ns", "spread", "samples"],
        "rows": rows, "metrics": [], "samples": [], "baselines": []}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "measurements.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return Dataset.open(path, "json")


def _sample(store: Store, keys: Sequence[str]) -> list[str]:
    """Returns all keys, or a random sample of them with about ``_MOST_ROWS`` rows."""
    rows = sum(len(store.measurements(key)) for key in keys)
    if rows <= _MOST_ROWS:
        return list(keys)
    count = max(1, len(keys) * _MOST_ROWS // rows)
    return random.Random(42).sample(list(keys), count)


def _is_telling(store: Store, key: str) -> bool:
    """True when the measurements of a key tell which of two configs is faster."""
    entries = store.measurements(key).values()
    return any(entry.is_ok for entry in entries) and sum(entry.is_timed for entry in entries) > 1


def _always_failed(store: Store, keys: Sequence[str]) -> set[str]:
    failed: set[str] = set()
    worked: set[str] = set()
    for key in keys:
        for config, entry in store.measurements(key).items():
            (worked if entry.is_timed else failed).add(config)
    return failed - worked


def _spread(configs: Sequence[str], words: Mapping[str, list[int] | None]) -> list[str]:
    """Returns the configs in the same order, except that those beyond ``_MOST_OF_A_TILE`` of one
    tile come at the end."""
    first: list[str] = []
    later: list[str] = []
    seen: dict[tuple[int, ...], int] = {}
    for text in configs:
        tile = tuple((words[text] or [])[:2])
        seen[tile] = seen.get(tile, 0) + 1
        (first if seen[tile] <= _MOST_OF_A_TILE else later).append(text)
    return first + later


def _config_words(words: Sequence[int]) -> dict[str, int]:
    return dict(zip(PARAMETERS, words))


def _scope_words(key: Mapping[str, Any]) -> str:
    words = {**key["values"], **key["constants"]}
    dtypes = list(dict.fromkeys(dtype.split(".")[-1] for dtype in key["dtypes"].values()))
    text = ", ".join([*dtypes, *(f"{name}={canonical(value)}" for name, value in words.items())])
    return f" ({text})" if text else ""


def _line(text: str) -> str:
    return " ".join(text.split())[:100]
