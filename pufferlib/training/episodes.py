"""Reports of finished episodes, and their means."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pufferlib.errors import APIUsageError
from pufferlib.wrappers.single import as_number

__all__ = ["EpisodeMeans", "ScoreHint", "ScoreMean", "numeric_infos", "reports_means", "score_advice"]

SCORE = "environment/score"


def reports_means(env: Any) -> bool:
    """Check whether infos of ``env`` can be means over several episodes, whose number they call ``n``.

    Infos of a native environment and of ``MeanOverAgents`` are. In infos of a Gymnasium environment ``n`` is a number
    of the user's own.
    """
    return not env.emulated or hasattr(env.driver_env, "possible_agents")


def numeric_infos(
    infos: Iterable[Mapping[Any, Any]], are_means: bool = True
) -> Iterator[tuple[dict[str, float], float]]:
    """The numbers in the infos of a step (arrays of one element too), each with how many episodes they are means of.

    An info that holds nothing but dicts is one info per agent: those of its agents count each.

    Args:
        infos: Dicts.
        are_means: Whether ``n`` in an info, 1 without it, is its number of episodes. Otherwise, and in infos of single
            agents, it is a number like any other.

    Raises:
        APIUsageError: An info is no dict, or its score is NaN or infinite.
    """
    for info in infos:
        if not isinstance(info, Mapping):
            raise APIUsageError(f"infos must be dicts, got {info!r:.80}; let the environment return a list of dicts")
        if info and all(isinstance(value, Mapping) for value in info.values()):
            yield from numeric_infos(info.values(), are_means=False)
        else:
            numbers = {key: number for key, value in info.items() if (number := as_number(value)) is not None}
            n = numbers.pop("n", 1.0) if are_means else 1.0
            if not math.isfinite(score := numbers.get("score", 0.0)):
                raise APIUsageError(
                    f"infos: the score of an episode must be a finite number, got {score}; report such, or none"
                )
            if numbers and n > 0:
                yield numbers, n


class EpisodeMeans:
    """Means of the figures of finished episodes, each episode counted once.

    Args:
        are_means: Whether infos can be means over several episodes; see ``reports_means``.

    Attributes:
        records: Record of each report since the last ``pop_records``, or None if nobody asked for records.
    """

    def __init__(self, are_means: bool = True) -> None:
        self.records: list[dict[str, float]] | None = None
        self._are_means = are_means
        self._sums: dict[str, float] = {}
        self._counts: dict[str, float] = {}

    def add(self, infos: Iterable[Mapping[Any, Any]], share: float = 1.0) -> None:
        """Take the infos of a step, counting this ``share`` of the episodes of each."""
        for numbers, n in numeric_infos(infos, self._are_means):
            if self.records is not None:
                self.records.append({"n": n, **numbers})
            for key, value in numbers.items():
                self._sums[key] = self._sums.get(key, 0.0) + value * n * share
                self._counts[key] = self._counts.get(key, 0.0) + n * share

    def get(self, *keys: str) -> float | None:
        """The mean of the first of ``keys`` that was reported; None when none was."""
        return next((self._sums[key] / self._counts[key] for key in keys if key in self._sums), None)

    def means(self) -> dict[str, float]:
        """All means since the last ``pop``."""
        return {key: total / self._counts[key] for key, total in self._sums.items()}

    def total(self, key: str) -> tuple[float, float]:
        """Sum of ``key`` over the episodes since the last ``pop``, and their number."""
        return self._sums.get(key, 0.0), self._counts.get(key, 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Return sums and numbers of episodes since the last ``pop``, and the records if they are kept."""
        kept = {} if self.records is None else {"records": list(self.records)}
        return {"sums": dict(self._sums), "counts": dict(self._counts), **kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called."""
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
        if "records" in state:
            self.records = list(state["records"])

    def keep_records(self) -> None:
        """Keep a record of each report from now on: its numbers, and ``n``, the number of episodes in it."""
        if self.records is None:
            self.records = []

    def pop_records(self) -> list[dict[str, float]]:
        """Return the records since the last call, or an empty list if they are not kept."""
        if self.records is None:
            return []
        records, self.records = self.records, []
        return records

    def pop(self) -> dict[str, float]:
        """The means since the last call, as ``environment/<key>``; empty when no episode ended."""
        means = {f"environment/{key}": mean for key, mean in self.means().items()}
        self._sums, self._counts = {}, {}
        return means


class ScoreMean:
    """Mean score of the episodes of several updates, each episode counted once."""

    def __init__(self) -> None:
        self._sum = self._count = 0.0

    def add(self, episodes: EpisodeMeans) -> None:
        """Take the episodes since the last ``pop``."""
        total, count = episodes.total("score")
        self._sum += total
        self._count += count

    @property
    def mean(self) -> float | None:
        """Their mean; None where no episode reported a score, or one that is no number."""
        mean = self._sum / self._count if self._count else math.nan
        return mean if math.isfinite(mean) else None


def score_advice(vecenv: Any) -> str:
    """Return how the environments of ``vecenv`` can report scores."""
    if vecenv.emulated:
        return "wrap the environment with pufferlib.EpisodeStats"
    return "let its step return the info {'score': ...} of each episode that ends: [{'score': 1.0}]"


class ScoreHint:
    """Warns, once, that episodes end and none reports a score: training would go on to its end without one.

    Args:
        interval: Steps between two reports of the environment; 1 where an episode reports when it ends.
        advice: How the environment can report scores; see ``score_advice``.
    """

    def __init__(self, interval: int, advice: str) -> None:
        self._advice = advice
        self._patience: int | None = interval - 1  # steps that may follow the first end; None: all is said
        self._ended = False

    @classmethod
    def of(cls, vecenv: Any) -> "ScoreHint":
        """Return the hint for environments, which may report at intervals."""
        return cls(getattr(vecenv.driver_env, "log_interval", 1), score_advice(vecenv))

    def update(self, metrics: Mapping[str, float], ended: bool, steps: int) -> None:
        """Take the metrics of a rollout, whether episodes ended in it, and how many steps each agent took."""
        if self._patience is None or not (self._ended or ended):
            return
        self._patience -= steps if self._ended else 0
        self._ended = True
        if SCORE in metrics:
            self._patience = None
        elif self._patience <= 0:
            self._patience = None
            warnings.warn(
                "Trainer: episodes have ended, and the environment has reported no 'score' in its infos; unless one "
                f"comes later, {self._advice}",
                stacklevel=2,
            )
