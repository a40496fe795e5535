"""Tables that the programs in bench/ make from measurements, as in docs/benchmarks.md, and the
problems that they draw."""

import importlib.util

import numpy as np
import pytest
from conftest import ROOT


def bench_program(name="torch_end_to_end"):
    path = ROOT / "bench" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(mode, repetition, seconds, **more):
    return {"network": "mlp", "mode": mode, "repetition": repetition, "compile_seconds": seconds,
            "run_us": 10.0, "right": True, **more}


def row(table, network, mode):
    (found,) = [words for words in map(str.split, table.splitlines())
                if words[:2] == [network, mode]]
    return found


def test_every_process_counts_and_every_run_is_shown():
    lines = [line("default", 0, 1.0), line("foretune-1", 0, 2.0),
             line("default", 0, 1.0), line("foretune-1", 0, 1.0),
             line("default", 1, 1.0), line("foretune-1", 1, 1.1)]
    found = row(bench_program().table(lines), "mlp", "foretune-1")
    # Columns: processes, median of all, and the ratio to the default: of all runs, of the first
    # run, of the second.
    assert found[2:8] == ["3", "1.10", "s", "1.10", "(2.00,", "1.05)"]


def test_products_of_other_sizes_are_rows_of_their_own():
    lines = [line("default", 0, 1.0, network="gemm"),
             line("default", 0, 3.0, network="gemm", sizes=[1000, 4096, 4096]),
             line("default", 0, 9.0, network="gemm", sizes=[64, 27648, 5120])]
    table = bench_program().table(lines)
    assert row(table, "1000x4096x4096", "default")[2:4] == ["2", "2.00"]
    assert row(table, "64x27648x5120", "default")[2:4] == ["1", "9.00"]


def test_the_table_of_the_kept_measurements_is_printed_without_a_gpu(capsys, monkeypatch):
    kept = str(ROOT / "bench" / "measured" / "torch-h200.jsonl")
    monkeypatch.setattr("sys.argv", ["torch_end_to_end.py", "--table", kept])
    assert bench_program().main() == 0
    printed = capsys.readouterr().out
    assert row(printed, "transformer", "foretune-1")[2] == "10"
    assert row(printed, "transformer", "max-autotune")[2] == "1"
    assert "not done after 110 s" in printed


def test_the_table_of_training_steps_names_the_better_of_the_others(capsys, monkeypatch):
    kept = str(ROOT / "bench" / "measured" / "torch-convolutions-h200.json")
    monkeypatch.setattr("sys.argv", ["torch_convolutions.py", "--table", kept])
    assert bench_program("torch_convolutions").main() == 0
    (found,) = [line.split() for line in capsys.readouterr().out.splitlines()
                if line.startswith("EfficientNet-B0")]
    # Seconds of the first steps and milliseconds afterwards, of off, on and ours; then the ratios.
    assert found[1:] == ["27.04", "60.92", "31.26", "32.01", "30.07", "39.61", "1.156", "1.317"]


@pytest.mark.parametrize("number", range(11))
def test_drawn_sparse_matrices_are_patterns_of_their_sizes(number, tmp_path):
    drawing = bench_program("draw_sparse_matrices")
    kind = drawing.KINDS[number]
    rows, columns, row, column = drawing.draw(np.random.default_rng([3, number]), kind)
    assert 0 <= row.min() <= row.max() < rows
    assert 0 <= column.min() <= column.max() < columns
    keys = row * columns + column
    assert (np.diff(keys) > 0).all()    # by rows, without repeats
    assert 300 < len(keys) < 2 * drawing.MOST
    again = drawing.draw(np.random.default_rng([3, number]), kind)
    assert np.array_equal(again[2], row)
    assert np.array_equal(again[3], column)
    lines = drawing.products(np.random.default_rng(number), "a.mtx.gz", len(keys))
    assert [text.split()[1] for text in lines] == ["op=spmv", "op=spmm", "op=sddmm"]
    if len(keys) < 20000:
        drawing.write(tmp_path / "a.mtx.gz", (rows, columns, row, column))
        assert (tmp_path / "a.mtx.gz").stat().st_size > 0
