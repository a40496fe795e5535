"""Collects data sets: chooses problems and configs, and measures them."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _foretune
from ._dataset import Dataset
from ._errors import InvalidArgumentError
from ._keywords import option_texts
from ._plugins import load_installed_plugins
from ._worker import worker_command

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CollectOptions

Progress = Callable[[dict[str, Any]], object]

class CollectionMode(enum.Enum):
    """Where problems come from."""

    LOG_NORMAL = "log-normal"
    """Sizes drawn log-normally, like those of real workloads."""
    RANDOM = "random"
    """Sizes drawn uniformly between ``min_size`` and ``max_size``."""
    OPERATION_SHAPE_SET = "shapeset"
    """Sizes from a file or a built-in set (``shapeset``)."""


@dataclass(frozen=True)
class CollectionSummary:
    """The counts of a collection. They count measurements unless said otherwise."""

    dataset_path: str
    measured: int
    resumed: int
    """Measurements that an earlier run had written to the same file."""
    problems: int
    """Number of finished problems."""
    outcomes: dict[str, int]
    """Measurements of this run by outcome: ``ok``, ``censored``, ``crashed``, ..."""
    skipped: dict[str, int]
    """Number of problems that were left out, by reason."""
    seconds: float
    stopped_by_budget: bool

    def dataset(self) -> Dataset:
        """Reads the data set from its file."""
        return Dataset.open(self.dataset_path)


class MatmulDatasetCollector:
    """Measures configs of many matrix products into a data set file.

    The keywords are the options of ``foretune collect`` (``foretune collect --help``), with
    underscores for dashes. ``options`` takes those without a parameter of their own here
    (``CollectOptions``, ``docs/reference/python-options.md``).

    Args:
        mode: where the sizes come from.
        operations: ``mm``, ``addmm``, ``bmm``, ``addmm_relu``, ``addmm_gelu``; one is drawn per
            problem. None takes ``mm`` for drawn products, and a shape set as it is.
        num_shapes: problems to draw; 0 takes all of a shape set or of a recorded family.
        seed: seeds every random choice; the same seed draws the same problems and configs.
        hardware_name: the expected device, or a part of its name. When the detected device is
            another one, that is an error.
        log_normal_m_mean, log_normal_m_std, ...: mean and standard deviation of ln m, ln n, ln k.
            None takes the defaults, fitted on shapes of real workloads.
        min_size, max_size, power_of_two: bounds of ``RANDOM``.
        shapeset: file or built-in set of ``OPERATION_SHAPE_SET``.
        dtypes, layouts: data types and layouts to draw from. None: ``f32`` and ``rrr``.
        max_flops, max_bytes: limits of a problem's floating-point operations and of the bytes that
            it touches; problems above are left out.
        family: kernel family (``foretune.families()``). ``cpu-gemm`` measures this CPU, in a worker
            process of its own; ``null`` computes times by formula; ``recorded`` replays
            ``family_data``.
        family_options: parameters of the family.
        threads: number of threads of a kernel, at most the number of cores; 0 takes all cores.
        search_space: ``DEFAULT`` (64 configs a problem, 256 in a validation set), ``EXHAUSTIVE``,
            or ``SAMPLE:n``.
        search_mode: ``max-autotune`` (the full timing protocol), or ``fast`` with fewer windows.
        role: ``training``, or ``validation``: a set that training refuses to learn from.
        training_data: for ``validation`` only: leaves out the problems of these data sets.
        options: further options, checked like all others. ``active=True`` lets a model choose the
            configs in ``rounds``; ``configs_per_problem`` is then a mean.

    Raises:
        InvalidArgumentError: an option is unknown, or a value makes no sense.

    Thread safety: one thread at a time may use a collector. Several collectors may collect at once
    into different files, but they disturb each other's measurements.
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
        **options: Unpack[CollectOptions],
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
        self._options = option_texts(
            "collect" if role == "training" else "create-validation", given)
        _foretune.check_collection(self._options, role)

    def problems(self) -> list[str]:
        """Returns the problems that ``collect`` would measure, as text. It measures nothing except,
        for ``cpu-gemm``, the machine's peaks.

        Raises:
            foretune.Error: the options contradict each other, or a file cannot be read.
            MismatchError: the family runs on another device than ``hardware_name``.
        """
        return _foretune.collection_problems(self._options, self._role, self._seed,
                                             self._hardware_name)

    def collect(
        self,
        output: str | os.PathLike[str],
        budget: str | None = None,
        progress: Progress | None = None,
    ) -> CollectionSummary:
        """Measures into the data set file ``output`` (``.ftd``), or continues it.

        Appends every measurement at once, so that nothing is lost when the run ends early; the same
        call continues where it stopped. Other Python threads run meanwhile. Ctrl-C (in the main
        thread) and exceptions of ``progress`` take effect between two measurements; both leave the
        file complete.

        Args:
            output: file to write.
            budget: stop after this time or count: ``"90s"``, ``"15m"``, ``"500"``.
            progress: called after every measurement with a dictionary of ``problems_done``,
                ``problems_total``, ``measured``, ``elapsed_s``, ``eta_s`` (seconds; negative when
                unknown), ``problem``, ``best_ns``, ``outcomes``, ``round`` and ``rounds`` (0 unless
                ``active``).

        Raises:
            KeyboardInterrupt: on Ctrl-C.
            foretune.Error: the file belongs to another family, machine or role, or cannot be
                written; or the family does not run here.
        """
        options = dict(self._options, output=[os.fspath(output)])
        if budget is not None:
            options["budget"] = [str(budget)]
        done = _foretune.collect(options, self._role, self._seed, worker_command(),
                                 self._hardware_name, progress)
        return CollectionSummary(
            dataset_path=os.fspath(output), measured=done["measured"], resumed=done["resumed"],
            problems=done["problems_done"], outcomes=done["outcomes"], skipped=done["skipped"],
            seconds=done["elapsed_s"], stopped_by_budget=done["stopped_by_budget"])


def families() -> dict[str, str]:
    """Returns the kernel families of this build and of plug-ins: name and description."""
    load_installed_plugins()
    return dict(_foretune.families())
