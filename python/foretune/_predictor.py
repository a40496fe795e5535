"""Predictors: kernels that the caller names, ranked by models of either kind."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._errors import InvalidArgumentError, MismatchError, NotFoundError
from ._feature_engine import FeatureEngine, GemmUniversalFeatureEngine, GroupedConvFeatureEngine
from ._kernel_names import kernel_name
from ._model import Config, Model, Selector
from ._problem import Problem, problem_text

# Models of a directory that foretune trained, in the order of preference.
_TARGETS = ("time", "tflops", "latency", "bandwidth")
# Engines that the library itself computes, unless a subclass changes them.
_KNOWN_ENGINES = (GemmUniversalFeatureEngine, GroupedConvFeatureEngine)
# The keys of Predictor.predict_all().
_KEYS = {"tflops": "tflops", "latency": "latency_ms", "bandwidth": "bandwidth_gb_s"}


class RankedKernel(NamedTuple):
    """One line of a ranking."""

    name: str
    prediction: float


class Predictor:
    """Ranks the kernels of a problem by a model's predictions.

    Args:
        model: a Foretune model (``Model``, or the path of a ``.ftm`` file), or the path of a
            directory: of LightGBM models that composable_kernel's heuristics trained
            (``model_tflops.lgbm[.gz]`` beside ``feature_spec.json``), or of ``foretune train
            --out-dir``.
        feature_engine: computes the features of a directory's models. ``GemmUniversalFeatureEngine``
            and ``GroupedConvFeatureEngine`` are what such directories take anyway; with arguments
            they set the numbers of the device. Another ``FeatureEngine`` computes whatever the models
            were trained on.

    ``unit`` names the unit of predictions; larger is always better:

    - ``tflops``: 10^12 floating-point operations per second; for models of times (target ``log``),
      of TFLOPS, and for directories;
    - ``relative speed``: the best time of the problem divided by the config's time, 1 for the best
      (target ``relative-log``); models with other targets have a scale of their own for each
      problem.

    Raises:
        MismatchError: the engine lacks features of the models, or has another encoding version.

    Thread safety: any number of threads may use a predictor at once; other threads run meanwhile.
    """

    __slots__ = ("_columns", "_directory", "_documents", "_engine", "_foreign", "_model",
                 "_selector", "_targets", "unit")

    unit: str

    def __init__(self, model: Model | str | os.PathLike[str],
                 feature_engine: FeatureEngine | None = None) -> None:
        self._foreign: _foretune.ForeignModels | None = None
        self._directory: _foretune.ModelDirectory | None = None
        self._documents: _foretune.ModelDirectory | None = None
        self._engine: FeatureEngine | None = None
        self._columns: list[int] = []
        self._model: Model | None = None
        self._selector: Selector | None = None
        self._targets: dict[str, Model] = {}
        if not isinstance(model, Model) and os.path.isdir(model):
            path = os.fspath(model)
            if feature_engine is not None and type(feature_engine) not in _KNOWN_ENGINES:
                self._open_with_engine(path, feature_engine)
                return
            if self._open_trained(path):
                return
            hardware = ""
            if isinstance(feature_engine, _KNOWN_ENGINES) and not feature_engine._is_default:
                hardware = json.dumps(feature_engine.hardware_config)
            self._foreign = _foretune.open_foreign_models(path, hardware)
            self.unit = "tflops"
            return
        if feature_engine is not None:
            raise InvalidArgumentError("a feature engine is for a directory of models; a model file "
                                       "computes its own features")
        self._use(model if isinstance(model, Model) else Model.open(model))

    def _use(self, model: Model) -> None:
        self._model = model
        # A model that a selector cannot use can still rank configs that the caller names.
        if model._native.is_lasting:
            self._selector = Selector(model)
        rate = model._native.learned_rate()
        is_rate = rate is not None and rate[0] == "tflops"
        self.unit = "tflops" if model.info["target"] == "log" or is_rate else "relative speed"

    def _open_trained(self, path: str) -> bool:
        """Takes the model files of a directory without LightGBM text; returns False without any."""
        if any(name.startswith("model_") and name.endswith((".lgbm", ".lgbm.gz"))
               for name in os.listdir(path)):
            return False
        for target in _TARGETS:
            file = os.path.join(path, f"model_{target}.ftm")
            if os.path.exists(file):
                self._targets[target] = Model.open(file)
        if self._targets:
            if os.path.exists(os.path.join(path, "feature_spec.json")):
                self._documents = _foretune.read_model_documents(path)
            self._use(self._targets.get("tflops") or next(iter(self._targets.values())))
        return bool(self._targets)

    def _open_with_engine(self, path: str, engine: FeatureEngine) -> None:
        self._directory = _foretune.read_model_directory(path)
        self._engine = engine
        self.unit = "tflops"
        version = json.loads(self._directory.encoding_version_json or "0")
        if version != engine.ENCODING_VERSION:
            raise MismatchError(f"{type(engine).__name__} has encoding version "
                                f"{engine.ENCODING_VERSION}, the models in {path} were trained with "
                                f"{version}: features of one name mean different things")
        places = {name: i for i, name in enumerate(engine.get_feature_names())}
        if missing := [name for name in self._directory.feature_names if name not in places]:
            raise MismatchError(f"{type(engine).__name__} does not compute {', '.join(missing[:5])}"
                                f"{' ...' if len(missing) > 5 else ''}, on which the models in {path} "
                                "were trained")
        self._columns = [places[name] for name in self._directory.feature_names]

    @property
    def targets(self) -> list[str]:
        """The targets that a directory has models for; for a Foretune model, only its unit."""
        if self._directory is not None:
            return self._directory.targets
        if self._targets:
            return list(self._targets)
        return [self.unit] if self._foreign is None else self._foreign.targets

    def predict(self, problem: Problem, configs: Sequence[Config],
                target: str | None = None) -> npt.NDArray[np.float64]:
        """Returns the predictions for ``configs``, in their order, in ``unit``.

        Args:
            problem: text or mapping (``foretune.problem_text``).
            configs: texts, or mappings. For a Foretune model, a mapping holds the parameters of its
                config schema by name; further keys are ignored. For a directory, kernel names, or
                mappings with ``kernel_name`` (and ``split_k``, for a GEMM), such as rows of tables, or
                with the parts of the name (``block_size``, ``pipeline``, ...).
            target: a target of the directory, ``tflops`` by default; ``latency`` and ``bandwidth``
                are in the unit that the model learnt.

        Raises:
            InvalidArgumentError: a config lacks a parameter, or its name makes no sense.
            MismatchError: the problem has another type than the model.
        """
        if self._directory is not None:
            return self._predict_by_engine(problem, configs, target or "tflops")
        if self._foreign is not None:
            return self._predict_foreign(self._foreign, problem, configs, target or "tflops")
        model = self._model
        unit = self.unit
        if target is not None and target in self._targets:
            model, unit = self._targets[target], target
        elif target is not None and target != self.unit:
            if self._targets:
                raise NotFoundError(f"there is no model for '{target}'; there are "
                                    f"{', '.join(self._targets)}")
            raise InvalidArgumentError(f"this model predicts {self.unit}, not '{target}'")
        assert model is not None
        names = model._native.config_columns()
        text = self._text_of(problem)
        self._check_type(text)
        scores = model._native.score(text, [self._config_text(entry, names, text)
                                            for entry in configs])
        return self._in_unit(text, scores, model, unit)

    def predict_tflops(self, problem: Problem, kernel: Config) -> float:
        """Returns the predicted TFLOPS of one kernel."""
        return float(self.predict(problem, [kernel], "tflops")[0])

    def predict_latency(self, problem: Problem, kernel: Config) -> float:
        """Returns the predicted latency of one kernel in milliseconds, by a directory's model of it."""
        return float(self.predict(problem, [kernel], "latency")[0])

    def predict_bandwidth(self, problem: Problem, kernel: Config) -> float:
        """Returns the predicted GB/s of one kernel, by a directory's model of them."""
        return float(self.predict(problem, [kernel], "bandwidth")[0])

    def predict_all(self, problem: Problem, kernel: Config) -> dict[str, float]:
        """Returns ``tflops``, ``latency_ms`` and ``bandwidth_gb_s`` of one kernel, those that there are
        models for."""
        return {key: float(self.predict(problem, [kernel], target)[0])
                for target, key in _KEYS.items() if target in self.targets}

    def rank_kernels(self, problem: Problem,
                     configs: Sequence[Config] | None = None) -> list[RankedKernel]:
        """Returns the kernels, best first, as ``(name, prediction)``. It does not check that the
        kernels of ``configs`` can run the problem.

        Args:
            problem: as in ``predict``.
            configs: as in ``predict``. None takes the configs of the model's pool that are legal
                for the problem; a directory of others has no pool.

        Raises:
            As ``predict``.
        """
        if configs is None:
            if self._model is not None and self._selector is None:
                self._selector = Selector(self._model)
            if self._selector is None:
                raise InvalidArgumentError("a directory of models has no kernels of its own to rank")
            assert self._model is not None
            text = self._text_of(problem)
            self._check_type(text)
            ranked = self._selector.rank(text)
            values = self._in_unit(text, np.array([score for _, score in ranked]), self._model,
                                   self.unit)
            return [RankedKernel(name, float(value))
                    for (name, _), value in zip(ranked, values)]
        values = self.predict(problem, configs)
        order = np.argsort(-values, kind="stable")
        names = [_name_of(entry) for entry in configs]
        return [RankedKernel(names[i], float(values[i])) for i in order]

    def select_best(self, problem: Problem,
                    configs: Sequence[Config] | None = None) -> RankedKernel | None:
        """Returns the first of ``rank_kernels``; None when there is nothing to rank."""
        ranked = self.rank_kernels(problem, configs)
        return ranked[0] if ranked else None

    def _text_of(self, problem: Problem) -> str:
        return problem_text(problem) if self._documents is None else _text_for(self._documents,
                                                                               problem)

    def _check_type(self, text: str) -> None:
        assert self._model is not None
        wanted = self._model.info["problem_type"]
        if text.split()[0] != wanted:
            raise MismatchError(f"the model is for {wanted} problems, not for '{text}'")

    def _in_unit(self, text: str, scores: npt.NDArray[np.float64], model: Model,
                 unit: str) -> npt.NDArray[np.float64]:
        rate = model._native.learned_rate()
        if rate is not None and rate[0] == unit:
            learned = scores / rate[2]
            return np.maximum(0.0, np.expm1(learned) if rate[1] else learned)
        if unit == "tflops":
            return _foretune.problem_flops(text) / np.exp(scores) * 1e-3
        return np.exp(-scores)

    def _config_text(self, config: Config, names: Sequence[str], problem: str) -> str:
        """Returns a config of a Foretune model as text. Kernels of a trained directory may go by their
        names."""
        if isinstance(config, str) and (not self._targets or "=" in config):
            return config
        given = {"kernel_name": config} if isinstance(config, str) else config
        missing = [name for name in names if name not in given]
        if missing and self._targets and (name := kernel_name(given, problem)):
            split_k = int(given.get("split_k", 1))
            return _foretune.config_of_kernel(name, split_k)
        if missing:
            raise InvalidArgumentError("a config lacks " + ", ".join(missing))
        return " ".join(f"{name}={given[name]}" for name in names)

    def _predict_foreign(self, models: _foretune.ForeignModels, problem: Problem,
                         configs: Sequence[Config], target: str) -> npt.NDArray[np.float64]:
        split_k = [int(entry.get("split_k", 1)) if isinstance(entry, Mapping) else 1
                   for entry in configs]
        text = _text_for(models, problem)
        names = [entry if isinstance(entry, str) else kernel_name(entry, text) or _name_of(entry)
                 for entry in configs]
        return models.predict(target, text, names, split_k)

    def _predict_by_engine(self, problem: Problem, configs: Sequence[Config],
                           target: str) -> npt.NDArray[np.float64]:
        assert self._directory is not None and self._engine is not None
        if not isinstance(problem, Mapping):
            raise InvalidArgumentError("a feature engine takes problems as mappings")
        known = {**problem}
        known.setdefault("dtype", self._directory.dtype)
        if (self._directory.direction not in ("", "mixed")
                and not any(_has(problem, name) for name in ("direction", "variant", "op"))):
            known["direction"] = self._directory.direction
        rows = [{"kernel_name": entry, **known} if isinstance(entry, str) else {**entry, **known}
                for entry in configs]
        if not rows:
            return np.zeros(0)
        values = np.ascontiguousarray(self._engine.extract_batch(_table_of(rows)), dtype=np.float64)
        wanted = (len(rows), len(self._engine.get_feature_names()))
        if values.shape != wanted:
            raise InvalidArgumentError(f"the feature engine returned an array of shape "
                                       f"{values.shape} instead of {wanted}")
        return self._directory.predict(target, np.ascontiguousarray(values[:, self._columns]))


def _text_for(models: _foretune.ForeignModels | _foretune.ModelDirectory, problem: Problem) -> str:
    """Returns a problem with what a directory says of all of its problems."""
    operation = models.direction if models.direction not in ("", "mixed") else None
    if (isinstance(problem, Mapping) and not _has(problem, "dtype")
            and models.dtype not in ("", "mixed")):
        problem = {**problem, "dtype": models.dtype}
    return problem_text(problem, operation)


def _table_of(rows: list[dict[str, Any]]) -> Any:
    """Returns the rows as a pandas table, which engines of composable_kernel expect, where pandas is
    installed."""
    try:
        import pandas as pd
    except ImportError:
        return rows
    return pd.DataFrame(rows)


def _has(mapping: Mapping[str, Any], name: str) -> bool:
    return any(str(key).lower() == name for key in mapping)


def _name_of(config: Config) -> str:
    if isinstance(config, str):
        return config
    for key in ("kernel_name", "kernel", "name"):
        if key in config:
            return str(config[key])
    return " ".join(f"{key}={value}" for key, value in config.items())
