"""The process that measures."""

from __future__ import annotations

import os
import sys

from . import _foretune
from ._plugins import loaded_plugins

# Source of the process that measures. It imports only the extension module, from the folder that
# this process took it from, so that it starts fast. Its parent ends it, so it ignores Ctrl-C.
_WORKER = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.insert(0, sys.argv[1])
import _foretune
for plugin in sys.argv[2:]:
    _foretune.load_plugin(plugin)
sys.exit(_foretune.run_worker())
"""


def worker_command() -> list[str]:
    """Returns the command that starts a worker with the plug-ins of this process."""
    return [sys.executable, "-I", "-c", _WORKER, os.path.dirname(_foretune.__file__),
            *loaded_plugins()]
