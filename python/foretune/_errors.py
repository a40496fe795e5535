"""Exceptions: one class per error code of the library. The text is the library's one sentence."""

from __future__ import annotations


class Error(Exception):
    """Base of everything that foretune raises itself."""


class InvalidArgumentError(Error, ValueError):
    """The caller asked for something that makes no sense."""


class NotFoundError(Error, LookupError):
    """A file, name or device that is not there."""


class CorruptDataError(Error, ValueError):
    """Data that was damaged, truncated, or never was in this format."""


class MismatchError(Error, ValueError):
    """Fits in itself, but not with the rest: other schema, family or machine."""


class UnsupportedError(Error, NotImplementedError):
    """Understood, and not possible here."""


class InputOutputError(Error, OSError):
    """The operating system refused."""


class CancelledError(Error):
    """Stopped on request."""


class InternalError(Error, RuntimeError):
    """A defect of foretune that could be contained."""


_CLASSES: dict[str, type[Error]] = {
    "invalid argument": InvalidArgumentError,
    "not found": NotFoundError,
    "corrupt data": CorruptDataError,
    "mismatch": MismatchError,
    "unsupported": UnsupportedError,
    "input/output error": InputOutputError,
    "cancelled": CancelledError,
    "internal error": InternalError,
}


def error_class(code: str) -> type[Error]:
    """The class for the text of an error code; called by the extension module."""
    return _CLASSES.get(code, InternalError)
