"""Runs the examples of the documentation beside the pages of test_pages.py."""

import re
import subprocess
import sys

import pytest

import foretune
from conftest import ROOT


def test_the_page_of_features_runs(tmp_path, monkeypatch, training):
    monkeypatch.chdir(tmp_path)
    training.save("train.ftd")
    page = (ROOT / "docs" / "reference" / "features.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(compile(block, "docs/reference/features.md", "exec"), names)  # noqa: S102
    assert names["values"] is not None


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


@pytest.mark.parametrize("name", ["python_options", "feature_reference"])
def test_the_generated_pages_are_up_to_date(name):
    script = ROOT / "scripts" / f"{name}.py"
    done = subprocess.run([sys.executable, str(script), "--check"], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_measured_table_has_a_source():
    """Each section with a table names a program that exists, the hardware, the date and the kind of data."""
    pages = [ROOT / "docs" / "benchmarks.md", *sorted((ROOT / "docs" / "benchmarks").glob("*.md"))]
    assert len(pages) > 10
    sources = 0
    for page in pages:
        source = None
        for line in page.read_text().splitlines():
            if line.startswith("# ") or line.startswith("## "):
                source = None
            if line.startswith("> **Source**"):
                source = line
                sources += 1
                programs, hardware, date, data = (part.strip() for part in
                                                  line.removeprefix("> **Source**").split("·"))
                for program in re.findall(r"`([^`]+)`", programs):
                    path = ROOT / program
                    assert (program.startswith(("foretune ", "make ")) or path.exists()
                            or path.with_suffix(".cc").exists()), f"{page.name}: no program {program}"
                assert re.search(r"Intel|AMD|NVIDIA", hardware) or "recorded" in hardware, line
                assert re.search(r"\d+ \w+ 20\d\d", date), line
                assert re.match(r"development|untouched|\w.* left out|nested", data), line
            elif re.match(r"\|[-|]+\|$", line) and page.name != "benchmarks.md":
                assert source, f"{page.name}: a table without a source"
    assert sources >= 25
