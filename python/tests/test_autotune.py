"""foretune.autotune without Triton and without a GPU: choosing, keeping, learning, failing."""

import os
import subprocess
import sys
import threading
import types

import foretune
import numpy as np
import pytest
from autotune_kernels import (ROWS_CONFIGS, Clock, CompilationError, Config, Kernel, OutOfResources,
                              Tensor, launch, rows, rows_cost, rows_kernel, tune)
from foretune import _autotune_identity
from foretune._autotune_device import hardware_of
from foretune._autotune_measure import Timing, TritonClock


def fastest(n, configs=ROWS_CONFIGS):
    return min(configs, key=lambda config: rows_cost(n, **config.all_kwargs()))


# -- choosing -------------------------------------------------------------------------------------


def test_the_fastest_config_is_found_once_for_every_key(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    for n in (1000, 100_000, 10_000_000):
        assert launch(tuned, n) is fastest(n)
    assert len(clock.measured) == 3 * len(ROWS_CONFIGS)
    assert launch(tuned, 1000) is fastest(1000)
    assert len(clock.measured) == 3 * len(ROWS_CONFIGS)


def test_data_types_of_tensors_are_part_of_the_key(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    launch(tuned, 1000)
    launch(tuned, 1000, dtype="torch.float32")
    assert len(clock.measured) == 2 * len(ROWS_CONFIGS)


def test_sizes_of_numpy_are_sizes(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    for n, measured in ((np.int64(1000), 8), (np.int64(10_000_000), 16)):
        assert launch(tuned, n) is fastest(n)
        assert len(clock.measured) == measured
    again, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    launch(again, 1000)
    assert clock.measured == [] and again.report().keys[0].key == "n=1000 float16"


def test_a_single_config_is_never_measured(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS[:1], ["n"], tmp_path)
    assert launch(tuned, 1000) is ROWS_CONFIGS[0]
    assert clock.measured == [] and list(tmp_path.iterdir()) == []


def test_arguments_by_name_and_the_grid_reach_the_kernel(tmp_path):
    kernel = rows_kernel()
    tuned, _ = tune(kernel, ROWS_CONFIGS, ["n"], tmp_path)
    assert tuned[(7, 2)](Tensor(), n=5000, y_ptr=Tensor()) == (7, 2)
    assert kernel.launches[-1]["n"] == 5000
    assert kernel.launches[-1]["BLOCK"] == fastest(5000).kwargs["BLOCK"]
    assert tuned.run(Tensor(), Tensor(), 5000, grid=(3,), warmup=False) == (3,)


def test_slow_configs_are_stopped_early_and_kept_as_bounds(tmp_path):
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    launch(tuned, 64)
    (key,) = tuned.store.keys
    entries = tuned.store.measurements(key).values()
    best_ns = min(entry.time_ns for entry in entries if entry.outcome == "ok")
    bounds = [entry.time_ns for entry in entries if entry.outcome == "censored"]
    assert bounds and min(bounds) >= 2 * best_ns
    (report,) = tuned.report().keys
    assert (report.measured, report.censored) == (len(entries) - len(bounds), len(bounds))


def test_pruning_is_the_users(tmp_path):
    seen = {}

    def prune(configs, named, **kwargs):
        seen.update(named, **kwargs)
        return [config for config in configs if config.kwargs["BLOCK"] <= 1024]

    def model(n, BLOCK, num_warps, **_):
        return BLOCK * num_warps

    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path, prune_configs_by={
        "early_config_prune": prune, "perf_model": model, "top_k": 3})
    launch(tuned, 1000)
    assert seen["n"] == 1000 and seen["grid"] == (1,)
    assert {(one["BLOCK"], one["num_warps"]) for one in clock.measured} == {
        (64, 2), (64, 4), (256, 2)}
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path / "b", prune_configs_by={
        "perf_model": model, "top_k": 0.5})
    launch(tuned, 1000)
    assert len(clock.measured) == 4
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path / "c", prune_configs_by={
        "early_config_prune": lambda configs, named, **kwargs: []})
    with pytest.raises(foretune.InvalidArgumentError, match="leave one config"):
        launch(tuned, 1000)


def test_warming_up_compiles_every_config_and_runs_none(tmp_path):
    kernel = rows_kernel()
    tuned, clock = tune(kernel, ROWS_CONFIGS, ["n"], tmp_path)
    assert tuned.warmup(Tensor(), Tensor(), 1000, grid=(1,)) == list(range(1, 9))
    assert [one["BLOCK"] for one in kernel.warmed_up[:3]] == [64, 64, 256]
    assert clock.measured == [] and kernel.launches == []


# -- hooks ----------------------------------------------------------------------------------------


def adding(x_ptr, y_ptr, n, BLOCK):
    """A kernel that changes its arguments."""
    x_ptr.value += 1
    y_ptr.value += 1


def test_tensors_are_reset_and_restored_around_every_measurement(tmp_path):
    x, y = Tensor(value=5), Tensor(value=7)
    tuned, clock = tune(Kernel(adding, rows_cost), ROWS_CONFIGS, ["n"], tmp_path,
                        reset_to_zero=["x_ptr"], restore_value=["y_ptr"])
    tuned[(1,)](x, y, 1000)
    assert len(clock.measured) == len(ROWS_CONFIGS)
    assert (x.value, y.value) == (1, 8)
    tuned[(1,)](x, y, 1000)
    assert (x.value, y.value) == (2, 9)


def test_hooks_of_the_user_replace_those(tmp_path):
    told = []
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path, reset_to_zero=["x_ptr"],
                    pre_hook=lambda arguments, reset_only=False: told.append(reset_only),
                    post_hook=lambda arguments, exception: told.append(exception))
    x = Tensor(value=5)
    tuned[(1,)](x, Tensor(), 1000)
    assert told == [False, None] * len(ROWS_CONFIGS) + [True]
    assert x.value == 5


def test_a_failing_launch_is_told_to_the_hook_behind_it(tmp_path):
    told = []

    def cost(n, BLOCK, **_):
        if BLOCK == 64:
            raise OutOfResources("shared memory")
        return rows_cost(n, BLOCK)

    tuned, _ = tune(rows_kernel(cost), ROWS_CONFIGS, ["n"], tmp_path,
                    post_hook=lambda arguments, exception: told.append(type(exception)))
    launch(tuned, 1000)
    assert told.count(OutOfResources) == 2 and told.count(type(None)) == 6


def test_hooks_of_configs_run_before_every_launch(tmp_path):
    seen = []
    configs = [Config({"BLOCK": block}, pre_hook=lambda arguments: seen.append(arguments["BLOCK"]))
               for block in (64, 256)]
    tuned, _ = tune(rows_kernel(), configs, ["n"], tmp_path)
    launch(tuned, 1000)
    assert seen == [64, 256, tuned.best_config.kwargs["BLOCK"]]
    launch(tuned, 1000)
    assert len(seen) == 4


# -- keeping --------------------------------------------------------------------------------------


def in_another_process(script, folder, before=""):
    """Runs a script that sees the names of this file and has the folder in sys.argv[2]."""
    script = (f"import sys\n{before}sys.path.insert(0, sys.argv[1])\n"
              f"from test_autotune import *\n{script}")
    return subprocess.run([sys.executable, "-c", script, os.path.dirname(__file__), str(folder)],
                          text=True, capture_output=True, check=False)


def test_another_process_measures_nothing_again(tmp_path):
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    launch(tuned, 1000)
    done = in_another_process(
        "tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ['n'], sys.argv[2])\n"
        "config = launch(tuned, 1000)\n"
        "print(len(clock.measured), config.kwargs['BLOCK'], config.num_warps)\n", tmp_path)
    config = fastest(1000)
    assert done.stdout == f"0 {config.kwargs['BLOCK']} {config.num_warps}\n", done.stderr


def test_after_a_sudden_death_only_the_rest_is_measured(tmp_path):
    script = ("import sys, time\n"
              "sys.path.insert(0, sys.argv[1])\n"
              "from test_autotune import *\n"
              "kernel = rows_kernel()\n"
              "def measure(launch, limit_ns):\n"
              "    launch()\n"
              "    print(len(kernel.launches), flush=True)\n"
              "    time.sleep(60 if len(kernel.launches) == 4 else 0)\n"
              "    return kernel.last_ns\n"
              "tuned, _ = tune(kernel, ROWS_CONFIGS, ['n'], sys.argv[2], measure=measure)\n"
              "launch(tuned, 1000)\n")
    process = subprocess.Popen([sys.executable, "-c", script, os.path.dirname(__file__),
                                str(tmp_path)], text=True, stdout=subprocess.PIPE)
    while process.stdout.readline() not in ("4\n", ""):
        pass
    process.kill()
    process.wait()
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    assert launch(tuned, 1000) is fastest(1000)
    assert len(clock.measured) == len(ROWS_CONFIGS) - 3


def test_one_more_config_is_one_more_measurement(tmp_path):
    launch(tune(rows_kernel(), ROWS_CONFIGS[:5], ["n"], tmp_path)[0], 1000)
    for count, measured in ((6, 1), (6, 0), (4, 0), (8, 2)):
        tuned, clock = tune(rows_kernel(), ROWS_CONFIGS[:count], ["n"], tmp_path)
        assert launch(tuned, 1000) is fastest(1000, ROWS_CONFIGS[:count])
        assert len(clock.measured) == measured
    assert len(list((tmp_path / "autotune").iterdir())) == 1


def test_what_was_slow_beside_a_config_that_is_gone_is_measured_when_nothing_else_is_left(tmp_path):
    configs = [Config({"BLOCK": 64}), Config({"BLOCK": 4096})]
    launch(tune(rows_kernel(), configs, ["n"], tmp_path)[0], 64)
    tuned, clock = tune(rows_kernel(), configs[1:] * 2, ["n"], tmp_path)
    assert launch(tuned, 64).kwargs["BLOCK"] == 4096
    assert len(clock.measured) == 1


def test_other_devices_and_other_sources_have_other_stores(tmp_path):
    def other(x_ptr, y_ptr, n, BLOCK):
        """Another source."""

    for fn, device in ((rows, "a"), (rows, "b"), (other, "b")):
        tuned, clock = tune(Kernel(fn, rows_cost), ROWS_CONFIGS, ["n"], tmp_path, device=device)
        launch(tuned, 1000)
        assert len(clock.measured) == len(ROWS_CONFIGS)
        assert tuned.store.identity["device"] == device
    assert len(list((tmp_path / "autotune").iterdir())) == 3


def test_the_store_is_in_the_cache_folder_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], None)
    launch(tuned, 1000)
    assert tuned.store.path.startswith(str(tmp_path / "cache" / "foretune" / "autotune" / "rows-"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], None)
    launch(tuned, 1000)
    assert tuned.store.path.startswith(str(tmp_path / "home" / ".cache" / "foretune"))


def test_constants_of_the_caller_separate_what_is_kept(tmp_path):
    def scaled(x_ptr, y_ptr, n, MODE, BLOCK):
        """A kernel with a constant."""

    for mode, measured in (("relu", 8), ("gelu", 8), ("relu", 0)):
        tuned, clock = tune(Kernel(scaled, rows_cost, constants=["MODE", "BLOCK"]), ROWS_CONFIGS,
                            ["n"], tmp_path)
        tuned[(1,)](Tensor(), Tensor(), 1000, MODE=mode)
        assert len(clock.measured) == measured
        # Within a process only `key` decides, as in Triton.
        tuned[(1,)](Tensor(), Tensor(), 1000, MODE="silu")
        assert len(clock.measured) == measured


def test_a_key_without_a_text_is_kept_in_memory(tmp_path):
    for _ in range(2):
        tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n", "y_ptr"], tmp_path)
        unknown = object()
        for _ in range(2):
            tuned[(1,)](Tensor(), unknown, 1000)
        assert len(clock.measured) == len(ROWS_CONFIGS)
    assert list(tmp_path.iterdir()) == []


# -- failing --------------------------------------------------------------------------------------


def failing(n, BLOCK, **arguments):
    if BLOCK > 256:
        raise OutOfResources("out of resource: shared memory, Required: 300000")
    if BLOCK > 64:
        raise CompilationError("at 3:4:\n  tl.dot(a, b)\nexpected 16")
    return rows_cost(n, BLOCK, **arguments)


def test_configs_that_do_not_work_are_outcomes_and_not_tried_again(tmp_path):
    tuned, clock = tune(rows_kernel(failing), ROWS_CONFIGS, ["n"], tmp_path)
    assert launch(tuned, 1000).kwargs["BLOCK"] == 64
    (key,) = tuned.store.keys
    entries = {entry.config: entry for entry in tuned.store.measurements(key).values()}
    outcomes = [(entry.outcome, entry.stage, entry.reason) for entry in entries.values()]
    assert outcomes[2:4] == [("prepare failed", "prepare",
                              "at 3:4: tl.dot(a, b) expected 16")] * 2
    assert outcomes[4] == ("unsupported", "prepare",
                           "out of resource: shared memory, Required: 300000")
    assert tuned.report().keys[0].failed == 6
    tuned, clock = tune(rows_kernel(failing), ROWS_CONFIGS, ["n"], tmp_path)
    launch(tuned, 1000)
    assert clock.measured == []


def test_when_no_config_works_one_sentence_says_why(tmp_path):
    def cost(**_):
        calls.append(1)
        return failing(n=1, BLOCK=1024 if len(calls) % 4 else 128)

    calls = []
    for _ in range(2):
        tuned, clock = tune(rows_kernel(cost), ROWS_CONFIGS, ["n"], tmp_path)
        for _ in range(2):
            with pytest.raises(foretune.UnsupportedError) as caught:
                launch(tuned, 1000)
        assert str(caught.value).startswith(
            "none of the 8 configs of rows works here: 6 x unsupported: out of resource")
        assert "2 x prepare failed: at 3:4" in str(caught.value)
        assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)
    assert len(calls) == 8
    tuned.store.forget_failures()
    calls.append(1)
    with pytest.raises(foretune.UnsupportedError) as caught:
        launch(tuned, 1000)
    assert isinstance(caught.value.__cause__, (OutOfResources, CompilationError))
    assert len(calls) == 17


def test_failures_that_are_forgotten_are_tried_again(tmp_path):
    launch(tune(rows_kernel(failing), ROWS_CONFIGS, ["n"], tmp_path)[0], 1000)
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    tuned.store.forget_failures()
    launch(tuned, 1000)
    assert len(clock.measured) == 6
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    launch(tuned, 1000)
    assert clock.measured == []


def test_errors_that_are_not_the_configs_are_the_callers(tmp_path):
    def cost(n, BLOCK, **_):
        if BLOCK == 1024 and broken:
            raise TypeError("a mistake of the caller")
        return rows_cost(n, BLOCK)

    broken = True
    tuned, clock = tune(rows_kernel(cost), ROWS_CONFIGS, ["n"], tmp_path)
    with pytest.raises(TypeError, match="mistake"):
        launch(tuned, 1000)
    assert len(clock.measured) == 4  # and kept
    broken = False
    launch(tuned, 1000)
    assert len(clock.measured) == 8
    with pytest.raises(foretune.InvalidArgumentError, match="BLOCK given by the caller"):
        launch(tuned, 2000, BLOCK=64)


def test_a_time_that_is_none_is_refused(tmp_path):
    for answer, sentence in ((0.0, "positive"), (float("nan"), "positive"), (-1, "positive")):
        tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path,
                        measure=lambda launch, limit_ns, answer=answer: answer)
        with pytest.raises(foretune.InvalidArgumentError, match=sentence):
            launch(tuned, 1000)
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path,
                    measure=lambda launch, limit_ns: float("inf"))
    with pytest.raises(foretune.UnsupportedError, match="returned infinity"):
        launch(tuned, 1000)


# -- what there is to see -------------------------------------------------------------------------


def test_the_report_says_what_was_decided_and_how(tmp_path):
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    assert tuned.best_config is None
    config = launch(tuned, 1000)
    report = tuned.report()
    assert report.kernel == "rows" and report.device == "Simulated 132"
    (entry,) = report.keys
    assert entry.key == "n=1000 float16" and entry.method == "exhaustive"
    assert entry.config == (f"BLOCK={config.kwargs['BLOCK']} num_stages=3 "
                            f"num_warps={config.num_warps}")
    assert entry.time_ns == pytest.approx(rows_cost(1000, **config.all_kwargs()), rel=1e-6)
    assert entry.seconds > 0
    table = str(report).splitlines()
    assert table[0].startswith("rows on Simulated 132: 1 keys")
    assert table[-1].split()[:2] == ["n=1000", "float16"] and "us" in table[-1]
    assert "8 configs" in repr(tuned) and "8 measurements of 1 keys" in repr(tuned.store)


def test_threads_with_the_same_new_key_measure_it_once(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path)
    threads = [threading.Thread(target=launch, args=(tuned, 1000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clock.measured) == len(ROWS_CONFIGS)


@pytest.mark.parametrize("options, sentence", [
    ({"prune_config_by": {}}, "did you mean 'prune_configs_by'"),
    ({"nonsense": 1}, "no option 'nonsense'"),
    ({"top_k": 0}, "top_k is a whole number of at least 1, not 0"),
    ({"min_keys": 2.5}, "min_keys is a whole number"),
    ({"prune_configs_by": {"early_prune": None}}, "did you mean 'early_config_prune'"),
    ({"prune_configs_by": {"top_k": 1.5}}, "a share of at most 1.0"),
    ({"measure": Clock(None), "rep": 10}, "measure replaces"),
    ({"key": "n"}, r"did you mean \['n'\]"),
])
def test_senseless_options_are_refused_at_once(options, sentence):
    with pytest.raises(foretune.InvalidArgumentError, match=sentence):
        foretune.autotune(**{"configs": ROWS_CONFIGS, "key": ["n"], **options})


def test_what_is_no_kernel_is_refused_and_a_key_without_an_argument_is_told():
    with pytest.raises(foretune.InvalidArgumentError, match="above @triton.jit"):
        foretune.autotune(ROWS_CONFIGS, ["n"])(rows)
    with pytest.warns(RuntimeWarning, match="no argument 'N' to be a key; did you mean 'n'"):
        foretune.autotune(ROWS_CONFIGS, ["N", "x_ptr"])(rows_kernel())


def test_neither_importing_nor_tuning_needs_triton(tmp_path):
    done = in_another_process(
        "tuned, _ = tune(rows_kernel(), ROWS_CONFIGS, ['n'], sys.argv[2], device=None)\n"
        "launch(tuned, 1000)\n"
        "print(tuned.report().device)\n", tmp_path,
        before="sys.modules['triton'] = sys.modules['torch'] = None\n")
    assert done.stdout == "unknown\n", done.stderr


# -- parts ----------------------------------------------------------------------------------------


def test_the_digest_of_a_source_covers_what_it_calls_and_reads():
    def module(text):
        found = types.ModuleType("kernels")
        exec(compile(text, "kernels.py", "exec"), found.__dict__)  # noqa: S102
        found.kernel.src = text[text.rindex("def kernel"):]
        found.helper.src = text[text.index("def helper"):text.index("SCALE")]
        return types.SimpleNamespace(fn=found.kernel, src=found.kernel.src)

    def digest(text):
        return _autotune_identity.source_digest(module(text))

    source = ("UNUSED = 1\n"
              "def helper(x):\n    return x\n"
              "SCALE = 2\n"
              "def kernel(x, BLOCK):\n    return helper(x) * SCALE\n")
    first = digest(source)
    assert digest("# A remark further up.\n" + source) == first
    assert digest(source.replace("UNUSED = 1", "UNUSED = 2")) == first
    assert digest(source.replace("SCALE = 2", "SCALE = 3")) != first
    assert digest(source.replace("helper(x) * SCALE", "helper(x) + SCALE")) != first
    for layer in ({"do_not_specialize": ["x"]}, {"noinline": True}):
        kernel = module(source)
        kernel.__dict__.update(layer)
        assert _autotune_identity.source_digest(kernel) != first


def test_hardware_facts_come_from_what_the_driver_says():
    facts = hardware_of("cuda", "90", {"multiprocessor_count": 132, "sm_clock_rate": 1980000,
                                       "mem_clock_rate": 3201000, "mem_bus_width": 6144,
                                       "max_shared_mem": 232448, "max_num_regs": 65536},
                        types.SimpleNamespace(L2_cache_size=62914560))
    assert facts["cores"] == 132 and facts["register_file_bytes"] == 262144
    assert 4.8e3 < facts["bandwidth_gbs"] < 5e3 and 0.9e6 < facts["tensor_peak_gflops"] < 1.2e6
    assert "memory_bytes" not in facts
    assert hardware_of("hip", "gfx942", {}, None) == {}


def test_the_users_own_benchmark_function_is_asked_as_triton_asks_it():
    asked = []

    def do_bench(call, quantiles):
        asked.append(quantiles)
        call()
        return [2.0, 1.9, 2.1]

    launched = []
    timing = TritonClock(do_bench=do_bench)(lambda: launched.append(1), 1.0)
    assert timing.time_ns == 2e6 and timing.spread == pytest.approx(0.1) and not timing.censored
    assert asked == [(0.5, 0.25, 0.75)] and launched == [1]
    assert TritonClock(do_bench=lambda call, quantiles: 3.0)(lambda: None, None) == Timing(3e6, 0)


@pytest.fixture
def bench(monkeypatch):
    """Replaces Triton's benchmark function; its calls, and the milliseconds that it returns."""
    fake = types.SimpleNamespace(calls=[], times=iter([]))

    def do_bench(call, warmup=25, rep=100, quantiles=None):
        fake.calls.append((warmup, rep))
        time = next(fake.times, 1.0)
        if isinstance(time, Exception):
            raise time
        return [time] * len(quantiles)

    testing = types.SimpleNamespace(do_bench=do_bench)
    monkeypatch.setitem(sys.modules, "triton", types.SimpleNamespace(testing=testing))
    monkeypatch.setitem(sys.modules, "triton.testing", testing)
    return fake


def test_the_clock_measures_roughly_first_and_stops_what_is_slow(bench):
    clock = TritonClock(warmup_ms=10, repetition_ms=150)
    assert clock(lambda: None, None) == Timing(1e6, 0, False, 1e6, 5)
    assert bench.calls == [(10, 7.5)] + [(1.0, 10.0)] * 5
    assert clock(lambda: None, 2e6).samples == 5
    bench.calls.clear()
    assert clock(lambda: None, 0.5e6) == Timing(0.75e6, censored=True)
    assert bench.calls == [(10, 7.5)]


def test_windows_that_scatter_are_repeated_only_for_those_that_may_win(bench):
    clock = TritonClock(warmup_ms=10, repetition_ms=150)
    noisy = [1.0, *(1.0, 1.2, 1.4) * 5]
    bench.times = iter(noisy)
    timing = clock(lambda: None, None)
    assert timing.samples == 15 and timing.time_ns == 1e6 and timing.median_ns == 1.2e6
    assert timing.spread > 0.1
    bench.times = iter(noisy)
    assert clock(lambda: None, 1.5e6).samples == 5  # 1.33 times the fastest so far


def test_an_exception_of_a_launch_leaves_the_clock(bench):
    clock = TritonClock(warmup_ms=10)
    for before in (0, 1, 3):
        bench.times = iter([1.0] * before + [OutOfResources("shared memory")])
        with pytest.raises(OutOfResources):
            clock(lambda: None, None)
