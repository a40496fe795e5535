"""Passes keywords to the library as the options of the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import _foretune


def option_texts(use_case: str, keywords: Mapping[str, object]) -> dict[str, list[str]]:
    """Returns the keywords as options of ``foretune USE_CASE``: names with dashes, and values as
    the command line writes them. Leaves out keywords that are None or False."""
    kinds = {option["name"]: option["kind"] for option in _foretune.options_of(use_case)}
    texts = {}
    for keyword, value in keywords.items():
        if value is None or value is False:
            continue
        name = keyword.replace("_", "-")
        values = _values(value)
        # One text holds a list of numbers or names.
        if kinds.get(name) == "str" and len(values) > 1:
            values = [",".join(values)]
        if values:
            texts[name] = values
    return texts


def _values(value: object) -> list[str]:
    if value is True:
        return ["true"]
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [str(entry) for entry in value]
    return [str(value)]
