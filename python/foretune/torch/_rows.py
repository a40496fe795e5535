"""The data set that a collection writes: its header, its rows, its file."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .. import _foretune
from .._dataset import Dataset
from .._errors import Error, MismatchError
from ._ranking import PARAMETERS, Words

FAMILY = "triton"
CREATED_BY = "foretune.torch.collect"
_SCHEMA = {"name": "triton-matmul", "version": 1, "kind": "parametric",
           "parameters": [{"name": name, "labels": []} for name in ("template", *PARAMETERS)]}
_FIELDS = ("op", "m", "n", "k", "batch", "dtype", "layout")
_COLUMNS = (*_FIELDS, "template", *PARAMETERS, "time_ns", "outcome", "stage", "reason", "flags",
            "cache")
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Machine:
    """Where times are measured, as the header of a data set says it."""

    device: str
    """``NVIDIA H200``"""
    isa: str
    """Of the device and of what compiles for it: other versions make other kernels."""
    hardware: Mapping[str, float]
    """By the names of ``hw.`` values (``cores``, ``shared_bytes_per_block``); replaced by what is
    built in about a known device."""


@dataclass(frozen=True)
class Row:
    """What became of one choice."""

    words: Words
    milliseconds: float
    """Infinite when it did not run."""
    reason: str = ""
    compiled: bool = True


def new_dataset(machine: Machine, role: str) -> Dataset:
    """A data set without rows.

    Raises:
        InvalidArgumentError: ``role`` is neither ``training`` nor ``validation``.
    """
    hardware = _known_hardware(machine.device) or " ".join(
        f"{name}={value:.17g}" for name, value in machine.hardware.items())
    fingerprint = (f"device: {machine.device}\nisa: {machine.isa}\nsystem:\n"
                   f"hardware: {hardware}\n")
    # No space: training takes the values and pairs that occur for legal.
    header = {"family": FAMILY, "problem_type": "gemm", "config_schema": _SCHEMA, "space": "",
              "fingerprint": fingerprint, "role": role, "seed": 0, "created_by": CREATED_BY}
    columns = ["problem", "config", "context", "outcome", "stage", "flags", "reason", "time_ns",
               "median_ns", "spread", "samples"]
    document = {"format": "foretune-dataset", "version": 1, "header": header, "problems": [],
                "configs": [], "contexts": [], "columns": columns, "rows": [], "metrics": [],
                "samples": [], "baselines": []}
    return _read_text(json.dumps(document), "json")


def check_resumable(dataset: Dataset, machine: Machine, role: str, path: str) -> None:
    """Whether rows of this machine may be added.

    Raises:
        MismatchError: somebody else's data set, another machine or role.
    """
    header = dataset.header
    for what, found, wanted in (("was written by", header["created_by"], CREATED_BY),
                                ("was measured on", header["device"], machine.device),
                                ("was measured with", header["isa"], machine.isa),
                                ("has the role", header["role"], role)):
        if found != wanted:
            raise MismatchError(f"{path} {what} '{found}', not '{wanted}'; name another file")


def with_rows(dataset: Dataset, problem: str, rows: Iterable[Row]) -> Dataset:
    """The data set with the rows of one problem; ATen's choices become one, the fastest.

    Raises:
        CorruptDataError: no row can be used.
    """
    fields = dict(word.split("=", 1) for word in problem.split()[1:])
    best: dict[Words, Row] = {}
    for row in rows:
        if row.words not in best or row.milliseconds < best[row.words].milliseconds:
            best[row.words] = row
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for row in best.values():
        table.writerow([*(fields[name] for name in _FIELDS), *row.words, *_figures(row), 0, "cold"])
    native, _ = _foretune.dataset_from_csv_text(text.getvalue(), dataset._native)
    return dataset.merge(Dataset(native))


def _figures(row: Row) -> tuple[str, str, str, str]:
    """Time, outcome, stage, reason."""
    if math.isfinite(row.milliseconds) and row.milliseconds > 0:
        return f"{row.milliseconds * NS_PER_MS:.9g}", "ok", "none", ""
    if row.compiled:
        return "", "unsupported", "run", row.reason or "Inductor could not run it"
    return "", "prepare failed", "prepare", row.reason or "it does not compile"


def _known_hardware(device: str) -> str:
    """What is built in about a device, as the header's line; "" when nothing is."""
    line = "m,n,k,tile,time_ns\n1,1,1,1,1\n"
    try:
        known = _read_text(line, "csv", device=device)
    except Error:
        return ""
    document = json.loads(known._native.to_bytes("json")[0])
    for entry in document["header"]["fingerprint"].splitlines():
        name, _, value = entry.partition(":")
        if name == "hardware":
            return str(value.strip())
    return ""


def _read_text(text: str, format: str, device: str = "") -> Dataset:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dataset." + format)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return Dataset.open(path, format, family=FAMILY, device=device)
