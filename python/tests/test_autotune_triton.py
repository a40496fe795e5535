"""foretune.autotune on real Triton kernels, as far as possible without a GPU."""

import importlib.util
import sys
import types

import foretune
import pytest
from autotune_kernels import Tensor
from foretune._autotune_device import current_device
from foretune._autotune_identity import config_text, constant_names, source_digest
from foretune._autotune_measure import TritonClock, failure_of, reason_of

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps)
           for block in (64, 256) for warps in (2, 4)]

SOURCE = """
import triton
import triton.language as tl

SCALE = tl.constexpr(2)

@triton.jit
def helper(x):
    return x * SCALE

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, helper(x) + triton.cdiv(n, 2), mask=at < n)
"""


@pytest.fixture
def load(tmp_path):
    """Makes modules from sources, because Triton reads the files of its kernels."""
    count = iter(range(100))

    def load(source):
        path = tmp_path / f"kernels_{next(count)}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def simulated(kernel):
    """Makes a kernel launchable without a device."""
    launches = []

    def run(*args, grid, warmup, **kwargs):
        launches.append(kwargs)

    kernel.run = run
    return launches


def by_block(launches):
    def measure(launch, limit_ns):
        launch()
        return 1000.0 / launches[-1]["BLOCK"] + launches[-1]["num_warps"]

    return measure


def test_a_kernel_of_triton_is_tuned_by_its_configs(load, tmp_path):
    for measured in (4, 0):
        kernel = load(SOURCE).kernel
        launches = simulated(kernel)
        tuned = foretune.autotune(CONFIGS, ["n"], store=tmp_path, measure=by_block(launches),
                                  device="simulated")(kernel)
        tuned[(1,)](Tensor(), Tensor(), 1000)
        assert len(launches) == measured + 1
        assert launches[-1] == {"BLOCK": 256, "num_warps": 2, "num_ctas": 1, "num_stages": 3}
        assert tuned.best_config is CONFIGS[2]
    identity = tuned.store.identity
    assert identity["triton"] == triton.__version__ and identity["kernel"] == "kernel"
    assert tuned.report().keys[0].config == "BLOCK=256 num_stages=3 num_warps=2"
    assert tuned.base_fn is kernel.fn and tuned.arg_names == ["x_ptr", "y_ptr", "n", "BLOCK"]


def test_it_stands_above_and_below_heuristics(load, tmp_path):
    kernel = load(SOURCE).kernel
    launches = simulated(kernel)
    tuned = foretune.autotune(
        [triton.Config({}, num_warps=warps) for warps in (2, 4)], ["n"], store=tmp_path,
        measure=lambda launch, limit_ns: (launch(), launches[-1]["num_warps"])[1],
        device="simulated")(
            triton.heuristics({"BLOCK": lambda arguments: 2 * arguments["n"]})(kernel))
    tuned[(1,)](Tensor(), Tensor(), 32)
    assert launches[-1]["BLOCK"] == 64 and launches[-1]["num_warps"] == 2
    assert source_digest(tuned.fn) != source_digest(kernel)
    outer = triton.heuristics({"BLOCK": lambda arguments: arguments["n"]})(
        foretune.autotune([triton.Config({}, num_warps=8)], ["n"], store=tmp_path)(kernel))
    outer[(1,)](Tensor(), Tensor(), 32)
    assert launches[-1]["BLOCK"] == 32 and launches[-1]["num_warps"] == 8


def test_the_digest_covers_called_functions_and_constants_but_not_lines(load):
    digest = source_digest(load(SOURCE).kernel)
    assert source_digest(load("# Further down.\n\n" + SOURCE).kernel) == digest
    decorated = "@triton.jit(do_not_specialize=['n'])\ndef kernel"
    for old, new in (("x * SCALE", "x + SCALE"), ("constexpr(2)", "constexpr(3)"),
                     ("at < n)\n    tl", "at <= n)\n    tl"),
                     ("@triton.jit\ndef kernel", decorated)):
        assert old in SOURCE
        assert source_digest(load(SOURCE.replace(old, new)).kernel) != digest, new


def test_functions_of_other_modules_are_followed(load, monkeypatch):
    digests = []
    for factor in (2, 2, 3):
        other = load(f"import triton\n@triton.jit\ndef scaled(x):\n    return x * {factor}\n")
        monkeypatch.setitem(sys.modules, "other_kernels", other)
        source = SOURCE.replace("helper(x) +", "other_kernels.scaled(x) +")
        digests.append(source_digest(load("import other_kernels\n" + source).kernel))
    assert digests[0] == digests[1] != digests[2]


def test_constants_and_configs_are_seen(load):
    assert constant_names(load(SOURCE).kernel) == ["BLOCK"]
    assert config_text(CONFIGS[0]) == '{"BLOCK":64,"num_ctas":1,"num_stages":3,"num_warps":2}'
    hooked = [triton.Config({"BLOCK": 64}, num_warps=2, pre_hook=hook)
              for hook in (lambda arguments: None, lambda arguments: 1)]
    assert len({config_text(config) for config in [CONFIGS[0], *hooked]}) == 3


def test_errors_of_triton_are_outcomes():
    from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    memory = OutOfResources(300000, 232448, "shared memory")
    assert failure_of(memory) == ("unsupported", "prepare")
    assert "Required: 300000" in reason_of(memory)
    for error in (PTXASError("no"), CompilationError("def f(): pass", None, "no"),
                  CompileTimeAssertionFailure("def f(): pass", None, "no")):
        assert failure_of(error) == ("prepare failed", "prepare")
    assert failure_of(RuntimeError("CUDA")) is None


@pytest.fixture
def driver():
    """Simulates the driver of a device."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    calls = []

    def bench(call, warmup=25, rep=100, quantiles=None):
        calls.append(rep)
        call()
        return [1.0] * len(quantiles)

    interface = types.SimpleNamespace(
        get_device_name=lambda index: "Paper GPU",
        get_device_properties=lambda index: types.SimpleNamespace(L2_cache_size=1 << 20))
    active = types.SimpleNamespace(
        get_current_target=lambda: GPUTarget("cuda", 90, 32), get_current_device=lambda: 0,
        get_device_interface=lambda: interface, get_benchmarker=lambda: bench, calls=calls,
        utils=types.SimpleNamespace(
            get_device_properties=lambda index: {"multiprocessor_count": 132,
                                                 "sm_clock_rate": 1980000}))
    before = driver._active
    driver.set_active(active)
    yield active
    driver._active = before


def test_the_device_is_the_one_that_triton_would_launch_on(load, driver):
    device = current_device(load(SOURCE).kernel)
    assert (device.name, device.arch, device.triton) == ("Paper GPU", "cuda:90", triton.__version__)
    assert device.hardware["cores"] == 132 and device.hardware["l2_bytes"] == 1 << 20
    assert device.hardware["tensor_peak_gflops"] > 1e6


def test_the_benchmark_function_is_the_drivers(load, tmp_path, driver):
    assert TritonClock()(lambda: None, None).time_ns == 1e6
    assert TritonClock()(lambda: None, 0.5e6).censored
    window = pytest.approx(100 / 15)
    assert driver.calls == [5.0, *[window] * 5, 5.0]  # the second one was stopped early
    kernel = load(SOURCE).kernel
    launches = simulated(kernel)
    tuned = foretune.autotune(CONFIGS, ["n"], store=tmp_path)(kernel)
    tuned[(1,)](Tensor(), Tensor(), 1000)
    assert tuned.report().device == "Paper GPU"
    assert len(launches) == 1 + 4 * (1 + 5)  # a rough time and five windows each


def test_without_a_device_triton_says_so(load, tmp_path):
    from triton.runtime.driver import driver

    try:
        driver.active.get_current_target()
    except RuntimeError:
        pass
    else:
        pytest.skip("there is a device")
    tuned = foretune.autotune(CONFIGS, ["n"], store=tmp_path)(load(SOURCE).kernel)
    with pytest.raises(RuntimeError, match="active drivers"):
        tuned[(1,)](Tensor(), Tensor(), 1000)


def low_end(configs, named, **kwargs):
    return [config for config in configs if config.kwargs["BLOCK"] < 256]


@pytest.mark.parametrize("options", [
    {}, {"reset_to_zero": ["x_ptr"]}, {"restore_value": ["y_ptr"]},
    {"reset_to_zero": ["x_ptr"], "restore_value": ["y_ptr"]}, {"hooks": True},
    {"reset_to_zero": ["x_ptr"], "post_hook_only": True},
    {"prune_configs_by": {"early_config_prune": low_end}},
    {"prune_configs_by": {"perf_model": lambda BLOCK, num_warps, **_: -BLOCK, "top_k": 3}},
    {"prune_configs_by": {"perf_model": lambda BLOCK, num_warps, **_: num_warps, "top_k": 0.5}},
])
def test_it_does_what_triton_does_in_the_same_order(load, tmp_path, driver, options):
    def events_of(decorate, **more):
        events = []
        kernel = load(SOURCE).kernel
        state = {"ms": 0.0}

        def run(x_ptr, y_ptr, n, *, grid, warmup, **kwargs):
            if kwargs["BLOCK"] == 64 and kwargs["num_warps"] == 4 and n == 2000:
                from triton.runtime.errors import OutOfResources

                raise OutOfResources(1, 0, "threads")
            x_ptr.value += 1
            y_ptr.value += 1
            state["ms"] = 1000 / kwargs["BLOCK"] + kwargs["num_warps"]
            events.append(("run", x_ptr.value, y_ptr.value, n, grid, sorted(kwargs.items())))

        def do_bench(call, quantiles):
            call()
            call()
            return [state["ms"]] * 3

        configs = [triton.Config({"BLOCK": block}, num_warps=warps, pre_hook=(
            lambda arguments: events.append(("config", arguments["BLOCK"], arguments["n"]))))
                   for block in (64, 256) for warps in (2, 4)]
        settings = {name: value for name, value in options.items() if "hook" not in name}
        if options.get("hooks"):
            settings["pre_hook"] = lambda arguments, reset_only=False: events.append(
                ("before", sorted(arguments), reset_only))
        if options.get("hooks") or options.get("post_hook_only"):
            settings["post_hook"] = lambda arguments, exception: events.append(
                ("after", sorted(arguments), type(exception).__name__))
        kernel.run = run
        tuned = decorate(configs, ["n"], do_bench=do_bench, **settings, **more)(kernel)
        x, y = Tensor(value=3), Tensor(value=4)
        for n in (1000, 1000, 2000):
            tuned[(n,)](x, y, n)
            best = tuned.best_config
            events.append(("launched", x.value, y.value, best.kwargs, best.num_warps))
        return events

    ours = events_of(foretune.autotune, store=tmp_path, learn=False)
    theirs = events_of(triton.autotune)

    def by_launch(events):
        """Groups events by launch; foretune starts a second key with the winner of the first."""
        groups, group = [], []
        for event in events:
            group.append(event)
            if event[0] == "launched":
                groups.append(group)
                group = []
        return groups

    assert by_launch(ours)[:2] == by_launch(theirs)[:2]
    assert by_launch(ours)[2][-2:] == by_launch(theirs)[2][-2:]
    assert len(by_launch(ours)[2]) == len(by_launch(theirs)[2])
