"""Evaluation during training: the callback that plays, logs and keeps the best checkpoint."""

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

from pufferlib.errors import APIUsageError
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.training.config import Config
from pufferlib.training.curriculum import StateCurriculum
from pufferlib.training.early_stop import stop_callbacks
from pufferlib.training.evaluation import EvalResult, Evaluator
from pufferlib.training.opponents import SelfPlay

__all__ = ["PeriodicEvaluation", "build_callbacks"]


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
