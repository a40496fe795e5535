"""Maps the keys and configs of any tiled kernel to those of a matrix product, for its model.

The library's trees use features of a tiled GPU kernel: how many tiles there are, how they fill the
device in waves, how much of them is useful, what a block needs. The same features describe a kernel
with up to four sizes and blocks of them when its sizes take the places of m, n, k and the batch,
and its blocks take those of the tile. Names decide which block belongs to which size (``BLOCK_M``
to ``M``, ``XBLOCK`` to ``xnumel``), then the order does; the parameters without a place share one,
in which their combinations are numbered. Everything but the sizes (other values, constants, data
types) separates scopes, and every scope has a model of its own.

Thread safety: plain values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._autotune_mapping import canonical
from ._tile import PARAMETERS as PARAMETERS

SIZES = ("m", "n", "k", "batch")
_BLOCKS = PARAMETERS[:3]
_LARGEST = 2**31 - 1
_BATCH_NAMES = ("b", "z", "batch", "batchsize", "nbatch", "nbatches")
# Parts of data types' names, longest first, and the library's names.
_DTYPES = (("float8_e4m3", "f8e4m3"), ("float8e4", "f8e4m3"), ("float8_e5m2", "f8e5m2"),
           ("float8e5", "f8e5m2"), ("bfloat16", "bf16"), ("bf16", "bf16"), ("float16", "f16"),
           ("fp16", "f16"), ("float64", "f64"), ("fp64", "f64"), ("int8", "i8"))


@dataclass(frozen=True)
class Layout:
    """Maps sizes and parameters to their places in a matrix product."""

    sizes: tuple[tuple[str, str], ...]
    """Names of an argument and of the problem's field."""
    parameters: tuple[tuple[str, str], ...]
    """Names of a config's parameter and of its place in ``PARAMETERS``."""
    numbered: tuple[str, ...] = ()
    """Parameters without a place; their combinations are numbered in ``group_m``."""
    variants: tuple[str, ...] = ()
    """Canonical texts of those combinations, in the order of their numbers."""

    def problem(self, key: Mapping[str, Any]) -> str:
        """Returns a key as the text of a matrix product."""
        fields = {"m": 1, "n": 1, "k": 1}
        for name, field in self.sizes:
            fields[field] = min(max(int(key["sizes"].get(name, 1)), 1), _LARGEST)
        operation = "bmm" if "batch" in fields else "mm"
        words = [f"{field}={size}" for field, size in fields.items()]
        return " ".join(["gemm", f"op={operation}", *words, f"dtype={_dtype_of(key['dtypes'])}"])

    def words(self, config: Mapping[str, Any]) -> list[int] | None:
        """Returns a config as parameters of a tile, in the order of ``PARAMETERS``; None when a
        value is not a count, or the combination of its numbered values has no number."""
        out = dict.fromkeys(PARAMETERS, 1)
        for name, place in self.parameters:
            value = config.get(name, 0)
            if not _is_count(value):
                return None
            out[place] = min(value, _LARGEST)
        if self.numbered:
            variant = _combination(config, self.numbered)
            if variant not in self.variants:
                return None
            out["group_m"] = self.variants.index(variant) + 1
        return list(out.values())


def size_places(names: Sequence[str],
                keys: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Assigns places to the sizes of a kernel's keys; when there are over four, only to those with
    the most different values.

    Args:
        names: arguments in the order of the user's list.
        keys: keys as in the store.
    """
    seen: dict[str, set[int]] = {}
    for key in keys:
        for name, value in key["sizes"].items():
            seen.setdefault(name, set()).add(value)
    present = [name for name in names if name in seen]
    if len(present) > len(SIZES):
        most = sorted(present, key=lambda name: -len(seen[name]))[:len(SIZES)]
        present = [name for name in present if name in most]
    places: dict[str, str] = {}
    for name in present:
        plain = name.lower().replace("_", "")
        wanted = "batch" if plain in _BATCH_NAMES else plain
        if wanted in SIZES and wanted not in places.values():
            places[name] = wanted
    free = [field for field in SIZES if field not in places.values()]
    for name in present:
        if name not in places:
            places[name] = free.pop(0)
    return tuple((name, places[name]) for name in present)


def scope_of(key: Mapping[str, Any], sizes: Sequence[tuple[str, str]]) -> str:
    """Returns the part of a key that it shares with the keys that its model learns from: everything
    but the sizes that have a place. The two 16-bit data types count as one, since they behave
    alike."""
    placed = {name for name, _ in sizes}
    rest = {name: value for name, value in key["sizes"].items() if name not in placed}
    dtypes = {name: dtype.replace("bfloat16", "float16") for name, dtype in key["dtypes"].items()}
    return canonical([rest, key["values"], key["constants"], dtypes])


def make_layout(sizes: tuple[tuple[str, str], ...],
                configs: Sequence[Mapping[str, Any]]) -> Layout:
    """Assigns places to the parameters of all ``configs``.

    Args:
        sizes: result of ``size_places``.
        configs: keywords of every config.
    """
    names = list(dict.fromkeys(name for config in configs for name in config))
    varying = [name for name in names if len({canonical(c.get(name)) for c in configs}) > 1]
    counts = [name for name in names if all(_is_count(config.get(name)) for config in configs)]
    places: dict[str, str] = {name: name for name in PARAMETERS[4:] if name in counts}
    _place_blocks([name for name in counts if name not in places], sizes, places)
    for name in counts:
        free = [place for place in ("group_m", *_BLOCKS) if place not in places.values()]
        if name in varying and name not in places and free:
            places[name] = free[0]
    numbered = [name for name in varying if name not in places]
    if numbered:
        numbered = [name for name, place in places.items() if place == "group_m"] + numbered
        places = {name: place for name, place in places.items() if place != "group_m"}
    variants = sorted({_combination(config, numbered) for config in configs}, key=_order)
    return Layout(sizes, tuple(places.items()), tuple(numbered),
                  tuple(variants) if numbered else ())


def _place_blocks(names: Sequence[str], sizes: Sequence[tuple[str, str]],
                  places: dict[str, str]) -> None:
    """Places each block at the size that its name matches, the others at free places, and a group
    at ``group_m``."""
    blocks = [name for name in names if _is_block(name)]
    for name in names:
        if "group" in name.lower() and "group_m" not in places.values():
            places[name] = "group_m"
    for name in blocks:
        field = _size_of_block(name, sizes)
        if name not in places and field is not None and f"block_{field}" not in places.values():
            places[name] = f"block_{field}"
    used = {f"block_{field}" for _, field in sizes}
    for name in blocks:
        free = [place for place in _BLOCKS if place not in places.values()]
        free.sort(key=lambda place: place not in used)
        if name not in places and free:
            places[name] = free[0]


def _is_block(name: str) -> bool:
    lower = name.lower()
    return ("group" not in lower and any(word in lower for word in ("block", "tile", "blk"))
            or re.fullmatch(r"b[a-z]|[a-z]b", lower) is not None)


def _size_of_block(name: str, sizes: Sequence[tuple[str, str]]) -> str | None:
    """Returns the field of the size that a block's name refers to; None when none matches."""
    stem = re.sub(r"block|tile|blk|size|_", "", name.lower())
    stem = stem[1:] if re.fullmatch(r"b[a-z]", stem) else stem
    if not stem:
        return None
    words = {field: size.lower().split("_") for size, field in sizes if field != "batch"}
    same = [field for field, parts in words.items() if "".join(parts) == stem]
    begin = [field for field, parts in words.items() if "".join(parts).startswith(stem)]
    part = [field for field, parts in words.items() if stem in parts]
    return next(iter([*same, *begin, *part]), None)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _combination(config: Mapping[str, Any], names: Sequence[str]) -> str:
    return canonical([config.get(name) for name in names])


def _order(combination: str) -> list[tuple[bool, float, str]]:
    """Returns a sort key: numbers by value first, then everything else by its text."""
    return [(not isinstance(value, (int, float)),
             float(value) if isinstance(value, (int, float)) else 0.0, str(value))
            for value in json.loads(combination)]


def _dtype_of(dtypes: Mapping[str, str]) -> str:
    for name in dtypes.values():
        for part, label in _DTYPES:
            if part in name:
                return label
        break
    return "f32"
