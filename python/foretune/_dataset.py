"""Data sets of measurements: files, NumPy arrays, pandas frames, Parquet."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import (CorruptDataError, InputOutputError, InvalidArgumentError, NotFoundError,
                      UnsupportedError)
from ._plugins import load_installed_plugins

if TYPE_CHECKING:
    import pandas as pd

# Metadata key of a Parquet file that to_parquet wrote; it holds the data set without its rows.
PARQUET_KEY = b"foretune.dataset"
# Attribute of a frame that holds the CSV name of its column of sequences.
_CONFIG_COLUMN = "foretune_config"
_PARQUET_MAGIC = b"PAR1"
_EXTENSIONS = {".ftd": "foretune", ".csv": "csv", ".json": "json", ".msgpack": "msgpack",
               ".parquet": "parquet"}


@dataclass(frozen=True)
class ImportReport:
    """Counts the rows that were read, kept and dropped: nothing is dropped silently."""

    rows_read: int
    rows_kept: int
    dropped: dict[str, int] = field(default_factory=dict)
    """Number of dropped rows by reason; a reason's text names the first place where it applied."""
    notes: dict[str, int] = field(default_factory=dict)
    """Number of rows that were kept but changed, by the change."""

    @classmethod
    def _of(cls, report: Mapping[str, Any]) -> ImportReport:
        return cls(report["rows_read"], report["rows_kept"], dict(report["dropped"]),
                   dict(report["notes"]))


class Dataset:
    """Measurements of one family on one problem type. A data set never changes after its creation.

    A row is one measurement: a problem, a config, a context (machine, threads, cache), an outcome
    and a time. These columns are arrays of length ``len(dataset)``:

    ========================  =======  ============================================================
    ``time_ns``               float32  minimum over the windows, per run, in nanoseconds; a lower
                                       bound when the outcome is ``censored``; 0 without a time
    ``median_ns``             float32  median over the windows; 0 when unknown
    ``spread``                float32  interquartile range over median (relative); 0 if unknown
    ``samples``               uint16   windows behind the time
    ``problem_ids``           uint32   index into ``problems`` and rows of ``problem_fields``
    ``config_ids``            uint32   index into ``configs`` and rows of ``config_words``
    ``context_ids``           uint16   index into ``contexts``
    ``outcomes``, ``stages``  uint8    index into ``foretune.OUTCOMES``, ``foretune.STAGES``
    ``flags``                 uint8    1 loaded, 2 throttled, 4 imported, 8 re-measured (reference)
    ``reason_ids``            uint32   index into ``reasons``; 0 is none
    ========================  =======  ============================================================

    These are views into the data set's own memory, read-only and strided (32 bytes from row to
    row). A view keeps the data set alive; ``np.ascontiguousarray`` copies a view.

    Thread safety: any number of threads may read a data set at once.
    """

    __slots__ = ("_native", "report")

    report: ImportReport
    """The counts of the rows that reading kept and dropped."""

    def __init__(self, native: _foretune.Dataset, report: ImportReport | None = None) -> None:
        """For the package itself; data sets come from ``open``, ``from_pandas`` and collectors."""
        self._native = native
        self.report = report or ImportReport(len(native), len(native))

    # -- files ------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        family: str = "recorded",
        role: str = "training",
        device: str = "",
    ) -> Dataset:
        """Reads a file: ``.ftd``, CSV (also gzip), JSON, MessagePack, torch-diode's and CK Tile's
        files, and Parquet files that ``to_parquet`` wrote.

        Args:
            path: the file.
            format: ``foretune``, ``csv``, ``json``, ``msgpack``, ``diode-json``, ``diode-msgpack``,
                ``ck-json``, ``ck-log``, ``ck-csv`` or ``parquet``. None recognises the format by
                the file's content.
            family, role, device: used for formats that do not hold them; ``device`` is a name that
                ``foretune convert --device`` or ``--arch`` takes.

        Raises:
            NotFoundError: there is no such file.
            CorruptDataError: the file is damaged; the message says where.
        """
        path = os.fspath(path)
        if format == "parquet" or (format is None and _is_parquet(path)):
            return cls.from_parquet(path)
        load_installed_plugins()
        native, report = _foretune.read_dataset(path, format or "", family, role, device)
        return cls(native, ImportReport._of(report))

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> ImportReport:
        """Writes a file: first a temporary file, then a rename.

        Args:
            path: the file.
            format: as in ``open``; None takes the format of the extension (``.ftd``, ``.csv``,
                ``.json``, ``.msgpack``, ``.parquet``).

        Returns:
            The counts of the rows that the format cannot hold. ``.ftd``, JSON and MessagePack hold
            everything.

        Raises:
            InvalidArgumentError: the extension belongs to no format.
            NotFoundError: there is no such folder.
            InputOutputError: the operating system refused.
        """
        path = os.fspath(path)
        if format is None:
            format = _EXTENSIONS.get(os.path.splitext(path)[1].lower())
            if format is None:
                raise InvalidArgumentError(
                    f"cannot tell the format of {path} from its name; there are "
                    + ", ".join(_EXTENSIONS))
        if format == "parquet":
            self.to_parquet(path)
            return ImportReport(len(self), len(self))
        return ImportReport._of(self._native.write(path, format))

    # -- pandas -----------------------------------------------------------------------------------

    def to_pandas(self) -> pd.DataFrame:
        """Returns a frame with one row per measurement.

        Its columns are those of ``foretune convert --to csv``: the problem's fields, the config's
        parameters (``config.k`` when a field is called ``k``, too), ``time_ns``, ``median_ns``,
        ``spread``, ``samples``, ``outcome``, ``stage``, ``reason``, ``flags``, the context, and the
        further metrics of the data set. The column of a built-in metric has the metric's name; that
        of a metric which the data set declares appends direction and unit
        (``psnr_db:maximise:dB``). Labels are categories. A time, median, spread or metric that is
        not known is NaN. Per-window samples and baselines are left out. Configs that are sequences
        are one column of texts, ``config`` (``3,16,1,0``), and ``frame.attrs`` holds their schema.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas as pd

        frame = pd.DataFrame({name: _expanded(values, codes, pd)
                              for name, (values, codes) in self._columns().items()}, copy=False)
        for name, values in self._figures().items():
            frame[name] = values
        for name, labels, codes in (("outcome", OUTCOMES, self.outcomes),
                                    ("stage", STAGES, self.stages)):
            frame[name] = pd.Categorical.from_codes(codes.astype(np.int8), list(labels))
        frame["reason"] = pd.array(self.reasons, dtype="str")[self.reason_ids]
        frame["flags"] = np.ascontiguousarray(self.flags)
        contexts = self.contexts
        for name, kind in (("machine", "str"), ("device", "str"), ("context_threads", "int32"),
                           ("cache", "str"), ("clock_mhz", "int32"), ("fidelity", "int32")):
            values = pd.array([context[name] for context in contexts], dtype=kind)
            frame[name] = values[self.context_ids]
        for name, values in self._extra_columns().items():
            frame[name] = values
        if self._has_sequences():
            header = self.header
            frame.attrs[_CONFIG_COLUMN] = \
                f"config:{header['config_schema']}:{header['config_schema_version']}"
        return frame

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame, like: Dataset | None = None, *,
                    family: str = "recorded", role: str = "training", device: str = "") -> Dataset:
        """Returns a data set made from a table with the columns of ``to_pandas``.

        It needs only the problem's fields without a default, the config's parameters and a time
        (``time_ns``, ``time_us`` or ``time_ms``) or another metric. Unusable rows are dropped and
        counted in ``report``.

        Args:
            frame: the table; it is converted to CSV text, about two seconds per 100,000 rows.
            like: a data set whose family, machine, role, config schema and baselines the result
                takes over. None: columns that are no field, metric or context become parameters, as
                in a CSV file; sequences are in a column ``config:NAME:VERSION``, or in ``config``
                of a frame that ``to_pandas`` made.
            family, role, device: as in ``open``; used without ``like``.

        Raises:
            InvalidArgumentError: a column is missing.
            CorruptDataError: no row is usable.
        """
        if like is None and _CONFIG_COLUMN in frame.attrs:
            frame = frame.rename(columns={"config": frame.attrs[_CONFIG_COLUMN]})
        text = frame.to_csv(index=False, float_format=None)
        if like is not None:
            return cls._from_csv_text(text, like)
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "frame.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return cls.open(path, "csv", family=family, role=role, device=device)

    # -- Parquet ----------------------------------------------------------------------------------

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the columns of ``to_pandas`` as Parquet, for other tools.

        The file's metadata hold the header and the baselines, so that ``from_parquet`` reads the
        same data set back. Per-window samples are left out. ``foretune-parquet export`` writes CK
        Tile's Parquet.

        Raises:
            ImportError: pyarrow or pandas is not installed (``pip install foretune[parquet]``).
            UnsupportedError: a problem has a payload, for which a table has no column.
            InputOutputError: the operating system refused.
        """
        import pyarrow as pa

        if any(" payload=" in problem for problem in self.problems):
            raise UnsupportedError("problems with payloads do not fit a table; JSON holds them")
        table = pa.Table.from_pandas(self.to_pandas(), preserve_index=False)
        rest = self._native.without_rows().to_bytes("foretune")[0]
        table = table.replace_schema_metadata({PARQUET_KEY: base64.b64encode(rest)})
        write_parquet(table, os.fspath(path))

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Dataset:
        """Reads a file that ``to_parquet`` wrote.

        Raises:
            ImportError: pyarrow is not installed (``pip install foretune[parquet]``).
            NotFoundError: there is no such file.
            CorruptDataError: ``to_parquet`` did not write the file.
        """
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq

        path = os.fspath(path)
        if not os.path.exists(path):
            raise NotFoundError(f"{path}: there is no such file")
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise CorruptDataError(f"{path}: {one_line(error)}") from error
        encoded = (table.schema.metadata or {}).get(PARQUET_KEY)
        if encoded is None:
            raise CorruptDataError(f"{path}: not written by foretune; for CK Tile's data sets there "
                                   "is foretune-parquet import")
        like = cls(_foretune.dataset_from_bytes(base64.b64decode(encoded)))
        return cls._from_csv_text(csv_text(table), like)

    # -- columns ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        header = self.header
        return (f"<foretune.Dataset of {len(self):,} measurements of {len(self.problems):,} problems,"
                f" family {header['family']}, {header['role']}>")

    @property
    def header(self) -> dict[str, Any]:
        """Family, role, problem type, config schema, device, seed and creator."""
        return self._native.header()

    @property
    def fingerprint(self) -> str:
        """Identifies the measurements, whatever their order. A model stores the fingerprint of its
        training data."""
        return self._native.fingerprint()

    @property
    def problems(self) -> list[str]:
        """Distinct problems as text, by id."""
        return self._native.problems()

    @property
    def configs(self) -> list[str]:
        """Distinct configs as text, by id."""
        return self._native.configs()

    @property
    def contexts(self) -> list[dict[str, Any]]:
        """Distinct contexts, by id."""
        return self._native.contexts()

    @property
    def reasons(self) -> list[str]:
        """Distinct reasons, by id; the first is empty."""
        return self._native.reasons()

    @property
    def baselines(self) -> list[tuple[str, str, float]]:
        """Problem, name and nanoseconds of each choice of others, such as a vendor's library."""
        return self._native.baselines()

    @property
    def metrics(self) -> list[tuple[str, str, str, str]]:
        """Name, unit, direction and stage of each metric that rows may have."""
        return self._native.metrics()

    @property
    def notes(self) -> dict[str, str]:
        """Texts by name that travel with the measurements, such as ``variant 17`` of a kernel."""
        return self._native.notes()

    @property
    def baseline_metrics(self) -> list[tuple[str, str, str, float]]:
        """Problem, name, metric and value of each baseline's metrics other than its time."""
        return self._native.baseline_metrics()

    @property
    def problem_fields(self) -> npt.NDArray[np.int64]:
        """A copy of shape (problems, fields): sizes, and the positions of labels."""
        return self._native.problem_fields()

    @property
    def config_words(self) -> npt.NDArray[np.int32]:
        """A copy of shape (configs, parameters): values, and the positions of labels. Sequences
        have no parameters; ``configs`` holds their values."""
        return self._native.config_words()

    @property
    def time_ns(self) -> npt.NDArray[np.float32]:
        return self._native.time_ns

    @property
    def median_ns(self) -> npt.NDArray[np.float32]:
        return self._native.median_ns

    @property
    def spread(self) -> npt.NDArray[np.float32]:
        return self._native.spread

    @property
    def samples(self) -> npt.NDArray[np.uint16]:
        return self._native.samples

    @property
    def problem_ids(self) -> npt.NDArray[np.uint32]:
        return self._native.problem_ids

    @property
    def config_ids(self) -> npt.NDArray[np.uint32]:
        return self._native.config_ids

    @property
    def context_ids(self) -> npt.NDArray[np.uint16]:
        return self._native.context_ids

    @property
    def outcomes(self) -> npt.NDArray[np.uint8]:
        return self._native.outcomes

    @property
    def stages(self) -> npt.NDArray[np.uint8]:
        return self._native.stages

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        return self._native.flags

    @property
    def reason_ids(self) -> npt.NDArray[np.uint32]:
        return self._native.reason_ids

    # -- parts and sums ---------------------------------------------------------------------------

    def merge(self, *others: Dataset) -> Dataset:
        """Returns a new data set with the rows of this one and ``others``. Repeats of a problem,
        config and context become one row with their median.

        Raises:
            MismatchError: the families or config schemas differ.
        """
        native, _ = self._native.merged([other._native for other in others])
        return Dataset(native)

    def filter_problems(self, keep: Sequence[bool] | npt.NDArray[np.bool_]) -> Dataset:
        """Returns a new data set with the problems whose entry of ``keep`` is true.

        Raises:
            InvalidArgumentError: ``keep`` does not have one entry per problem id.
        """
        flags = [bool(entry) for entry in keep]
        if len(flags) != len(self.problems):
            raise InvalidArgumentError(f"there are {len(self.problems)} problems, and {len(flags)} "
                                       "words on which of them to keep")
        return Dataset(self._native.filter_problems(flags))

    def folds(self, folds: int = 5, seed: int = 42) -> npt.NDArray[np.uint32]:
        """Returns the fold of every problem, 0 to ``folds`` - 1, by problem id. Problems of the
        same sizes (whatever their layout and data type) are in the same fold.

        Raises:
            InvalidArgumentError: ``folds`` is below 2.
        """
        return np.asarray(self._native.folds(folds, seed), dtype=np.uint32)

    # -- inside -----------------------------------------------------------------------------------

    @classmethod
    def _from_csv_text(cls, text: str, like: Dataset) -> Dataset:
        native, report = _foretune.dataset_from_csv_text(text, like._native)
        return cls(native, ImportReport._of(report))

    def _columns(self) -> dict[str, tuple[Any, npt.NDArray[np.uint32]]]:
        """Returns, for every field and parameter, its values by problem or config id with their
        labels, and the id of each row."""
        out: dict[str, tuple[Any, npt.NDArray[np.uint32]]] = {}
        fields = self.problem_fields
        for position, (name, labels) in enumerate(self._native.problem_columns()):
            out[name] = ((fields[:, position], labels), self.problem_ids)
        if self._has_sequences():
            out["config"] = ((np.array(self.configs, dtype=object), []), self.config_ids)
        words = self.config_words
        for position, (name, labels) in enumerate(self._native.config_columns()):
            out[name] = ((words[:, position], labels), self.config_ids)
        return out

    def _has_sequences(self) -> bool:
        return bool(self.header["config_schema_kind"] == "sequence")

    def _figures(self) -> dict[str, npt.NDArray[Any]]:
        timed = self.time_ns > 0
        known = self.median_ns > 0
        return {
            "time_ns": np.where(timed, self.time_ns, np.float32(np.nan)),
            "median_ns": np.where(known, self.median_ns, np.float32(np.nan)),
            "spread": np.where(timed, self.spread, np.float32(np.nan)),
            "samples": np.ascontiguousarray(self.samples),
        }

    def _extra_columns(self) -> dict[str, npt.NDArray[np.float64]]:
        out: dict[str, npt.NDArray[np.float64]] = {}
        columns = self._native.metric_columns()
        for row, name, value, spread, samples in self._native.extras():
            for column, entry in ((columns[name], value), (f"{name}_spread", spread),
                                  (f"{name}_samples", samples)):
                out.setdefault(column, np.full(len(self), np.nan))[row] = entry
        return out


OUTCOMES: tuple[str, ...] = tuple(_foretune.outcomes)
"""Outcomes of a measurement, by code."""
STAGES: tuple[str, ...] = tuple(_foretune.stages)
"""Stages at which a measurement that is not ok stopped, by code."""


def one_line(error: BaseException) -> str:
    """Returns the first line of the message of another library's error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def csv_text(table: Any) -> str:
    """Returns an Arrow table as CSV text from which the same numbers are read back."""
    import pyarrow as pa
    import pyarrow.csv

    columns = {}
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_float32(column.type):
            column = column.cast(pa.float64())
        columns[name] = column
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(columns), buffer)
    return buffer.getvalue().decode("utf-8")


def write_parquet(table: Any, path: str) -> None:
    """Writes an Arrow table: first a temporary file, then a rename."""
    import pyarrow.parquet as pq

    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        pq.write_table(table, temporary, compression="zstd")
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.remove(temporary)
        kind = NotFoundError if isinstance(error, FileNotFoundError) else InputOutputError
        raise kind(f"cannot write {path}: {os.strerror(error.errno or 0)}") from error


def _is_parquet(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError:
        return False  # opening it as a data set then raises the library's error


def _expanded(values: Any, codes: npt.NDArray[np.uint32], pd: Any) -> Any:
    numbers, labels = values
    if numbers.dtype == object:
        return pd.array(numbers, dtype="str")[codes]
    if labels:
        return pd.Categorical.from_codes(numbers[codes].astype(np.int32), labels)
    return numbers[codes]
