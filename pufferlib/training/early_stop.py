"""Callbacks that stop a run early, as the settings ``[stop]`` ask for."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from pufferlib.text import short
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.training.config import StopConfig

__all__ = ["StopAfterSeconds", "StopAtScore", "stop_callbacks"]


def stop_callbacks(config: StopConfig, evaluates: bool) -> list[Callback]:
    """Return the callbacks that stop training as ``config`` says.

    Args:
        config: Settings of early stopping.
        evaluates: Use the scores of evaluations during training.
    """
    found: list[Callback] = []
    if config.score < math.inf or config.patience:
        found.append(StopAtScore(config.score, config.patience, None if evaluates else config.episodes))
    if config.seconds:
        found.append(StopAfterSeconds(config.seconds))
    return found


class StopAtScore(Callback):
    """Stops a training whose mean score is high enough, or no longer rises.

    Args:
        score: Enough; inf is never.
        patience: Agent-steps without a better score after which it stops; 0 is never.
        episodes: The score is the mean of the latest episodes in training, at least so many; None takes
            evaluation/score from the metrics.
    """

    def __init__(self, score: float = math.inf, patience: int = 0, episodes: int | None = None) -> None:
        self.score, self.patience, self.episodes = score, patience, episodes
        self._best, self._best_steps = -math.inf, 0
        self._recent: deque[tuple[float, float]] = deque()  # sum of scores and number of episodes, of each update
        self._is_resumed = False

    def on_training_start(self, trainer: TrainerView) -> None:
        """Begin to count the steps without a better score, or go on where a resumed run was."""
        if not self._is_resumed:
            self._best, self._best_steps = -math.inf, trainer.agent_steps
            self._recent.clear()
        self._is_resumed = False

    def on_rollout_end(self, trainer: TrainerView) -> None:
        """Take the episodes that ended in this rollout."""
        if self.episodes is None:
            return
        self._recent.append(trainer.episodes.total("score"))
        while self._count() - self._recent[0][1] >= self.episodes:
            self._recent.popleft()

    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        """Stop if the score is enough, or has not risen for long."""
        score = self._mean(metrics)
        if score is None:
            return
        if score > self._best:
            self._best, self._best_steps = score, trainer.agent_steps
        kind = "the evaluation's score" if self.episodes is None else f"the score of {self._count():.0f} episodes"
        if score >= self.score:
            trainer.stop(f"{kind} came to {short(score)}, and stop.score is {short(self.score)}")
        elif self.patience and trainer.agent_steps - self._best_steps >= self.patience:
            trainer.stop(f"{kind} was not above {short(self._best)} for stop.patience, {short(self.patience)} steps")

    def state_dict(self) -> dict[str, Any]:
        """Return the best score, and the episodes that count."""
        return {"best": self._best, "best_steps": self._best_steps, "recent": [*self._recent]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called."""
        self._best, self._best_steps = state["best"], state["best_steps"]
        self._recent = deque((total, count) for total, count in state["recent"])
        self._is_resumed = True

    def _mean(self, metrics: dict[str, float]) -> float | None:
        if self.episodes is None:
            return metrics.get("evaluation/score")
        count = self._count()
        return sum(total for total, _ in self._recent) / count if count >= self.episodes else None

    def _count(self) -> float:
        return sum(count for _, count in self._recent)


class StopAfterSeconds(Callback):
    """Stops a training after so many seconds of collecting, learning and evaluations, those before a resume included.

    Args:
        seconds: The limit; the update in progress is finished.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        """Stop if the time is over."""
        if trainer.uptime_s >= self.seconds:
            trainer.stop(f"{short(trainer.uptime_s)} s have gone, and stop.seconds is {short(self.seconds)}")
