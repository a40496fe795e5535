#!/usr/bin/env python3
"""Runs what takes too long for every change and writes one JSON to commit:

    make nightly                                  everything: two hours on two cores
    scripts/nightly.py --only fuzzing threads     these steps; the others keep their last results

Steps are independent: one that fails is written down as failed, and the rest go on. A result says
at which commit, when, and for how long its step ran. scripts/check_nightly.py tells whether the
file is recent enough. Needs a tree without changes, so that the commit says what ran.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

from changes import RESULTS
from sources import ROOT

LOGS = ROOT / "build/nightly"
CORES = str(os.cpu_count() or 1)
PYTORCH = {"pytorch 2.11": "torch==2.11.0", "pytorch current": "torch"}


class Failed(Exception):
    """Says what went wrong, in one line."""


def run(log: Path, *command: str, **environment: str) -> str:
    """Returns the output, which also goes to the end of `log`."""
    with open(log, "a", encoding="utf-8") as file:
        begin = file.tell()
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        code = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, **environment}).returncode
    text = log.read_text(encoding="utf-8", errors="replace")[begin:]
    if code != 0:
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        raise Failed(f"`{' '.join(command)}` ended with {code}: {last}")
    return text


def build(log: Path, preset: str, *targets: str) -> None:
    run(log, "cmake", "--preset", preset)
    chosen = ["--target", *targets] if targets else []
    run(log, "cmake", "--build", "--preset", preset, "--parallel", CORES, *chosen)


def clang_tidy(log: Path) -> dict[str, float]:
    run(log, "cmake", "--preset", "tidy")
    run(log, "scripts/check_headers.py", "--all")
    found = re.search(r"clang-tidy: (\d+) sources", run(log, "scripts/check_tidy.py", "--all"))
    assert found
    return {"sources": float(found[1])}


def tidy_changes(log: Path) -> dict[str, float]:
    """Checks what CI would check otherwise: the changes since either step, many without the analyzer."""
    run(log, "cmake", "--preset", "tidy")
    run(log, "cmake", "--preset", "asan")
    run(log, "scripts/check_headers.py")
    found = re.search(r"clang-tidy: (\d+) sources", run(log, "scripts/check_tidy.py"))
    assert found
    return {"sources": float(found[1])}


def sanitizers(log: Path) -> dict[str, float]:
    build(log, "asan")
    return tests_passed(run(log, "ctest", "--preset", "asan"))


def benchmarks(log: Path) -> dict[str, float]:
    """Compiles them all: they are not built with the tests."""
    build(log, "dev", "benchmarks")
    listed = (ROOT / "build/dev/programs.txt").read_text(encoding="utf-8")
    return {"programs": float(listed.count("|bench|"))}


def fuzzing(log: Path) -> dict[str, float]:
    text = run(log, "scripts/fuzz.sh", "60")
    return {f"runs {name}": float(runs) for name, runs in re.findall(r"^(\w+) +(\d+) runs$", text, re.M)}


def threads(log: Path) -> dict[str, float]:
    build(log, "tsan")
    return tests_passed(run(log, "ctest", "--preset", "tsan"))


def tests_passed(text: str) -> dict[str, float]:
    found = re.search(r"tests failed out of (\d+)", text)
    if not found:
        raise Failed("no tests ran")
    return {"tests": float(found[1])}


def pytorch(requirement: str):
    def step(log: Path) -> dict[str, float]:
        build(log, "dev", "_foretune")
        folder = ROOT / "build" / re.sub(r"[=.]+", "-", f"pytorch-{requirement}")
        run(log, "/usr/bin/python3", "-m", "venv", str(folder))
        python = str(folder / "bin/python")
        # The version that was current when the folder was made would stay so.
        run(log, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--only-binary", ":all:", "--upgrade", requirement, "numpy", "onnx", "pytest")
        version = run(log, python, "-c", "import torch; print('version', torch.__version__)")
        text = run(log, python, "-m", "pytest", "-q", "python/tests/test_torch_version.py",
                   "python/tests/test_torch_real.py", "python/tests/test_registered_torch.py",
                   "python/tests/test_torch_convolution.py",
                   "python/tests/test_torch_gpu_convolutions.py",
                   "python/tests/test_approx_torch.py",
                   "python/tests/test_pages.py", "--page=tutorials/pytorch",
                   PYTHONPATH="build/dev/python")
        passed = re.search(r"(\d+) passed", text)
        if not passed:
            raise Failed("no test ran")
        release = re.search(r"version (\d+)\.(\d+)", version)
        assert release
        return {"tests": float(passed[1]), "major": float(release[1]), "minor": float(release[2])}

    return step


def random_tests(log: Path) -> dict[str, float]:
    build(log, "bench", "bench_loop_nest", "bench_loop_c")
    programs = ROOT / "build/bench/bench"
    seed = str(datetime.date.today().toordinal())
    run(log, str(programs / "loop_nest"), "--fuzz", "100000", "--seed", seed)
    run(log, str(programs / "loop_c"), "--count", "2000", "--seed", seed)
    build(log, "dev", "families_cpu_conv_test", "sparse_products_test")
    run(log, str(ROOT / "build/dev/foretune/families/cpu_conv/families_cpu_conv_test"),
        FORETUNE_CONV_CASES="100000")
    run(log, str(ROOT / "build/dev/foretune/families/sparse_cpu/sparse_products_test"),
        FORETUNE_SPARSE_CASES="100000")
    return {"loop nests": 100000.0, "C functions": 2000.0, "convolutions": 100000.0,
            "sparse products": 100000.0,
            "seed": float(seed)}


def peers(log: Path) -> dict[str, float]:
    run(log, "scripts/install_dependencies.sh", "--bench")
    build(log, "bench", "bench_gemm_vs_blas", "bench_loop_nest")
    figures: dict[str, float] = {}
    for name, arguments in (("gemm_vs_blas", ["--tune", "2", "--rounds", "7"]),
                            ("loop_nest", ["--shapes", "bench/shapes/loop_test.csv",
                                           "--search", "2"])):
        out = LOGS / f"{name}.json"
        run(log, str(ROOT / "build/bench/bench" / name), *arguments, "--json", str(out))
        metrics = json.loads(out.read_text(encoding="utf-8"))["metrics"]
        figures |= {f"{name} {key}": value for key, value in metrics.items()
                    if "_vs_" in key or "worst" in key}
    return figures


def extension_cost(log: Path) -> dict[str, float]:
    out = LOGS / "extension_cost.json"
    run(log, "scripts/extension_cost.py", "--json", str(out))
    return json.loads(out.read_text(encoding="utf-8"))["metrics"]


def slurm(log: Path) -> dict[str, float]:
    """A Slurm cluster of this machine; needs root and Debian's packages of Slurm."""
    build(log, "dev", "foretune")
    out = LOGS / "slurm.json"
    run(log, "scripts/slurm_test.sh", "build/dev/tools/foretune/foretune", "--json", str(out))
    return json.loads(out.read_text(encoding="utf-8"))["metrics"]


STEPS = {"clang-tidy": clang_tidy, "tidy changes": tidy_changes, "sanitizers": sanitizers,
         "benchmarks": benchmarks, "fuzzing": fuzzing, "threads": threads, "random tests": random_tests, "peers": peers,
         "slurm": slurm, "extension cost": extension_cost,
         **{name: pytorch(requirement) for name, requirement in PYTORCH.items()}}


def first_line(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True,
                              cwd=ROOT).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout.strip()


def cpu_model() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return found[1] if found else platform.processor()


def result_of(name: str, commit: str) -> dict[str, object]:
    log = LOGS / f"{name.replace(' ', '-')}.log"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    result: dict[str, object] = {"commit": commit, "date": datetime.date.today().isoformat()}
    try:
        result |= {"passed": True, "figures": STEPS[name](log)}
    except Failed as error:
        result |= {"passed": False, "reason": str(error)}
    result["seconds"] = round(time.monotonic() - begin)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the long tests and writes their JSON.")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP",
                        help=f"some of: {', '.join(STEPS)}")
    options = parser.parse_args()
    if git("status", "--porcelain", "--untracked-files=no"):
        print("nightly: there are changes that are not committed; the result would name a commit "
              "that did not run", file=sys.stderr)
        return 2
    commit = git("rev-parse", "HEAD")
    LOGS.mkdir(parents=True, exist_ok=True)
    steps = json.loads(RESULTS.read_text(encoding="utf-8"))["steps"] if RESULTS.exists() else {}
    failed = []
    for name in options.only:
        print(f"{name} ...", flush=True)
        steps[name] = result_of(name, commit)
        if steps[name]["passed"]:
            print(f"{name}: passed in {steps[name]['seconds']} s", flush=True)
        else:
            print(f"{name}: FAILED: {steps[name]['reason']}", flush=True)
            failed.append(name)
        results = {
            "name": "nightly",
            "commit": commit,
            "date": datetime.date.today().isoformat(),
            "machine": {"cpu": cpu_model(), "cores": CORES},
            "versions": {"g++": first_line("g++", "--version"),
                         "clang++": first_line("clang++-19", "--version"),
                         "cmake": first_line("cmake", "--version"),
                         "python": platform.python_version()},
            "steps": {step: steps[step] for step in STEPS if step in steps},
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
