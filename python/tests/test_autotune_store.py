"""The store of foretune.autotune: damaged files, killed processes, several writers."""

import os
import signal
import subprocess
import sys
import warnings

import foretune  # noqa: F401
import pytest
from foretune._autotune_store import Choice, Measurement, Store, canonical, config_id, decode

IDENTITY = {"kernel": "k", "source": "s", "device": "d", "arch": "a", "triton": "t"}
KEY = canonical({"sizes": {"n": 1}, "values": {}, "constants": {}, "dtypes": {}})


def config(i):
    return canonical({"BLOCK": i, "num_warps": 4})


def measurement(i, time_ns=100.0, outcome="ok", key=KEY):
    return Measurement(key, config(i), outcome, time_ns)


def opened(path, identity=None):
    store = Store(str(path), identity or IDENTITY)
    store.refresh()
    return store


def filled(path, count):
    store = opened(path)
    for i in range(count):
        store.add_measurement(measurement(i, 100.0 + i))
    return store


def test_what_is_kept_is_read_as_it_was(tmp_path):
    path = tmp_path / "deeper" / "store.fta"
    store = opened(path)
    entries = [Measurement(KEY, config(1), "ok", 123.5, 0.25, "none", "", 1.5),
               Measurement(KEY, config(2), "censored", 247.0),
               Measurement(KEY, config(3), "prepare failed", stage="prepare",
                           reason="a \"quoted\"\n\u00e4 reason")]
    for entry in entries:
        store.add_measurement(entry)
    choice = Choice(KEY, config(1), "exhaustive", frozenset({config_id(config(1))}))
    store.add_choice(choice)
    again = opened(path)
    assert list(again.measurements(KEY).values()) == entries
    assert again.choice(KEY) == choice and again.seconds(KEY) == 1.5
    assert path.read_bytes().startswith(b"#foretune-autotune 1\n")
    assert all(decode(line) for line in path.read_bytes().splitlines()[1:])


def test_a_store_reads_what_others_append_and_its_own_once(tmp_path):
    path = tmp_path / "store.fta"
    first, second = opened(path), opened(path)
    for i in range(3):
        first.add_measurement(Measurement(KEY, config(i), "ok", 1.0, seconds=1))
        second.add_measurement(Measurement(KEY, config(10 + i), "ok", 1.0, seconds=1))
        for store in (first, second):
            store.refresh()
            assert len(store) == 2 * (i + 1) and store.seconds(KEY) == 2 * (i + 1)
    assert path.read_bytes().count(b"header") == 1


def test_a_time_beats_a_bound_and_a_bound_a_failure(tmp_path):
    path = tmp_path / "store.fta"
    store = opened(path)
    for entry in (measurement(1, 0, "unsupported"), measurement(1, 50, "censored"),
                  measurement(1, 70), measurement(1, 60, "censored"),
                  measurement(1, 0, "unsupported")):
        store.add_measurement(entry)
    for one in (store, opened(path)):
        assert one.measurements(KEY)[config(1)].time_ns == 70


@pytest.mark.parametrize("cut", [1, 2, 40, 130])
def test_a_truncated_tail_loses_its_record_alone_and_is_told_once(tmp_path, cut):
    path = tmp_path / "store.fta"
    filled(path, 5)
    os.truncate(path, path.stat().st_size - cut)
    with pytest.warns(RuntimeWarning, match="1 record was damaged"):
        store = opened(path)
    assert len(store) == 4
    store.add_measurement(measurement(4, 104.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.refresh()
        again = opened(path)
    assert again.measurements(KEY) == {config(i): measurement(i, 100.0 + i) for i in range(5)}
    assert len(store) == 5


def test_damage_in_the_middle_loses_that_record_alone(tmp_path):
    path = tmp_path / "store.fta"
    filled(path, 5)
    text = bytearray(path.read_bytes())
    lines = bytes(text).split(b"\n")
    second = len(b"\n".join(lines[:3])) + 1
    text[second + 60] ^= 1
    third = len(b"\n".join(lines[:4])) + 1
    text[third:third + 20] = bytes(20)
    path.write_bytes(bytes(text))
    with pytest.warns(RuntimeWarning, match="2 records were damaged"):
        store = opened(path)
    assert sorted(store.measurements(KEY)) == [config(i) for i in (0, 3, 4)]


@pytest.mark.parametrize("size", [0, 1, 10, 20, 21, 22, 60])
def test_a_file_that_was_cut_while_it_was_made_is_made_anew(tmp_path, size):
    path = tmp_path / "store.fta"
    filled(path, 1)
    os.truncate(path, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = opened(path)
        store.add_measurement(measurement(7))
        again = opened(path)
    assert list(again.measurements(KEY)) == [config(7)]
    assert path.read_bytes().count(b'"header"') >= 1


def test_every_single_flipped_bit_is_survived(tmp_path):
    path = tmp_path / "store.fta"
    filled(path, 3)
    whole = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for position in range(0, len(whole), 7):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << (position % 8)
            path.write_bytes(bytes(damaged))
            for config_text, entry in opened(path).measurements(KEY).items():
                assert entry == measurement(int(entry.time_ns) - 100, entry.time_ns)
                assert entry.config == config_text


def test_other_files_are_left_alone(tmp_path):
    path = tmp_path / "store.fta"
    for content, sentence in ((b"a diary\n", "is no store"),
                              (b"#foretune-autotune 2\nx\n", "another version")):
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
    with pytest.warns(RuntimeWarning, match="cannot be read: Not a directory"):
        store = opened(tmp_path / "file" / "store.fta")
    store.add_measurement(measurement(1))
    unread = Store(str(tmp_path / "file" / "store.fta"), IDENTITY)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        unread.add_measurement(measurement(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.add_measurement(measurement(2))
    assert len(store) == 2


def test_records_of_later_versions_are_passed_over(tmp_path):
    from foretune._autotune_store import encode

    path = tmp_path / "store.fta"
    filled(path, 1)
    with open(path, "ab") as file:
        file.write(encode({"record": "dream", "of": 1}))
        file.write(encode({"record": "measurement", "key": {}, "config": {}, "outcome": "sleeping",
                           "stage": "none", "reason": "", "time_ns": 1, "spread": 0,
                           "seconds": 0}))
        file.write(encode({"record": "choice", "key": 1}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(opened(path)) == 1


def test_a_file_that_was_removed_is_made_anew(tmp_path):
    path = tmp_path / "store.fta"
    store = filled(path, 2)
    store.refresh()
    path.unlink()
    store.add_measurement(measurement(2, 102.0))
    store.refresh()
    assert len(store) == 3 and list(opened(path).measurements(KEY)) == [config(2)]


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
    path = tmp_path / "store.fta"
    processes = [writer(path, 0, 400), writer(path, 400, 800)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = opened(path)
    assert store.measurements(KEY) == {config(i): measurement(i, 100.0 + i)
                                       for i in store_order(store)}
    assert len(store) == 800 and path.read_bytes().count(b'"header"') == 1


def store_order(store):
    return [int(entry.time_ns) - 100 for entry in store.measurements(KEY).values()]


def test_killing_a_writer_loses_the_record_being_written_at_most(tmp_path):
    path = tmp_path / "store.fta"
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
