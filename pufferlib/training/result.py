"""Result of a run: evaluation, comparison with random play, video, learning curve and summary."""

import contextlib
import math
import platform
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch

import pufferlib
from pufferlib import registry
from pufferlib.machine.cpus import usable_cpus
from pufferlib.models import Policy
from pufferlib.render.video import Frame, VideoWriter
from pufferlib.runs import report
from pufferlib.runs.folder import Run
from pufferlib.runs.versions import warn_of_edits
from pufferlib.text import duration, plural, short
from pufferlib.training.build import describe_device
from pufferlib.training.config import Config
from pufferlib.training.evaluation import EvalResult, NoEpisodeError, evaluate, unfinished_result
from pufferlib.training.loggers.base import Result
from pufferlib.training.loggers.tracking import Tracking
from pufferlib.training.trainer import Trainer

__all__ = ["Comparison", "Film", "compare", "finish_run", "run_metadata", "warned"]


class Film:
    """Takes the pictures of an episode; the mp4 file appears when it is complete, if there was a picture.

    Args:
        path: The file.
        max_seconds: It is cut after that; 0 is no limit.
    """

    def __init__(self, path: Path, max_seconds: float) -> None:
        self.path, self._max_seconds = path, max_seconds or math.inf
        self._file = path.absolute()  # whatever the working directory becomes
        self._writer: VideoWriter | None = None
        self._shape = (0, 0)

    def __call__(self, picture: Frame | None, fps: float) -> None:
        """Append a picture; ``fps`` of them make a second."""
        if picture is None:  # of an environment that draws none
            return
        if self._writer is None:
            self._writer = VideoWriter(self._file, max(1.0, fps), self._max_seconds)
            self._shape = picture.shape[:2]
        self._writer.write(picture if picture.shape[:2] == self._shape else _cut_or_padded(picture, self._shape))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
        except Exception as failure:  # a full disk for example: the evaluation matters more
            warnings.warn(f"{self.path}: the video could not be written: {failure}", stacklevel=2)

    def about(self) -> str:
        """Text on what it shows; empty if there is none."""
        if self._writer is None:
            return ""
        length = duration(self._writer.frames / self._writer.fps)
        shown = f"the first episode of the evaluation, {length} at {self._writer.fps:g} pictures a second"
        if not self._writer.dropped:
            return shown
        whole = duration((self._writer.frames + self._writer.dropped) / self._writer.fps)
        return f"{shown}; cut, for it lasts {whole}: --eval.video-seconds 0 films all of it"

    def as_dict(self) -> dict[str, Any]:
        """Length, pictures per second and completeness, by the names that ``summary.json`` has for them."""
        writer = self._writer
        if writer is None:
            return {"video_s": None, "video_fps": None, "video_is_whole": None}
        return {
            "video_s": round(writer.frames / writer.fps, 3),
            "video_fps": writer.fps,
            "video_is_whole": writer.dropped == 0,
        }


def _cut_or_padded(picture: Frame, shape: tuple[int, ...]) -> Frame:
    """Return ``picture`` at the size of the first one: cut, or padded by black, at its right and lower sides."""
    height, width = shape
    found = np.zeros((height, width, 3), np.uint8)
    part = picture[:height, :width]
    found[: part.shape[0], : part.shape[1]] = part
    return found


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
