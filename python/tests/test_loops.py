"""Loop nests: computations, schedules as text, kernels on NumPy's arrays."""

import concurrent.futures
import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import foretune
import numpy as np
import pytest
from foretune import loops
from loop_samples import expected, needs_vectors, operands

PRODUCT = "mm m=37 n=50 k=29"
COMPUTATIONS = [
    PRODUCT, "mm m=16 n=48 k=8 ta", "mm m=16 n=48 k=8 tb", "mm m=9 n=33 k=20 ta tb bias relu",
    "mm batch=3 m=20 n=17 k=11", "mm batch=2 m=8 n=32 k=16 tb relu", "mm m=1 n=1 k=1",
    "conv c=8 h=12 w=12 o=16 r=3 s=3", "conv b=2 c=6 h=9 w=11 o=8 r=3 s=2 stride=2 pad=1 bias",
    "conv c=8 h=10 w=10 o=8 r=3 s=3 dilation=2 pad=2 groups=4 relu",
    "conv b=2 c=16 h=8 w=8 o=16 r=3 s=3 pad=1 groups=16",
    "conv c=8 h=8 w=8 o=16 r=3 s=3 pad=1 nhwc bias",
    "reduce r=13 c=70", "reduce r=13 c=70 op=max of_columns", "reduce r=40 c=40 op=min",
]


@needs_vectors
@pytest.mark.parametrize("isa", loops.instruction_sets())
@pytest.mark.parametrize("text", COMPUTATIONS)
def test_kernels_compute_what_numpy_does(text, isa):
    computation = loops.Computation(text)
    inputs = operands(computation)
    wanted = expected(computation, inputs)
    assert computation.output.shape == wanted.shape
    tried = 0
    for schedule in ["", *loops.textbook_schedules(computation, isa, 6)]:
        if loops.why_not(computation, schedule, isa) is not None:
            continue
        kernel = loops.compile(computation, schedule, isa)
        out = np.full(wanted.shape, np.nan, np.float32)
        assert kernel(*inputs, out=out) is out
        np.testing.assert_array_equal(out, wanted, err_msg=schedule)
        np.testing.assert_array_equal(kernel(*inputs), wanted)
        assert kernel.isa == isa and kernel.code_bytes > 0
        assert kernel.schedule == loops.canonical(computation, schedule)
        tried += 1
    assert tried > 0


def test_a_computation_says_what_it_takes():
    computation = loops.Computation("mm k=64   n=96 m=192 ta bias")
    assert computation.name == "mm m=192 n=96 k=64 ta bias"
    assert computation == loops.Computation(computation.name)
    assert computation != loops.Computation("mm m=192 n=96 k=64")
    assert len({computation, loops.Computation(computation.name)}) == 1
    assert pickle.loads(pickle.dumps(computation)) == computation
    assert computation.flops == 2 * 192 * 96 * 64 + 192 * 96
    assert computation.points == 192 * 96 * 64
    assert computation.variables == (("m", 192, False), ("k", 64, True), ("n", 96, False))
    assert computation.inputs == (("a", (64, 192)), ("b", (64, 96)), ("bias", (96,)))
    assert computation.output == ("c", (192, 96))
    assert "reduce add" in computation.operation
    assert repr(computation) == "Computation('mm m=192 n=96 k=64 ta bias')"


@pytest.mark.parametrize("text, sentence", [
    ("", "kind of computation"), ("dot m=3", "no kind"), ("mm m=0 n=1 k=1", "goes from 1"),
    ("mm m=x", "whole number"), ("mm q=3", "has no 'q'"), ("mm m=1 m=2", "twice"),
    ("mm m=99999 n=99999 k=9", "more than"), ("conv c=3 o=2 groups=2", "do not divide"),
    (7, "is a text, .* not int"), ("mm \ud800", "no UTF-8"),
    (None, "not NoneType"), ("mm m=-4", "goes from 1"),
])
def test_senseless_computations_are_refused(text, sentence):
    with pytest.raises(foretune.Error, match=sentence) as caught:
        loops.Computation(text)
    assert "\n" not in str(caught.value)


def test_schedules_are_shown_as_trees_and_as_c():
    schedule = "split m0 16, move k0 1, vectorize n0"
    assert loops.tree(PRODUCT) == (
        "for m0 in 37 by 1\n for k0 in 29 by 1\n  for n0 in 50 by 1\n")
    assert loops.tree(PRODUCT, schedule).startswith("for m0 in 37 by 16, remainder 5\n")
    assert loops.canonical(PRODUCT, "swap m0, swap k0") == ""
    code = loops.to_c(PRODUCT, schedule, "product")
    assert "void product(const float *const *inputs, float *output)" in code
    with pytest.raises(foretune.InvalidArgumentError, match="name"):
        loops.to_c(PRODUCT, "", "no name")


def test_c_computes_the_same(tmp_path):
    (tmp_path / "kernel.c").write_text(loops.to_c(PRODUCT, "split n0 16, swap k0, pack b k0"))
    library = tmp_path / "kernel.so"
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", str(library),
                    str(tmp_path / "kernel.c")], check=True)
    computation = loops.Computation(PRODUCT)
    inputs = operands(computation)
    out = np.zeros(computation.output.shape, np.float32)
    pointers = (ctypes.c_void_p * len(inputs))(*[array.ctypes.data for array in inputs])
    ctypes.CDLL(str(library)).kernel(pointers, ctypes.c_void_p(out.ctypes.data))
    np.testing.assert_array_equal(out, expected(computation, inputs))


@pytest.mark.parametrize("schedule, sentence", [
    ("fold m0", "fold"), ("swap n0", "swap n0"), ("split m0", "split"), ("split z0 4", "z0"),
    ("merge m0", "merge"), ("split m0 1000", "split m0 1000"), ("unroll m0 m1", "unroll"),
])
def test_what_is_wrong_with_a_schedule_is_said(schedule, sentence):
    assert not loops.legal(PRODUCT, schedule)
    assert sentence in loops.why_not(PRODUCT, schedule)
    for use in (loops.tree, loops.canonical, loops.to_c):
        with pytest.raises(foretune.Error, match=sentence) as caught:
            use(PRODUCT, schedule)
        assert "\n" not in str(caught.value)
    assert loops.legal(PRODUCT, "split m0 4, vectorize n0")


def test_whether_a_schedule_can_be_compiled_depends_on_the_instructions():
    assert loops.legal(PRODUCT, "swap k0, vectorize k0")
    assert "lanes" in loops.why_not(PRODUCT, "swap k0, vectorize k0", "avx2")
    block = "split m0 12, split n0 32, move n0 1, vectorize n1, block m1"
    large = "mm m=120 n=64 k=16"
    assert loops.legal(large, block, "avx512")
    assert "registers" in loops.why_not(large, block, "avx2")
    with pytest.raises(foretune.InvalidArgumentError, match="avx2 and avx512, not 'sse2'"):
        loops.textbook_schedules(PRODUCT, "sse2")
    assert "not 'sse2'" in loops.why_not(PRODUCT, "", "sse2")


@needs_vectors
@pytest.mark.parametrize("isa", ["sse2", "", 3, "generic"])
def test_unknown_instruction_sets_are_refused(isa):
    for use in (lambda: loops.compile(PRODUCT, "", isa), lambda: loops.measure_peak(isa),
                lambda: loops.textbook_schedules(PRODUCT, isa)):
        with pytest.raises(foretune.InvalidArgumentError, match="avx2"):
            use()


@needs_vectors
@pytest.mark.parametrize("isa", loops.instruction_sets())
def test_peaks_are_measured_for_each_instruction_set(isa):
    assert 0.1 < loops.measure_peak(isa, 0.005) < 10_000
    for seconds in (0, "long"):
        with pytest.raises(foretune.InvalidArgumentError, match="seconds is"):
            loops.measure_peak(isa, seconds)


def test_textbook_schedules_are_legal_and_different():
    schedules = loops.textbook_schedules("mm m=192 n=96 k=64", "avx2", 20)
    assert 1 < len(schedules) <= 20 and len(set(schedules)) == len(schedules)
    assert all(loops.legal("mm m=192 n=96 k=64", schedule, "avx2") for schedule in schedules)
    assert loops.textbook_schedules("mm m=192 n=96 k=64", "avx2", 0) == []
    with pytest.raises(foretune.InvalidArgumentError, match="count"):
        loops.textbook_schedules(PRODUCT, "avx2", -1)


@needs_vectors
def test_arrays_that_do_not_fit_are_refused():
    kernel = loops.compile(PRODUCT)
    a, b = operands(kernel.computation)
    out = np.empty((37, 50), np.float32)
    frozen = out.copy()
    frozen.flags.writeable = False
    both = np.zeros(37 * 29 + 37 * 50, np.float32)
    overlapping = both[:37 * 50].reshape(37, 50), both[37 * 50 - 1:-1].reshape(37, 29)
    unaligned = np.zeros(37 * 29 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(37, 29)
    cases = [
        ((a,), {}, "takes 2 inputs .a, b., not 1"), ((a, b, b), {}, "not 3"),
        ((a.astype(np.float64), b), {}, "a is float32, not float64"),
        ((a.astype(">f4"), b), {}, "a is float32"),
        ((a.T, b), {}, "a has the shape"), ((a, b[:-1]), {}, "b has the shape"),
        ((np.asfortranarray(a), b), {}, "by rows"), ((a.tolist(), b), {}, "not list"),
        ((np.zeros((37, 58), np.float32)[:, ::2], b), {}, "by rows"),
        ((unaligned, b), {}, "by rows"),
        ((a, b), {"out": out.T}, "c has the shape"), ((a, b), {"out": frozen}, "written"),
        ((a, b), {"out": np.zeros((37, 50), np.float16)}, "c is float32"),
        ((overlapping[1], b), {"out": overlapping[0]}, "overlaps the input a"),
    ]
    for inputs, keywords, sentence in cases:
        with pytest.raises(foretune.InvalidArgumentError, match=sentence) as caught:
            kernel(*inputs, **keywords)
        assert "\n" not in str(caught.value)


@needs_vectors
def test_the_extension_itself_refuses_memory_of_another_size():
    kernel = loops.compile(PRODUCT)
    a, b = operands(kernel.computation)
    with pytest.raises(foretune.InvalidArgumentError, match="c has 4 bytes"):
        kernel._native.run((a, b), np.zeros(1, np.float32))
    with pytest.raises(foretune.InvalidArgumentError, match="2 inputs, not 1"):
        kernel._native.run((a,), np.zeros((37, 50), np.float32))


@needs_vectors
def test_a_kernel_outlives_everything_it_was_made_of():
    kernels = [loops.compile(f"mm m={m} n=32 k=16", "split n0 16") for m in range(1, 40)]
    kept = kernels[::3]
    del kernels
    gc.collect()
    for kernel in kept:
        inputs = operands(kernel.computation)
        np.testing.assert_array_equal(kernel(*inputs), expected(kernel.computation, inputs))


@needs_vectors
@pytest.mark.parametrize("threads, schedule", [
    (1, "split n0 16, move n0 1, pack b n0"), (3, "split m0 4, parallelize m0")])
def test_a_kernel_serves_many_threads(threads, schedule):
    kernel = loops.compile("mm m=61 n=50 k=40", schedule, threads=threads)

    def run(seed):
        inputs = operands(kernel.computation, seed)
        for _ in range(20):
            np.testing.assert_array_equal(kernel(*inputs), expected(kernel.computation, inputs))
        return kernel.time(1, 1e-5) > 0

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(8)))


@needs_vectors
def test_a_forked_child_runs_kernels_whatever_other_threads_do():
    kernel = loops.compile("mm m=61 n=50 k=40", "split m0 4, parallelize m0", threads=2)
    inputs = operands(kernel.computation)
    wanted = expected(kernel.computation, inputs)
    stop = threading.Event()

    def work(task):
        while not stop.is_set():
            task()

    def child():
        signal.alarm(60)
        is_right = np.array_equal(kernel(*inputs), wanted) and kernel.time(1, 1e-5) > 0
        other = loops.compile("mm m=8 n=16 k=8", threads=2)
        own = operands(other.computation)
        return is_right and np.array_equal(other(*own), expected(other.computation, own))

    kernel(*inputs)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(work, lambda: kernel(*inputs)),
                 pool.submit(work, lambda: kernel.time(1, 1e-4))]
        try:
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    os._exit(0 if child() else 1)
                assert os.waitpid(pid, 0)[1] == 0
        finally:
            stop.set()
        for task in tasks:
            task.result()


@needs_vectors
def test_times_are_seconds_of_one_run():
    kernel = loops.compile("mm m=64 n=64 k=64")
    seconds = kernel.time()
    assert 0.01 < kernel.computation.flops / seconds / 1e9 < 10_000
    assert kernel.time(windows=1, window_seconds=1e-4) > 0
    for options, sentence in (({"windows": 0}, "windows"), ({"windows": 1.5}, "whole number"),
                              ({"window_seconds": 0}, "above 0"),
                              ({"window_seconds": float("nan")}, "above 0")):
        with pytest.raises(foretune.InvalidArgumentError, match=sentence):
            kernel.time(**options)


@needs_vectors
def test_what_cannot_be_compiled_says_why():
    with pytest.raises(foretune.UnsupportedError, match="lanes"):
        loops.compile(PRODUCT, "swap k0, vectorize k0")
    with pytest.raises(foretune.InvalidArgumentError, match="threads"):
        loops.compile(PRODUCT, threads=0)
    with pytest.raises(foretune.InvalidArgumentError, match="a schedule is a text"):
        loops.compile(PRODUCT, ["split m0 4"])


def test_everything_public_is_documented():
    for name in loops.__all__:
        assert getattr(loops, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        loops.nothing  # noqa: B018


def test_compiling_imports_neither_gymnasium_nor_networkx():
    code = ("import sys\nfrom foretune import loops\nloops.tree('mm m=4 n=4 k=4')\n"
            "sys.exit('gymnasium' in sys.modules or 'networkx' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_vectors
@pytest.mark.parametrize("method", ["random", "guided", "beam2dfs", "textbook", "base"])
@pytest.mark.parametrize("actions", ["cursor", "loops"])
def test_a_search_finds_what_computes_the_same(method: str, actions: str) -> None:
    product = loops.Computation("mm m=24 n=40 k=16")
    found = loops.search(product, method, measurements=30, actions=actions)
    assert 0 < len(found.measurements) <= 30
    assert found.gflops > 0
    assert found.is_finished or len(found.measurements) == 30
    a = np.arange(24 * 16, dtype=np.float32).reshape(24, 16) % 7
    b = np.arange(16 * 40, dtype=np.float32).reshape(16, 40) % 5
    assert (loops.compile(product, found.schedule)(a, b) == a @ b).all()


def test_a_search_says_what_is_wrong() -> None:
    with pytest.raises(foretune.NotFoundError, match="no strategy 'magic'"):
        loops.search("mm m=8 n=8 k=8", "magic", measurements=1)
    with pytest.raises(foretune.InvalidArgumentError, match="no actions 'all'"):
        loops.search("mm m=8 n=8 k=8", actions="all")
    with pytest.raises(foretune.InvalidArgumentError):
        loops.search("mm m=8 n=8 k=8", measurements=-1)


def avx512_policy() -> Path:
    return Path(loops.__file__).parent / "models/loop-nest-avx512.ftm"


def test_policy_schedules_are_legal_and_repeat():
    policy = loops.Policy(avx512_policy())
    for text in ("mm m=192 n=96 k=64", "conv b=1 c=16 h=14 w=14 o=24 r=3 s=3 pad=1",
                 "reduce r=100 c=300", "map r=64 c=100 chain=bias_relu"):
        for isa in ("avx2", "avx512"):
            schedules = policy.schedules(text, 6, isa=isa)
            assert 1 <= len(schedules) <= 6 and len(set(schedules)) == len(schedules)
            assert all(loops.why_not(text, each, isa) is None for each in schedules)
            assert schedules == policy.schedules(text, 6, isa=isa)


def test_the_package_has_a_policy_for_each_instruction_set():
    text = "mm m=192 n=96 k=64"
    chosen = {isa: loops.schedule(text, isa=isa) for isa in ("avx2", "avx512")}
    assert all(loops.why_not(text, schedule, isa) is None for isa, schedule in chosen.items())
    assert chosen["avx2"] != chosen["avx512"]
    with pytest.raises(foretune.InvalidArgumentError, match="avx2 or avx512"):
        loops.schedule(text, isa="sse")


def test_a_file_that_is_no_policy_is_refused():
    with pytest.raises(foretune.MismatchError, match="not a policy"):
        loops.Policy(Path(loops.__file__).parent / "models/triton-sm_90.ftm")
    with pytest.raises(foretune.Error, match="absent.ftm"):
        loops.Policy("absent.ftm")


@pytest.mark.skipif(not loops.instruction_sets(), reason="nothing can be compiled here")
def test_schedule_by_a_policy_is_faster_than_the_plain_nest():
    policy = loops.Policy(avx512_policy())
    product = loops.Computation("mm m=128 n=240 k=112")
    schedule = loops.schedule(product, policy=policy, measurements=6)
    plain = loops.compile(product).time()
    assert loops.compile(product, schedule).time() < plain
    a, b = (np.ones(operand.shape, np.float32) for operand in product.inputs)
    assert (loops.compile(product, schedule)(a, b) == a @ b).all()
    assert loops.legal(product, loops.schedule(product, policy=policy))
