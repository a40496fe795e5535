"""Reports the decisions of an autotuned kernel, for people.

Thread safety: plain values.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ._autotune_identity import config_label
from ._autotune_store import Store


@dataclass(frozen=True)
class KeyReport:
    """One key of a kernel."""

    key: str
    """Sizes, other values and constants: ``M=128 N=256 float16``."""
    config: str
    """The fastest config: ``BLOCK_M=64 num_warps=4``; empty when none works."""
    time_ns: float | None
    """Its median time; None for a prediction that was never measured."""
    measured: int
    """Number of configs with a full time."""
    censored: int
    """Number of configs that were stopped early."""
    failed: int
    """Number of configs that do not work."""
    method: str
    """``exhaustive``, ``model``, ``prediction``; empty while nothing is decided."""
    seconds: float
    """Seconds that all measurements took, including compilation and those of other processes."""


@dataclass(frozen=True)
class AutotuneReport:
    """The content of a kernel's store. ``str(report)`` is a table."""

    kernel: str
    device: str
    keys: tuple[KeyReport, ...]
    """In the order in which they were first measured."""
    models: tuple[str, ...]
    """The state of the models, one sentence per model."""

    def __str__(self) -> str:
        total = sum(entry.seconds for entry in self.keys)
        lines = [f"{self.kernel} on {self.device}: {len(self.keys)} keys, "
                 f"{total:.1f} s of measuring"]
        lines += [f"  {sentence}" for sentence in self.models]
        table = [("key", "config", "time", "measured", "stopped", "failed", "how", "seconds")]
        for entry in self.keys:
            time = "-" if entry.time_ns is None else f"{entry.time_ns / 1e3:.2f} us"
            table.append((entry.key, entry.config or "none works", time, str(entry.measured),
                          str(entry.censored), str(entry.failed), entry.method or "-",
                          f"{entry.seconds:.2f}"))
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        for row in table:
            cells = [cell.ljust(width) if i < 2 else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(row, widths))]
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join(lines)


def report_of(store: Store, kernel: str, models: list[str]) -> AutotuneReport:
    """Returns a report on everything that a store holds."""
    keys = tuple(_key_report(store, key) for key in store.keys)
    return AutotuneReport(kernel, store.identity.get("device", ""), keys, tuple(models))


def _key_report(store: Store, key: str) -> KeyReport:
    entries = store.measurements(key)
    times = {config: entry.time_ns for config, entry in entries.items() if entry.is_ok}
    config = store.best(key) or ""
    return KeyReport(
        key=_key_label(key), config=config_label(json.loads(config)) if config else "",
        time_ns=times.get(config), measured=len(times),
        censored=sum(entry.outcome == "censored" for entry in entries.values()),
        failed=sum(not entry.is_timed for entry in entries.values()),
        method=store.method(key), seconds=store.seconds(key))


def _key_label(key: str) -> str:
    facts = json.loads(key)
    named = {**facts["sizes"], **facts["values"], **facts["constants"]}
    dtypes = list(dict.fromkeys(dtype.split(".")[-1] for dtype in facts["dtypes"].values()))
    return " ".join([*(f"{name}={value}" for name, value in named.items()), *dtypes])
