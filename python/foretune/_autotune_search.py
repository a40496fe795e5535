"""Decides the config of a key: reads what is known, measures what is worth it, and chooses.

Thread safety: one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ._autotune_learn import FEWEST_CONFIGS, Learner
from ._autotune_store import Measurement, Store
from ._errors import UnsupportedError

MeasureConfig = Callable[[str, "float | None"], tuple[Measurement, "BaseException | None"]]
"""Takes a config's text and the fastest time so far (ns); returns the measurement, and the
exception behind a failure."""


@dataclass(frozen=True)
class Decision:
    """The config of a key."""

    config: str
    """Canonical text."""
    measured: int
    """How many measurements this decision made."""
    is_proven: bool
    """True when the config ran before; a prediction may still fail to compile."""


@dataclass(frozen=True)
class Search:
    """Decides the keys of one kernel.

    Args:
        store: the measurements of this and other processes.
        learner: None measures every config of every key.
        top_k: how many configs to measure for a key that a model covers; 1 takes the first without
            measuring it.
        kernel: the kernel's name, for messages.
    """

    store: Store
    learner: Learner | None
    top_k: int
    kernel: str

    def decide(self, key: str, configs: Sequence[str], measure: MeasureConfig) -> Decision:
        """Returns the config of a key; measures what is missing and keeps it in the store.

        Args:
            key: canonical text.
            configs: canonical texts of the legal configs, in the user's order.
            measure: measures one config.

        Raises:
            UnsupportedError: no config works.
            Whatever ``measure`` raises; the measurements until then are kept.
        """
        known = self.store.measurements(key)
        fresh = self._fresh(key, configs, known)
        if not fresh:
            if (config := self.store.best(key, configs)) is not None:
                return Decision(config, 0, config in known)
            # The fast configs are no longer legal; one that was stopped early against them may be
            # the best that is left.
            fresh = [config for config in configs
                     if config not in known or known[config].outcome == "censored"]
        is_predicted = self.top_k == 1 and not _any_ok(configs, known)
        ranking = None
        if self.learner is not None and len(configs) >= FEWEST_CONFIGS and (
                is_predicted or len(fresh) > self.top_k):
            ranking = self.learner.rank(self.store, key, fresh) if fresh else None
        if ranking is None:
            return self._measured(key, configs, self._by_wins(fresh), None, measure)
        if is_predicted:
            self.store.add_ranking(key, ranking)
            return Decision(ranking[0], 0, False)
        return self._measured(key, configs, ranking, self.top_k, measure)

    def replace(self, key: str, configs: Sequence[str], failed: Measurement) -> str | None:
        """Returns another prediction for a key whose predicted config does not work; None when
        there is no other."""
        self.store.add_measurement(failed)
        return self.store.best(key, configs)

    def _fresh(self, key: str, configs: Sequence[str],
               known: Mapping[str, Measurement]) -> list[str]:
        """Returns the unmeasured configs that no model has ranked."""
        unknown = [config for config in configs if config not in known]
        if self.learner is None:
            return unknown
        fresh = [config for config in unknown if not self.store.is_considered(key, config)]
        # The prediction was never measured, so a time of a new config alone could not be compared.
        return unknown if fresh and not _any_ok(configs, known) else fresh

    def _measured(self, key: str, configs: Sequence[str], order: Sequence[str], most: int | None,
                  measure: MeasureConfig) -> Decision:
        """Measures configs in ``order``: ``most`` of them, then further ones until one works."""
        cause: BaseException | None = None
        count = 0
        for config in order:
            known = self.store.measurements(key)
            times = [known[text].time_ns for text in configs if text in known and known[text].is_ok]
            if most is not None and count >= most and times:
                break
            entry, error = measure(config, min(times, default=None))
            self.store.add_measurement(entry)
            cause = cause or error
            count += 1
        known = self.store.measurements(key)
        if not _any_ok(configs, known):
            raise self._nothing_works(known, configs) from cause
        if most is not None:
            self.store.add_ranking(key, [config for config in order if config not in known])
        best = self.store.best(key, configs)
        assert best is not None  # at least one is ok
        return Decision(best, count, True)

    def _by_wins(self, configs: Sequence[str]) -> list[str]:
        """Sorts the configs that won most other keys first, so that the others stop early."""
        wins: dict[str, int] = {}
        for key in self.store.keys:
            if (best := self.store.best(key)) is not None:
                wins[best] = wins.get(best, 0) + 1
        return sorted(configs, key=lambda config: -wins.get(config, 0))

    def _nothing_works(self, known: Mapping[str, Measurement],
                       configs: Sequence[str]) -> UnsupportedError:
        reasons: dict[str, int] = {}
        for config in configs:
            if config in known:
                entry = known[config]
                words = f"{entry.outcome}: {entry.reason}" if entry.reason else entry.outcome
                reasons[words] = reasons.get(words, 0) + 1
        most = sorted(reasons, key=lambda words: -reasons[words])
        told = "; ".join(f"{reasons[words]} x {words}" for words in most[:2])
        more = f"; and {len(most) - 2} other reasons" if len(most) > 2 else ""
        where = f" (kept in {self.store.path})" if self.store.path else ""
        return UnsupportedError(f"none of the {len(configs)} configs of {self.kernel} works here: "
                                f"{told}{more}{where}")


def _any_ok(configs: Sequence[str], known: Mapping[str, Measurement]) -> bool:
    return any(config in known and known[config].is_ok for config in configs)
