"""Feature tables: the inputs of models, listed, computed, and defined in Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _foretune
from ._dataset import Dataset
from ._errors import InvalidArgumentError, NotFoundError
from ._model import Config, Model
from ._plugins import load_installed_plugins
from ._problem import Problem, problem_text

Values = Any  # an array, or a mapping of the columns' names to their values
PairFunction = Callable[[dict[str, Any], dict[str, npt.NDArray[np.int32]], dict[str, float]], Values]
ProblemFunction = Callable[[dict[str, Any], dict[str, float]], Values]


@dataclass(frozen=True)
class Feature:
    """A column of a feature table."""

    name: str
    expression: str = ""
    """Its value, as in ``ceil_div(m, block_m)``; "" where code computes it. ``register_features``
    describes the language."""
    description: str = ""
    """For people, with the unit."""
    kind: str = "both"
    """``problem`` when the value depends on problem and device alone, ``config``, or ``both``.
    ``register_features`` derives the kind of an expression from its names."""
    is_categorical: bool = False
    """True for a code whose order means nothing."""
    may_be_missing: bool = False
    """True where the value may be NaN. All other values are finite."""


@dataclass(frozen=True)
class Fit:
    """Problems and configs that a feature table describes."""

    problem_type: str
    config_schema: str
    """Name of the schema; "" for the parameters that ``register_features`` was given."""
    parameters: tuple[str, ...]
    """Names of the parameters, in order; none for configs that are sequences."""


@dataclass(frozen=True)
class FeatureTable:
    """A feature table of this process.

    Thread safety: any number of threads may use a table at once.
    """

    name: str
    id: int
    """A hash of the name, the columns and the expressions. A model needs the table of its id."""
    features: tuple[Feature, ...]
    """The columns in the order of their kinds: problem, config, both."""
    fits: tuple[Fit, ...]
    """The problems and configs that it describes, among those that this build knows."""
    definition: str
    """The text of a table of expressions, which its models carry; "" for a table that is code."""

    def compute(self, problems: Problem | Sequence[Problem], configs: Config | Sequence[Config],
                device: str | Dataset | Model | None = None, *, pairs: bool = False
                ) -> npt.NDArray[np.float32]:
        """Returns the features, as training and selectors compute them.

        Args:
            problems: problems as texts or mappings (``foretune.problem_text``), or a single one.
            configs: configs as texts or mappings of all parameters, or a single one.
            device: its facts are features, too: the name of a known device (``"h200"``), or a data
                set or model, which stands for its device and its configs; None takes this CPU,
                without measured peaks.
            pairs: True computes config ``i`` for problem ``i`` alone.

        Returns:
            A float32 array [problem, config, feature]; with ``pairs`` [pair, feature]. NaN stands
            for a missing value.

        Raises:
            MismatchError: the table does not describe such problems or configs.
            InvalidArgumentError: a problem or config makes no sense, or the numbers of problems and
                configs differ with ``pairs``.
            NotFoundError: the device is not known.
        """
        problem_list = [problems] if isinstance(problems, (str, Mapping)) else problems
        config_list = [configs] if isinstance(configs, (str, Mapping)) else configs
        if pairs and len(problem_list) != len(config_list):
            raise InvalidArgumentError(f"{len(problem_list)} problems and {len(config_list)} configs "
                                       "are no pairs")
        native = device._native if isinstance(device, (Dataset, Model)) else device
        return _foretune.compute_features(
            self.name, [problem_text(problem) for problem in problem_list],
            [_config_text(config) for config in config_list], native, pairs)


def feature_tables() -> list[FeatureTable]:
    """Returns all feature tables: those of the library, of plug-ins and of ``register_features``.
    ``foretune.train(features=NAME)`` takes each that describes the data set."""
    load_installed_plugins()
    return [_table_of(entry) for entry in _foretune.feature_tables()]


def feature_table(name: str) -> FeatureTable:
    """Returns one table by its name.

    Raises:
        NotFoundError: there is no such table.
    """
    tables = {table.name: table for table in feature_tables()}
    if name not in tables:
        raise NotFoundError(f"there is no feature table '{name}'; there are {', '.join(tables)}")
    return tables[name]


@dataclass(frozen=True)
class _Functions:
    """The functions of a table, and the names of the columns and parameters that they see."""

    of_pairs: PairFunction | None
    of_problem: ProblemFunction | None
    features: tuple[Feature, ...]
    parameters: tuple[str, ...]


_lock = threading.Lock()
_functions: dict[str, _Functions] = {}

Parameters = Union[Dataset, Mapping[str, Sequence[str]], Sequence[str]]


def register_features(name: str, *, problem_type: str, parameters: Parameters,
                      features: Mapping[str, str] | Sequence[Feature],
                      function: PairFunction | None = None,
                      problem_function: ProblemFunction | None = None) -> FeatureTable:
    """Adds a feature table for the rest of the process; ``foretune.train(features=name)`` uses it.

    Without a function every feature is an expression over the fields of the problem, the parameters
    of the config and facts of the device::

        foretune.register_features(
            "tiles", problem_type="gemm", parameters=["block_m", "block_n", "block_k"],
            features={"log2_m": "log2(m)",
                      "tiles": "ceil_div(m, block_m) * ceil_div(n, block_n)",
                      "waves": "ceil_div(m, block_m) * ceil_div(n, block_n) / hw.cores"})

    Models carry such a table, so they run everywhere: in C++, on the command line, in processes that
    never registered it. Numbers are real; there are ``+ - * / %``, comparisons, ``&& || !``,
    ``min(a,b)``, ``max(a,b)``, ``ceil_div(a,b)``, ``round_up(a,b)``, ``select(condition,a,b)`` and
    ``log2(a)``; ``name.label`` is the number of a label, ``hw.cores`` a fact of the device. Division
    by zero yields 0, and so do ``log2`` of a number that is not positive and an unknown fact. A
    parameter hides the field of its name, which ``problem.NAME`` still means.

    With functions, Python computes the features. Every process that uses such a model registers the
    table first, and the command line and C++ refuse the model.

    Args:
        name: name of the table. Features that change their meaning need another one.
        problem_type: type of the problems, such as ``gemm``.
        parameters: all parameters of the configs, in order: names, a mapping of names to labels
            (empty for numbers), or a data set that has such configs.
        features: the columns, or a mapping of names to expressions.
        function: returns the features of kind ``both``: takes the fields of a problem (numbers, and
            labels as texts), the configs as an int32 array [config] for each parameter (labels are
            numbers), and the facts of the device (0 is unknown). Returns an array
            [config, feature], or a mapping of each feature's name to its values [config].
        problem_function: returns those of kind ``problem``: takes the fields and the facts alone,
            returns an array [feature] or a mapping. Selectors abstain from problems with values
            that training never saw.

    Returns:
        The table.

    Raises:
        InvalidArgumentError: another table has the name, an expression makes no sense, or a kind of
            features has no function.
        NotFoundError: there is no such type of problem.

    Thread safety: any number of threads; functions are called with the interpreter's lock by the
    threads that train and select.
    """
    load_installed_plugins()
    columns = ([Feature(str(key), str(value)) for key, value in features.items()]
               if isinstance(features, Mapping) else list(features))
    labels = _labels_of(parameters)
    if function is None and problem_function is None:
        _foretune.register_expressions(name, problem_type, labels, [
            (column.name, column.expression, column.description, column.is_categorical, False)
            for column in columns])
        return feature_table(name)
    _check(name, columns, function, problem_function)
    with _lock:
        _foretune.register_functions(name, problem_type, labels, [
            (column.name, column.kind, column.description or column.name, column.is_categorical,
             column.may_be_missing) for column in columns])
        _functions[name] = _Functions(function, problem_function, tuple(columns),
                                      tuple(parameter for parameter, _ in labels))
    return feature_table(name)


def problem_values(name: str, fields: dict[str, Any], facts: dict[str, float]
                   ) -> npt.NDArray[np.float64]:
    """Returns the features of a problem. The extension module calls this function."""
    functions = _functions_of(name)
    assert functions.of_problem is not None
    return _values(name, [feature for feature in functions.features if feature.kind == "problem"],
                   functions.of_problem(fields, facts), ())


def pair_values(name: str, fields: dict[str, Any], configs: npt.NDArray[np.int32],
                facts: dict[str, float]) -> npt.NDArray[np.float64]:
    """Returns the features of a problem with configs [config, parameter]. The extension module calls
    this function."""
    functions = _functions_of(name)
    assert functions.of_pairs is not None
    columns = {parameter: configs[:, i] for i, parameter in enumerate(functions.parameters)}
    return _values(name, [feature for feature in functions.features if feature.kind == "both"],
                   functions.of_pairs(fields, columns, facts), (len(configs),))


def _functions_of(name: str) -> _Functions:
    with _lock:
        return _functions[name]


def _values(name: str, features: Sequence[Feature], said: Values, rows: tuple[int, ...]
            ) -> npt.NDArray[np.float64]:
    """Returns what a function said as [*rows, feature]; refuses another shape and what is no
    number."""
    wanted = (*rows, len(features))
    if isinstance(said, Mapping):
        if missing := [feature.name for feature in features if feature.name not in said]:
            raise InvalidArgumentError(f"the function of '{name}' leaves out {', '.join(missing)}")
        said = np.stack([np.broadcast_to(np.asarray(said[feature.name], np.float64), rows)
                         for feature in features], axis=-1)
    values = np.ascontiguousarray(said, dtype=np.float64)
    if values.shape != wanted:
        raise InvalidArgumentError(f"the function of '{name}' returned an array of shape "
                                   f"{values.shape} instead of {wanted}")
    for i, feature in enumerate(features):
        column = values[..., i]
        if not np.isfinite(column[~np.isnan(column)] if feature.may_be_missing else column).all():
            raise InvalidArgumentError(f"the feature {feature.name} of '{name}' is no finite number")
    return values


def _check(name: str, features: Sequence[Feature], function: PairFunction | None,
           problem_function: ProblemFunction | None) -> None:
    names = [feature.name for feature in features]
    if not names or len(set(names)) != len(names) or "" in names:
        raise InvalidArgumentError(f"the feature table '{name}' needs features of different names")
    for feature in features:
        if feature.kind not in ("problem", "both") or feature.expression:
            raise InvalidArgumentError(f"the feature {feature.name} of '{name}' has the kind "
                                       f"'{feature.kind}' or an expression; functions compute kinds "
                                       "'problem' and 'both'")
    for kind, given in (("both", function), ("problem", problem_function)):
        if callable(given) != any(feature.kind == kind for feature in features):
            raise InvalidArgumentError(f"the feature table '{name}' has features of kind '{kind}' "
                                       "and no function for them, or the reverse")


def _labels_of(parameters: Parameters) -> list[tuple[str, list[str]]]:
    if isinstance(parameters, Dataset):
        return parameters._native.config_columns()
    if isinstance(parameters, Mapping):
        return [(str(key), [str(label) for label in labels]) for key, labels in parameters.items()]
    return [(str(parameter), []) for parameter in parameters]


def _config_text(config: Config) -> str:
    if isinstance(config, str):
        return config
    return " ".join(f"{key}={value}" for key, value in config.items())


def _table_of(entry: dict[str, Any]) -> FeatureTable:
    expressions = dict(entry["expressions"])
    return FeatureTable(
        name=entry["name"], id=entry["id"], definition=entry["definition"],
        features=tuple(Feature(name, expressions.get(name, ""), description, kind, is_categorical,
                               may_be_missing)
                       for name, kind, description, is_categorical, may_be_missing
                       in entry["columns"]),
        fits=tuple(Fit(problem_type, schema, tuple(parameters))
                   for problem_type, schema, parameters in entry["fits"]))
