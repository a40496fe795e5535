#!/usr/bin/env python3
"""Runs pytest with a Python that has PyTorch: the one that runs this, or else Debian's of the same
version, whose own NumPy then comes before the one beside pytest.

    python/tests/with_torch.py ARGUMENTS_OF_PYTEST

Ends with 5, pytest's number for no tests, where neither has PyTorch.
"""

import pathlib
import subprocess
import sys

DEBIAN = "/usr/bin/python3"
TAG = sys.implementation.cache_tag
ASK = f"import sys, torch, numpy; sys.exit(sys.implementation.cache_tag != {TAG!r})"
# At the end of the path, so that only what Debian's Python lacks comes from there.
RUN = "import sys; sys.path.append(sys.argv.pop(1)); import pytest; sys.exit(pytest.main())"


def main() -> int:
    import pytest

    packages = str(pathlib.Path(pytest.__file__).parent.parent)
    for python in (sys.executable, DEBIAN):
        if pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", ASK], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return subprocess.run([python, "-c", RUN, packages, *sys.argv[1:]],
                                  check=False).returncode
    print(f"skipped: neither {sys.executable} nor {DEBIAN} has PyTorch")
    return 5


if __name__ == "__main__":
    sys.exit(main())
