"""Runs the examples of the documentation beside the pages of test_pages.py."""

import re
import subprocess
import sys

import pytest

from page_blocks import ROOT, blocks_of, run_page


def test_the_page_of_features_runs(tmp_path):
    run_page(ROOT / "docs" / "reference" / "features.md", tmp_path)


def test_the_readme_runs(tmp_path, monkeypatch):
    (quick,) = (block.code for block in blocks_of(ROOT / "README.md") if block.language == "python")
    monkeypatch.chdir(tmp_path)
    for shown, small in (('num_shapes=200', 'num_shapes=10, family="null"'),
                         ('.dataset())', '.dataset(), trees=20, folds=2, threads=1)')):
        assert shown in quick
        quick = quick.replace(shown, small)
    exec(compile(quick, "README.md", "exec"), {})  # noqa: S102


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
