"""Plug-ins: families, problem types, feature tables and strategies of others."""

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
    process and in the workers that it starts. It is never unloaded; a second time is harmless. It
    is tried in a child process first, so that one that crashes or hangs is an exception here.

    Raises:
        NotFoundError: there is no such file.
        CorruptDataError: the file is no plug-in, or it crashes, hangs or ends its process.
        MismatchError: it was built for another version or compiler, or a name of it is taken.

    Thread safety: any thread; the interpreter lock is released meanwhile.
    """
    _foretune.load_plugin(os.fspath(path))


def loaded_plugins() -> dict[str, list[str]]:
    """The absolute paths of the plug-ins of this process, and what each has added:
    ``{"/opt/stencil2d.so": ["problem type stencil2d", "family stencil2d"]}``."""
    load_installed_plugins()
    return dict(_foretune.loaded_plugins())


def load_installed_plugins() -> None:
    """Loads what installed packages offer as entry points of the group ``foretune.plugins``, once.

    Not when the package is imported, because asking for entry points reads the list of every
    installed package, but when something is first called that plug-ins may extend. An entry point
    is the path of a shared object or a function that returns it. One that cannot be loaded is a
    warning, so that a package that nobody uses just now stops nothing.
    """
    global _is_done, _is_busy
    if _is_done:
        return
    with _lock:
        # An entry point may call what comes here again.
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
