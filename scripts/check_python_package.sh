#!/usr/bin/env bash
# Installs the Python package into a fresh virtual environment, as users do, and uses it from a
# folder where the sources are not. Compiled with the flags of the preset dev, so that after `make
# test` everything comes out of ccache.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

/usr/bin/python3 -m venv "$work/venv"
CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1 "$work/venv/bin/python" -m pip install --quiet \
  --disable-pip-version-check "$root[parquet]" \
  --config-settings=build-dir=build/python-check \
  --config-settings=cmake.build-type=RelWithDebInfo \
  --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1" \
  --config-settings=cmake.define.CMAKE_CXX_COMPILER=g++ \
  --config-settings=cmake.define.FORETUNE_WERROR=ON \
  --config-settings=cmake.define.FORETUNE_UNITY=ON

cd "$work"
PATH="$work/venv/bin:$PATH"
python "$root/examples/python/quickstart.py" quickstart
python - "$root/foretune/dataset/testdata/ck/gemm.csv" <<'PYTHON'
import sys

import pandas

pandas.read_csv(sys.argv[1]).to_parquet("ck.parquet")
PYTHON
# The command of the package, with a worker process and a trainer.
[[ "$(foretune --version)" == *"$(python -c 'import foretune; print(foretune.__version__)')"* ]]
test -s "$work/venv/share/man/man1/foretune-train.1"
test -s "$work/venv/share/bash-completion/completions/foretune"
foretune --quiet collect --family cpu-gemm --log-normal --num-shapes 4 --max-flops 1e7 --search-space SAMPLE:4 \
  --output small.ftd
foretune --quiet train --dataset small.ftd --trees 5 --folds 2 --model small.ftm
foretune predict --model small.ftm "gemm m=32 n=32 k=32"
foretune-parquet import ck.parquet ck.ftd
foretune-parquet export ck.ftd again.parquet
python -c "import foretune, os.path; assert os.path.exists(os.path.dirname(foretune.__file__) + '/py.typed')"
# None of these needs torch, Triton or a GPU to be imported; the model for H200s is part of them.
python - <<'PYTHON'
import pathlib

import foretune
import foretune.approx.model_zoo
import foretune.loops
import foretune.torch
import foretune.triton

model = pathlib.Path(foretune.__file__).parent / "models" / "triton-sm_90.ftm"
choice = foretune.Selector(model).select("gemm m=512 n=4096 k=4096 dtype=bf16 layout=rcr")
assert choice.picked, choice.reason
assert len(foretune.approx.get_knobs_from_file()) == 56
if foretune.loops.instruction_sets():
    env = foretune.loops.LoopNestEnv("mm m=64 n=64 k=64")
    env.reset(seed=1)
    env.step("split_16")
    assert env.gflops > 0
PYTHON
