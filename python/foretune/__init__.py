"""Foretune learns which kernel is fastest and picks it before anything runs.

The pipeline, step by step::

    collector = foretune.MatmulDatasetCollector(mode=foretune.CollectionMode.LOG_NORMAL,
                                                num_shapes=100, seed=50, max_flops=1e9)
    summary = collector.collect("train.ftd", budget="2m")
    model = foretune.train(foretune.Dataset.open("train.ftd"))
    model.save("gemm.ftm")
    choice = foretune.Selector(model).select("gemm m=96 n=768 k=512")

Everything is computed by the C++ library; its errors are exceptions with its sentence, all derived
from ``foretune.Error``. What may be called from several threads at once is said with every class.
"""

from typing import TYPE_CHECKING, Any

from . import _foretune
from ._collector import CollectionMode, CollectionSummary, MatmulDatasetCollector, families
from ._dataset import OUTCOMES, STAGES, Dataset, ImportReport
from ._errors import (CancelledError, CorruptDataError, Error, InputOutputError, InternalError,
                      InvalidArgumentError, MismatchError, NotFoundError, UnsupportedError)
from ._model import (Choice, Evaluation, Model, Predictor, RankedKernel, Selector, evaluate, select,
                     train)
from ._plugins import load_plugin, loaded_plugins
from ._problem import problem_text

if TYPE_CHECKING:
    from ._autotune import autotune

__version__: str = _foretune.version

__all__ = [
    "OUTCOMES", "STAGES", "CancelledError", "Choice", "CollectionMode", "CollectionSummary",
    "CorruptDataError", "Dataset", "Error", "Evaluation", "ImportReport", "InputOutputError",
    "InternalError", "InvalidArgumentError", "MatmulDatasetCollector", "MismatchError", "Model",
    "NotFoundError", "Predictor", "RankedKernel", "Selector", "UnsupportedError", "autotune",
    "evaluate", "families", "load_plugin", "loaded_plugins", "problem_text", "select", "train",
]


def __getattr__(name: str) -> Any:
    # Tuning Triton kernels is two thirds of what importing all would take.
    if name == "autotune":
        from ._autotune import autotune

        globals()[name] = autotune
        return autotune
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
