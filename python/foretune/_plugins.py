"""Plug-ins: third-party families, problem types, feature tables and strategies."""

from __future__ import annotations

import os
import threading
import warnings
from importlib import metadata

from . import _foretune
from ._errors import Error

GROUP = "foretune.plugins"

_lock = threading.RLock()
_is_done = False
_is_busy = False


def load_plugin(path: str | os.PathLike[str]) -> None:
    """Loads a plug-in: a shared object built with ``foretune_plugin()`` of the CMake package.

    Its families, problem types, feature tables and strategies are then known everywhere in this
    process and in the workers that it starts. A plug-in is never unloaded; loading it twice is
    harmless. A child process loads it first, so that a crash or a hang becomes an exception here.

    Raises:
        NotFoundError: there is no such file.
        CorruptDataError: the file is not a plug-in, or it crashes, hangs or ends its process.
        MismatchError: the plug-in was built for another version or compiler, or one of its names is
            taken.

    Thread safety: any number of threads; the interpreter lock is released meanwhile.
    """
    _foretune.load_plugin(os.fspath(path))


def loaded_plugins() -> dict[str, list[str]]:
    """Returns the absolute paths of the loaded plug-ins, and the additions of each:
    ``{"/opt/stencil2d.so": ["problem type stencil2d", "family stencil2d"]}``."""
    load_installed_plugins()
    return dict(_foretune.loaded_plugins())


def load_installed_plugins() -> None:
    """Loads the entry points of the group ``foretune.plugins`` of all installed packages, once.

    This happens at the first call of anything that plug-ins may extend, not at import, because it
    reads the metadata of every installed package. An entry point is the path of a shared object or
    a function that returns it. An entry point that cannot be loaded causes a warning only, so that
    an unused broken package does no harm.
    """
    global _is_done, _is_busy
    if _is_done:
        return
    with _lock:
        # The lock is re-entrant: an entry point may call this function again.
        if _is_done or _is_busy:
            return
        _is_busy = True
        for entry in metadata.entry_points(group=GROUP):
            try:
                value = entry.load()
                load_plugin(value() if callable(value) else value)
            except Error as error:
                warnings.warn(f"entry point '{entry.name}': {error}", RuntimeWarning, stacklevel=2)
            except Exception as error:  # noqa: BLE001: whatever the other package raises
                warnings.warn(f"entry point '{entry.name}' names no plug-in: "
                              f"{type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)
        _is_done = True
