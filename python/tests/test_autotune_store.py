"""The store of foretune.autotune: data set files, killed processes, several writers, old files."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import warnings

import foretune
import pytest
from foretune._autotune_mapping import (canonical, config_of, key_of, parameters_of, split_key,
                                        variant_note, words_of)
from foretune._autotune_store import Measurement, Store

IDENTITY = {"kernel": "k", "source": "s", "device": "d", "arch": "a", "triton": "t"}
KEY = canonical({"sizes": {"n": 1}, "values": {}, "constants": {}, "dtypes": {}})
OLD = pathlib.Path(__file__).parent / "data" / "autotune_v1.fta"


def config(i, **more):
    return canonical({"BLOCK": i, "num_warps": 4, **more})


def measurement(i, time_ns=100.0, outcome="ok", key=KEY):
    median, samples = (time_ns, 1) if outcome == "ok" else (0.0, 0)
    return Measurement(key, config(i), outcome, time_ns, median_ns=median, samples=samples)


def opened(path, identity=None):
    store = Store(str(path), identity or IDENTITY)
    store.refresh()
    return store


def filled(path, count):
    store = opened(path)
    for i in range(count):
        store.add_measurement(measurement(i, 100.0 + i))
    return store


# -- mapping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [
    {"sizes": {}, "values": {}, "constants": {}, "dtypes": {}},
    {"sizes": {"N": -3, "M": 0}, "values": {"eps": 0.5, "name": "a b"},
     "constants": {"MODE": "relu"}, "dtypes": {"x": "torch.float16"}},
    {"sizes": {f"s{i}": i for i in range(11)}, "values": {}, "constants": {}, "dtypes": {}},
    {"sizes": {"huge": 2**60, "n": 5}, "values": {}, "constants": {}, "dtypes": {}}])
def test_a_key_becomes_a_problem_and_back(key):
    variant, sizes = split_key(canonical(key))
    number = variant.number({})
    assert len(sizes) <= 8 and 0 <= number < 2**31
    fields = [number, *sizes, *([0] * (8 - len(sizes)))]
    assert key_of(fields, {variant_note(number): variant.text}) == canonical(key)
    assert key_of(fields, {}) is None


def test_another_variant_with_the_same_number_gets_the_next():
    variant, _ = split_key(KEY)
    number = variant.first_number
    notes = {variant_note(number): "another"}
    assert variant.number(notes) == (number + 1) % 2**31
    assert variant.number({variant_note(number): variant.text}) == number


def test_a_config_becomes_words_and_back():
    configs = [canonical(values) for values in (
        {"BLOCK": 64, "num_warps": 4, "EVEN": True, "scale": 1, "maxnreg": None},
        {"BLOCK": -1, "num_warps": 2**31 - 1, "EVEN": False, "scale": 1.0,
         "pre_hook": "function 0123", "maxnreg": 2**40})]
    parameters = parameters_of(configs)
    assert dict(parameters)["BLOCK"] == [] and dict(parameters)["scale"] == ["1", "1.0"]
    assert not any(" " in label for _, labels in parameters for label in labels)
    for text in configs:
        assert config_of(words_of(text, parameters), parameters) == text
    for other in ({"BLOCK": "64"}, {"BLOCK": 64, "other": 1}, {"BLOCK": 2**31}):
        assert words_of(canonical({**json.loads(configs[0]), **other}), parameters) is None


# -- files ----------------------------------------------------------------------------------------


def test_what_is_kept_is_read_as_it_was(tmp_path):
    path = tmp_path / "deeper" / "store.ftd"
    store = opened(path)
    entries = [Measurement(KEY, config(1), "ok", 123.5, 0.25, "none", "", 1.5, 123.5, 7),
               Measurement(KEY, config(2), "censored", 247.0),
               Measurement(KEY, config(3), "prepare failed", stage="prepare", seconds=0.25,
                           reason="a \"quoted\"\n\u00e4 reason")]
    for entry in entries:
        store.add_measurement(entry)
    store.add_ranking(KEY, [config(5), config(4)])
    for one in (store, opened(path)):
        assert list(one.measurements(KEY).values()) == entries
        assert one.ranks(KEY) == {config(5): 1, config(4): 2} and one.seconds(KEY) == 1.75
        assert one.method(KEY) == "model" and one.best(KEY) == config(1)
        assert [one.is_considered(KEY, config(i)) for i in (1, 3, 4, 6)] == [True] * 3 + [False]


def test_a_file_is_a_data_set_that_describes_itself(tmp_path):
    path = tmp_path / "store.ftd"
    store = Store(str(path), IDENTITY, [config(1)], {"cores": 132.0})
    for n in range(1, 9):
        key = canonical({"sizes": {"n": n, "k": 3}, "values": {}, "constants": {},
                         "dtypes": {"x": "f16"}})
        for i in range(4):
            store.add_measurement(measurement(i, 100.0 * n + i, key=key))
    store.add_ranking(key, [config(9)])
    dataset = foretune.Dataset.open(path)
    variant, _ = split_key(key)
    assert dataset.notes[variant_note(variant.first_number)] == variant.text
    assert json.loads(dataset.notes["identity"]) == IDENTITY
    assert dataset.header["device"] == "d" and dataset.header["problem_type"] == "kernel"
    assert dataset.problems[0] == (f"kernel variant={variant.first_number} size_1=3 size_2=1 "
                                   + " ".join(f"size_{i}=0" for i in range(3, 9)))
    assert dataset.configs[0] == "BLOCK=0 num_warps=4" and len(dataset) == 33
    model = foretune.train(dataset, folds=0, threads=1, trees=10)
    (pick,) = model.predict(dataset.problems[0], top=1)
    assert pick["config"].startswith("BLOCK=")
    for format in ("csv", "json"):
        dataset.save(tmp_path / f"store.{format}")
        again = foretune.Dataset.open(tmp_path / f"store.{format}")
        assert len(again) >= 32
    assert again.notes == dataset.notes


def test_a_store_reads_what_others_append_and_its_own_once(tmp_path):
    path = tmp_path / "store.ftd"
    first, second = opened(path), opened(path)
    for i in range(3):
        first.add_measurement(Measurement(KEY, config(i), "ok", 1.0, seconds=1))
        second.add_measurement(Measurement(KEY, config(10 + i), "ok", 1.0, seconds=1))
        for store in (first, second):
            store.refresh()
            assert len(store) == 2 * (i + 1) and store.seconds(KEY) == 2 * (i + 1)
    assert os.listdir(tmp_path) == ["store.ftd"]


def test_a_time_beats_a_bound_and_a_bound_a_failure(tmp_path):
    path = tmp_path / "store.ftd"
    store = opened(path)
    for entry in (measurement(1, 0, "unsupported"), measurement(1, 50, "censored"),
                  measurement(1, 70), measurement(1, 60, "censored"),
                  measurement(1, 0, "unsupported")):
        store.add_measurement(entry)
    for one in (store, opened(path)):
        assert one.measurements(KEY)[config(1)].time_ns == 70


def test_configs_that_a_file_cannot_express_begin_another(tmp_path):
    path = tmp_path / "store.ftd"
    store, other = opened(path), opened(path)
    texts = [config(1), config(2, EVEN=True), config(3), config(4, EVEN=True), config(5, mode="a")]
    for writer, text in zip((store, other, store, store, other), texts):
        writer.add_measurement(Measurement(KEY, text, "ok", 7.0))
    for one in (store, other, opened(path)):
        one.refresh()
        assert sorted(one.measurements(KEY)) == sorted(texts)
    assert sorted(os.listdir(tmp_path)) == ["store-2.ftd", "store-3.ftd", "store.ftd"]


def test_failures_are_forgotten_in_all_processes(tmp_path):
    path = tmp_path / "store.ftd"
    store, other = filled(path, 2), opened(path)
    store.add_measurement(measurement(7, 0, "unsupported"))
    other.refresh()
    assert len(other) == 3
    store.forget_failures()
    store.add_measurement(measurement(8, 5.0))
    for one in (store, other, opened(path)):
        one.refresh()
        assert sorted(one.measurements(KEY)) == sorted(config(i) for i in (0, 1, 8))


@pytest.mark.parametrize("cut", [1, 2, 40, 100])
def test_a_truncated_tail_loses_its_record_alone(tmp_path, cut):
    path = tmp_path / "store.ftd"
    filled(path, 4)
    size = path.stat().st_size
    filled(path, 0).add_measurement(measurement(4, 104.0))
    os.truncate(path, max(size + 1, path.stat().st_size - cut))
    store = opened(path)
    assert len(store) == 4
    store.add_measurement(measurement(4, 104.0))
    again = opened(path)
    assert again.measurements(KEY) == {config(i): measurement(i, 100.0 + i) for i in range(5)}
    assert len(store) == 5


def test_a_damaged_file_is_put_aside_and_told_once(tmp_path):
    path = tmp_path / "store.ftd"
    filled(path, 5)
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(bytes(content))
    with pytest.warns(RuntimeWarning, match=r"at byte \d+.*the file is now .*damaged"):
        store = opened(path)
    store.add_measurement(measurement(9))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(opened(path).measurements(KEY)) == [config(9)]
    assert (tmp_path / "store.ftd.damaged").read_bytes() == bytes(content)


def test_every_single_flipped_bit_is_survived(tmp_path):
    path = tmp_path / "store.ftd"
    filled(path, 3)
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(bytes(damaged))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = opened(path)
        for config_text, entry in store.measurements(KEY).items():
            assert entry == measurement(int(entry.time_ns) - 100, entry.time_ns)
            assert entry.config == config_text


@pytest.mark.parametrize("size", [0, 1, 10, 12, 22, 60])
def test_a_file_that_was_cut_while_it_was_made_is_made_anew(tmp_path, size):
    path = tmp_path / "store.ftd"
    filled(path, 1)
    os.truncate(path, size)
    store = opened(path)
    store.add_measurement(measurement(7))
    assert list(opened(path).measurements(KEY)) == [config(7)]


def test_other_files_are_left_alone(tmp_path):
    path = tmp_path / "store.ftd"
    for content, sentence in ((b"a diary\n", "is not a foretune data set"),
                              (b"FTDATA\x1a\n\x09\0\0\0x", "version 9 is not known")):
        path.write_bytes(content)
        with pytest.warns(RuntimeWarning, match=sentence):
            store = opened(path)
        store.add_measurement(measurement(1))
        assert path.read_bytes() == content and len(store) == 1
    path.unlink()
    filled(path, 1)
    before = path.read_bytes()
    with pytest.warns(RuntimeWarning, match="another kernel, device"):
        store = opened(path, {**IDENTITY, "device": "other"})
    store.add_measurement(measurement(2))
    assert len(store.measurements(KEY)) == 1 and path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(str(tmp_path / "file" / "store.ftd"), IDENTITY)
    store.refresh()
    with pytest.warns(RuntimeWarning, match="cannot be used: cannot open .*Not a directory"):
        store.add_measurement(measurement(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.add_measurement(measurement(2))
    assert len(store) == 2


def test_a_file_that_was_removed_is_made_anew(tmp_path):
    path = tmp_path / "store.ftd"
    store = filled(path, 2)
    store.refresh()
    path.unlink()
    store.add_measurement(measurement(2, 102.0))
    store.refresh()
    assert len(store) == 3 and list(opened(path).measurements(KEY)) == [config(2)]


# -- old files ------------------------------------------------------------------------------------


def old_key(n):
    return canonical({"sizes": {"n": n, "m": 3}, "values": {"eps": 0.5},
                      "constants": {"MODE": "relu"}, "dtypes": {"x": "torch.float16"}})


@pytest.mark.parametrize("sample", [OLD, OLD.with_name("autotune_v2.ftd")])
def test_a_store_of_an_earlier_version_is_read(tmp_path, sample):
    shutil.copy(sample, tmp_path / f"store{sample.suffix}")
    path = tmp_path / "store.ftd"
    for _ in range(2):
        store = opened(path)
        entries = store.measurements(old_key(1))
        assert [(entry.outcome, entry.time_ns, entry.spread) for entry in entries.values()] == [
            ("ok", 123.5, 0.25), ("censored", 247.0, 0.0), ("prepare failed", 0.0, 0.0)]
        assert entries[config(256, pre_hook="function 0123456789abcdef")].reason == (
            "a \"quoted\"\n\u00e4 reason")
        assert [store.method(old_key(n)) for n in (1, 2, 3)] == ["exhaustive", "model", "prediction"]
        assert store.best(old_key(3)) == config(128) and store.seconds(old_key(1)) == 3.75
        assert store.is_considered(old_key(2), config(128))
    assert len(foretune.Dataset.open(path)) == 7
    store.forget_failures()
    assert len(opened(path)) == 3
    if sample == OLD:
        assert (tmp_path / "store.fta").read_bytes() == OLD.read_bytes()


def test_an_old_file_that_is_not_the_kernels_is_left_alone(tmp_path):
    content = OLD.read_bytes()
    other = {**IDENTITY, "device": "other"}
    for text, identity in ((content, other), (b"#foretune-autotune 2\n" + content[21:], IDENTITY),
                           (content[:50], IDENTITY)):
        (tmp_path / "store.fta").write_bytes(text)
        assert opened(tmp_path / "store.ftd", identity).keys == []
        assert os.listdir(tmp_path) == ["store.fta"]


def test_damage_in_an_old_file_loses_that_record_alone(tmp_path):
    text = bytearray(OLD.read_bytes())
    text[text.index(b"123.5")] ^= 1
    (tmp_path / "store.fta").write_bytes(bytes(text[:-30]))
    store = opened(tmp_path / "store.ftd")
    assert list(store.measurements(old_key(1)))[0] == config(128) and len(store) == 3
    assert store.best(old_key(3)) is None


# -- several processes ----------------------------------------------------------------------------


_WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_autotune_store import *
store = opened(sys.argv[2])
print("writing", flush=True)
for i in range(int(sys.argv[3]), int(sys.argv[4])):
    store.add_measurement(measurement(i, 100.0 + i))
    print(i, flush=True)
"""


def writer(path, first, last):
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, os.path.dirname(__file__), str(path), str(first),
         str(last)], stdout=subprocess.PIPE, text=True)


def test_two_processes_append_at_once(tmp_path):
    path = tmp_path / "store.ftd"
    processes = [writer(path, 0, 400), writer(path, 400, 800)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = opened(path)
    assert store.measurements(KEY) == {config(i): measurement(i, 100.0 + i)
                                       for i in store_order(store)}
    assert len(store) == 800 and os.listdir(tmp_path) == ["store.ftd"]


def store_order(store):
    return [int(entry.time_ns) - 100 for entry in store.measurements(KEY).values()]


def test_killing_a_writer_loses_the_record_being_written_at_most(tmp_path):
    path = tmp_path / "store.ftd"
    first = 0
    for lines in (1, 7, 60, 200):
        process = writer(path, first, 10**9)
        told = []
        while len(told) < lines + 1:
            told.append(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().split()
        process.wait()
        written = [int(word) for word in told if word.isdigit()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = store_order(opened(path))
        assert kept[:len(kept)] == sorted(kept)
        assert set(written) <= set(kept) and len(set(kept) - set(range(first))) <= len(written) + 1
        first = max(kept) + 1
