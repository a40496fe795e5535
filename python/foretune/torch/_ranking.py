"""What a model says to a problem, by the words of its configs."""

from __future__ import annotations

import math

from .._errors import UnsupportedError
from .._model import Model, Selector
from ._problem import Abstention

Words = tuple[int, ...]
"""A config: template, block_m, block_n, block_k, group_m, num_stages, num_warps."""

PARAMETERS = ("block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps")
FLAGS = ("even_k", "allow_tf32", "use_fast_accum", "acc_type")
"""Behind ``PARAMETERS`` in torch-diode's data; Inductor sets them by itself."""
LIBRARY: Words = (0,) * 7
"""The choice of the vendor's library: ATen."""


class Ranker:
    """Ranks the configs that a model knows; configs of no data are never ranked.

    Args:
        model: of the parameters ``PARAMETERS``, alone, behind ``template`` or before ``FLAGS``. Of
            configs that differ in their flags alone the best one counts.

    Raises:
        UnsupportedError: the model's configs are others.

    Thread safety: any number of threads may ask at once; a problem may then be ranked twice.
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
        selector = self._selector._native
        reason = selector.abstention(problem)
        if reason and " op=addmm " in problem:
            # A row of bias is nothing beside the matrices: as good as the product without it.
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
