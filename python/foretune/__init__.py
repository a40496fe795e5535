"""Foretune learns which kernel is fastest and picks it before anything runs.

The pipeline, step by step::

    collector = foretune.MatmulDatasetCollector(mode=foretune.CollectionMode.LOG_NORMAL,
                                                num_shapes=100, seed=50, max_flops=1e9)
    summary = collector.collect("train.ftd", budget="2m")
    model = foretune.train(foretune.Dataset.open("train.ftd"))
    model.save("gemm.ftm")
    choice = foretune.Selector(model).select("gemm m=96 n=768 k=512")

The C++ library computes everything. Its errors become exceptions that carry its message; all derive
from ``foretune.Error``. Every class documents its thread safety.
"""

from typing import TYPE_CHECKING, Any

from . import _foretune
from ._collector import CollectionMode, CollectionSummary, MatmulDatasetCollector, families
from ._convolution import (ConvDispatcher, Convolution, conv, conv_input_gradient,
                           conv_weight_gradient)
from ._dataset import OUTCOMES, STAGES, Dataset, ImportReport
from ._errors import (CancelledError, CorruptDataError, Error, InputOutputError, InternalError,
                      InvalidArgumentError, MismatchError, NotFoundError, UnsupportedError)
from ._exported_layers import exported_layers
from ._feature_engine import (FeatureEngine, GemmUniversalFeatureEngine,
                              GroupedConvFeatureEngine)
from ._features import Feature, FeatureTable, feature_table, feature_tables, register_features
from ._model import Choice, Evaluation, Model, Selector, evaluate, select, train
from ._plugins import load_plugin, loaded_plugins
from ._predictor import Predictor, RankedKernel
from ._problem import problem_text
from ._registered_model import TrainingRows, register_model
from ._tuning import MeasuredConfig, TunedConfig, TuneResult, measure, tune

if TYPE_CHECKING:
    from ._autotune import autotune

__version__: str = _foretune.version

__all__ = [
    "OUTCOMES", "STAGES", "CancelledError", "Choice", "CollectionMode", "CollectionSummary",
    "ConvDispatcher", "Convolution", "CorruptDataError", "Dataset", "Error", "Evaluation",
    "Feature", "FeatureEngine", "FeatureTable", "GemmUniversalFeatureEngine",
    "GroupedConvFeatureEngine", "ImportReport", "InputOutputError", "InternalError",
    "InvalidArgumentError", "MatmulDatasetCollector", "MeasuredConfig", "MismatchError", "Model",
    "NotFoundError", "Predictor", "RankedKernel", "Selector", "TrainingRows", "TuneResult",
    "TunedConfig", "UnsupportedError", "autotune", "conv", "conv_input_gradient",
    "conv_weight_gradient", "evaluate", "exported_layers", "families", "feature_table",
    "feature_tables", "load_plugin", "loaded_plugins", "measure", "problem_text",
    "register_features", "register_model", "select", "train", "tune",
]


def __getattr__(name: str) -> Any:
    # Importing the autotuner eagerly would triple the package's import time.
    if name == "autotune":
        from ._autotune import autotune

        globals()[name] = autotune
        return autotune
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
