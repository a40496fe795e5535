"""What a model says to a problem, by the words of its configs."""

from __future__ import annotations

import hashlib

import numpy as np

from .._errors import UnsupportedError
from .._model import Model, Selector
from ._problem import Abstention

Words = tuple[int, ...]
"""A config: template, block_m, block_n, block_k, group_m, num_stages, num_warps."""

PARAMETERS = ("block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps")
LIBRARY: Words = (0,) * 7
"""The choice of the vendor's library: ATen."""


class Ranker:
    """Ranks the configs that a model knows; configs of no data are never ranked.

    Args:
        model: of the parameters ``PARAMETERS``, with or without ``template``.

    Raises:
        UnsupportedError: the model's configs are others.

    Thread safety: any number of threads may ask at once; a problem may then be ranked twice.
    """

    def __init__(self, model: Model) -> None:
        names = tuple(model._native.config_columns())
        if names not in (PARAMETERS, ("template", *PARAMETERS)):
            raise UnsupportedError(
                "the model ranks configs of " + ", ".join(names) + ", which are not those of "
                "Triton's GEMM templates (template, " + ", ".join(PARAMETERS) + ")")
        self.knows_library = names[0] == "template"
        self.device = str(model.info["device"])
        self.fingerprint = hashlib.sha256(model.to_bytes()).hexdigest()[:16]
        self._selector = Selector(model)
        self._words: dict[str, Words] = {}
        self._ranked: dict[str, dict[Words, float] | str] = {}
        self._ordered: dict[str, dict[int, list[Words]]] = {}

    def rank(self, problem: str) -> dict[Words, float]:
        """The legal configs of the model's pool with their scores: natural logarithms of time, up
        to a constant of the problem. Remembered by problem.

        Raises:
            Abstention: the model does not cover the problem.
            foretune.Error: the problem is none.
        """
        found = self._ranked.get(problem)
        if found is None:
            found = self._rank(problem)
            self._ranked[problem] = found
        if isinstance(found, str):
            raise Abstention(found)
        return found

    def ordered(self, problem: str) -> dict[int, list[Words]]:
        """By template, its configs, best first. Remembered by problem.

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
        choice = self._selector.select(problem)
        if not choice.picked and " op=addmm " in problem:
            # A row of bias is nothing beside the matrices: as good as the product without it.
            problem = problem.replace(" op=addmm ", " op=mm ")
            choice = self._selector.select(problem)
        if not choice.picked:
            return choice.reason or "The model does not say why it abstains."
        texts, scores = self._selector._native.rank(problem)
        ranked: dict[Words, float] = {}
        for text, score in zip(texts, np.asarray(scores).tolist()):
            words = self._words.get(text)
            if words is None:
                words = self._words[text] = self._parse(text)
            ranked[words] = score
        return ranked

    def _parse(self, text: str) -> Words:
        words = tuple(int(word.rpartition("=")[2]) for word in text.split())
        return words if self.knows_library else (1, *words)
