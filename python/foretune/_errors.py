"""Exceptions: one class per error code of the library, with the library's message as text."""

from __future__ import annotations


class Error(Exception):
    """Base of all exceptions that foretune itself raises."""


class InvalidArgumentError(Error, ValueError):
    """The caller passed an argument that makes no sense."""


class NotFoundError(Error, LookupError):
    """A file, name or device does not exist."""


class CorruptDataError(Error, ValueError):
    """Data is damaged, truncated, or was never in this format."""


class MismatchError(Error, ValueError):
    """Data is valid by itself, but does not fit the rest: other schema, family or machine."""


class UnsupportedError(Error, NotImplementedError):
    """The request is valid, but not possible here."""


class InputOutputError(Error, OSError):
    """The operating system refused."""


class CancelledError(Error):
    """The operation was stopped on request."""


class InternalError(Error, RuntimeError):
    """A defect in foretune that could be contained."""


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
    """Returns the class for the text of an error code; called by the extension module."""
    return _CLASSES.get(code, InternalError)
