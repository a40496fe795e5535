"""Reads stores in the format of the first versions (``.fta``), which nothing writes any more.

A file is text. A record is one line::

    8 hexadecimal digits of CRC-32, a blank, bytes of the rest, a blank, one JSON object, a newline

Lines that begin with ``#`` are comments; the first one identifies the format. Damaged lines, and
records of unknown kinds, are passed over.

Thread safety: free functions.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._autotune_mapping import Measurement, canonical
from ._dataset import OUTCOMES, STAGES

_MAGIC = b"#foretune-autotune 1\n"


def read_old_store(path: str, identity: Mapping[str, str], configs: Sequence[str]
                   ) -> list[tuple[str, list[Measurement], list[str]]]:
    """Returns each key of a file with its measurements, and with the unmeasured configs that a
    model ranked, the predicted one first; nothing for a file in another format, or one that belongs
    to another kernel, device or version of Triton.

    Args:
        path: the file.
        identity: kernel, source, device and so on.
        configs: canonical texts of configs that the file may name by their hashes alone.

    Raises:
        OSError: the file cannot be read.
    """
    measurements: dict[str, list[Measurement]] = {}
    choices: dict[str, Mapping[str, Any]] = {}
    for record in _records(path, identity):
        kind = record.get("record")
        if kind == "forget failures":
            for key, entries in measurements.items():
                measurements[key] = [entry for entry in entries if entry.is_timed]
        elif kind == "measurement" and (entry := _measurement_of(record)) is not None:
            measurements.setdefault(entry.key, []).append(entry)
        elif kind == "choice" and isinstance(record.get("key"), dict):
            choices[canonical(record["key"])] = record
    every = {*configs, *(entry.config for entries in measurements.values() for entry in entries)}
    return [(key, measurements.get(key, []),
             _ranking(choices.get(key, {}), measurements.get(key, []), every))
            for key in dict.fromkeys([*measurements, *choices])]


def _ranking(choice: Mapping[str, Any], measured: Iterable[Measurement],
             configs: Iterable[str]) -> list[str]:
    considered = choice.get("considered")
    known = {entry.config for entry in measured}
    out = sorted(config for config in configs if config not in known
                 and isinstance(considered, list) and _hash(config) in considered)
    if choice.get("method") == "prediction" and isinstance(choice.get("config"), dict):
        chosen = canonical(choice["config"])
        out = [chosen, *(config for config in out if config != chosen)]
    return out


def _hash(config: str) -> str:
    return hashlib.sha256(config.encode()).hexdigest()[:12]


def _records(path: str, identity: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        if file.readline() != _MAGIC:
            return
        lines = file.read().split(b"\n")[:-1]  # a process that died left what follows
    for line in lines:
        record = None if line.startswith(b"#") else _decode(line)
        if record is None:
            continue
        if record.get("record") == "header" and record.get("identity") != dict(identity):
            return
        yield record


def _decode(line: bytes) -> dict[str, Any] | None:
    """Returns the record of a line without its newline; None when it is damaged."""
    parts = line.split(b" ", 2)
    try:
        checksum, length = int(parts[0], 16), int(parts[1])
        if length != len(parts[2]) or checksum != zlib.crc32(parts[2]):
            return None
        record = json.loads(parts[2])
    except (IndexError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _measurement_of(record: Mapping[str, Any]) -> Measurement | None:
    """Returns the measurement; None when a field is not what the first versions wrote."""
    outcome, stage, reason = (record.get(name) for name in ("outcome", "stage", "reason"))
    key, config = record.get("key"), record.get("config")
    numbers = [record.get(name) for name in ("time_ns", "spread", "seconds")]
    if (outcome not in OUTCOMES or stage not in STAGES or not isinstance(reason, str)
            or not isinstance(key, dict) or not isinstance(config, dict)):
        return None
    if not all(isinstance(number, (int, float)) and 0 <= number < 1e30 for number in numbers):
        return None
    time_ns, spread, seconds = (float(number) for number in numbers if number is not None)
    if (outcome in ("ok", "censored")) != (time_ns > 0):
        return None
    return Measurement(canonical(key), canonical(config), outcome, time_ns, spread, stage, reason,
                       seconds)
