"""Runs the examples of the documentation."""

import re
import subprocess
import sys

import foretune
from conftest import ROOT
from network_samples import needs_onnx
from loop_samples import needs_vectors


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 6
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102
    assert names["choice"].config


def test_the_pages_of_features_run(tmp_path, monkeypatch, training):
    monkeypatch.chdir(tmp_path)
    training.save("train.ftd")
    for name in ("features", "extending/feature"):
        page = (ROOT / "docs" / f"{name}.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
        names = {}
        for block in blocks:
            exec(compile(block, name, "exec"), names)  # noqa: S102
        assert names["values" if name == "features" else "model"] is not None


def test_the_page_of_convolutions_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "convolutions.md").read_text()
    block, of_torch = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert "import torch" in of_torch  # test_torch_convolution.py runs it
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/convolutions.md", "exec"), {})  # noqa: S102
    assert len(foretune.Dataset.open("layers.ftd")) > 1


def test_the_page_of_sparse_products_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "sparse.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/sparse.md", "exec"), {})  # noqa: S102
    assert len(foretune.Dataset.open("choices.ftd")) > 1


@needs_onnx
def test_the_page_of_networks_runs(monkeypatch, capsys):
    page = (ROOT / "docs" / "networks.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(ROOT)
    for block in blocks:
        exec(compile(block, "docs/networks.md", "exec"), {})  # noqa: S102
    assert "means of neighbours" in capsys.readouterr().out


@needs_vectors
def test_the_page_of_loop_nests_runs():
    page = (ROOT / "docs" / "loop-nests.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, "docs/loop-nests.md", "exec"), names)  # noqa: S102
    assert names["env"].best.gflops > 0 and names["envs"].evaluations > 0


def test_the_readme_runs(tmp_path, monkeypatch):
    section = (ROOT / "README.md").read_text().split("## Three ways in\n", 1)[1].split("\n## ", 1)[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    quick = block
    for shown, small in (('num_shapes=200', 'num_shapes=10, family="null"'),
                         ('.dataset())', '.dataset(), trees=20, folds=2, threads=1)')):
        assert shown in quick
        quick = quick.replace(shown, small)
    exec(compile(quick, "README.md", "exec"), {})  # noqa: S102


def test_the_quickstart_runs(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "python" / "quickstart.py"),
                           str(tmp_path / "out")], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"mean efficiency of the picks: \d+\.\d %", done.stdout)
    assert "isa=" in done.stdout.splitlines()[-1]
    evaluation = foretune.evaluate(foretune.Model.open(tmp_path / "out" / "gemm.ftm"),
                                   foretune.Dataset.open(tmp_path / "out" / "validation.ftd"))
    assert "the family's default config" in evaluation.report()


def test_the_keywords_are_the_options():
    script = ROOT / "scripts" / "python_options.py"
    done = subprocess.run([sys.executable, str(script), "--check"], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
