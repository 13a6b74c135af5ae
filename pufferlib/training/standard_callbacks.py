"""Callbacks that the settings ask for: early stops, evaluations, self-play and restarts."""

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pufferlib.errors import APIUsageError
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.text import short
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.training.config import Config, StopConfig
from pufferlib.training.curriculum import StateCurriculum
from pufferlib.training.evaluation import EvalResult, Evaluator
from pufferlib.training.opponents import SelfPlay

__all__ = ["PeriodicEvaluation", "StopAfterSeconds", "StopAtScore", "build_callbacks", "stop_callbacks"]


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


class PeriodicEvaluation(Callback):
    """Plays episodes with the policy now and then, and has a checkpoint written whenever the score is the best yet.

    The metrics of such an update have ``evaluation/score``, ``evaluation/score_std``, ``evaluation/episode_length``,
    ``evaluation/<key>`` for all that the environment reports, and ``performance/evaluate_s``, seconds that
    ``uptime_s`` includes. Environments and random numbers are its own, so what is learned is the same without.

    Args:
        interval: Agent-steps between two evaluations; there is one after the last update too.
        episodes: Episodes of each; None: ``eval.episodes``. How they are played is as ``eval`` says.
        env_creator: An environment of your own instead of the one that the settings name.
    """

    def __init__(
        self, interval: int, episodes: int | None = None, env_creator: Callable[..., Any] | None = None
    ) -> None:
        self.interval, self.episodes, self.env_creator = interval, episodes, env_creator
        self._best = -math.inf
        self._due_steps = 0
        self._evaluator: Evaluator | None = None

    def on_training_start(self, trainer: TrainerView) -> None:
        """Open the environments; go on with the best score of a resumed run."""
        self._evaluator = Evaluator(trainer.config, self.env_creator, self.episodes)
        self._due_steps = self._next_due(trainer)
        best = checkpoint.best(Run.at(trainer.run_dir).checkpoints)
        about = checkpoint.read_about(best) if best else None
        if about is not None and about.score is not None and about.score_of == "evaluation":
            self._best = about.score

    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        """Evaluate if that is due, or the training is at its end."""
        if trainer.agent_steps < min(self._due_steps, trainer.config.train.total_timesteps):
            return
        self._due_steps = self._next_due(trainer)
        start = time.perf_counter()
        result = self._evaluate(trainer)
        seconds = time.perf_counter() - start
        trainer.uptime_s += seconds
        metrics |= {"performance/evaluate_s": seconds, "uptime_s": trainer.uptime_s}
        if result is None:
            return
        metrics |= {f"evaluation/{name}": mean for name, mean in result.metrics().items()}
        metrics |= {
            "evaluation/score": result.score_mean,
            "evaluation/score_std": result.score_std,
            "evaluation/episode_length": result.episode_length,
        }
        if result.score_mean > self._best:
            self._best = result.score_mean
            trainer.request_checkpoint(self._best)

    def on_training_end(self, trainer: TrainerView) -> None:
        """Close the environments."""
        if self._evaluator is not None:
            self._evaluator.close()

    def _evaluate(self, trainer: TrainerView) -> EvalResult | None:
        """Return the result; None, with a warning, if no episode ended or the evaluation failed."""
        assert self._evaluator is not None
        try:
            return self._evaluator.evaluate(trainer.policy)
        except Exception as error:  # of an environment that fails here: the training has others
            reason = error if isinstance(error, APIUsageError) else f"{type(error).__name__}: {error}"
            warnings.warn(f"update {trainer.updates} has no evaluation, and training goes on: {reason}", stacklevel=2)
            return None

    def _next_due(self, trainer: TrainerView) -> int:
        return (trainer.agent_steps // self.interval + 1) * self.interval


def build_callbacks(config: Config) -> list[Callback]:
    """Return the callbacks that the settings ask for: self-play, restarts, evaluations and early stops.

    Early stops come after evaluations, whose scores they read.

    Raises:
        APIUsageError: The settings exclude each other.
    """
    found: list[Callback] = []
    if config.selfplay.opponents:
        found.append(SelfPlay(config))
    if config.train.restart_share:
        found.append(StateCurriculum(config.train))
    if config.eval.interval:
        found.append(PeriodicEvaluation(config.eval.interval, config.eval.interval_episodes))
    return found + stop_callbacks(config.stop, evaluates=bool(config.eval.interval))
