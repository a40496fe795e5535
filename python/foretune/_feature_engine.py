"""Feature engines as Composable Kernel's heuristics have them: features of a problem with a kernel,
by name, for models that these heuristics trained."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError
from ._kernel_names import kernel_name
from ._problem import problem_text

Row = Mapping[str, Any]


class FeatureEngine(ABC):
    """Computes the features of a problem with a kernel.

    A subclass names its features and computes them; ``Predictor(directory, feature_engine=engine)``
    then predicts with a directory of LightGBM models that were trained on such features::

        class StreamKFeatureEngine(foretune.FeatureEngine):
            def get_feature_names(self):
                return ["M", "N", "K", "split_factor"]

            def extract(self, problem, kernel):
                return np.array([problem["m"], problem["n"], problem["k"], kernel["split_factor"]])

    Thread safety: that of the subclass.
    """

    ENCODING_VERSION = 0
    """Grows when a feature changes its meaning under the same name. A model says with which version it
    was trained, and ``Predictor`` refuses another."""

    @abstractmethod
    def get_feature_names(self) -> list[str]:
        """Returns the names of the features, in order."""

    def get_categorical_features(self) -> list[str]:
        """Returns the names of the features that are codes without an order."""
        return []

    @abstractmethod
    def extract(self, problem: Row, kernel: Row) -> npt.NDArray[np.float64]:
        """Returns the features of one problem with one kernel, an array [feature]."""

    def extract_batch(self, rows: Any) -> npt.NDArray[np.float64]:
        """Returns the features of many pairs, an array [row, feature].

        Args:
            rows: a table (``pandas.DataFrame``), or mappings, that have what is known of the problem
                and of the kernel side by side.
        """
        records = rows.to_dict("records") if hasattr(rows, "to_dict") else list(rows)
        out = np.zeros((len(records), len(self.get_feature_names())), dtype=np.float64)
        for i, record in enumerate(records):
            out[i] = self.extract(record, record)
        return out

    def get_parameter_space(self) -> dict[str, list[Any]]:
        """Returns the values that parameters of kernels may take; empty where everything may be."""
        return {}

    def get_constraints(self) -> list[Callable[[Row], bool]]:
        """Returns functions that say whether a combination of values is legal."""
        return []

    def validate_config(self, config: Row) -> bool:
        """Returns True when all values are in the parameter space and all constraints hold."""
        space = self.get_parameter_space()
        return (all(config[name] in values for name, values in space.items() if name in config)
                and all(constraint(config) for constraint in self.get_constraints()))

    def project_to_valid(self, config: Row) -> dict[str, Any]:
        """Returns the config with the nearest values of the parameter space; a label that is not in it
        becomes the first."""
        out = dict(config)
        for name, values in self.get_parameter_space().items():
            if name not in out or not values:
                continue
            if isinstance(values[0], (int, float)):
                out[name] = min(values, key=lambda value: abs(value - out[name]))
            elif out[name] not in values:
                out[name] = values[0]
        return out


class _EngineOfTheirs(FeatureEngine):
    """An engine that a feature table of the library reproduces. Its arguments are numbers of the
    device."""

    _TABLE = ""

    def __init__(self, num_cus: int = 256, lds_capacity: int = 65536, max_clock_mhz: int = 2400,
                 simds_per_cu: int = 4, shader_engines: int = 32, max_waves_per_cu: int = 32,
                 wavefront_size: int = 64, l1_cache_kb: int = 32, l2_cache_kb: int = 4096,
                 l3_cache_kb: int = 262144, num_xcd: int = 8) -> None:
        given = dict(locals())
        defaults = inspect.signature(type(self).__init__).parameters
        self._hardware = {name: int(value) for name, value in given.items()
                          if name in _HARDWARE}
        self._is_default = all(defaults[name].default == value
                               for name, value in self._hardware.items() if name in defaults)

    @property
    def hardware_config(self) -> dict[str, int]:
        """The numbers of the device, as arguments of the constructor."""
        return dict(self._hardware)

    def get_feature_names(self) -> list[str]:
        return _foretune.engine_columns(self._TABLE)[0]

    def get_categorical_features(self) -> list[str]:
        return _foretune.engine_columns(self._TABLE)[1]

    def extract(self, problem: Row, kernel: Row) -> npt.NDArray[np.float64]:
        return self._rows(problem, [kernel])[0]

    def _rows(self, problem: Row, kernels: Sequence[Row]) -> npt.NDArray[np.float64]:
        known = {name: value for name, value in problem.items()
                 if str(name) in _PROBLEM_KEYS}
        if not known:
            raise InvalidArgumentError("the problem has no sizes")
        text = problem_text(known)
        return _foretune.engine_features(
            self._TABLE, json.dumps(self._hardware), text,
            [kernel_name(kernel, text) for kernel in kernels],
            [int(kernel.get("split_k", 1)) for kernel in kernels])


_HARDWARE = tuple(name for name in inspect.signature(_EngineOfTheirs.__init__).parameters
                  if name != "self")
# Columns of tables that describe the problem.
_PROBLEM_KEYS = {"m", "n", "k", "M", "N", "K", "C", "G", "Di", "Hi", "Wi", "Z", "Y", "X", "stride_d",
                 "stride_h", "stride_w", "pad_d", "pad_h", "pad_w", "dilation_d", "dilation_h",
                 "dilation_w", "dtype", "layout", "direction", "variant", "op"}


class GemmUniversalFeatureEngine(_EngineOfTheirs):
    """The engine of Composable Kernel's GEMMs, with 72 features. Problems are mappings with ``m``,
    ``n`` and ``k``; kernels have a ``kernel_name``, or its parts (``tile_m``, ``pipeline``, ...)."""

    _TABLE = "gemm-ck-72"


class GroupedConvFeatureEngine(_EngineOfTheirs):
    """The engine of Composable Kernel's convolutions, with 97 features, among which are those of its
    earlier versions. Problems are mappings with ``N``, ``C``, ``K``, ``Hi``, ...; kernels have a
    ``kernel_name``, or its parts (``block_size``, ``gemm_m_per_block``, ``pipeline``, ...)."""

    _TABLE = "grouped-conv-ck-97"
