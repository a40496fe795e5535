"""Ranks the configs of a problem by a model; configs are tuples of their values."""

from __future__ import annotations

import math

from .._errors import UnsupportedError
from .._model import Model, Selector
from .._tile import FLAGS, PARAMETERS
from ._problem import Abstention

Words = tuple[int, ...]
"""A config: template, block_m, block_n, block_k, group_m, num_stages, num_warps."""

LIBRARY: Words = (0,) * 7
"""The choice of the vendor's library: ATen."""


class Ranker:
    """Ranks the configs in a model's pool; configs outside its training data are never ranked.

    Args:
        model: a model whose config schema is ``PARAMETERS``, ``template`` and ``PARAMETERS``, or
            ``PARAMETERS`` and ``FLAGS``. Configs that differ only in their flags count as one, with
            the best score.

    Raises:
        UnsupportedError: the model has another config schema.

    Thread safety: any number of threads may rank at once; a problem may then be ranked twice.
    """

    def __init__(self, model: Model) -> None:
        names = tuple(model._native.config_columns())
        if names not in (PARAMETERS, ("template", *PARAMETERS), (*PARAMETERS, *FLAGS)):
            raise UnsupportedError(
                "the model ranks configs of " + ", ".join(names) + ", which are not those of "
                "Triton's GEMM templates (template, " + ", ".join(PARAMETERS) + ")")
        self.knows_library = names[0] == "template"
        self.device = str(model.info["device"])
        self._selector = Selector(model)
        self._ranked: dict[str, dict[Words, float] | str] = {}
        self._ordered: dict[str, dict[int, list[Words]]] = {}

    def rank(self, problem: str) -> dict[Words, float]:
        """Returns the legal configs of the model's pool with their scores: natural logarithms of
        time, up to a constant of the problem. Results are cached by problem.

        Raises:
            Abstention: the model does not cover the problem.
            foretune.Error: the text does not describe a problem.
        """
        found = self._ranked.get(problem)
        if found is None:
            found = self._rank(problem)
            self._ranked[problem] = found
        if isinstance(found, str):
            raise Abstention(found)
        return found

    def ordered(self, problem: str) -> dict[int, list[Words]]:
        """Returns the configs of each template, best first. Results are cached by problem.

        Raises:
            As ``rank``.
        """
        found = self._ordered.get(problem)
        if found is None:
            found = {}
            for words, _ in sorted(self.rank(problem).items(), key=lambda entry: entry[1]):
                found.setdefault(words[0], []).append(words)
            self._ordered[problem] = found
        return found

    def _rank(self, problem: str) -> dict[Words, float] | str:
        selector = self._selector._native
        reason = selector.abstention(problem)
        if reason and " op=addmm " in problem:
            # A row of bias costs next to nothing, so the product without it stands in.
            problem = problem.replace(" op=addmm ", " op=mm ")
            reason = selector.abstention(problem)
        if reason:
            return str(reason)
        configs, scores = selector.rank_words(problem)
        if not len(configs):
            return "No config of the model is legal for the problem."
        template = () if self.knows_library else (1,)
        ranked: dict[Words, float] = {}
        for config, score in zip(configs.tolist(), scores.tolist()):
            words = (*template, *config)[:len(LIBRARY)]
            ranked[words] = min(score, ranked.get(words, math.inf))
        return ranked
