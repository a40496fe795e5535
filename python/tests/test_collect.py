"""Collecting: options, resuming, interrupting, faults, threads."""

import os
import signal
import subprocess
import sys
import threading
import time

import foretune
import pytest
from conftest import NULL, collect


def test_problems_follow_the_mode_and_repeat_with_the_seed():
    small = foretune.MatmulDatasetCollector(
        **NULL, num_shapes=20, seed=7, log_normal_m_mean=3.0, log_normal_m_std=0.1)
    problems = small.problems()
    assert problems == small.problems()
    assert len(set(problems)) == 20
    sizes = [int(text.split(" m=")[1].split()[0]) for text in problems]
    assert all(8 <= size <= 40 for size in sizes)
    assert small.problems() != foretune.MatmulDatasetCollector(
        **NULL, num_shapes=20, seed=8, log_normal_m_mean=3.0, log_normal_m_std=0.1).problems()


def test_random_sizes_keep_their_bounds():
    problems = foretune.MatmulDatasetCollector(
        family="null", mode=foretune.CollectionMode.RANDOM, num_shapes=10, min_size=64,
        max_size=256, power_of_two=True, operations=["bmm"], dtypes=["f32"],
        layouts=["rrr"]).problems()
    for text in problems:
        assert " op=bmm " in text and " layout=rrr" in text
        assert int(text.split(" k=")[1].split()[0]) in (64, 128, 256)


def test_shape_sets_come_from_a_file(tmp_path):
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("m,n,k\n16,32,64\n24,24,24\n")
    collector = foretune.MatmulDatasetCollector(
        family="null", mode=foretune.CollectionMode.OPERATION_SHAPE_SET, shapeset=shapes,
        num_shapes=0)
    assert [text.split(" batch")[0] for text in collector.problems()] == [
        "gemm op=mm m=16 n=32 k=64", "gemm op=mm m=24 n=24 k=24"]
    with pytest.raises(foretune.InvalidArgumentError, match="that mode needs one"):
        foretune.MatmulDatasetCollector(mode=foretune.CollectionMode.OPERATION_SHAPE_SET)


@pytest.mark.parametrize("options, sentence", [
    ({"num_shape": 3}, "did you mean 'num-shapes'"),
    ({"num_shapes": -1}, "at least 0"),
    ({"repeat": "often"}, "not a whole number"),
    ({"search_mode": "slow"}, "not one of"),
    ({"role": "test"}, "training or validation"),
    ({"output": "x.ftd"}, "not an option of the collector"),
])
def test_senseless_options_are_refused_at_once(options, sentence):
    with pytest.raises(foretune.InvalidArgumentError, match=sentence) as caught:
        foretune.MatmulDatasetCollector(**{**NULL, **options})
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_unknown_operations_and_families_are_refused_when_used(tmp_path):
    with pytest.raises(foretune.InvalidArgumentError):
        collect(tmp_path / "a.ftd", operations=["mmm"])
    with pytest.raises(foretune.InvalidArgumentError, match="builds nothing"):
        collect(tmp_path / "a.ftd", build_jobs=2)
    assert not (tmp_path / "a.ftd").exists()


def test_the_hardware_is_what_it_is(tmp_path):
    collect(tmp_path / "a.ftd", hardware_name="NULL", num_shapes=1, search_space="SAMPLE:2")
    with pytest.raises(foretune.MismatchError, match="not on 'h100'"):
        collect(tmp_path / "b.ftd", hardware_name="h100")
    assert not (tmp_path / "b.ftd").exists()


def test_families_are_listed():
    assert {"cpu-gemm", "null", "recorded"} <= set(foretune.families())


def test_the_same_call_continues_and_a_budget_stops(tmp_path):
    path = tmp_path / "deeper" / "data.ftd"
    options = {"num_shapes": 4, "search_space": "SAMPLE:8"}
    collector = foretune.MatmulDatasetCollector(**NULL, **options)
    first = collector.collect(path, budget="10")
    assert first.stopped_by_budget and first.measured == 10
    second = collector.collect(path)
    assert not second.stopped_by_budget
    assert second.resumed == 10
    assert len(second.dataset()) == 10 + second.measured
    assert collector.collect(path).measured == 0


def test_a_model_chooses_in_rounds_and_the_same_call_continues(tmp_path):
    rounds = []
    options = {"num_shapes": 4, "active": True, "configs_per_problem": 12, "rounds": 3}
    collector = foretune.MatmulDatasetCollector(**NULL, **options)
    first = collector.collect(tmp_path / "a.ftd", budget="20",
                              progress=lambda told: rounds.append((told["round"], told["rounds"])))
    assert first.stopped_by_budget and first.measured == 20
    assert rounds[0] == (1, 3) and rounds[-1] == (2, 3)
    second = collector.collect(tmp_path / "a.ftd")
    assert second.resumed == 20 and second.measured == 4 * 12 - 20
    with pytest.raises(foretune.InvalidArgumentError, match="only with --active"):
        collect(tmp_path / "b.ftd", rounds=3)
    assert not (tmp_path / "b.ftd").exists()


def test_progress_is_told_and_its_exception_ends_the_collection(tmp_path):
    seen = []

    def watch(progress):
        seen.append(progress["measured"])
        if len(seen) == 5:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        foretune.MatmulDatasetCollector(**NULL, num_shapes=3).collect(tmp_path / "a.ftd",
                                                                       progress=watch)
    assert seen == [1, 2, 3, 4, 5]
    assert len(foretune.Dataset.open(tmp_path / "a.ftd")) == 5


def test_faulty_kernels_are_outcomes(tmp_path):
    summary = collect(tmp_path / "a.ftd", num_shapes=2, search_space="SAMPLE:12",
                      family_options={"crash": 0.1, "prepare_fail": 0.3}, time_limit=2)
    assert summary.outcomes["prepare failed"] > 0
    assert summary.measured == sum(summary.outcomes.values())
    dataset = summary.dataset()
    failed = [foretune.OUTCOMES[code] for code in dataset.outcomes if code > 1]
    assert len(failed) == sum(count for name, count in summary.outcomes.items()
                              if name not in ("ok", "censored"))


def test_this_cpu_is_measured_in_a_worker(tmp_path):
    summary = foretune.MatmulDatasetCollector(
        mode=foretune.CollectionMode.RANDOM, num_shapes=1, min_size=16, max_size=32,
        search_space="SAMPLE:3", search_mode="fast").collect(tmp_path / "cpu.ftd")
    assert summary.outcomes.get("ok", 0) >= 1
    dataset = summary.dataset()
    assert dataset.header["family"] == "cpu-gemm"
    assert (dataset.time_ns[dataset.outcomes == 0] > 0).all()


def test_threads_limit_what_kernels_use(tmp_path):
    options = {"mode": foretune.CollectionMode.RANDOM, "num_shapes": 1, "min_size": 96,
               "max_size": 128, "search_space": "SAMPLE:24", "search_mode": "fast"}
    dataset = foretune.MatmulDatasetCollector(**options, threads=1).collect(
        tmp_path / "one.ftd").dataset()
    assert [context["context_threads"] for context in dataset.contexts] == [1]
    assert all(" threads=1 " in config for config in dataset.configs)
    for options["threads"] in (100_000, "two"):
        with pytest.raises(foretune.InvalidArgumentError, match="threads"):
            foretune.MatmulDatasetCollector(**options).problems()


def test_the_worker_starts_wherever_the_package_was_found(tmp_path):
    folder = os.path.dirname(os.path.dirname(foretune.__file__))
    code = ("import sys\n"
            "sys.path.insert(0, sys.argv[1])\n"
            "import foretune\n"
            "print(foretune.MatmulDatasetCollector(family='null', num_shapes=1, min_size=8,\n"
            "    max_size=16, search_space='SAMPLE:2',\n"
            "    family_options={'crash': '0.000000001'}).collect(sys.argv[2]).measured)\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code, folder, str(tmp_path / "a.ftd")], text=True,
                          capture_output=True, check=False, env=environment)
    assert done.stdout.strip() == "2", done.stderr


def test_other_threads_run_meanwhile(tmp_path):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    collect(tmp_path / "a.ftd", num_shapes=2, search_space="SAMPLE:16",
            family_options={"real_time": 1}, max_flops=1e8, search_mode="fast")
    seconds = time.monotonic() - begin
    done.set()
    thread.join()
    assert len([when for when in ticks if when > begin]) > seconds / 0.05


def test_control_c_ends_between_two_measurements_and_keeps_the_file(tmp_path):
    path = tmp_path / "a.ftd"
    script = (
        "import foretune, sys\n"
        "def told(progress):\n"
        "    if progress['measured'] == 1: print('measuring', flush=True)\n"
        "try:\n"
        "    foretune.MatmulDatasetCollector(family='null', num_shapes=500, max_size=300,\n"
        "        family_options={'real_time': 1}).collect(sys.argv[1], progress=told)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', len(foretune.Dataset.open(sys.argv[1])) > 0)\n")
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], text=True,
                               stdout=subprocess.PIPE, env=os.environ)
    try:
        assert process.stdout.readline() == "measuring\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "stopped True\n"
        assert process.returncode == 0
    finally:
        process.kill()
