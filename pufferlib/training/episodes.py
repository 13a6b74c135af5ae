"""Reports of finished episodes, and their means."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pufferlib.errors import APIUsageError
from pufferlib.runs.report import SCORE
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.single import as_number

__all__ = ["EpisodeMeans", "ScoreHint", "ScoreMean", "numeric_infos", "reports_means", "score_advice"]


def reports_means(env: Any) -> bool:
    """Return whether infos of ``env`` can be means over several episodes, with the number of episodes in ``n``.

    Infos of native environments and of ``MeanOverAgents`` can be. In an info of a Gymnasium environment, ``n`` is an
    ordinary number of the user.
    """
    return not env.emulated or hasattr(env.driver_env, "possible_agents")


def numeric_infos(
    infos: Iterable[Mapping[Any, Any]], are_means: bool = True
) -> Iterator[tuple[dict[str, float], float]]:
    """Yield the numbers in each info of a step, including arrays of one element, and the number of episodes they cover.

    An info that contains only dicts holds one info per agent. The info of each agent counts.

    Args:
        infos: Infos, which are dicts.
        are_means: Whether ``n`` in an info (by default 1) is its number of episodes. Otherwise, and in infos of single
            agents, ``n`` is an ordinary number.

    Raises:
        APIUsageError: An info is not a dict, or its score is NaN or infinite.
    """
    for info in infos:
        if not isinstance(info, Mapping):
            raise APIUsageError(f"infos must be dicts, got {info!r:.80}; return a list of dicts from the environment")
        if info and all(isinstance(value, Mapping) for value in info.values()):
            yield from numeric_infos(info.values(), are_means=False)
        else:
            numbers = {key: number for key, value in info.items() if (number := as_number(value)) is not None}
            n = numbers.pop("n", 1.0) if are_means else 1.0
            if not math.isfinite(score := numbers.get("score", 0.0)):
                raise APIUsageError(
                    f"infos: the score of an episode must be a finite number, got {score}; omit it if there is none"
                )
            if numbers and n > 0:
                yield numbers, n


class EpisodeMeans:
    """Means of the values that finished episodes report. Each episode counts once.

    Args:
        are_means: Whether infos can be means over several episodes. See ``reports_means``.

    Attributes:
        records: Record of each report since the last ``pop_records``, or None if they are not kept.
    """

    def __init__(self, are_means: bool = True) -> None:
        self.records: list[dict[str, float]] | None = None
        self._are_means = are_means
        self._sums: dict[str, float] = {}
        self._counts: dict[str, float] = {}

    def add(self, infos: Iterable[Mapping[Any, Any]], share: float = 1.0) -> None:
        """Add the infos of a step. ``share`` is the share of the episodes of each info that counts."""
        for numbers, n in numeric_infos(infos, self._are_means):
            if self.records is not None:
                self.records.append({"n": n, **numbers})
            for key, value in numbers.items():
                self._sums[key] = self._sums.get(key, 0.0) + value * n * share
                self._counts[key] = self._counts.get(key, 0.0) + n * share

    def get(self, *keys: str) -> float | None:
        """Return the mean of the first of ``keys`` that was reported, or None if none was."""
        return next((self._sums[key] / self._counts[key] for key in keys if key in self._sums), None)

    def means(self) -> dict[str, float]:
        """Return all means since the last ``pop``."""
        return {key: total / self._counts[key] for key, total in self._sums.items()}

    def total(self, key: str) -> tuple[float, float]:
        """Return the sum of ``key`` over the episodes since the last ``pop``, and their number."""
        return self._sums.get(key, 0.0), self._counts.get(key, 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Return sums and numbers of episodes since the last ``pop``, and the records if they are kept."""
        kept = {} if self.records is None else {"records": list(self.records)}
        return {"sums": dict(self._sums), "counts": dict(self._counts), **kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore ``state_dict``."""
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
        """Return the means since the last call, as ``environment/<key>``. The dict is empty if no episode ended."""
        means = {f"environment/{key}": mean for key, mean in self.means().items()}
        self._sums, self._counts = {}, {}
        return means


class ScoreMean:
    """Mean score of the episodes of several updates. Each episode counts once."""

    def __init__(self) -> None:
        self._sum = self._count = 0.0

    def add(self, episodes: EpisodeMeans) -> None:
        """Add the episodes since the last ``pop``."""
        total, count = episodes.total("score")
        self._sum += total
        self._count += count

    @property
    def mean(self) -> float | None:
        """Mean score, or None if no episode reported a score or the mean is not finite."""
        mean = self._sum / self._count if self._count else math.nan
        return mean if math.isfinite(mean) else None


def score_advice(vecenv: AnyVectorEnv) -> str:
    """Return how the environments of ``vecenv`` can report scores."""
    if vecenv.emulated:
        return "wrap the environment with pufferlib.EpisodeStats; a 'score' in its own infos must be a number"
    return "let its step return the info {'score': ...} of each episode that ends: [{'score': 1.0}]"


class ScoreHint:
    """Warning, given once, that episodes end but none reports a score.

    Args:
        interval: Number of steps between two reports of the environment, or 1 if each episode reports at its end.
        advice: Advice on how the environment can report scores. See ``score_advice``.
    """

    def __init__(self, interval: int, advice: str) -> None:
        self._advice = advice
        self._patience: int | None = interval - 1  # steps to wait after the first end, or None if done
        self._ended = False

    @classmethod
    def of(cls, vecenv: AnyVectorEnv) -> "ScoreHint":
        """Return the hint for environments that may report at intervals."""
        return cls(getattr(vecenv.driver_env, "log_interval", 1), score_advice(vecenv))

    def update(self, metrics: Mapping[str, float], ended: bool, steps: int) -> None:
        """Check the metrics of a rollout.

        Args:
            metrics: Metrics of the rollout.
            ended: Whether episodes ended in the rollout.
            steps: Number of steps of each agent.
        """
        if self._patience is None or not (self._ended or ended):
            return
        self._patience -= steps if self._ended else 0
        self._ended = True
        if SCORE in metrics:
            self._patience = None
        elif self._patience <= 0:
            self._patience = None
            warnings.warn(
                "Trainer: episodes have ended, but the environment has not reported a 'score' in its infos; to report "
                f"scores, {self._advice}",
                stacklevel=2,
            )
