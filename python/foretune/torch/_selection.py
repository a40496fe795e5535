"""Selects Inductor's choices to keep by a ranking. Does not import torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._tile import PARAMETERS
from ._problem import Abstention
from ._ranking import LIBRARY, Words

# Inductor's templates by uid, as the parameter ``template`` of a config numbers them.
TEMPLATES = {"triton::mm": 1, "triton::bmm": 1, "triton::mm_persistent_tma": 2}
LIBRARY_PREFIX = "aten::"
NO_TEMPLATE = "Inductor offers no template that the model knows"
# The choice that passes a bias of one row to cuBLASLt; usually faster than the general choice.
_BIAS_IN_LIBRARY = "aten::bias_addmm"
# The keyword of a template for each parameter. Those of the tile are in capitals.
_KEYWORDS = tuple(name if name.startswith("num_") else name.upper() for name in PARAMETERS)


@dataclass(frozen=True)
class Selection:
    """The kept candidates of an operation."""

    choices: list[Any]
    """Inductor's own objects, unchanged, best first."""
    picks: tuple[str, ...]
    """The texts of ``choices``."""
    candidates: int
    """Number of configs of the offered templates that the model ranked."""
    speedup: float | None
    """Predicted speed of the first pick over ATen, 1 for ATen itself; None when the model does not
    know ATen."""
    library_alone: bool
    """True when only ATen is kept, so that nothing has to be measured."""


def words_of(template: int, keywords: Mapping[str, Any]) -> Words | None:
    """Returns the config of a template's keywords; None when a keyword is missing, or the choice is
    for one of several size hints."""
    if keywords.get("hint_override") is not None:
        return None
    try:
        return (template, *(int(keywords[name]) for name in _KEYWORDS))
    except (KeyError, TypeError, ValueError):
        return None


def text_of(uid: str, words: Words) -> str:
    """Returns a config as text, such as ``triton::mm block_m=128 block_n=256 block_k=64 group_m=8
    num_stages=3 num_warps=8``."""
    return uid + "".join(f" {name}={word}" for name, word in zip(PARAMETERS, words[1:]))


def select(offered: Mapping[str, Iterable[Any]], scores: Mapping[Words, float], k: int, *,
           knows_library: bool, tolerance: float = math.inf) -> Selection:
    """Selects the best ``k`` of the choices that Inductor offers for an operation.

    Args:
        offered: choices by the uid of their template. Generators are consumed, except those of
            templates where only ATen is sure to be kept. Only ``params.to_kwargs()`` of a choice is
            used. Choices that the model ranks low may be missing.
        scores: scores of the model's configs; lower is better.
        k: how many to keep. All of ATen's choices count as one and are kept wherever ``k`` is
            above 1; with 1 only the winner is kept.
        knows_library: True when ``scores`` contain ATen.
        tolerance: templates that are expected to take more than this share longer than ATen are
            not kept.

    Raises:
        Abstention: the model knows none of the offered choices.
    """
    library = [(uid, choice) for uid, choices in offered.items()
               if uid.startswith(LIBRARY_PREFIX) for choice in choices]
    # The order of ATen's two choices differs between versions of Inductor.
    library.sort(key=lambda entry: entry[0] != _BIAS_IN_LIBRARY)
    library_score = scores.get(LIBRARY) if knows_library and library else None
    on_offer = {TEMPLATES[uid] for uid in offered if uid in TEMPLATES}
    of_templates = [score for words, score in scores.items() if words[0] in on_offer]
    candidates = len(of_templates)
    # With k = 1 a template must be strictly faster: a tie goes to ATen.
    slowest = math.inf
    if library_score is not None:
        slowest = (math.nextafter(library_score, -math.inf) if k == 1
                   else library_score + math.log1p(tolerance))
    if of_templates and min(of_templates) > slowest:
        return _library_alone(library, candidates)
    ranked = _ranked(offered, scores)
    if not ranked:
        raise Abstention(NO_TEMPLATE)
    best = [entry for entry in ranked[: k - 1 if library and k > 1 else k] if entry[0] <= slowest]
    if not best:
        return _library_alone(library, candidates)
    if k == 1:
        score, _, uid, words, choice = best[0]
        return Selection([choice], (text_of(uid, words),), candidates,
                         _speedup(library_score, score), False)
    kept = [(score, uid if words is None else text_of(uid, words), choice)
            for score, uid, words, choice in _entries(library, library_score, best)]
    return Selection([choice for _, _, choice in kept], tuple(text for _, text, _ in kept),
                     candidates, _speedup(library_score, kept[0][0]), False)


def _ranked(offered: Mapping[str, Iterable[Any]],
            scores: Mapping[Words, float]) -> list[tuple[float, int, str, Words, Any]]:
    """Returns the templates' choices that have a score, best first, as (score, position, uid,
    config, choice)."""
    ranked: list[tuple[float, int, str, Words, Any]] = []
    for uid, choices in offered.items():
        if uid not in TEMPLATES:
            continue
        for choice in choices:
            words = words_of(TEMPLATES[uid], choice.params.to_kwargs())
            score = math.inf if words is None else scores.get(words, math.inf)
            if words is not None and math.isfinite(score):
                ranked.append((score, len(ranked), uid, words, choice))
    return sorted(ranked, key=lambda entry: entry[:2])


def _library_alone(library: Sequence[tuple[str, Any]], candidates: int) -> Selection:
    # The sorting in select() put the usually faster choice first.
    name, choice = library[0]
    return Selection([choice], (name,), candidates, 1.0, True)


def _entries(library: Sequence[tuple[str, Any]], library_score: float | None,
             best: Sequence[tuple[float, int, str, Words, Any]],
             ) -> list[tuple[float, str, Words | None, Any]]:
    """Returns ATen's choices and the best templates, best prediction first; ATen comes last where
    the model does not know it."""
    entries: list[tuple[float, str, Words | None, Any]] = [
        (score, uid, words, choice) for score, _, uid, words, choice in best]
    of_library = [(math.inf if library_score is None else library_score, uid, None, choice)
                  for uid, choice in library]
    # The sort is stable: ATen comes before a template of the same score.
    return sorted([*of_library, *entries], key=lambda entry: entry[0])


def _speedup(library_score: float | None, score: float) -> float | None:
    return None if library_score is None else math.exp(library_score - score)
