"""The store of an autotuned kernel: data set files (``.ftd``) that outlive the process.

The files of a store belong to one kernel source, device and Triton version. Any number of processes
append to them and read what the others append. A file has one list of parameters; configs that it
cannot express begin another file beside it. Stores of the first versions (``.fta``) are read, too.

Thread safety: one thread at a time per object; any number of objects and processes per store.
"""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _foretune
from ._autotune_mapping import (METRICS, Measurement, Row, canonical, config_of, key_of,
                                measurement_of, measurement_row, parameters_of, problem_text,
                                rank_of, ranking_rows, split_key, variant_note, words_of)
from ._autotune_old_store import read_old_store
from ._errors import CorruptDataError, Error, MismatchError, NotFoundError

_MAGIC = b"FTDATA\x1a\n"
_IDENTITY, _CONVERTED = "identity", "converted from"
_MOST_FILES = 100


@dataclass
class _Key:
    """Everything that the store knows of one key."""

    measurements: dict[str, Measurement] = field(default_factory=dict)
    ranks: dict[str, float] = field(default_factory=dict)
    """Place of a config in a model's order, 1 the first."""
    seconds: float = 0.0


@dataclass
class _File:
    """One file of a store, and how much of it was taken."""

    journal: _foretune.SharedJournal
    generation: int = 0
    rows: int = 0
    keys: list[str | None] = field(default_factory=list)
    configs: list[str | None] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def begin_again(self) -> None:
        self.generation, self.rows = self.journal.generation, 0
        self.keys, self.configs, self.seconds = [], [], {}


class Store:
    """Measurements of one kernel on one device, and the order in which models ranked configs.

    A file error is a warning, never an exception: a measurement that cannot be read is made again,
    one that cannot be written is kept in memory.

    Args:
        path: the first file; the first measurement creates it and its folder. None keeps all in
            memory.
        identity: kernel, source, device and so on; a file with another identity is left alone.
        configs: canonical texts of the configs that a new file should be able to express.
        hardware: facts of the device by name, for models that are trained on the files.
    """

    def __init__(self, path: str | None, identity: Mapping[str, str], configs: Sequence[str] = (),
                 hardware: Mapping[str, float] | None = None) -> None:
        self._path = path
        self._identity = dict(identity)
        self._expected = list(configs)
        self._hardware = dict(hardware or {})
        self._is_usable = path is not None
        self._known: dict[str, _Key] = {}
        self._files: dict[str, _File] = {}
        self._has_old = False

    # -- reading ----------------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """The first file; None when everything is in memory."""
        return self._path

    @property
    def identity(self) -> dict[str, str]:
        """The identity of the files: kernel, source, device, architecture, Triton version."""
        return dict(self._identity)

    @property
    def keys(self) -> list[str]:
        """Keys with a measurement or a ranking, in the order in which they were first seen."""
        return list(self._known)

    def __len__(self) -> int:
        """Number of (key, config) pairs with a measurement."""
        return sum(len(known.measurements) for known in self._known.values())

    def __repr__(self) -> str:
        return (f"<foretune.autotune store of {len(self):,} measurements of {len(self.keys):,} "
                f"keys, {self._path or 'in memory'}>")

    def measurements(self, key: str) -> dict[str, Measurement]:
        """Returns the measurements of one key, by the config's text."""
        return dict(self._known.get(key, _Key()).measurements)

    def ranks(self, key: str) -> dict[str, float]:
        """Returns the places, 1 the first, that a model gave to configs of one key."""
        return dict(self._known.get(key, _Key()).ranks)

    def is_considered(self, key: str, config: str) -> bool:
        """True when the config was measured, or a model ranked it, for this key."""
        known = self._known.get(key, _Key())
        return config in known.measurements or config in known.ranks

    def method(self, key: str) -> str:
        """Returns how a key was decided: ``exhaustive`` when no model left out a config, ``model``
        when one did, ``prediction`` when nothing was measured, empty when no config works."""
        known = self._known.get(key, _Key())
        if not any(entry.is_ok for entry in known.measurements.values()):
            return "prediction" if self.best(key) else ""
        return "model" if known.ranks.keys() - known.measurements.keys() else "exhaustive"

    def best(self, key: str, configs: Iterable[str] | None = None) -> str | None:
        """Returns the fastest measured config of a key; without any, the first of a model's order
        that did not fail; None when there is neither.

        Args:
            key: canonical text.
            configs: limits the choice; None allows all.
        """
        known = self._known.get(key, _Key())
        allowed = set(known.measurements) | set(known.ranks) if configs is None else set(configs)
        times = {config: entry.time_ns for config, entry in known.measurements.items()
                 if entry.is_ok and config in allowed}
        if times:
            return min(times, key=lambda config: times[config])
        if any(entry.is_ok for entry in known.measurements.values()):
            return None  # what is left was ranked beside faster configs, so it has to be measured
        ranks = {config: rank for config, rank in known.ranks.items() if config in allowed
                 and (config not in known.measurements or known.measurements[config].is_timed)}
        return min(ranks, key=lambda config: ranks[config], default=None)

    def seconds(self, key: str) -> float:
        """Returns the seconds that all measurements of a key took, including other processes."""
        return (self._known.get(key, _Key()).seconds
                + sum(file.seconds.get(key, 0.0) for file in self._files.values()))

    def refresh(self) -> None:
        """Reads the rows that other processes have appended since the last call."""
        if not self._is_usable:
            return
        for path in self._paths():
            try:
                if path not in self._files:
                    self._open(path)
                else:
                    self._files[path].journal.refresh()
                    self._take(self._files[path])
            except NotFoundError:
                continue  # another process is making it
            except Error as error:
                self._refuse(path, error)
        self._convert_old()

    # -- writing ----------------------------------------------------------------------------------

    def add_measurement(self, measurement: Measurement) -> None:
        """Adds a measurement and appends it to a file at once."""
        self._add(measurement.key, [measurement], [])

    def add_ranking(self, key: str, configs: Sequence[str]) -> None:
        """Adds the order in which a model ranked configs of a key, the best first."""
        self._add(key, [], configs)

    def forget_failures(self) -> None:
        """Lets failed configs be tried again, by removing them from the files; for failures that the
        environment caused, such as a full disk while compiling."""
        self.refresh()
        self._drop_failures()
        for path, file in list(self._files.items()):
            try:
                file.journal.remove_failures()
                self._take(file)
            except Error as error:
                self._refuse(path, error)

    # -- rows -------------------------------------------------------------------------------------

    def _take(self, file: _File) -> None:
        """Takes the rows that a file has besides those taken before."""
        journal = file.journal
        if journal.generation != file.generation:
            # Somebody replaced the file. Times stay valid, but failures may have been forgotten.
            self._drop_failures()
            for one in self._files.values():
                one.begin_again()
        notes, parameters = journal.notes(), journal.parameters
        file.keys += [key_of(fields, notes) for fields in journal.problems(len(file.keys))]
        file.configs += [config_of(words, parameters)
                         for words in journal.configs(len(file.configs))]
        rows = journal.rows(file.rows)
        file.rows += len(rows)
        for problem, config_id, *rest in rows:
            key, config = file.keys[problem], file.configs[config_id]
            if key is None or config is None:
                continue
            if (rank := rank_of(rest)) is not None:
                self._known.setdefault(key, _Key()).ranks[config] = rank
            elif (measurement := measurement_of(key, config, rest)) is not None:
                file.seconds[key] = file.seconds.get(key, 0.0) + measurement.seconds
                self._take_measurement(measurement)

    def _take_measurement(self, new: Measurement) -> None:
        known = self._known.setdefault(new.key, _Key()).measurements
        old = known.get(new.config)
        # Two processes may have measured the same: a time beats a bound, and a bound a failure.
        if old is None or _worth(new) >= _worth(old):
            known[new.config] = new

    def _drop_failures(self) -> None:
        for known in self._known.values():
            for config in [text for text, entry in known.measurements.items()
                           if not entry.is_timed]:
                del known.measurements[config]

    # -- files ------------------------------------------------------------------------------------

    def _paths(self) -> list[str]:
        assert self._path is not None
        stem, end = os.path.splitext(self._path)
        others = glob.glob(f"{glob.escape(stem)}-*{end}")
        return [path for path in dict.fromkeys([self._path, *sorted(others)])
                if os.path.exists(path)]

    def _open(self, path: str, make: Mapping[str, Any] | None = None) -> _File:
        journal = _foretune.open_journal(path, make)
        identity = journal.notes().get(_IDENTITY)
        if make is None and identity != canonical(self._identity):
            raise MismatchError("it belongs to another kernel, device or version of Triton")
        file = self._files[path] = _File(journal)
        file.begin_again()
        self._take(file)
        return file

    def _add(self, key: str, measurements: Sequence[Measurement], ranking: Sequence[str],
             notes: Mapping[str, str] | None = None) -> None:
        """Appends to a file, or keeps in memory where no file can be written."""
        rows = [*map(measurement_row, measurements), *ranking_rows(ranking)]
        if not rows or self._append(key, rows, notes or {}):
            return
        known = self._known.setdefault(key, _Key())
        known.ranks.update({config: float(rank) for rank, config in enumerate(ranking, 1)})
        for measurement in measurements:
            known.seconds += measurement.seconds
            self._take_measurement(measurement)

    def _append(self, key: str, rows: Sequence[Row], notes: Mapping[str, str]) -> bool:
        """Appends rows of one key; false when no file can be written."""
        variant, sizes = split_key(key)
        for _ in range(_MOST_FILES):
            if not self._is_usable:
                return False
            path = str(self._path)
            try:
                path, file = self._file_for([config for config, *_ in rows])
                number = variant.number(file.journal.notes())
                problem, parameters = problem_text(number, sizes), file.journal.parameters
                file.journal.append(
                    [(problem, words_of(config, parameters) or [], outcome, stage, reason, metrics)
                     for config, outcome, stage, reason, metrics in rows],
                    {_IDENTITY: canonical(self._identity), variant_note(number): variant.text,
                     **notes})
                self._take(file)
                return True
            except (MismatchError, NotFoundError):
                # Another process has made the file for other parameters meanwhile, or removed it.
                self._files.pop(path, None)
                self.refresh()
            except Error as error:
                self._refuse(path, error)
            except OSError as error:
                self._give_up(path, f"cannot be written: {error.strerror}")
        return False

    def _file_for(self, configs: Sequence[str]) -> tuple[str, _File]:
        """Returns a file that can express the configs; begins one when there is none."""
        assert self._path is not None
        stem, end = os.path.splitext(self._path)
        for number in range(1, _MOST_FILES):
            path = self._path if number == 1 else f"{stem}-{number}{end}"
            try:
                file = self._files.get(path) or self._open(path)
            except NotFoundError:
                break  # also for a process that died while it began the file
            parameters = file.journal.parameters
            if all(words_of(config, parameters) is not None for config in configs):
                return path, file
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return path, self._open(path, self._header(parameters_of([*self._expected, *configs])))

    def _header(self, parameters: Sequence[tuple[str, Sequence[str]]]) -> dict[str, Any]:
        facts = " ".join(f"{name}={value!r}" for name, value in self._hardware.items())
        lines = {"device": _line(self._identity.get("device", "")),
                 "isa": _line(self._identity.get("arch", "")),
                 "system": _line(f"Triton {self._identity.get('triton', '')}"), "hardware": facts}
        return {"problem_type": "kernel", "schema": "autotune", "parameters": parameters,
                "fingerprint": "".join(f"{name}: {value}\n" for name, value in lines.items()),
                "metrics": METRICS,
                "created_by": f"foretune.autotune of {self._identity.get('kernel', '')}"}

    def _convert_old(self) -> None:
        """Appends what a file of the first versions holds, once for all processes."""
        if self._has_old or any(_CONVERTED in file.journal.notes() for file in self._files.values()):
            return
        self._has_old = True
        old = os.path.splitext(str(self._path))[0] + ".fta"
        try:
            for key, measurements, ranking in read_old_store(old, self._identity, self._expected):
                self._add(key, measurements, ranking, {_CONVERTED: os.path.basename(old)})
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            warnings.warn(f"{old} cannot be read: {error.strerror}", RuntimeWarning, stacklevel=3)

    def _refuse(self, path: str, error: Error) -> None:
        self._files.pop(path, None)
        if isinstance(error, CorruptDataError) and _is_data_set(path):
            # Nobody can append behind damage, so the file makes room for a new one.
            try:
                os.replace(path, f"{path}.damaged")
            except OSError:
                self._give_up(path, f"is damaged: {error}")
                return
            warnings.warn(f"{error}; the file is now {path}.damaged, and what was in it is measured "
                          "again when it is needed", RuntimeWarning, stacklevel=4)
        else:
            self._give_up(path, f"cannot be used: {error}")

    def _give_up(self, path: str, why: str) -> None:
        if self._is_usable:
            self._is_usable = False
            warnings.warn(f"{path} {why}; measurements of this process are kept in memory only",
                          RuntimeWarning, stacklevel=4)


def _worth(measurement: Measurement) -> int:
    return 2 if measurement.is_ok else 1 if measurement.is_timed else 0


def _is_data_set(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _line(text: str) -> str:
    return " ".join(text.split())[:100]
