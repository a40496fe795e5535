"""Collecting data sets: which problems, which configs, how to measure."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _foretune
from ._dataset import Dataset
from ._errors import InvalidArgumentError
from ._plugins import load_installed_plugins, loaded_plugins

Progress = Callable[[dict[str, Any]], object]

# The process that measures: the compiled part alone, wherever it was imported from, so that it
# starts fast. Whoever started it decides when it ends, so Ctrl-C is none of its business.
_WORKER = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.insert(0, sys.argv[1])
import _foretune
for plugin in sys.argv[2:]:
    _foretune.load_plugin(plugin)
sys.exit(_foretune.run_worker())
"""


class CollectionMode(enum.Enum):
    """Where problems come from."""

    LOG_NORMAL = "log-normal"
    """Sizes drawn log-normally, as workloads have them."""
    RANDOM = "random"
    """Sizes drawn uniformly between ``min_size`` and ``max_size``."""
    OPERATION_SHAPE_SET = "shapeset"
    """Sizes from a file or a built-in set (``shapeset``)."""


@dataclass(frozen=True)
class CollectionSummary:
    """What a collection did. Counts are of measurements unless said otherwise."""

    dataset_path: str
    measured: int
    resumed: int
    """There already, from an earlier run into the same file."""
    problems: int
    """Problems done."""
    outcomes: dict[str, int]
    """Measurements of this run by outcome: ``ok``, ``censored``, ``crashed``, ..."""
    skipped: dict[str, int]
    """Problems left out, by reason."""
    seconds: float
    stopped_by_budget: bool

    def dataset(self) -> Dataset:
        """The data set, read from its file."""
        return Dataset.open(self.dataset_path)


class MatmulDatasetCollector:
    """Measures configs of many matrix products into a data set file.

    The keywords are the options of ``foretune collect`` (``foretune collect --help``); any of them
    that has no parameter of its own here is taken from ``options``, with underscores for dashes.

    Args:
        mode: where the sizes come from.
        operations: ``mm``, ``addmm``, ``bmm``, ``addmm_relu``, ``addmm_gelu``; one is drawn per
            problem. None: ``mm``, of products; a shape set is taken as it is.
        num_shapes: problems to draw; 0 takes all of a shape set or of a recorded family.
        seed: of every random choice; the same seed draws the same problems and configs.
        hardware_name: the device that the data is for, or a part of its name. The device is found
            out; another one than this is an error.
        log_normal_m_mean, log_normal_m_std, ...: mean and standard deviation of ln m, ln n, ln k.
            None takes the defaults, fitted on shapes of real workloads.
        min_size, max_size, power_of_two: bounds of ``RANDOM``.
        shapeset: file or built-in set of ``OPERATION_SHAPE_SET``.
        dtypes, layouts: to draw from. None: ``f32`` and ``rrr``.
        max_flops, max_bytes: problems above are left out; operations, and bytes touched.
        family: kernel family (``foretune.families()``). ``cpu-gemm`` measures this CPU, in a worker
            process of its own; ``null`` computes times by formula; ``recorded`` replays
            ``family_data``.
        family_options: parameters of the family.
        threads: that a kernel may use, at most the cores there are; 0 takes all.
        search_space: ``DEFAULT`` (64 configs a problem, 256 of a validation set), ``EXHAUSTIVE``,
            or ``SAMPLE:n``.
        search_mode: ``max-autotune`` (the full timing protocol), or ``fast`` with fewer windows.
        role: ``training``, or ``validation``: a set that training refuses to learn from.
        training_data: with ``validation``: problems of these data sets do not appear.
        options: further options, checked as all others: ``active=True`` lets a model choose the
            configs, in ``rounds``, ``configs_per_problem`` as a mean.

    Raises:
        InvalidArgumentError: for an unknown option or a value that makes no sense.

    Thread safety: a collector may be used by one thread at a time; several collectors may collect
    at once, into different files, but then disturb each other's measurements.
    """

    def __init__(
        self,
        mode: CollectionMode = CollectionMode.RANDOM,
        operations: Sequence[str] | None = None,
        num_shapes: int = 100,
        seed: int = 42,
        *,
        hardware_name: str = "",
        log_normal_m_mean: float | None = None,
        log_normal_m_std: float | None = None,
        log_normal_n_mean: float | None = None,
        log_normal_n_std: float | None = None,
        log_normal_k_mean: float | None = None,
        log_normal_k_std: float | None = None,
        min_size: int | None = None,
        max_size: int | None = None,
        power_of_two: bool = False,
        shapeset: str | os.PathLike[str] | None = None,
        dtypes: Sequence[str] | None = None,
        layouts: Sequence[str] | None = None,
        max_flops: float | None = None,
        max_bytes: float | None = None,
        family: str = "cpu-gemm",
        family_data: str | os.PathLike[str] | None = None,
        family_options: Mapping[str, object] | None = None,
        threads: int = 0,
        search_space: str = "DEFAULT",
        search_mode: str = "max-autotune",
        role: str = "training",
        training_data: str | os.PathLike[str] | None = None,
        **options: object,
    ) -> None:
        load_installed_plugins()
        if role not in ("training", "validation"):
            raise InvalidArgumentError(f"a role is training or validation, not '{role}'")
        self._role = role
        self._seed = int(seed)
        self._hardware_name = hardware_name
        given: dict[str, object] = dict(options)
        for reserved in ("output", "budget", "dry_run"):
            if reserved in given:
                raise InvalidArgumentError(f"'{reserved}' is not an option of the collector; "
                                           "collect() and problems() have what it is for")
        mode = CollectionMode(mode)
        given["log_normal"] = mode is CollectionMode.LOG_NORMAL
        given["random"] = mode is CollectionMode.RANDOM and family != "recorded"
        if (mode is CollectionMode.OPERATION_SHAPE_SET) != (shapeset is not None):
            raise InvalidArgumentError(
                "a shape set goes with CollectionMode.OPERATION_SHAPE_SET, and that mode needs one")
        given.update(
            operations=operations, num_shapes=num_shapes, log_normal_m_mean=log_normal_m_mean,
            log_normal_m_std=log_normal_m_std, log_normal_n_mean=log_normal_n_mean,
            log_normal_n_std=log_normal_n_std, log_normal_k_mean=log_normal_k_mean,
            log_normal_k_std=log_normal_k_std, min_size=min_size, max_size=max_size,
            power_of_two=power_of_two, shapeset=shapeset, dtypes=dtypes, layouts=layouts,
            max_flops=max_flops, max_bytes=max_bytes, family=family, family_data=family_data,
            family_option=[f"{key}={value}" for key, value in (family_options or {}).items()],
            threads=threads, search_space=search_space, search_mode=search_mode, training_data=training_data)
        self._options = {
            name.replace("_", "-"): texts
            for name, value in given.items() if (texts := _texts(value)) is not None
        }
        _foretune.check_collection(self._options, role)

    def problems(self) -> list[str]:
        """The problems that would be measured, as text. Measures nothing but, for ``cpu-gemm``, the
        machine's peaks.

        Raises:
            foretune.Error: when the options contradict each other, or a file cannot be read.
            MismatchError: the family runs on another device than ``hardware_name``.
        """
        problems, _ = _foretune.collection_problems(self._options, self._role, self._seed,
                                                    self._hardware_name)
        return list(problems)

    def collect(
        self,
        output: str | os.PathLike[str],
        budget: str | None = None,
        progress: Progress | None = None,
    ) -> CollectionSummary:
        """Measures into the data set file ``output`` (``.ftd``), or continues it.

        Every measurement is appended at once, so that nothing is lost when the run ends early, and
        the same call continues where it stopped. Other Python threads run meanwhile. Ctrl-C (in the
        main thread) and exceptions of ``progress`` take effect between two measurements; both leave
        the file complete.

        Args:
            output: file to write.
            budget: stop after this time or count: ``"90s"``, ``"15m"``, ``"500"``.
            progress: called after every measurement with a dictionary of ``problems_done``,
                ``problems_total``, ``measured``, ``elapsed_s``, ``eta_s`` (seconds; negative when
                unknown), ``problem``, ``best_ns``, ``outcomes``, ``round`` and ``rounds`` (0 unless
                ``active``).

        Raises:
            KeyboardInterrupt: on Ctrl-C.
            foretune.Error: when the file belongs to another family, machine or role, or cannot be
                written; when the family does not run here.
        """
        options = dict(self._options, output=[os.fspath(output)])
        if budget is not None:
            options["budget"] = [str(budget)]
        worker = [sys.executable, "-I", "-c", _WORKER, os.path.dirname(_foretune.__file__),
                  *loaded_plugins()]
        done = _foretune.collect(options, self._role, self._seed, worker, self._hardware_name,
                                 progress)
        return CollectionSummary(
            dataset_path=os.fspath(output), measured=done["measured"], resumed=done["resumed"],
            problems=done["problems_done"], outcomes=done["outcomes"], skipped=done["skipped"],
            seconds=done["elapsed_s"], stopped_by_budget=done["stopped_by_budget"])


def families() -> dict[str, str]:
    """The kernel families of this build and of plug-ins, and what each is."""
    load_installed_plugins()
    return dict(_foretune.families())


def _texts(value: object) -> list[str] | None:
    """An option's values as the command line would have them; None leaves it out."""
    if value is None or value is False:
        return None
    if value is True:
        return ["true"]
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [str(entry) for entry in value] or None
    return [str(value)]
