"""Data sets: arrays, files, frames, Parquet."""

import gc

import foretune
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from conftest import ROOT


def test_columns_are_views_that_outlive_the_data_set(tmp_path, training):
    training.save(tmp_path / "copy.ftd")
    dataset = foretune.Dataset.open(tmp_path / "copy.ftd")
    times = dataset.time_ns
    assert times.dtype == np.float32 and times.shape == (len(dataset),)
    assert not times.flags.owndata and not times.flags.writeable
    assert np.shares_memory(times, dataset.time_ns)
    copy = times.copy()
    del dataset
    gc.collect()
    np.testing.assert_array_equal(times, copy)


def test_ids_lead_to_problems_and_configs(training):
    fields, words = training.problem_fields, training.config_words
    assert fields.shape == (len(training.problems), 8) and fields.dtype == np.int64
    assert words.shape[0] == len(training.configs) and words.dtype == np.int32
    problem = training.problems[training.problem_ids[0]]
    assert f" m={fields[training.problem_ids[0], 1]} " in problem
    assert training.configs[training.config_ids[0]].startswith(
        f"block_m={words[training.config_ids[0], 0]} ")
    assert training.contexts[training.context_ids[0]]["cache"] == "warm"
    assert training.reasons[0] == ""


@pytest.mark.parametrize("name", ["a.ftd", "a.json", "a.msgpack", "a.parquet"])
def test_files_hold_the_same_data_set(tmp_path, training, name):
    report = training.save(tmp_path / name)
    assert report.dropped == {}
    again = foretune.Dataset.open(tmp_path / name)
    assert again.fingerprint == training.fingerprint
    assert again.header == training.header
    np.testing.assert_array_equal(again.median_ns, training.median_ns)


def test_other_formats_and_names(tmp_path, training):
    with pytest.raises(foretune.InvalidArgumentError, match="cannot tell the format"):
        training.save(tmp_path / "a.what")
    training.save(tmp_path / "a.what", "csv")
    with pytest.raises(foretune.InvalidArgumentError):
        training.save(tmp_path / "b.ftd", "xml")
    triton = foretune.Dataset.open(ROOT / "tests" / "triton_times.csv", device="h200")
    assert triton.header["device"] == "NVIDIA H200" or "H200" in triton.header["device"]
    assert triton.header["config_schema"].startswith("triton")


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(foretune.NotFoundError, match="none.ftd") as caught:
        foretune.Dataset.open(tmp_path / "none.ftd")
    assert isinstance(caught.value, foretune.Error)
    (tmp_path / "bad.ftd").write_bytes(b"\x93 not a data set")
    with pytest.raises(foretune.Error, match="bad.ftd"):
        foretune.Dataset.open(tmp_path / "bad.ftd")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(foretune.CorruptDataError, match="bad.parquet"):
        foretune.Dataset.open(tmp_path / "bad.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(foretune.CorruptDataError, match="not written by foretune"):
        foretune.Dataset.open(tmp_path / "other.parquet")
    with pytest.raises(foretune.NotFoundError):
        foretune.Dataset.from_parquet(tmp_path / "none.parquet")


def test_frames_have_a_row_per_measurement_and_come_back(training):
    frame = training.to_pandas()
    assert len(frame) == len(training)
    assert list(frame.columns[:5]) == ["op", "m", "n", "k", "batch"]
    assert set(frame["op"]) == {"mm", "addmm"}
    assert set(frame["outcome"]) <= set(foretune.OUTCOMES)
    best = frame[frame["outcome"] == "ok"].groupby(["m", "n", "k"])["time_ns"].min()
    assert (best > 0).all()
    again = foretune.Dataset.from_pandas(frame, like=training)
    assert again.fingerprint == training.fingerprint
    assert again.report.rows_kept == len(training)
    part = foretune.Dataset.from_pandas(frame.iloc[:10], like=training)
    assert len(part) == 10


def test_frames_of_others_get_a_schema_of_their_own():
    frame = pd.DataFrame({"m": [64, 64, 128], "n": [64, 64, 64], "k": [32, 32, 32],
                          "tile": [16, 32, 16], "pipeline": ["a", "b", "a"],
                          "time_us": [3.5, 2.5, float("nan")]})
    dataset = foretune.Dataset.from_pandas(frame, device="h200")
    assert len(dataset) == 2
    assert dataset.report.rows_read == 3 and sum(dataset.report.dropped.values()) == 1
    assert dataset.configs == ["tile=16 pipeline=a", "tile=32 pipeline=b"]
    np.testing.assert_allclose(dataset.time_ns, [3500, 2500])
    with pytest.raises(foretune.Error):
        foretune.Dataset.from_pandas(pd.DataFrame({"n": [1]}))


def test_what_cannot_be_written_leaves_nothing(tmp_path, training):
    for name in ("a.parquet", "a.ftd"):
        with pytest.raises(foretune.NotFoundError, match=name):
            training.save(tmp_path / "none" / name)
    (tmp_path / "taken.parquet").mkdir()
    with pytest.raises(foretune.InputOutputError, match="taken.parquet: Is a directory") as caught:
        training.save(tmp_path / "taken.parquet")
    assert isinstance(caught.value, OSError)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.parquet"]


def test_parquet_is_readable_by_others(tmp_path, training):
    training.to_parquet(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.num_rows == len(training)
    np.testing.assert_array_equal(table["time_ns"].to_numpy(), training.time_ns)


def test_extras_baselines_and_failed_rows_survive_parquet(tmp_path):
    csv = tmp_path / "a.csv"
    csv.write_text("m,n,k,tile,time_ns,outcome,stage,reason,energy_j,cache\n"
                   "64,64,64,16,1000.5,ok,none,,0.25,warm\n"
                   '64,64,64,32,,crashed,run,"a ""reason"", quoted",,cold\n'
                   "64,64,64,64,900,censored,none,,,warm\n")
    dataset = foretune.Dataset.open(csv)
    dataset.save(tmp_path / "a.parquet")
    again = foretune.Dataset.open(tmp_path / "a.parquet")
    assert again.fingerprint == dataset.fingerprint
    frame = again.to_pandas()
    assert frame["energy_j"].iloc[0] == 0.25 and np.isnan(frame["energy_j"].iloc[1])
    assert frame["reason"].iloc[1] == 'a "reason", quoted'
    assert list(frame["outcome"]) == ["ok", "crashed", "censored"]
    assert np.isnan(frame["time_ns"].iloc[1])


METRICS_CSV = ("m,n,k,tile,bytes,config.psnr_db,time_ns,outcome,stage,pack_ns,"
               "psnr_db:maximise:dB:evaluation,psnr_db_samples\n"
               "64,64,64,16,1,2,1000.5,ok,none,20.5,,\n"
               "64,64,64,16,1,2,,ok,evaluate,,41.25,3\n"
               "64,64,64,32,1,2,,ok,none,,40,\n"
               "64,64,64,64,1,2,900,censored,none,7,,\n"
               "64,64,64,16,1,2,,crashed,evaluate,,,\n").replace(",bytes,", ",config.bytes,")


@pytest.mark.parametrize("way", ["parquet", "like", "frame", "json", "msgpack", "ftd", "csv"])
def test_declared_metrics_and_rows_without_a_time_come_back(tmp_path, way):
    (tmp_path / "a.csv").write_text(METRICS_CSV)
    dataset = foretune.Dataset.open(tmp_path / "a.csv")
    assert ("psnr_db", "dB", "maximise", "evaluation") in dataset.metrics
    frame = dataset.to_pandas()
    assert {"config.bytes", "config.psnr_db", "psnr_db:maximise:dB:evaluation"} <= set(frame.columns)
    assert np.isnan(frame["time_ns"].iloc[1]) and frame["stage"].iloc[1] == "evaluate"
    assert frame["psnr_db:maximise:dB:evaluation"].iloc[1] == 41.25
    assert frame["psnr_db_samples"].iloc[1] == 3
    if way == "like":
        again = foretune.Dataset.from_pandas(frame, dataset)
    elif way == "frame":
        again = foretune.Dataset.from_pandas(frame)
    else:
        dataset.save(tmp_path / f"b.{way}")
        again = foretune.Dataset.open(tmp_path / f"b.{way}")
    assert again.metrics == dataset.metrics
    assert again.fingerprint == dataset.fingerprint
    assert len(again) == len(dataset) == 5
    pd.testing.assert_frame_equal(again.to_pandas(), frame)


def test_baselines_with_metrics_survive_parquet(tmp_path):
    (tmp_path / "a.csv").write_text("m,n,k,tile,order,time_ns,psnr_db:maximise:dB\n"
                                    "8,8,8,1,mnk,10,30\n8,8,8,vendor,,7,60.5\n"
                                    "8,8,8,untouched,,,99\n")
    dataset = foretune.Dataset.open(tmp_path / "a.csv")
    dataset.save(tmp_path / "a.parquet")
    again = foretune.Dataset.open(tmp_path / "a.parquet")
    assert again.baselines == dataset.baselines
    assert [entry[1:] for entry in again.baseline_metrics] == [
        ("vendor", "psnr_db", 60.5), ("untouched", "psnr_db", 99.0)]


def test_metrics_that_contradict_do_not_merge(tmp_path):
    for name, unit in (("a", "dB"), ("b", "%")):
        (tmp_path / f"{name}.csv").write_text(f"m,n,k,tile,time_ns,psnr_db:maximise:{unit}\n"
                                              "8,8,8,1,10,30\n")
    first, second = (foretune.Dataset.open(tmp_path / f"{name}.csv") for name in "ab")
    with pytest.raises(foretune.MismatchError, match="psnr_db:maximise:% is psnr_db:maximise:dB"):
        first.merge(second)


def test_merging_filtering_and_folds(training):
    twice = training.merge(training)
    assert len(twice) == len(training)
    keep = [i % 2 == 0 for i in range(len(training.problems))]
    half = training.filter_problems(keep)
    assert len(half.problems) == sum(keep)
    rest = training.filter_problems([not entry for entry in keep])
    assert half.merge(rest).fingerprint == training.fingerprint
    with pytest.raises(foretune.InvalidArgumentError):
        training.filter_problems([True])
    folds = training.folds(4, seed=1)
    assert folds.shape == (len(training.problems),) and set(folds) == {0, 1, 2, 3}
    with pytest.raises(foretune.InvalidArgumentError, match="at least 2"):
        training.folds(1)


def test_a_data_set_without_rows_has_empty_columns(tmp_path, training):
    none = training.filter_problems([False] * len(training.problems))
    assert len(none) == 0 and none.time_ns.shape == (0,)
    assert len(none.to_pandas()) == 0
    none.save(tmp_path / "none.ftd")
    assert len(foretune.Dataset.open(tmp_path / "none.ftd")) == 0


def test_others_families_do_not_merge(training):
    with pytest.raises(foretune.MismatchError):
        training.merge(foretune.Dataset.open(ROOT / "tests" / "triton_times.csv"))


def sequences(tmp_path):
    """A data set whose configs are sequences, one of them empty, with a baseline."""
    path = tmp_path / "layers.csv"
    path.write_text('m,n,k,config:layers:2,time_ns\n8,8,8,"3,16,-1",1.5\n8,8,8,,2.5\n8,8,8,7,3.5\n'
                    '16,8,8,baseline:vendor,9\n')
    return foretune.Dataset.open(path)


@pytest.mark.parametrize("way", ["pandas", "like", "parquet", "csv"])
def test_sequences_are_a_column_of_texts_and_come_back(tmp_path, way):
    dataset = sequences(tmp_path)
    assert dataset.header["config_schema_kind"] == "sequence"
    assert dataset.baselines == [("gemm op=mm m=16 n=8 k=8 batch=1 dtype=f32 layout=rrr", "vendor",
                                  9.0)]
    frame = dataset.to_pandas()
    assert list(frame["config"]) == ["3,16,-1", "", "7"]
    if way == "pandas":
        back = foretune.Dataset.from_pandas(frame)
    elif way == "like":
        back = foretune.Dataset.from_pandas(frame, dataset)
    else:
        dataset.save(tmp_path / f"back.{way}")
        back = foretune.Dataset.open(tmp_path / f"back.{way}")
    assert [back.configs[i] for i in back.config_ids] == ["3,16,-1", "", "7"]
    assert back.header["config_schema"] == "layers"
    assert back.header["config_schema_version"] == 2
    assert back.fingerprint == dataset.fingerprint


def test_sequences_without_a_schema_are_refused(tmp_path):
    frame = sequences(tmp_path).to_pandas()
    frame.attrs.clear()
    with pytest.raises(foretune.InvalidArgumentError, match="config:NAME:VERSION"):
        foretune.Dataset.from_pandas(frame)
