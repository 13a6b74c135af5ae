"""The result of a run: its policy beside random play, with a film, a learning curve and a summary."""

import contextlib
import math
import platform
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import pufferlib
from pufferlib import registry
from pufferlib.machine.cpus import usable_cpus
from pufferlib.models import Policy
from pufferlib.training import report
from pufferlib.training.build import describe_device
from pufferlib.training.config import Config
from pufferlib.training.evaluation import EvalResult, NoEpisodeError, evaluate, unfinished_result
from pufferlib.training.film import Film
from pufferlib.training.loggers.logger import Result
from pufferlib.training.loggers.tracking import Tracking
from pufferlib.training.runs import Run
from pufferlib.training.text import plural, short
from pufferlib.training.trainer import Trainer
from pufferlib.training.versions import warn_of_edits

__all__ = ["Comparison", "compare", "finish_run", "run_metadata", "warned"]


@dataclass(frozen=True)
class Comparison:
    """A policy's evaluation beside random play's.

    Attributes:
        env_name: The environment.
        agent: The policy's. Its score is NaN if no episode ended in time.
        random: Random play's. Its score is NaN if no episode ended in time, or random play failed.
        greedy: The policy took its likeliest actions.
        film: Its first episode; None where none was asked for.
    """

    env_name: str
    agent: EvalResult
    random: EvalResult
    greedy: bool
    film: Film | None

    @property
    def way(self) -> str:
        """Text on how the policy chose its actions."""
        return "greedily" if self.greedy else "with sampled actions"

    @property
    def score(self) -> str:
        """Text of the mean score and its deviation."""
        return f"{short(self.agent.score_mean)} ± {short(self.agent.score_std)}"

    def __str__(self) -> str:
        agent, unfinished = self.agent, ""
        name = registry.short_name(self.env_name)
        if not agent.episodes:
            return f"{name}: no score, since none of {plural(agent.unfinished, 'episode')} ended within eval.max-steps"
        if agent.unfinished:
            unfinished = f" ({agent.unfinished} more were cut off at eval.max-steps)"
        return (
            f"{name}: score {self.score} "
            f"over {plural(agent.episodes, 'episode')}{unfinished}, "
            f"played {self.way}; random play: {self.random_score}"
        )

    @property
    def random_score(self) -> str:
        """Text of the mean score of random play."""
        return short(self.random.score_mean) if self.random.episodes else "no score"

    def as_dict(self) -> dict[str, Any]:
        """Scores by the names that ``summary.json`` has for them."""
        return {
            "score": self.agent.score_mean,
            "score_std": self.agent.score_std,
            "episode_length": self.agent.episode_length,
            "greedy": self.greedy,
            "episodes": self.agent.episodes,
            "unfinished_episodes": self.agent.unfinished,
            "metrics": self.agent.metrics(),
            "random_score": self.random.score_mean,
            "random_score_std": self.random.score_std,
            **(self.film.as_dict() if self.film else {}),
        }


def compare(config: Config, policy: Policy, video: Path | None = None) -> Comparison:
    """Evaluate ``policy`` and random play; film the first episode if the environment draws pictures.

    A video that cannot be made, and random play that fails, cost a warning.

    Args:
        config: The environment, and how long to play.
        policy: The agent.
        video: The mp4 file; None films nothing.

    Raises:
        APIUsageError: Not one episode ended in time.
        PufferError: The policy's outputs are NaN.
    """
    film = Film(video, config.eval.video_seconds) if video else None
    with contextlib.chdir("."):  # environments may change it
        with film or contextlib.nullcontext():
            agent = evaluate(config, policy, record=film)
        random = _random_play(config)
    return Comparison(config.env_name, agent, random, config.eval.greedy, film)


def finish_run(run: Run, trainer: Trainer, tracking: Tracking | None = None) -> Comparison:
    """Evaluate what was trained, and write summary, video and learning curve into its run.

    The summary is written first. What fails after it costs a warning, as does an evaluation without a single end: its
    score is NaN.

    Args:
        run: The folder, with the metrics of the training.
        trainer: Done with the training.
        tracking: Trackers, which get it too.

    Raises:
        OSError: The summary cannot be written.
        PufferError: The policy's outputs are NaN.
    """
    config = trainer.config
    try:
        warn_of_edits(config.env_name, trainer.versions)
        comparison = compare(config, trainer.policy, run.video)
    except NoEpisodeError as error:
        warnings.warn(f"the run has no score: {error}", stacklevel=2)
        nothing = unfinished_result(config.eval.episodes)
        comparison = Comparison(config.env_name, nothing, unfinished_result(0), config.eval.greedy, None)
    except BaseException:
        _draw_curve(run, config, "not evaluated")
        raise
    summary = {**run_metadata(trainer), **comparison.as_dict()}
    report.write_summary(run.summary, summary)
    outcome = f"evaluated {comparison.way}: {short(comparison.agent.score_mean)}"
    outcome += f" (random play {comparison.random_score})"
    _draw_curve(run, config, outcome, comparison.random.score_mean)
    if tracking:
        with warned("the trackers do not get the result"):
            tracking.finish(Result(summary, run.curve, run.video if run.video.exists() else None))
    return comparison


def _draw_curve(run: Run, config: Config, outcome: str, random_score: float = math.nan) -> None:
    with warned("the learning curve is not drawn"):
        title = f"{registry.short_name(config.env_name)}, seed {config.train.seed}; {outcome}"
        report.plot_learning_curve(run.curve, report.read_metrics(run.metrics), title, random_score, config.stop.score)


@contextlib.contextmanager
def warned(what: str) -> Iterator[None]:
    """Turn what fails in this context into a warning: the result of a training matters more."""
    try:
        yield
    except Exception as error:
        warnings.warn(f"{what}: {type(error).__name__}: {error}", stacklevel=4)


def _random_play(config: Config) -> EvalResult:
    try:
        return evaluate(config, None)
    except Exception as error:  # of an environment that cannot be played at random
        reason = str(error) if isinstance(error, NoEpisodeError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"random play has no score: {reason}", stacklevel=3)
        return unfinished_result(0)


def run_metadata(trainer: Trainer) -> dict[str, Any]:
    """Facts of a training for its summary: environment, steps, seconds, device, versions."""
    config = trainer.config
    return {
        "env_name": config.env_name,
        "seed": config.train.seed,
        "agent_steps": trainer.agent_steps,
        "updates": trainer.updates,
        "stop_reason": trainer.stop_reason,
        "train_s": round(trainer.uptime_s, 3),
        "steps_per_s": round(trainer.agent_steps / trainer.uptime_s) if trainer.uptime_s else None,
        "device": describe_device(trainer.device),
        "cores": usable_cpus(),
        "pufferlib": pufferlib.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }
