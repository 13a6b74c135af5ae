"""Callbacks that the settings ask for: early stops, evaluations, self-play, restarts and bonuses."""

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config, StopConfig
from pufferlib.text import short
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.training.curriculum import StateCurriculum
from pufferlib.training.evaluation import EvalResult, Evaluator
from pufferlib.training.opponents import SelfPlay
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector import NoveltyReward

__all__ = ["NoveltyBonus", "PeriodicEvaluation", "StopAfterSeconds", "StopAtScore", "build_callbacks", "stop_callbacks"]


def stop_callbacks(config: StopConfig, evaluates: bool) -> list[Callback]:
    """Return the callbacks that stop training early.

    Args:
        config: Settings of early stopping.
        evaluates: Whether to use the scores of evaluations during training.
    """
    found: list[Callback] = []
    if config.score < math.inf or config.patience:
        found.append(StopAtScore(config.score, config.patience, None if evaluates else config.episodes))
    if config.seconds:
        found.append(StopAfterSeconds(config.seconds))
    return found


def _check_count(what: str, value: int, least: int) -> None:
    if type(value) is not int or value < least:
        raise APIUsageError(f"{what} must be an int of at least {least}, got {value!r}")


class StopAtScore(Callback):
    """Callback that stops a training when its mean score is high enough or no longer increases.

    Args:
        score: Score at which to stop. inf disables this.
        patience: Number of agent-steps without a better score after which to stop. 0 disables this.
        episodes: Minimum number of latest training episodes in the mean score, at least 1. None uses
            ``evaluation/score`` from the metrics.

    Raises:
        APIUsageError: ``patience`` or ``episodes`` is no int or too small.
    """

    def __init__(self, score: float = math.inf, patience: int = 0, episodes: int | None = None) -> None:
        _check_count("StopAtScore: patience", patience, 0)
        _check_count("StopAtScore: episodes", 1 if episodes is None else episodes, 1)
        self.score, self.patience, self.episodes = score, patience, episodes
        self._best, self._best_steps = -math.inf, 0
        self._recent: deque[tuple[float, float]] = deque()  # sum of scores and number of episodes, of each update
        self._is_resumed = False

    @override
    def on_training_start(self, trainer: TrainerView) -> None:
        if not self._is_resumed:
            self._best, self._best_steps = -math.inf, trainer.agent_steps
            self._recent.clear()
        self._is_resumed = False

    @override
    def on_rollout_end(self, trainer: TrainerView) -> None:
        if self.episodes is None:
            return
        self._recent.append(trainer.episodes.total("score"))
        while self._count() - self._recent[0][1] >= self.episodes:
            self._recent.popleft()

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        score = self._mean(metrics)
        if score is None:
            return
        if score > self._best:
            self._best, self._best_steps = score, trainer.agent_steps
        kind = "the evaluation score" if self.episodes is None else f"the score of {self._count():.0f} episodes"
        if score >= self.score:
            trainer.stop(f"{kind} reached {short(score)}, stop.score is {short(self.score)}")
        elif self.patience and trainer.agent_steps - self._best_steps >= self.patience:
            trainer.stop(f"{kind} did not exceed {short(self._best)} for {short(self.patience)} steps (stop.patience)")

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best, "best_steps": self._best_steps, "recent": [*self._recent]}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
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
    """Callback that stops a training after a number of seconds of collecting, learning and evaluating.

    Seconds before a resume count too.

    Args:
        seconds: Limit. The update in progress is finished first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        if trainer.uptime_s >= self.seconds:
            trainer.stop(f"{short(trainer.uptime_s)} s have passed, stop.seconds is {short(self.seconds)}")


class PeriodicEvaluation(Callback):
    """Callback that evaluates the policy at intervals, and requests a checkpoint when the score is the best so far.

    It adds the metrics ``evaluation/score``, ``evaluation/score_std``, ``evaluation/episode_length``,
    ``evaluation/<key>`` for each value that the environment reports, and ``performance/evaluate_s``, which ``uptime_s``
    includes. It has its own environments and random numbers, so evaluations do not change what is learned.

    Args:
        interval: Number of agent-steps between two evaluations, at least 1. There is also one at
            ``train.total_timesteps``, but none when the training stops early.
        episodes: Number of episodes of each evaluation. None uses ``eval.episodes``. Other settings come from ``eval``.
        env_creator: Function that makes the environment instead of the one that the settings name.

    Raises:
        APIUsageError: ``interval`` or ``episodes`` is not an int of at least 1.
    """

    def __init__(
        self, interval: int, episodes: int | None = None, env_creator: Callable[..., Any] | None = None
    ) -> None:
        _check_count("PeriodicEvaluation: interval", interval, 1)
        _check_count("PeriodicEvaluation: episodes", 1 if episodes is None else episodes, 1)
        self.interval, self.episodes, self.env_creator = interval, episodes, env_creator
        self._best = -math.inf
        self._due_steps = 0
        self._evaluator: Evaluator | None = None

    @override
    def on_training_start(self, trainer: TrainerView) -> None:
        self._evaluator = Evaluator(trainer.config, self.env_creator, self.episodes)
        self._due_steps = self._next_due(trainer)
        best = checkpoint.best(Run.at(trainer.run_dir).checkpoints)
        about = checkpoint.read_about(best) if best else None
        if about is not None and about.score is not None and about.score_of == "evaluation":
            self._best = about.score

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
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

    @override
    def on_training_end(self, trainer: TrainerView) -> None:
        if self._evaluator is not None:
            self._evaluator.close()

    def _evaluate(self, trainer: TrainerView) -> EvalResult | None:
        """Return the result. If no episode ended or the evaluation failed, warn and return None."""
        assert self._evaluator is not None
        try:
            return self._evaluator.evaluate(trainer.policy)
        except Exception as error:  # the environments of the training are separate, so it can continue
            reason = error if isinstance(error, APIUsageError) else f"{type(error).__name__}: {error}"
            warnings.warn(f"update {trainer.updates} has no evaluation, training continues: {reason}", stacklevel=2)
            return None

    def _next_due(self, trainer: TrainerView) -> int:
        return (trainer.agent_steps // self.interval + 1) * self.interval


class NoveltyBonus(Callback):
    """Callback that pays a bonus for new observations, as ``train.novelty_coef`` says.

    The metric ``novelty/bonus`` is its mean over the steps of the rollout.

    Args:
        coef: Bonus for an observation that no agent has seen before.
    """

    every_rank = True

    def __init__(self, coef: float) -> None:
        self._coef = coef

    @override
    def wrap_envs(self, vecenv: AnyVectorEnv, policy: Policy) -> NoveltyReward:
        """Wrap the environments.

        Raises:
            APIUsageError: Observations contain floating-point numbers.
        """
        self._envs = NoveltyReward(vecenv, self._coef)
        return self._envs

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        metrics["novelty/bonus"] = self._envs.paid / trainer.rollout.rewards.numel()
        self._envs.paid = 0.0


def build_callbacks(config: Config) -> list[Callback]:
    """Return the callbacks that the settings ask for: self-play, restarts, bonuses, evaluations and early stops.

    Early stops come after evaluations, whose scores they read.

    Raises:
        APIUsageError: The settings exclude each other.
    """
    found: list[Callback] = []
    if config.selfplay.opponents:
        found.append(SelfPlay(config))
    if config.train.restart_share:
        found.append(StateCurriculum(config.train))
    if config.train.novelty_coef:
        found.append(NoveltyBonus(config.train.novelty_coef))
    if config.eval.interval:
        found.append(PeriodicEvaluation(config.eval.interval, config.eval.interval_episodes))
    return found + stop_callbacks(config.stop, evaluates=bool(config.eval.interval))
