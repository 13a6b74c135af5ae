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
from pufferlib.models.devices import describe_device
from pufferlib.render.html import facts, media
from pufferlib.render.video import Frame, VideoWriter
from pufferlib.runs import report
from pufferlib.runs.folder import Run
from pufferlib.runs.versions import warn_of_edits
from pufferlib.settings.config import Config
from pufferlib.text import duration, plural, short
from pufferlib.training.evaluation import EvalResult, NoEpisodeError, evaluate, unfinished_result
from pufferlib.training.loggers.base import Result
from pufferlib.training.loggers.tracking import Tracking
from pufferlib.training.trainer import Trainer

__all__ = ["Comparison", "EpisodeVideo", "compare", "finish_run", "run_metadata", "warned"]


class EpisodeVideo:
    """Video of an episode. It is a function that receives frames, and a context that writes the mp4 file at its end.

    There is no file if there was no frame.

    Args:
        path: Path of the file.
        max_seconds: Maximum length. Later frames are dropped. 0 means no limit.
    """

    def __init__(self, path: Path, max_seconds: float) -> None:
        self.path, self._max_seconds = path, max_seconds or math.inf
        self._file = path.absolute()  # the working directory may change
        self._writer: VideoWriter | None = None
        self._is_lost = False
        self._shape = (0, 0)

    def __call__(self, frame: Frame | None, fps: float) -> None:
        """Append a frame. ``fps`` is the number of frames per second."""
        if frame is None or self._is_lost:  # the environment renders no frames, or an earlier one was not written
            return
        if self._writer is None:
            self._writer = VideoWriter(self._file, max(1.0, fps), self._max_seconds)
            self._shape = frame.shape[:2]
        try:
            self._writer.write(frame if frame.shape[:2] == self._shape else _fitted_frame(frame, self._shape))
        except OSError as failure:  # a full disk, for example; keep the evaluation
            self._give_up(failure)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
        except Exception as failure:
            self._give_up(failure)

    def _give_up(self, failure: Exception) -> None:
        warnings.warn(f"{self.path}: the video could not be written: {failure}", stacklevel=3)
        writer, self._writer, self._is_lost = self._writer, None, True
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()

    def about(self) -> str:
        """Describe the video. The text is empty if there is none."""
        if self._writer is None:
            return ""
        length = duration(self._writer.frames / self._writer.fps)
        shown = f"the first episode of the evaluation, {length} at {self._writer.fps:g} frames per second"
        if not self._writer.dropped:
            return shown
        whole = duration((self._writer.frames + self._writer.dropped) / self._writer.fps)
        return f"{shown}; cut, since the episode lasts {whole}: --eval.video-seconds 0 records all of it"

    def as_dict(self) -> dict[str, Any]:
        """Return length, frames per second and completeness, by their names in ``summary.json``."""
        writer = self._writer
        if writer is None:
            return {"video_s": None, "video_fps": None, "video_is_whole": None}
        return {
            "video_s": round(writer.frames / writer.fps, 3),
            "video_fps": writer.fps,
            "video_is_whole": writer.dropped == 0,
        }


def _fitted_frame(frame: Frame, shape: tuple[int, ...]) -> Frame:
    """Crop ``frame`` to ``shape``, or pad it with black, at the right and the bottom."""
    height, width = shape
    found = np.zeros((height, width, 3), np.uint8)
    part = frame[:height, :width]
    found[: part.shape[0], : part.shape[1]] = part
    return found


@dataclass(frozen=True)
class Comparison:
    """Evaluation of a policy compared with random play.

    Attributes:
        env_name: Name of the environment.
        agent: Evaluation of the policy. The score is NaN if no episode ended in time.
        random: Evaluation of random play. The score is NaN if no episode ended in time, or if random play failed.
        greedy: Whether the policy took its most likely actions.
        video: Video of the policy's first episode, or None.
    """

    env_name: str
    agent: EvalResult
    random: EvalResult
    greedy: bool
    video: EpisodeVideo | None

    @property
    def way(self) -> str:
        """Description of how the policy chose its actions."""
        return "greedily" if self.greedy else "with sampled actions"

    @property
    def score(self) -> str:
        """Mean score and its standard deviation as text."""
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

    def _repr_html_(self) -> str:
        """Show the scores and the video in a notebook."""
        metrics = {name: short(value) for name, value in self.agent.metrics().items()}
        return facts(str(self), metrics) + (media(self.video.path, "the first episode") if self.video else "")

    @property
    def random_score(self) -> str:
        """Mean score of random play as text."""
        return short(self.random.score_mean) if self.random.episodes else "no score"

    def as_dict(self) -> dict[str, Any]:
        """Return the scores by their names in ``summary.json``."""
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
            **(self.video.as_dict() if self.video else {}),
        }


def compare(config: Config, policy: Policy, video: Path | None = None) -> Comparison:
    """Evaluate ``policy`` and random play, with a video of the first episode if the environment renders frames.

    If the video cannot be made, or random play fails, a warning is given.

    Args:
        config: Settings of the environment and of the evaluation.
        policy: Policy to evaluate.
        video: Path of the mp4 file, or None for no video.

    Raises:
        APIUsageError: No episode ended in time.
        PufferError: The policy's outputs are NaN.
    """
    recording = EpisodeVideo(video, config.eval.video_seconds) if video else None
    with contextlib.chdir("."):  # environments may change the working directory
        with recording or contextlib.nullcontext():
            agent = evaluate(config, policy, record=recording)
        random = _random_play(config)
    return Comparison(config.env_name, agent, random, config.eval.greedy, recording)


def finish_run(run: Run, trainer: Trainer, tracking: Tracking | None = None) -> Comparison:
    """Evaluate the trained policy, and write the summary, video and learning curve of its run.

    The summary is written first. Later failures become warnings. If no episode of the evaluation ends, a warning is
    given and the score is NaN.

    Args:
        run: Run, with the metrics of the training.
        trainer: Trainer that has finished.
        tracking: Trackers that receive the result.

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
    """Return a context that turns exceptions into warnings, so that the result of a training is not lost."""
    try:
        yield
    except Exception as error:
        warnings.warn(f"{what}: {type(error).__name__}: {error}", stacklevel=4)


def _random_play(config: Config) -> EvalResult:
    try:
        return evaluate(config, None)
    except Exception as error:  # the environment does not support random actions, for example
        reason = str(error) if isinstance(error, NoEpisodeError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"random play has no score: {reason}", stacklevel=3)
        return unfinished_result(0)


def run_metadata(trainer: Trainer) -> dict[str, Any]:
    """Return facts of a training for its summary: environment, steps, seconds, device and versions."""
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
