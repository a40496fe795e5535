"""The package as a whole: version, types, stubs."""

import pathlib
import subprocess
import sys

import foretune
from conftest import ROOT
from foretune import _errors


def test_the_version_is_the_librarys():
    header = (ROOT / "foretune" / "version.h").read_text()
    assert f'"{foretune.__version__}"' in header


def test_everything_public_exists_and_is_documented():
    for name in foretune.__all__:
        value = getattr(foretune, name)
        if name not in ("OUTCOMES", "STAGES"):
            assert value.__doc__, name


def test_every_error_code_has_a_class():
    assert _errors.error_class("mismatch") is foretune.MismatchError
    assert _errors.error_class("something new") is foretune.InternalError
    for error in _errors._CLASSES.values():
        assert issubclass(error, foretune.Error)


def test_types_are_shipped_and_the_stub_is_current(tmp_path):
    package = pathlib.Path(foretune.__file__).parent
    assert (package / "py.typed").exists()
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "foretune._foretune",
                    "-o", str(tmp_path / "stub.pyi")], check=True)
    assert (tmp_path / "stub.pyi").read_text() == (package / "_foretune.pyi").read_text(), (
        "python -m nanobind.stubgen -m foretune._foretune -o python/foretune/_foretune.pyi")


def test_importing_needs_neither_pandas_nor_pyarrow():
    code = ("import sys\n"
            "sys.modules['pandas'] = sys.modules['pyarrow'] = None\n"
            "import foretune, foretune.parquet\n"
            "sys.exit(foretune.parquet.main(['import', __file__ if False else sys.argv[1], 'o']))")
    done = subprocess.run([sys.executable, "-c", code, __file__], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 4
    assert "pip install foretune[parquet]" in done.stderr and done.stderr.count("\n") == 1
