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
from .._tile import PARAMETERS
from ._ranking import Words

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
    """The machine that measures, as in the header of a data set."""

    device: str
    """``NVIDIA H200``"""
    isa: str
    """Architecture and versions of the compilers, since other versions make other kernels."""
    hardware: Mapping[str, float]
    """Facts by the names of ``hw.`` values (``cores``, ``shared_bytes_per_block``). A known device
    has built-in facts, which replace these."""


@dataclass(frozen=True)
class Row:
    """The outcome of one choice."""

    words: Words
    milliseconds: float
    """Time of a run; infinite when the choice did not run."""
    reason: str = ""
    compiled: bool = True


def new_dataset(machine: Machine, role: str) -> Dataset:
    """Returns a data set without rows.

    Raises:
        InvalidArgumentError: ``role`` is neither ``training`` nor ``validation``.
    """
    hardware = _known_hardware(machine.device) or " ".join(
        f"{name}={value:.17g}" for name, value in machine.hardware.items())
    fingerprint = (f"device: {machine.device}\nisa: {machine.isa}\nsystem:\n"
                   f"hardware: {hardware}\n")
    # Without a space, training treats the values and pairs that occur as legal.
    header = {"family": FAMILY, "problem_type": "gemm", "config_schema": _SCHEMA, "space": "",
              "fingerprint": fingerprint, "role": role, "seed": 0, "created_by": CREATED_BY}
    columns = ["problem", "config", "context", "outcome", "stage", "flags", "reason", "time_ns",
               "median_ns", "spread", "samples"]
    document = {"format": "foretune-dataset", "version": 1, "header": header, "problems": [],
                "configs": [], "contexts": [], "columns": columns, "rows": [], "metrics": [],
                "samples": [], "baselines": []}
    return _read_text(json.dumps(document), "json")


def check_resumable(dataset: Dataset, machine: Machine, role: str, path: str) -> None:
    """Checks that rows of this machine may be added.

    Raises:
        MismatchError: the data set has another writer, machine or role.
    """
    header = dataset.header
    for what, found, wanted in (("was written by", header["created_by"], CREATED_BY),
                                ("was measured on", header["device"], machine.device),
                                ("was measured with", header["isa"], machine.isa),
                                ("has the role", header["role"], role)):
        if found != wanted:
            raise MismatchError(f"{path} {what} '{found}', not '{wanted}'; name another file")


def with_rows(dataset: Dataset, problem: str, rows: Iterable[Row]) -> Dataset:
    """Returns the data set with the rows of one problem added; the fastest of ATen's choices stands
    for all of them.

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
    """Returns time (ns), outcome, stage and reason as texts."""
    if math.isfinite(row.milliseconds) and row.milliseconds > 0:
        return f"{row.milliseconds * NS_PER_MS:.9g}", "ok", "none", ""
    if row.compiled:
        return "", "unsupported", "run", row.reason or "Inductor could not run it"
    return "", "prepare failed", "prepare", row.reason or "it does not compile"


def _known_hardware(device: str) -> str:
    """Returns the built-in facts of a device as the header's line; "" for an unknown device."""
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
