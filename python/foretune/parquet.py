"""The command ``foretune-parquet``: converts data sets to and from the Parquet files of CK Tile's
heuristics.

``import`` reads such a file into a data set (``.ftd``, or another format of ``Dataset.save``);
``export`` writes one. The columns are those of CK Tile's own data sets, and they tell GEMMs from
grouped convolutions. Rows that are left out are counted by reason.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import _foretune
from ._dataset import Dataset, ImportReport, csv_text, one_line, write_parquet
from ._errors import (CorruptDataError, Error, InputOutputError, InvalidArgumentError,
                      NotFoundError, UnsupportedError)

# Columns of integers, which tables with gaps hold as floats.
_WHOLE = {"m", "n", "k", "M", "N", "K", "split_k", "C", "G", "Di", "Hi", "Wi", "Z", "Y", "X",
          "stride_d", "stride_h", "stride_w", "pad_d", "pad_h", "pad_w", "dilation_d",
          "dilation_h", "dilation_w", "non_zero"}
# Columns that are read. The others follow from the kernel's name (tiles, pipeline) or are unused.
_READ = _WHOLE | {"kernel_name", "kernel", "latency_ms", "measured_tflops", "tflops", "dtype",
                  "layout", "arch", "is_valid", "error"}
# Boolean columns. A GEMM's pad_m, pad_n and pad_k are flags of the kernel, not sizes.
_FLAGS = {"is_valid", "pad_m", "pad_n", "pad_k", "persistent"}
_TEXTS = {"op_type", "dtype", "layout", "arch", "kernel_name", "kernel", "pipeline", "scheduler",
          "epilogue", "run_id", "variant", "wave_mode", "reduction"}
_FIGURES = {"measured_tflops", "latency_ms", "bandwidth_gb_s", "tflops"}


def import_parquet(
    path: str | os.PathLike[str],
    *,
    arch: str = "",
    hardware: str | os.PathLike[str] = "",
    role: str = "training",
    family: str = "recorded",
) -> Dataset:
    """Reads a Parquet file of CK Tile's heuristics.

    Restores times that were rounded to 10 us from the rates, keeps failed runs as outcomes, and
    replaces repeats of a problem and kernel by their median. ``Dataset.report`` counts dropped and
    repaired rows.

    Args:
        path: the file.
        arch: architecture that the benchmarks ran on (``gfx950``); "" takes the file's own column.
        hardware: file with the output of rocminfo on that machine; "" for none.
        role: ``training`` or ``validation``.
        family: family name of the data set.

    Raises:
        ImportError: pyarrow is not installed (``pip install foretune[parquet]``).
        NotFoundError: there is no such file.
        CorruptDataError: the file is no Parquet file, or no row is usable.
        InvalidArgumentError: a column is missing.
    """
    table = _read_table(os.fspath(path))
    text = csv_text(_readable(table, os.fspath(path)))
    native, report = _foretune.dataset_from_ck_csv_text(text, family, role, arch,
                                                        os.fspath(hardware))
    return Dataset(native, ImportReport._of(report))


def export_parquet(dataset: Dataset, path: str | os.PathLike[str]) -> ImportReport:
    """Writes a data set of CK Tile's kernels in the form that CK Tile's heuristics read.

    Returns:
        The numbers of rows that the columns cannot hold (bounds, GEMMs with a bias), by reason.

    Raises:
        ImportError: pyarrow is not installed (``pip install foretune[parquet]``).
        UnsupportedError: the configs are not CK Tile's.
        InputOutputError: the operating system refused.
    """
    import pyarrow as pa
    import pyarrow.csv

    text, report = dataset._native.to_bytes("ck-csv")
    names = text[: text.index(b"\n")].decode().split(",")
    is_conv = "Hi" in names
    convert = pyarrow.csv.ConvertOptions(
        column_types={name: _type_of(name, is_conv, pa) for name in names},
        true_values=["True"], false_values=["False"], strings_can_be_null=False)
    table = pyarrow.csv.read_csv(pa.BufferReader(text), convert_options=convert)
    write_parquet(table, os.fspath(path))
    return ImportReport._of(report)


def _type_of(name: str, is_conv: bool, pa: Any) -> Any:
    if name in _TEXTS:
        return pa.string()
    if name in _FIGURES:
        return pa.float64()
    if name in _FLAGS and not (is_conv and name.startswith("pad_")):
        return pa.bool_()
    return pa.int64()


def _read_table(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not os.path.exists(path):
        raise NotFoundError(f"{path}: there is no such file")
    try:
        names = pq.read_schema(path).names
        return pq.read_table(path, columns=[name for name in names if name in _READ])
    except (pa.ArrowException, OSError) as error:
        raise CorruptDataError(f"{path}: {one_line(error)}") from error


def _readable(table: Any, path: str) -> Any:
    """Returns the table with integer columns as integers. A column with fractions stays as it is,
    so that the reader refuses it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not table.num_columns:
        raise InvalidArgumentError(f"{path}: none of its columns is one of CK Tile's")
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if name in _WHOLE and pa.types.is_floating(column.type):
            try:
                whole = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(position, name, whole)
        elif name in _FIGURES and pa.types.is_floating(column.type):
            table = table.set_column(position, name, pc.if_else(pc.is_nan(column), None, column))
    return table


def _print_report(report: ImportReport) -> None:
    print(f"{report.rows_read:,} rows read, {report.rows_kept:,} kept")
    for reason, count in report.dropped.items():
        print(f"  dropped {count:,}: {reason}")
    for note, count in report.notes.items():
        print(f"  kept {count:,}: {note}")


def _import(arguments: argparse.Namespace) -> None:
    dataset = import_parquet(arguments.input, arch=arguments.arch, hardware=arguments.hardware,
                             role=arguments.role, family=arguments.family)
    _print_report(dataset.report)
    dataset.save(arguments.output)


def _export(arguments: argparse.Namespace) -> None:
    dataset = Dataset.open(arguments.input)
    _print_report(export_parquet(dataset, arguments.output))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="foretune-parquet",
        description="Converts data sets to and from the Parquet files of CK Tile's heuristics. "
        "Every row that is left out is counted, with the reason.",
        epilog="Exit codes: 0 done, 1 failed, 2 the command line makes no sense, 3 a file is "
        "missing, damaged or does not fit, 4 not possible.")
    parser.add_argument("--version", action="version", version=f"foretune {_foretune.version}")
    commands = parser.add_subparsers(dest="command", required=True)
    reader = commands.add_parser("import", help="CK Tile's Parquet into a data set")
    reader.add_argument("--arch", default="", metavar="NAME",
                        help="where the benchmarks ran: gfx950, gfx942, gfx90a "
                        "(default: what the file says)")
    reader.add_argument("--hardware", default="", metavar="FILE", help="what rocminfo printed there")
    reader.add_argument("--role", default="training", choices=("training", "validation"),
                        help="role of the data set (default: training)")
    reader.add_argument("--family", default="recorded", metavar="NAME",
                        help="family name of the data set (default: recorded)")
    reader.set_defaults(run=_import)
    writer = commands.add_parser("export", help="a data set into CK Tile's Parquet")
    writer.set_defaults(run=_export)
    for command in (reader, writer):
        command.add_argument("input", help="file to read")
        command.add_argument("output", help="file to write")
        command.add_argument("--overwrite", action="store_true", help="replace an existing output")
    return parser


def _exit_code(error: Error) -> int:
    if isinstance(error, InvalidArgumentError):
        return 2
    if isinstance(error, UnsupportedError):
        return 4
    return 1 if isinstance(error, InputOutputError) else 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        if os.path.exists(arguments.output) and not arguments.overwrite:
            raise InvalidArgumentError(f"{arguments.output} exists; --overwrite replaces it")
        arguments.run(arguments)
    except ImportError as error:
        print(f"foretune-parquet: {one_line(error)}; pip install foretune[parquet] brings what is "
              "needed", file=sys.stderr)
        return 4
    except Error as error:
        print(f"foretune-parquet: {one_line(error)}", file=sys.stderr)
        return _exit_code(error)
    print(f"wrote {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
