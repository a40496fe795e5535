"""Maps the keys and configs of any kernel to problems and configs of a data set, and back.

A key becomes a problem of the type ``kernel``: its sizes by place, and the number of its variant,
which stands for everything else of the key. A note of the data set describes each variant. A config
becomes one value per parameter: a parameter whose values are all whole numbers of 32 bits holds
them, any other holds numbers of labels, which are the values as JSON.

A measurement becomes a row, and so does a config that a model ranked, in the stage of evaluations.

Thread safety: plain values and free functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_PLACES = 8
_LARGEST_SIZE = 2**53
_LARGEST_WORD = 2**31
_VARIANTS = 2**31
# The label of a parameter that a config does not have.
_ABSENT = "-"

# A row has these besides the time: the seconds that the measurement took, compilation included, or
# the place, 1 the first, that a model gave to the config.
_SECONDS, _RANK = "measure_s", "model_rank"
METRICS = [f"{_SECONDS}:minimise:s", f"{_RANK}:minimise::evaluation"]

Parameters = Sequence[tuple[str, Sequence[str]]]
Row = tuple[str, str, str, str, list[tuple[str, float, float, int]]]
"""Canonical text of a config, outcome, stage, reason, and metrics with their spread and number of
samples."""


def canonical(value: Any) -> str:
    """Returns JSON that is the same for equal values: names sorted, no blanks, one line."""
    return _ENCODER.encode(value)


# -- keys -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """Everything of a key but the values of its sizes."""

    text: str
    """Canonical JSON: the names of the sizes, and the other values of the key."""

    @property
    def first_number(self) -> int:
        """The number of the variant, unless another variant of a data set has it."""
        return int.from_bytes(hashlib.sha256(self.text.encode()).digest()[:4], "big") % _VARIANTS

    def number(self, notes: Mapping[str, str]) -> int:
        """Returns the number of the variant in a data set with these notes."""
        number = self.first_number
        while notes.get(variant_note(number), self.text) != self.text:
            number = (number + 1) % _VARIANTS
        return number


def variant_note(number: int) -> str:
    """Returns the name of the note that describes a variant."""
    return f"variant {number}"


def split_key(key: str) -> tuple[Variant, list[int]]:
    """Returns variant and sizes of a key, a canonical text. Sizes beyond the eighth, and those
    beyond 2^53, belong to the variant."""
    facts = json.loads(key)
    placed = [name for name, value in facts["sizes"].items() if abs(value) <= _LARGEST_SIZE]
    placed = placed[:_PLACES]
    rest = {name: value for name, value in facts["sizes"].items() if name not in placed}
    variant = canonical({**facts, "sizes": placed, "other_sizes": rest})
    return Variant(variant), [facts["sizes"][name] for name in placed]


def problem_text(variant: int, sizes: Sequence[int]) -> str:
    """Returns the text of a problem."""
    words = [f"size_{place}={size}" for place, size in enumerate(sizes, 1)]
    return " ".join(["kernel", f"variant={variant}", *words])


def key_of(fields: Sequence[int], notes: Mapping[str, str]) -> str | None:
    """Returns the key of a problem, given its fields; None when no note describes its variant."""
    try:
        facts = json.loads(notes[variant_note(fields[0])])
        placed, sizes = facts["sizes"], dict(facts.pop("other_sizes"))
        sizes.update(zip(placed, fields[1:]))
        return canonical({**facts, "sizes": sizes})
    except (KeyError, TypeError, ValueError):
        return None  # another program wrote the note


# -- configs --------------------------------------------------------------------------------------


def parameters_of(configs: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Returns names and labels of the parameters that can express all configs, canonical texts; no
    labels for a parameter of whole numbers."""
    every = [json.loads(config) for config in configs]
    out = []
    for name in sorted({name for config in every for name in config}):
        values = [config.get(name, _Absent) for config in every]
        labels = [] if all(map(_is_word, values)) else sorted({_label_of(value) for value in values})
        out.append((name, labels))
    return out


def words_of(config: str, parameters: Parameters) -> list[int] | None:
    """Returns the values of a config; None when the parameters cannot express it."""
    values = json.loads(config)
    if values.keys() - {name for name, _ in parameters}:
        return None
    words = []
    for name, labels in parameters:
        value = values.get(name, _Absent)
        if not labels and _is_word(value):
            words.append(value)
        elif labels and (label := _label_of(value)) in labels:
            words.append(labels.index(label))
        else:
            return None
    return words


def config_of(words: Sequence[int], parameters: Parameters) -> str | None:
    """Returns the canonical text of a config; None for labels that are no JSON."""
    values: dict[str, Any] = {}
    for (name, labels), word in zip(parameters, words):
        try:
            label = labels[word] if labels else str(word)
            if label != _ABSENT:
                values[name] = json.loads(label)
        except (IndexError, ValueError):
            return None
    return canonical(values)


class _Absent:
    """Stands in for the value of a parameter that a config does not have."""


def _is_word(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)
            and -_LARGEST_WORD <= value < _LARGEST_WORD)


def _label_of(value: Any) -> str:
    # A label has no blanks, so that a config's text form and tables can hold it.
    return _ABSENT if value is _Absent else canonical(value).replace(" ", "\\u0020")


# -- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """The outcome of one config on one key."""

    key: str
    """Canonical text."""
    config: str
    """Canonical text."""
    outcome: str
    """One of ``foretune.OUTCOMES``."""
    time_ns: float = 0.0
    """Fastest window; for a censored measurement a lower bound; 0 where there is no time. A store
    rounds it to 32 bits."""
    spread: float = 0.0
    """Interquartile range over median; 0 when unknown."""
    stage: str = "none"
    reason: str = ""
    seconds: float = 0.0
    """Seconds that the measurement took, compilation included."""
    median_ns: float = 0.0
    """Median over the windows; 0 when unknown."""
    samples: int = 0
    """Number of windows."""

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def is_timed(self) -> bool:
        return self.outcome in ("ok", "censored")


def measurement_row(entry: Measurement) -> Row:
    """Returns the row of a measurement."""
    metrics = [(_SECONDS, entry.seconds, 0.0, 1)]
    if entry.is_timed:
        median = entry.median_ns or (entry.time_ns if entry.is_ok else 0.0)
        samples = entry.samples or (1 if entry.is_ok else 0)
        metrics += [("time_ns", entry.time_ns, entry.spread, samples),
                    ("median_ns", median, entry.spread, samples)]
    return entry.config, entry.outcome, entry.stage, entry.reason, metrics


def ranking_rows(configs: Sequence[str]) -> list[Row]:
    """Returns the rows of configs that a model has ranked, the best first."""
    return [(config, "ok", "evaluate", "", [(_RANK, float(rank), 0.0, 0)])
            for rank, config in enumerate(configs, 1)]


def measurement_of(key: str, config: str, row: Sequence[Any]) -> Measurement | None:
    """Returns the measurement of a row (outcome, stage, reason, metrics by name); None when the row
    is an evaluation."""
    outcome, stage, reason, metrics = row
    if stage == "evaluate":
        return None
    time_ns, spread, samples = metrics.get("time_ns", (0.0, 0.0, 0))
    return Measurement(key, config, outcome, time_ns, spread, stage, reason,
                       metrics.get(_SECONDS, (0.0,))[0], metrics.get("median_ns", (0.0,))[0],
                       samples)


def rank_of(row: Sequence[Any]) -> float | None:
    """Returns the place that a model gave to the config of a row; None for other rows."""
    metrics = row[-1]
    return metrics[_RANK][0] if _RANK in metrics else None
