"""foretune-parquet: CK Tile's Parquet in and out."""

import foretune
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foretune.parquet import export_parquet, import_parquet, main


def parquet_of(csv, path):
    pd.read_csv(csv).to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["gemm.csv", "conv.csv"])
def test_parquet_is_read_as_the_same_csv(tmp_path, ck_folder, name):
    path = parquet_of(ck_folder / name, tmp_path / "a.parquet")
    dataset = import_parquet(path, arch="gfx950")
    csv = foretune.Dataset.open(ck_folder / name, device="gfx950")
    assert dataset.fingerprint == csv.fingerprint
    assert dataset.report == csv.report


@pytest.mark.parametrize("name", ["gemm.csv", "conv.csv"])
def test_what_is_exported_is_read_back(tmp_path, ck_folder, name):
    dataset = foretune.Dataset.open(ck_folder / name, device="gfx950")
    report = export_parquet(dataset, tmp_path / "a.parquet")
    assert report.rows_read == len(dataset) == report.rows_kept + sum(report.dropped.values())
    again = import_parquet(tmp_path / "a.parquet")
    assert len(again) == report.rows_kept
    assert again.problems == dataset.problems and again.configs == dataset.configs
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert frame["is_valid"].dtype == bool
    assert frame["latency_ms"].dtype == float and frame["run_id"].dtype == "str"
    if name == "gemm.csv":
        assert {"measured_tflops", "tile_m", "warp_tile_k", "pad_m", "persistent"} <= set(frame)
        assert frame["pad_m"].dtype == bool and frame["m"].dtype == "int64"
    else:
        assert {"tflops", "Hi", "pad_h", "dilation_w"} <= set(frame)
        assert frame["pad_h"].dtype == "int64"
    assert not list(tmp_path.glob("*.tmp"))


def test_whole_numbers_may_be_floats_and_gaps_are_counted(tmp_path, ck_folder):
    frame = pd.read_csv(ck_folder / "gemm.csv")
    frame["m"] = frame["m"].astype(float)
    frame.loc[0, "m"] = float("nan")
    frame.to_parquet(tmp_path / "a.parquet")
    dataset = import_parquet(tmp_path / "a.parquet")
    whole = import_parquet(parquet_of(ck_folder / "gemm.csv", tmp_path / "b.parquet"))
    assert sum(dataset.report.dropped.values()) == sum(whole.report.dropped.values()) + 1
    frame["m"] = 16.5
    frame.to_parquet(tmp_path / "c.parquet")
    with pytest.raises(foretune.Error):
        import_parquet(tmp_path / "c.parquet")


def test_the_command_converts_both_ways(tmp_path, ck_folder, capsys):
    source = parquet_of(ck_folder / "gemm.csv", tmp_path / "in.parquet")
    data, out = tmp_path / "a.ftd", tmp_path / "out.parquet"
    assert main(["import", str(source), str(data), "--arch", "gfx942", "--role",
                 "validation"]) == 0
    printed = capsys.readouterr().out
    assert "rows read" in printed and f"wrote {data}" in printed
    for reason, count in import_parquet(source).report.dropped.items():
        assert f"dropped {count:,}: {reason}" in printed
    assert foretune.Dataset.open(data).header["role"] == "validation"
    assert main(["export", str(data), str(out)]) == 0
    assert pq.read_metadata(out).num_rows == len(foretune.Dataset.open(data))
    assert main(["export", str(data), str(out)]) == 2
    assert capsys.readouterr().err.strip() == (
        f"foretune-parquet: {out} exists; --overwrite replaces it")
    assert main(["export", str(data), str(out), "--overwrite"]) == 0


def test_errors_are_one_sentence_with_an_exit_code(tmp_path, training, capsys):
    def sentence(code, *arguments):
        assert main([str(argument) for argument in arguments]) == code
        text = capsys.readouterr().err
        assert text.startswith("foretune-parquet: ") and text.count("\n") == 1
        return text

    out = tmp_path / "out.ftd"
    assert "no such file" in sentence(3, "import", tmp_path / "none.parquet", out)
    (tmp_path / "bad.parquet").write_text("nothing of the kind")
    assert "bad.parquet" in sentence(3, "import", tmp_path / "bad.parquet", out)
    pq.write_table(pa.table({"colour": ["red"]}), tmp_path / "odd.parquet")
    assert "none of its columns" in sentence(2, "import", tmp_path / "odd.parquet", out)
    pq.write_table(pa.table({"m": [1], "n": [1], "k": [1]}), tmp_path / "few.parquet")
    assert "no column kernel_name" in sentence(2, "import", tmp_path / "few.parquet", out)
    training.save(tmp_path / "null.ftd")
    assert "ck-gemm" in sentence(4, "export", tmp_path / "null.ftd", tmp_path / "o.parquet")
    assert "hardware.txt" in sentence(3, "import", tmp_path / "few.parquet", out, "--hardware",
                                      tmp_path / "hardware.txt")
    assert not out.exists()
    with pytest.raises(SystemExit) as ended:
        main(["import"])
    assert ended.value.code == 2
