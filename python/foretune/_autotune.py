"""``foretune.autotune``: replaces ``triton.autotune``, and adds a store and a model.

    @foretune.autotune(configs=[triton.Config({"BLOCK_M": 128, ...}, num_warps=4), ...],
                       key=["M", "N", "K"])
    @triton.jit
    def kernel(...): ...

    kernel[grid](...)
    print(kernel.report())

Every measured config is kept on disk, so that no process measures it again. Once enough keys are
known, a model selects the few configs of a new key that are worth measuring. Triton is imported
when a kernel is tuned, not before.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Union

from ._autotune_device import Device, current_device, triton_version
from ._autotune_identity import (Config, NoTextError, config_text, constant_names, key_text,
                                 python_function, source_digest)
from ._autotune_learn import Learner
from ._autotune_measure import Hooks, Measure, TritonClock, failure_of, measured, reason_of
from ._autotune_report import AutotuneReport, report_of
from ._autotune_search import Decision, Search
from ._autotune_store import Measurement, Store
from ._errors import InvalidArgumentError

Folder = Union[str, "os.PathLike[str]"]

_LOG = logging.getLogger("foretune.autotune")
_PRUNERS = ("perf_model", "top_k", "early_config_prune")
_OPTIONS = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook",
            "post_hook", "warmup", "rep", "use_cuda_graph", "do_bench", "cache_results", "store",
            "learn", "top_k", "min_keys", "measure", "device")


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., object] | None = None,
    post_hook: Callable[..., object] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    *,
    store: Folder | None = None,
    learn: bool = True,
    top_k: int = 5,
    min_keys: int = 8,
    measure: Measure | None = None,
    device: str | Device | None = None,
    **unknown: object,
) -> Callable[[Any], Autotuner]:
    """Decorates a ``triton.jit`` function so that each launch takes the fastest of ``configs``.

    The parameters before ``store`` are those of ``triton.autotune`` of Triton 3.6 and mean the
    same. When one of the arguments in ``key`` or the data type of a tensor is new, configs are
    measured; meanwhile the kernel runs many times. Without a model every config is measured; with
    a model, only the ``top_k`` that it ranks first. The fastest measured config is taken.

    Args:
        configs: the configs, ``triton.Config`` objects.
        key: names of the arguments that decide the config; integers among them are sizes, between
            which models interpolate.
        prune_configs_by: ``early_config_prune(configs, named_args, **kwargs)``, and ``perf_model``
            with its ``top_k``; only the configs that they keep are candidates.
        reset_to_zero: tensors to zero before every measured run.
        restore_value: tensors to restore after every measured run.
        pre_hook: ``pre_hook(arguments, reset_only=False)``, called before every measured run;
            replaces the two options above.
        post_hook: ``post_hook(arguments, exception)``, called after every measured run.
        warmup: milliseconds before each measurement; 25 by default.
        rep: milliseconds of each measurement at most, in windows of a fifteenth; 100 by default.
        use_cuda_graph: measure in CUDA graphs, without launch overhead and with warm caches.
        do_bench: ``do_bench(call, quantiles)``, returns milliseconds; ignored, as by Triton, when
            one of the three options above is given.
        cache_results: accepted and ignored: results are always kept.
        store: folder of the store; ``foretune`` in ``$XDG_CACHE_HOME`` or ``~/.cache`` by default.
        learn: False measures every config of every key.
        top_k: how many configs to measure for a new key that a model covers. 1 measures nothing
            and takes the config that the model ranks first.
        min_keys: how many keys to measure in full before a model ranks configs.
        measure: ``measure(launch, limit_ns)``, replaces Triton's clock and needs no GPU. It returns
            nanoseconds, or a tuple of nanoseconds, spread (interquartile range over the median) and
            a bool that is true when the time is only a lower bound.
        device: name of the device, replaces the driver's; times are only valid for one device.

    Returns:
        The decorator. Its result is launched as ``kernel[grid](...)``; see ``Autotuner``.

    Raises:
        InvalidArgumentError: an option is unknown or makes no sense.
    """
    for name in unknown:
        raise InvalidArgumentError(f"autotune has no option '{name}'{_nearest(name, _OPTIONS)}")
    _check_pruners(prune_configs_by)
    for name, count in (("top_k", top_k), ("min_keys", min_keys)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgumentError(f"{name} is a whole number of at least 1, not {count!r}")
    if isinstance(key, str):
        raise InvalidArgumentError(f"key is a list of argument names; did you mean ['{key}']?")
    is_timed_by_triton = use_cuda_graph or warmup is not None or rep is not None
    if measure is not None and (do_bench is not None or is_timed_by_triton):
        raise InvalidArgumentError("measure replaces do_bench, use_cuda_graph, warmup and rep; "
                                   "give it alone")
    clock = measure or TritonClock(warmup, rep, use_cuda_graph, do_bench)
    hooks = Hooks(reset_to_zero, restore_value, pre_hook, post_hook)

    def decorate(kernel: Any) -> Autotuner:
        return Autotuner(kernel, configs, key, hooks=hooks, pruners=prune_configs_by or {},
                         measure=clock, needs_device=measure is None, folder=store, learn=learn,
                         top_k=top_k, min_keys=min_keys, device=device)

    return decorate


class Autotuner:
    """A kernel that knows its fastest config for every key; made by ``foretune.autotune``.

    ``kernel[grid](...)``, ``kernel.run(...)`` and ``kernel.warmup(...)`` work as in Triton.
    ``configs``, ``fn``, ``base_fn``, ``arg_names``, ``keys`` and ``cache`` (key to config, in this
    process) mean the same as in Triton.

    Thread safety: any number of threads may launch; those with new keys wait for one another.
    """

    best_config: Config | None
    """The config of the latest launch; None before the first."""

    def __init__(self, kernel: Any, configs: Sequence[Config], key: Sequence[str], *, hooks: Hooks,
                 pruners: Mapping[str, Any], measure: Measure, needs_device: bool,
                 folder: Folder | None, learn: bool, top_k: int, min_keys: int,
                 device: str | Device | None) -> None:
        """For the package itself; autotuners come from ``foretune.autotune``."""
        base = python_function(kernel)
        if base is None or not hasattr(kernel, "run") or not hasattr(kernel, "arg_names"):
            raise InvalidArgumentError("foretune.autotune decorates what triton.jit returns; put "
                                       "it above @triton.jit")
        self.fn = kernel
        self.base_fn = base
        self.arg_names = list(kernel.arg_names)
        self._names = frozenset(self.arg_names)
        self.configs = list(configs) or [_default_config()]
        self.keys = list(key)
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.best_config = None
        self.__name__ = base.__name__
        self.__doc__ = base.__doc__
        self._hooks = hooks
        self._pruners = dict(pruners)
        self._measure = measure
        self._needs_device = needs_device
        self._folder = folder
        self._learn, self._top_k, self._min_keys = learn, top_k, min_keys
        self._device = device
        self._constants = constant_names(kernel)
        self._searches: dict[Device, Search] = {}
        self._unproven: dict[tuple[Any, ...], tuple[Search, str, dict[str, Config]]] = {}
        self._lock = threading.RLock()
        for name in self.keys:
            if name not in self.arg_names:
                warnings.warn(f"{self.__name__} has no argument '{name}' to be a key"
                              f"{_nearest(name, self.arg_names)}", RuntimeWarning, stacklevel=3)

    # -- launching --------------------------------------------------------------------------------

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches."""
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launches with the fastest config; measures first when the key is new.

        Raises:
            UnsupportedError: no config works for this key; the message has the reasons.
            Whatever the kernel's own ``run`` and the hooks raise.
        """
        if len(self.configs) == 1:
            return self._launch(self.configs[0], args, kwargs)
        key = self._key(args, kwargs)
        config = self.cache.get(key)
        if config is None:
            config = self._tune(key, args, kwargs)
        try:
            return self._launch(config, args, kwargs)
        except Exception as error:
            if not self._replace(key, error):
                raise
        # A second launch is safe: the prediction did not compile, so nothing has run.
        return self.run(*args, **kwargs)

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compiles every config for arguments like these, without running any; returns the result
        of the kernel's own ``warmup`` for each config."""
        return [self.fn.warmup(*args, **kwargs, **config.all_kwargs())
                for config in self._pruned(args, kwargs)]

    def _launch(self, config: Config, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**self._named(args), **kwargs, **config.all_kwargs()})
        return self.fn.run(*args, **kwargs, **config.all_kwargs())

    # -- what is known ----------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The measurements on the current device: ``path``, ``keys``, ``measurements(key)``,
        ``forget_failures()``."""
        with self._lock:
            search = self._search()
            search.store.refresh()
            return search.store

    def report(self) -> AutotuneReport:
        """Returns what the store holds for the current device: for every key the best config, its
        time, how many configs were measured, how the key was decided, and the seconds it took."""
        with self._lock:
            search = self._search()
            search.store.refresh()
            learner = search.learner
            return report_of(search.store, self.__name__, learner.status if learner else [])

    def __repr__(self) -> str:
        return f"<foretune.autotune of {self.__name__}, {len(self.configs)} configs>"

    # -- keys and configs -------------------------------------------------------------------------

    def _named(self, args: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args))

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        everything = {**self._named(args), **kwargs}
        return {name: value for name, value in everything.items() if name in self._names}

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Returns Triton's key, which identifies a decision within a process."""
        arguments = self._arguments(args, kwargs)
        values = [arguments[name] for name in self.keys if name in arguments]
        values += [str(value.dtype) for value in arguments.values() if hasattr(value, "dtype")]
        return tuple(values)

    def _pruned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Config]:
        """Returns the configs that the user's pruning functions keep."""
        configs, named = self.configs, self._named(args)
        prune = self._pruners.get("early_config_prune")
        if prune:
            configs = list(prune(self.configs, named, **kwargs))
            if not configs:
                raise InvalidArgumentError("early_config_prune has to leave one config at least")
        model = self._pruners.get("perf_model")
        if not model:
            return list(configs)
        share = self._pruners.get("top_k", 1.0)
        most = max(1, int(len(self.configs) * share)) if isinstance(share, float) else share
        if len(configs) <= most:
            return list(configs)
        times = [model(**named, **kwargs, **config.all_kwargs()) for config in configs]
        order = sorted(range(len(configs)), key=lambda i: times[i])
        return [configs[i] for i in order[:most]]

    # -- tuning -----------------------------------------------------------------------------------

    def _search(self, in_memory: bool = False) -> Search:
        """Returns the search (store and model) for the current device."""
        device = self._device if isinstance(self._device, Device) else self._found_device()
        if in_memory:
            return Search(Store(None, {}), None, self._top_k, self.__name__)
        if device not in self._searches:
            identity = {"kernel": self.base_fn.__qualname__, "source": source_digest(self.fn),
                        "device": device.name, "arch": device.arch, "triton": device.triton}
            store = Store(_store_path(self._folder, identity), identity,
                          [config_text(config) for config in self.configs], device.hardware)
            learner = Learner(self.keys, self._min_keys, device) if self._learn else None
            self._searches[device] = Search(store, learner, self._top_k, self.__name__)
        return self._searches[device]

    def _found_device(self) -> Device:
        try:
            found = current_device(self.fn)
        except (ImportError, RuntimeError):
            if self._needs_device:
                raise
            found = Device("unknown", triton=triton_version(self.fn))
        return replace(found, name=self._device) if isinstance(self._device, str) else found

    def _tune(self, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        """Chooses the config of a key that is new to this process."""
        with self._lock:
            if key in self.cache:
                return self.cache[key]
            configs = {config_text(config): config for config in self._pruned(args, kwargs)}
            arguments = self._arguments(args, kwargs)
            try:
                text = key_text(self.keys, arguments, self._constants)
                search = self._search()
            except NoTextError as error:
                # Another process could not recognise this key, so it is not stored.
                _LOG.info("%s: a key is kept in memory only: %s", self.__name__, error)
                text = key_text([], {}, [])
                search = self._search(in_memory=True)
            search.store.refresh()
            decision = search.decide(text, list(configs),
                                     self._measurer(text, configs, args, kwargs))
            config = configs[decision.config]
            if decision.measured:
                self._hooks.reset({**self._named(args), **kwargs, **config.all_kwargs()})
            if not decision.is_proven:
                self._unproven[key] = (search, text, configs)
            self.cache[key] = config
            self._announce(text, config, decision)
            return config

    def _measurer(self, key: str, configs: Mapping[str, Config], args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> Any:
        """Returns a function that measures one of ``configs`` on these arguments."""

        def measure(text: str, incumbent_ns: float | None) -> Any:
            launch = self._measured_launch(configs[text], args, kwargs)
            entry, error = measured(self._measure, launch, key, text, incumbent_ns)
            _LOG.debug("%s: %s: %s %.0f ns %s", self.__name__, text, entry.outcome, entry.time_ns,
                       entry.reason)
            return entry, error

        return measure

    def _measured_launch(self, config: Config, args: tuple[Any, ...],
                         kwargs: dict[str, Any]) -> Callable[[], None]:
        """Returns a function that launches ``config`` with the hooks of a measured run."""
        if twice := sorted(kwargs.keys() & config.kwargs.keys()):
            raise InvalidArgumentError(f"{', '.join(twice)} given by the caller and by a config; "
                                       "leave out what is tuned")
        current = {**kwargs, **config.all_kwargs()}
        everything = {**self._named(args), **current}

        def launch() -> None:
            if config.pre_hook is not None:
                config.pre_hook(everything)
            self._hooks.before(everything)
            try:
                self.fn.run(*args, **current)
            except Exception as error:
                self._hooks.after(everything, error)
                raise
            self._hooks.after(everything, None)

        return launch

    def _replace(self, key: tuple[Any, ...], error: Exception) -> bool:
        """Replaces a predicted config that failed to launch; false when ``error`` is not that of an
        unproven prediction, or no other config is left."""
        failure = failure_of(error)
        with self._lock:
            if failure is None or key not in self._unproven:
                return False
            search, text, configs = self._unproven[key]
            outcome, stage = failure
            failed = Measurement(text, config_text(self.cache[key]), outcome, stage=stage,
                                 reason=reason_of(error))
            other = search.replace(text, list(configs), failed)
            if other is None:
                return False
            self.cache[key] = configs[other]
            return True

    def _announce(self, key: str, config: Config, decision: Decision) -> None:
        sentence = f"{self.__name__}: {config} for {key}, {decision.measured} configs measured"
        _LOG.info("%s", sentence)
        knobs = getattr(sys.modules.get("triton"), "knobs", None)
        if getattr(getattr(knobs, "autotuning", None), "print", False):
            print(f"foretune.autotune: {sentence}")  # TRITON_PRINT_AUTOTUNING is set


def _default_config() -> Any:
    from triton import Config as TritonConfig  # type: ignore[import-not-found]

    return TritonConfig({})


def _store_path(folder: Folder | None, identity: Mapping[str, str]) -> str:
    """Returns the file of an identity: each source, device and version of Triton has its own."""
    if folder is None:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(cache, "foretune")
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", identity["kernel"].rsplit(".", 1)[-1])[:60]
    digest = hashlib.sha256("\x00".join(f"{k}={v}" for k, v in sorted(identity.items())).encode())
    return os.path.join(os.fspath(folder), "autotune", f"{name}-{digest.hexdigest()[:20]}.ftd")


def _check_pruners(pruners: Mapping[str, Any] | None) -> None:
    for name in pruners or {}:
        if name not in _PRUNERS:
            raise InvalidArgumentError(f"prune_configs_by has no entry '{name}'"
                                       f"{_nearest(name, _PRUNERS)}")
    share = (pruners or {}).get("top_k", 1.0)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or share <= 0 or (
            isinstance(share, float) and share > 1):
        raise InvalidArgumentError("top_k of prune_configs_by is a share of at most 1.0 or a whole "
                                   f"number, not {share!r}")


def _nearest(name: str, known: Sequence[str]) -> str:
    by_lower = {entry.lower(): entry for entry in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower, 1, 0.5)
    return f"; did you mean '{by_lower[nearest[0]]}'?" if nearest else ""
