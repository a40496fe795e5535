"""Compiling Triton's kernels: their keys, the pool of processes, the file."""

import importlib.util
import os
import signal
import subprocess
import sys
import time

import foretune
import pytest
from foretune import _foretune
from foretune.triton import CompiledKernel, TritonCollector, compile_kernels, kernel_keys
from foretune.triton._compile import parse_key
from foretune.triton.__main__ import main

PROBLEM = "gemm op=mm m=512 n=1024 k=768 dtype=bf16 layout=rcr"


def fake_compile(key, target):
    """Stands in for the compiler; runs in the processes of the pool."""
    words = parse_key(key)
    if words.get("do") == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if words.get("do") == "hang":
        time.sleep(60)
    if words.get("do") == "fail":
        return CompiledKernel(key, error="no registers left")
    return CompiledKernel(key, function="matmul", threads=128, shared_bytes=1024, scratch_bytes=64,
                          image=f"code for {target}".encode())


def compiled(keys, path, **options):
    return compile_kernels(keys, path, compile_one=fake_compile, compiler="fake-1", **options)


def test_keys_of_a_problem():
    keys = kernel_keys([PROBLEM])
    assert len(keys) > 500
    assert len(set(keys)) == len(keys)
    for key in keys:
        words = parse_key(key)
        assert words["dtype"] == "bf16"
        assert words["layout"] == "rcr"
        assert words["aligned"] == "1"
        assert words["even_k"] == "1"
    # One size that a block does not divide, and one with which no row can be aligned.
    assert any("even_k=0" in key for key in kernel_keys([PROBLEM.replace("768", "776")]))
    odd = kernel_keys([PROBLEM.replace("768", "777")])
    assert all("aligned=0" in key and "template=1" in key for key in odd)
    # A key does not contain sizes, so another problem of the same kind needs no new kernels.
    assert kernel_keys([PROBLEM, PROBLEM.replace("512", "640")]) == keys
    with pytest.raises(foretune.InvalidArgumentError):
        kernel_keys(["gemm m=0"])
    # An A100 has less shared memory.
    assert len(kernel_keys([PROBLEM], "a100")) < len(keys)


def test_compiles_into_a_file_and_continues(tmp_path):
    path = tmp_path / "kernels.ftk"
    seen = []
    summary = compiled(["n=1", "n=2", "n=2 do=fail"], path, jobs=2,
                       progress=lambda done, total, kernel: seen.append((done, total, kernel.key)))
    assert (summary.compiled, summary.failed, summary.present) == (2, 1, 0)
    assert [entry[:2] for entry in seen] == [(1, 3), (2, 3), (3, 3)]
    again = compiled(["n=1", "n=3", "n=3"], path)
    assert (again.compiled, again.failed, again.present) == (1, 0, 1)
    file = _foretune.read_kernel_file(os.fspath(path))
    assert (file["target"], file["compiler"]) == ("sm_90", "fake-1")
    kernels = {kernel["key"]: kernel for kernel in file["kernels"]}
    assert sorted(kernels) == ["n=1", "n=2", "n=2 do=fail", "n=3"]
    assert kernels["n=2 do=fail"]["error"] == "no registers left"
    assert kernels["n=1"]["threads"] == 128
    assert kernels["n=1"]["scratch_bytes"] == 64
    assert kernels["n=1"]["image_bytes"] == len("code for sm_90")
    with pytest.raises(foretune.MismatchError, match="sm_90"):
        compiled(["n=4"], path, target="sm_80")


def test_a_crash_and_a_hang_cost_one_kernel_each(tmp_path):
    path = tmp_path / "kernels.ftk"
    keys = ["n=1 do=crash", "n=2", "n=3 do=hang", "n=4", "n=5 do=crash", "n=6"]
    # The first kernel of a process may take longer, so the hang is not the first.
    warm = compiled(["n=0"], path)
    assert warm.compiled == 1
    start = time.monotonic()
    summary = compiled(["n=7", *keys], path, jobs=1, limit_s=1.0)
    assert time.monotonic() - start < 60
    assert (summary.compiled, summary.failed) == (4, 3)
    errors = {kernel["key"]: kernel["error"]
              for kernel in _foretune.read_kernel_file(os.fspath(path))["kernels"]}
    assert errors["n=1 do=crash"] == "the compiler ended by SIGSEGV"
    assert "longer than" in errors["n=3 do=hang"]
    assert errors["n=6"] == ""


def test_works_from_a_program_without_a_file(tmp_path):
    """The program is as if typed into an interpreter: the pool's processes cannot import it."""
    path = os.fspath(tmp_path / "kernels.ftk")
    program = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_triton import compiled
print(compiled(["n=1", "n=2"], {path!r}).compiled)
"""
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True)
    assert done.stdout == "2\n", done.stderr


def test_processes_that_cannot_start_are_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(foretune.UnsupportedError, match="status 1"):
        compiled([f"n={i}" for i in range(50)], tmp_path / "kernels.ftk", jobs=2)
    assert len(_foretune.read_kernel_file(os.fspath(tmp_path / "kernels.ftk"))["kernels"]) == 0


def test_what_makes_no_sense_is_refused(tmp_path):
    path = tmp_path / "kernels.ftk"
    with pytest.raises(foretune.InvalidArgumentError):
        compiled(["n=1"], path, jobs=-1)
    with pytest.raises(foretune.InvalidArgumentError):
        compiled(["n=1"], path, limit_s=0)
    with pytest.raises(foretune.InvalidArgumentError, match="triton"):
        TritonCollector(family="null")
    with pytest.raises(foretune.InvalidArgumentError, match="num-shape"):
        TritonCollector(num_shape=3)
    path.write_bytes(b"something else")
    with pytest.raises(foretune.CorruptDataError):
        compiled(["n=1"], path)


def test_killed_while_compiling_loses_at_most_one_record(tmp_path):
    path = tmp_path / "kernels.ftk"
    script = tmp_path / "compile_many.py"
    script.write_text(f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_triton import compiled
if __name__ == "__main__":
    compiled([f"n={{i}}" for i in range(100000)], {os.fspath(path)!r}, jobs=1)
""")
    process = subprocess.Popen([sys.executable, script])
    while not path.exists() or path.stat().st_size < 5000:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = len(_foretune.read_kernel_file(os.fspath(path))["kernels"])
    assert before > 10
    summary = compiled([f"n={i}" for i in range(before + 5)], path)
    assert summary.present == before
    assert summary.compiled == 5


def test_problems_need_no_device(tmp_path):
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("operation,m,n,k,dtype,layout\nmm,64,128,256,bf16,rcr\nmm,8,16,24,f16,rrr\n")
    collector = TritonCollector(shapeset=shapes, num_shapes=0)
    assert collector.problems() == [
        "gemm op=mm m=64 n=128 k=256 batch=1 dtype=bf16 layout=rcr",
        "gemm op=mm m=8 n=16 k=24 batch=1 dtype=f16 layout=rrr"]
    if not os.path.exists("/dev/nvidiactl"):
        compiled(["n=1"], tmp_path / "kernels.ftk")
        with pytest.raises(foretune.UnsupportedError, match="no NVIDIA GPU"):
            collector.collect(tmp_path / "data.ftd", tmp_path / "kernels.ftk")


def fake_gpu_compile(key, target):
    """Returns a kernel that the simulated GPU can run."""
    words = parse_key(key)
    return CompiledKernel(key, function="matmul", threads=32 * int(words["num_warps"]),
                          shared_bytes=1 << 16, scratch_bytes=384 * (words["template"] == "2"),
                          image=b"foretune fake triton kernel\n" + key.encode() + b"\0")


@pytest.mark.skipif("FORETUNE_FAKE_GPU" not in os.environ, reason="no library that plays a GPU")
def test_collects_trains_and_picks(tmp_path):
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("operation,m,n,k,dtype,layout\n" + "".join(
        f"mm,{m},{n},128,bf16,rcr\n" for m in (64, 128, 200, 328) for n in (64, 136, 256)))
    fake = os.environ["FORETUNE_FAKE_GPU"]
    collector = TritonCollector(
        shapeset=shapes, num_shapes=0, search_space="SAMPLE:40",
        family_options={"driver": fake, "nvml": fake, "cublaslt": fake})
    kernels = tmp_path / "kernels.ftk"
    compile_kernels(kernel_keys(collector.problems()), kernels, compile_one=fake_gpu_compile,
                    compiler="triton-3.6.0")
    # A stopped collection continues and measures nothing twice.
    first = collector.collect(tmp_path / "data.ftd", kernels, budget="100")
    assert first.stopped_by_budget and first.measured == 100
    summary = collector.collect(tmp_path / "data.ftd", kernels)
    assert summary.resumed == 100 and summary.problems == 12
    dataset = summary.dataset()
    frame = dataset.to_pandas()
    assert set(frame.outcome) <= {"ok", "censored"}
    assert not frame.duplicated(["m", "n", "k", "template", "block_m", "block_n", "block_k",
                                 "num_stages", "num_warps"]).any()
    # Each problem measures the library's choice first.
    assert (frame.groupby(["m", "n"], sort=False).template.first() == 0).all()
    assert "triton-3.6.0" in dataset.header["isa"]
    model = foretune.train(dataset, trees=30, folds=2, threads=1)
    choice = foretune.Selector(model).select("gemm m=160 n=192 k=128 dtype=bf16 layout=rcr")
    assert choice.picked and choice.config.startswith("template=")


def test_the_program_says_what_is_wrong_in_one_sentence(tmp_path, capsys):
    assert main(["--shapeset", "/no/such/file", "--output", os.fspath(tmp_path / "k.ftk")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("foretune.triton: ")
    assert "/no/such/file" in error
    assert error.count("\n") == 1


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
def test_without_triton_compiling_says_so(tmp_path):
    with pytest.raises(foretune.UnsupportedError, match="Triton is not installed"):
        compile_kernels(["n=1"], tmp_path / "kernels.ftk")


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_real_kernels_compile_without_a_gpu(tmp_path):
    """Compiles every combination of template, layout, epilogue and alignment; needs no GPU."""
    path = tmp_path / "kernels.ftk"
    tile = "block_m=64 block_n=64 block_k=64 group_m=8 num_stages=3 num_warps=4"
    keys = [f"template={template} dtype={dtype} layout={layout} epilogue={epilogue} "
            f"even_k={even_k} aligned={aligned} {tile}"
            for template, dtype, layout, epilogue, even_k, aligned in [
                (1, "bf16", "rrr", "none", 1, 1), (1, "f16", "rcr", "bias", 0, 1),
                (1, "f32", "crr", "bias_relu", 0, 0), (1, "tf32", "ccr", "none", 1, 1),
                (2, "bf16", "rcr", "none", 1, 1), (2, "f16", "crr", "bias_relu", 1, 1),
                (1, "bf16", "rcr", "bias_gelu", 1, 1)]]
    summary = compile_kernels(keys, path, jobs=2)
    assert (summary.compiled, summary.failed) == (len(keys), 0)
    for kernel in _foretune.read_kernel_file(os.fspath(path))["kernels"]:
        assert kernel["threads"] == 128
        assert kernel["shared_bytes"] > 10000
        assert kernel["image_bytes"] > 5000
        assert (kernel["scratch_bytes"] > 0) == kernel["key"].startswith("template=2")
