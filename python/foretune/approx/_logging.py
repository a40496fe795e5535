"""Messages on the terminal and in a file."""

from __future__ import annotations

import logging
import os
import pathlib
import time

from .._errors import InputOutputError

__all__ = ["config_pylogger"]

# The handlers of the last call, which the next one replaces.
_handlers: list[logging.Handler] = []


def config_pylogger(filename: str | None = None,
                    output_dir: str | os.PathLike[str] | None = None,
                    verbose: bool = False) -> logging.Logger:
    """Sends messages to the terminal (INFO and above) and appends them to a file; returns the
    logger of the program.

    Another call replaces terminal and file of the one before.

    Args:
        filename: the file's name; None: date and time, such as ``2026.02.28-153059``.
        output_dir: its folder, made where it is missing; None: the current one.
        verbose: also writes messages of DEBUG to the file.

    Raises:
        InputOutputError: the file cannot be written.

    Thread safety: one thread; the logger may be used by any number.
    """
    name = filename or time.strftime("%Y.%m.%d-%H%M%S")
    path = pathlib.Path("." if output_dir is None else output_dir) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = logging.FileHandler(path, mode="a", encoding="utf-8")
    except OSError as failure:
        raise InputOutputError(f"{path} cannot be written: {failure.strerror}") from failure
    file.setLevel(logging.DEBUG if verbose else logging.INFO)
    file.setFormatter(logging.Formatter(
        "%(asctime)s %(levelname)s %(filename)s:%(lineno)d: %(message)s"))
    terminal = logging.StreamHandler()
    terminal.setLevel(logging.INFO)
    terminal.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger()
    for old in _handlers:
        logger.removeHandler(old)
        old.close()
    _handlers[:] = [file, terminal]
    for handler in _handlers:
        logger.addHandler(handler)
    # Other packages' messages of DEBUG are not wanted.
    logger.setLevel(logging.INFO)
    logging.getLogger("foretune").setLevel(logging.DEBUG if verbose else logging.INFO)
    return logger
