"""Plug-ins: loaded by name, by installed packages, and by the workers of a process that has them."""

import json
import os
import pathlib
import subprocess
import sys

import foretune
import pytest

FOLDER = os.environ.get("FORETUNE_TEST_PLUGINS", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="FORETUNE_TEST_PLUGINS names no folder")


def plugin(kind):
    path = pathlib.Path(FOLDER) / f"test_plugin_{kind}.so"
    assert path.exists()
    return path


def run_python(code, *arguments, path=()):
    """Returns what a fresh process prints, and its warnings."""
    places = os.pathsep.join([*map(str, path), os.environ["PYTHONPATH"]])
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], text=True,
                          capture_output=True, check=False, env={**os.environ, "PYTHONPATH": places})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize(("kind", "error", "words"), [
    ("VERSION", foretune.MismatchError, "it was built for 'foretune 0.0.1, g"),
    ("NO_ENTRY", foretune.CorruptDataError, "no function foretune_plugin_1"),
    ("ABORT", foretune.CorruptDataError, r"it crashes \(SIGABRT\)"),
    ("EXIT", foretune.CorruptDataError, r"it ends the process \(exit code 7\)"),
    ("THROW", foretune.MismatchError, "it throws: no beads"),
])
def test_a_bad_one_is_an_exception(kind, error, words):
    before = foretune.families()
    with pytest.raises(error, match=words):
        foretune.load_plugin(plugin(kind))
    assert foretune.families() == before


def test_one_that_is_not_there_is_an_exception(tmp_path):
    with pytest.raises(foretune.NotFoundError, match="No such file"):
        foretune.load_plugin(tmp_path / "absent.so")


def test_a_good_one_is_measured_learned_from_and_picked(tmp_path):
    foretune.load_plugin(plugin("GOOD"))
    foretune.load_plugin(str(plugin("GOOD")))
    path = str(plugin("GOOD").resolve())
    assert foretune.loaded_plugins()[path] == [
        "problem type ring", "feature table ring-plain", "strategy backwards", "family ring"]
    assert foretune.families()["ring"] == "sums, for tests"
    assert foretune.problem_text({"beads": 100}) == "ring beads=100"
    # Its kernels run in a worker, which has to load it.
    summary = foretune.MatmulDatasetCollector(
        mode=foretune.CollectionMode.LOG_NORMAL, family="ring", num_shapes=8,
        search_space="EXHAUSTIVE").collect(tmp_path / "ring.ftd")
    assert set(summary.outcomes) <= {"ok", "censored"}
    assert summary.outcomes["ok"] >= 8
    model = foretune.train(summary.dataset(), trees=20, folds=0, threads=1)
    choice = foretune.Selector(model).select({"type": "ring", "beads": 64})
    assert choice.config.startswith("step=")


def make_package(folder, name, source, points):
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = "".join(f"{key} = {name}:{value}\n" for key, value in points.items())
    (info / "entry_points.txt").write_text(f"[foretune.plugins]\n{lines}")


LOOK = """
import json, foretune
from foretune import _foretune
at_import = _foretune.loaded_plugins()
print(json.dumps([at_import, list(foretune.families()), list(foretune.loaded_plugins())]))
"""


@pytest.mark.parametrize("value", ["path", "find"])
def test_installed_packages_are_asked_when_families_are(tmp_path, value):
    make_package(tmp_path, "rings", f"path = {str(plugin('GOOD'))!r}\ndef find(): return path\n",
                 {"ring": value})
    at_import, families, plugins = json.loads(run_python(LOOK, path=[tmp_path])[0])
    assert at_import == []
    assert "ring" in families
    assert plugins == [str(plugin("GOOD").resolve())]


def test_a_bad_package_is_a_warning_and_stops_no_other(tmp_path):
    make_package(tmp_path, "broken", "def crash(): raise KeyError('beads')\n"
                 f"old = {str(plugin('VERSION'))!r}\n",
                 {"crash": "crash", "missing": "missing", "old": "old"})
    make_package(tmp_path, "rings", f"path = {str(plugin('GOOD'))!r}\n", {"ring": "path"})
    out, err = run_python(LOOK, path=[tmp_path])
    assert "ring" in json.loads(out)[1]
    assert "entry point 'crash' names no plug-in: KeyError: 'beads'" in err
    assert "entry point 'missing' names no plug-in: AttributeError" in err
    assert "it was built for 'foretune 0.0.1" in err
