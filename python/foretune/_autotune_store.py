"""The store of an autotuned kernel: an append-only file of records that outlives the process.

One file per kernel source, device and Triton version. A record is one line::

    8 hexadecimal digits of CRC-32, a blank, bytes of the rest, a blank, one JSON object, a newline

Lines that begin with ``#`` are comments; the first one identifies the format. Records do not depend
on each other, so a damaged line loses only itself: it is reported once and made a comment, and its
measurement is repeated when it is needed. Writers hold an exclusive ``flock`` while they append,
readers a shared one, so a last line without its newline was left by a process that died.

Thread safety: one thread at a time per object; any number of objects and processes per file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._dataset import OUTCOMES, STAGES

MAGIC = b"#foretune-autotune 1\n"
_ANY_VERSION = b"#foretune-autotune "
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
METHODS = ("exhaustive", "model", "prediction")


def canonical(value: Any) -> str:
    """Returns JSON that is the same for equal values: names sorted, no blanks, one line."""
    return _ENCODER.encode(value)


def config_id(config: str) -> str:
    """Returns a short hash of a config's canonical text, for lists of configs."""
    return hashlib.sha256(config.encode()).hexdigest()[:12]


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
    """Median; for a censored measurement a lower bound; 0 where there is no time."""
    spread: float = 0.0
    """20th to 80th percentile over the median; 0 when unknown."""
    stage: str = "none"
    reason: str = ""
    seconds: float = 0.0
    """Seconds that the measurement took, compilation included."""

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def is_timed(self) -> bool:
        return self.outcome in ("ok", "censored")


@dataclass(frozen=True)
class Choice:
    """A decision for a key: the chosen config, how it was chosen, and from which configs."""

    key: str
    config: str
    """Canonical text of the chosen config."""
    method: str
    """``exhaustive``: all configs were measured; ``model``: only those that a model ranked first;
    ``prediction``: the first of a model's ranking was taken unmeasured."""
    considered: frozenset[str] = frozenset()
    """``config_id`` of every config that the decision considered."""


def encode(record: Mapping[str, Any]) -> bytes:
    """Returns a record as one line of the file."""
    body = canonical(record).encode("ascii")
    return b"%08x %d %s\n" % (zlib.crc32(body), len(body), body)


def decode(line: bytes) -> dict[str, Any] | None:
    """Returns the record of a line (without its newline); None when it is damaged."""
    parts = line.split(b" ", 2)
    if len(parts) != 3:
        return None
    try:
        checksum, length = int(parts[0], 16), int(parts[1])
    except ValueError:
        return None
    if length != len(parts[2]) or checksum != zlib.crc32(parts[2]):
        return None
    try:
        record = json.loads(parts[2])
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


class Store:
    """Measurements and choices of one kernel on one device.

    A file error is a warning, never an exception: a measurement that cannot be read is made again,
    one that cannot be written is kept in memory.

    Args:
        path: the file; the first record creates it and its folder. None keeps all in memory.
        identity: kernel, source, device and so on; a file with another identity is left alone.
    """

    def __init__(self, path: str | None, identity: Mapping[str, str]) -> None:
        self._path = path
        self._identity = dict(identity)
        self._usable = path is not None
        self._measurements: dict[str, dict[str, Measurement]] = {}
        self._choices: dict[str, Choice] = {}
        self._seconds: dict[str, float] = {}
        self._forget_file()

    # -- reading ----------------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """The file; None when everything is in memory."""
        return self._path

    @property
    def identity(self) -> dict[str, str]:
        """The identity of the file: kernel, source, device, architecture, Triton version."""
        return dict(self._identity)

    @property
    def keys(self) -> list[str]:
        """Keys with a measurement or a choice, those with measurements first, each in the order of
        their records."""
        return list(dict.fromkeys([*self._measurements, *self._choices]))

    def __len__(self) -> int:
        """Number of (key, config) pairs with a measurement."""
        return sum(len(configs) for configs in self._measurements.values())

    def __repr__(self) -> str:
        return (f"<foretune.autotune store of {len(self):,} measurements of {len(self.keys):,} "
                f"keys, {self._path or 'in memory'}>")

    def measurements(self, key: str) -> dict[str, Measurement]:
        """Returns the measurements of one key, by the config's text."""
        return dict(self._measurements.get(key, {}))

    def choice(self, key: str) -> Choice | None:
        """Returns the decision for a key; None when there is none."""
        return self._choices.get(key)

    def seconds(self, key: str) -> float:
        """Returns the seconds that all measurements of a key took, including other processes."""
        return self._seconds.get(key, 0.0)

    def refresh(self) -> None:
        """Reads the records that other processes have appended since the last call."""
        if not self._usable:
            return
        try:
            with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as file:
                start, text = self._unread(file)
        except FileNotFoundError:
            return
        except OSError as error:
            self._give_up(f"cannot be read: {error.strerror}")
            return
        if start == 0 and not self._is_ours(text):
            return
        damaged = self._read_lines(start, text)
        if damaged and self._usable:
            self._report_damage(damaged)

    # -- writing ----------------------------------------------------------------------------------

    def add_measurement(self, measurement: Measurement) -> None:
        """Adds a measurement and appends it to the file at once."""
        self._take_measurement(measurement)
        self._append({
            "record": "measurement", "key": json.loads(measurement.key),
            "config": json.loads(measurement.config), "outcome": measurement.outcome,
            "stage": measurement.stage, "reason": measurement.reason,
            "time_ns": measurement.time_ns, "spread": measurement.spread,
            "seconds": round(measurement.seconds, 6)})

    def add_choice(self, choice: Choice) -> None:
        """Adds the decision for a key and appends it to the file at once."""
        self._choices[choice.key] = choice
        self._append({"record": "choice", "key": json.loads(choice.key),
                      "config": json.loads(choice.config), "method": choice.method,
                      "considered": sorted(choice.considered)})

    def forget_failures(self) -> None:
        """Lets failed configs be tried again; for failures that the environment caused, such as a
        full disk while compiling."""
        self.refresh()
        self._drop_failures()
        self._append({"record": "forget failures"})

    # -- records ----------------------------------------------------------------------------------

    def _take(self, record: Mapping[str, Any]) -> None:
        kind = record.get("record")
        if kind == "header":
            self._check_header(record)
        elif kind == "forget failures":
            self._drop_failures()
        elif kind == "measurement":
            if (measurement := _measurement_of(record)) is not None:
                self._take_measurement(measurement)
        elif kind == "choice":
            if (choice := _choice_of(record)) is not None:
                self._choices[choice.key] = choice
        # Later versions may add kinds of records; they read what this version writes.

    def _take_measurement(self, new: Measurement) -> None:
        known = self._measurements.setdefault(new.key, {})
        self._seconds[new.key] = self._seconds.get(new.key, 0.0) + new.seconds
        old = known.get(new.config)
        # Two processes may have measured the same: a time beats a bound, and a bound a failure.
        if old is None or _worth(new) >= _worth(old):
            known[new.config] = new

    def _drop_failures(self) -> None:
        for key, known in self._measurements.items():
            failed = {config for config, entry in known.items() if not entry.is_timed}
            for config in failed:
                del known[config]
            choice = self._choices.get(key)
            if choice is not None and failed:
                self._choices[key] = Choice(choice.key, choice.config, choice.method,
                                            choice.considered - {config_id(c) for c in failed})

    def _check_header(self, record: Mapping[str, Any]) -> None:
        self._has_header = True
        if record.get("identity") != self._identity:
            self._give_up("belongs to another kernel, device or version of Triton")

    # -- the file ---------------------------------------------------------------------------------

    def _forget_file(self) -> None:
        self._offset = 0
        self._file: tuple[int, int] | None = None
        self._has_header = False
        self._reported: set[int] = set()
        self._own: set[int] = set()  # offsets of the records that this object wrote

    @contextlib.contextmanager
    def _opened(self, flags: int, lock: int) -> Iterator[int]:
        assert self._path is not None
        file = os.open(self._path, flags | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(file, lock)
            except OSError as error:
                # Some network file systems have no locks; single appending writes must then do.
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                    raise
            yield file
        finally:
            os.close(file)

    def _unread(self, file: int) -> tuple[int, bytes]:
        """Returns the offset of the unread part, and that part."""
        self._recognise(file)
        start = self._offset
        pieces = []
        position = start
        while piece := os.pread(file, 1 << 20, position):
            pieces.append(piece)
            position += len(piece)
        return start, b"".join(pieces)

    def _recognise(self, file: int) -> None:
        status = os.fstat(file)
        is_same = self._file in (None, (status.st_dev, status.st_ino))
        if not is_same or status.st_size < self._offset:
            # Somebody removed and recreated the file; the measurements in memory stay valid.
            self._forget_file()
        self._file = (status.st_dev, status.st_ino)

    def _is_ours(self, text: bytes) -> bool:
        if text.startswith(MAGIC) or MAGIC.startswith(text):
            return True
        self._give_up("was written by another version of foretune" if text.startswith(_ANY_VERSION)
                      else "is no store of foretune.autotune")
        return False

    def _read_lines(self, start: int, text: bytes) -> list[int]:
        """Takes the records of ``text``; returns the offsets of damaged lines."""
        damaged = []
        position = 0
        while position < len(text) and self._usable:
            end = text.find(b"\n", position)
            line = text[position:] if end < 0 else text[position:end]
            if line and not line.startswith(b"#") and start + position not in self._own:
                record = decode(line) if end >= 0 else None
                if record is not None:
                    self._take(record)
                elif start + position not in self._reported:
                    damaged.append(start + position)
            if end < 0:
                break
            position = end + 1
        self._offset = start + position
        return damaged

    def _report_damage(self, damaged: Sequence[int]) -> None:
        self._reported.update(damaged)
        records = "1 record was" if len(damaged) == 1 else f"{len(damaged)} records were"
        warnings.warn(f"{self._path}: {records} damaged (at byte {damaged[0]}) and passed over; "
                      "what was lost is measured again when it is needed", RuntimeWarning,
                      stacklevel=2)
        with contextlib.suppress(OSError), self._opened(os.O_RDWR, fcntl.LOCK_EX) as file:
            status = os.fstat(file)
            if self._file == (status.st_dev, status.st_ino):
                for offset in damaged:
                    # Makes the line a comment, so that it is reported only once.
                    os.pwrite(file, b"#", offset)

    def _append(self, record: Mapping[str, Any]) -> None:
        if not self._usable:
            return
        assert self._path is not None
        try:
            os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
            with self._opened(os.O_RDWR | os.O_CREAT | os.O_APPEND, fcntl.LOCK_EX) as file:
                self._recognise(file)
                begin = self._beginning(file)
                line = begin + encode(record)
                self._own.add(os.fstat(file).st_size + len(begin))
                written = os.write(file, line)
                if written != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._give_up(f"cannot be written: {error.strerror}")

    def _beginning(self, file: int) -> bytes:
        """Returns the bytes that must precede the next record."""
        size = os.fstat(file).st_size
        header = encode({"record": "header", "identity": self._identity})
        if size <= len(MAGIC) and MAGIC.startswith(os.pread(file, len(MAGIC), 0)):
            os.ftruncate(file, 0)  # the process that created the file died while doing so
            self._has_header = True
            return MAGIC + header
        ended = os.pread(file, 1, size - 1) == b"\n"
        begin = b"" if ended else b"\n"  # ends the line that a killed process left
        if not self._has_header and self._offset > 0:
            self._has_header = True
            begin += header
        return begin

    def _give_up(self, why: str) -> None:
        if self._usable:
            self._usable = False
            warnings.warn(f"{self._path} {why}; measurements of this process are kept in memory "
                          "only", RuntimeWarning, stacklevel=2)


def _worth(measurement: Measurement) -> int:
    return 2 if measurement.is_ok else 1 if measurement.is_timed else 0


def _measurement_of(record: Mapping[str, Any]) -> Measurement | None:
    """Returns the measurement; None when a field is not what this version writes."""
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


def _choice_of(record: Mapping[str, Any]) -> Choice | None:
    key, config, considered = (record.get(name) for name in ("key", "config", "considered"))
    method = record.get("method")
    if (not isinstance(key, dict) or not isinstance(config, dict) or method not in METHODS
            or not isinstance(considered, list)):
        return None
    return Choice(canonical(key), canonical(config), method,
                  frozenset(entry for entry in considered if isinstance(entry, str)))
