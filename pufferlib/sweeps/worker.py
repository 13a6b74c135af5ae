"""Process that trains one trial after another, apart from the search: a crash in an environment costs one trial."""

import contextlib
import faulthandler
import math
import os
import pickle
import signal
import time
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from pufferlib.errors import PufferError
from pufferlib.registry.outside import REGISTERED
from pufferlib.runs.folder import Run
from pufferlib.sweeps.messages import (
    Description,
    Stop,
    Surrounding,
    TrialCurvePoint,
    TrialFailure,
    TrialOrder,
    TrialPace,
    TrialScore,
)
from pufferlib.sweeps.settings import with_settings
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.training.config import Config
from pufferlib.vector.multiprocessing.worker import Parent

__all__ = ["TrialReporter", "main"]

_PACE_S = 0.5  # between two messages on the pace of a training


def main(conn_fd: int, parent_pid: int, parent_fd: int, *cores: int) -> None:
    """Train what the parent orders, by the files that it opened, on ``cores``, until it closes the connection."""
    Parent(parent_pid, parent_fd).end_with_it()
    faulthandler.enable()
    if cores:  # before torch is loaded, which counts them
        os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    conn = Connection(conn_fd)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        surrounding: Surrounding = pickle.loads(conn.recv_bytes())
        REGISTERED.update(surrounding.registrations)
        while True:
            order = conn.recv()
            if isinstance(order, TrialOrder):  # a stop that came too late is none
                conn.send(_obey(order, surrounding, conn))


def _obey(order: TrialOrder, surrounding: Surrounding, conn: Connection) -> Any:
    try:
        return _train(order, surrounding, conn) if order.is_whole else _look(order, surrounding)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except PufferError as error:
        reason, _, stack = str(error).partition("\n\n")
        if not order.is_whole:  # the search will not begin, and keeps no file where the stack could be read
            return TrialFailure(type(error).__name__, str(error))
        if stack:
            traceback.print_exc()
        return TrialFailure(type(error).__name__, reason, bool(stack))
    except Exception as error:  # of an environment, or a library below: it is this trial's, not the search's
        traceback.print_exc()
        return TrialFailure(type(error).__name__, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", True)


def _look(order: TrialOrder, surrounding: Surrounding) -> Description:
    """Build what a run needs, once, so that what is wrong with it is said before any training."""
    from pufferlib.training.trainer import Trainer

    order.folder.mkdir(parents=True, exist_ok=True)
    config = _on_a_gpu(with_settings(surrounding.config, order.settings), surrounding.index)
    with contextlib.closing(Trainer(config, order.folder)) as trainer:
        return Description(trainer.config)


def _train(order: TrialOrder, surrounding: Surrounding, conn: Connection) -> TrialScore:
    from pufferlib.runs.report import plot_learning_curve, read_metrics, write_summary
    from pufferlib.training.lifecycle import Hooks, trained
    from pufferlib.training.result import run_metadata, warned

    run = Run.at(order.folder)
    run.folder.mkdir(parents=True, exist_ok=True)
    config = _fitted(_on_a_gpu(with_settings(surrounding.config, order.settings), surrounding.index))
    reporter = TrialReporter(conn, order.number, surrounding)
    hooks = Hooks("puffer sweep", callbacks=lambda: [reporter])
    with trained(config, run, run if run.has_checkpoint else None, hooks) as (trainer, _):
        pass
    if reporter.is_pruned:
        return TrialScore(reporter.last, trainer.uptime_s, trainer.agent_steps, is_whole=False)
    score, figures = _evaluate(trainer.config, trainer.policy, surrounding.metric)
    write_summary(run.summary, {**run_metadata(trainer), **figures})
    with warned("the learning curve is not drawn"):
        title = f"trial {order.number}, evaluated: {score:g}"
        plot_learning_curve(run.curve, read_metrics(run.metrics), title)
    return TrialScore(score, trainer.uptime_s, trainer.agent_steps, is_whole=True)


def _on_a_gpu(config: Config, index: int) -> Config:
    """``config`` with a GPU of its own for each process, in turns, where there are several."""
    import torch

    count = torch.cuda.device_count() if config.train.device in ("auto", "cuda") else 0
    return with_settings(config, {"train.device": f"cuda:{index % count}"}) if count > 1 else config


def _fitted(config: Config) -> Config:
    """``config`` with the largest part of ``minibatch_size`` that divides the steps of an update."""
    from pufferlib.training.build import build_vecenv

    train = config.train
    if not (train.minibatch_size and train.horizon):
        return config
    with contextlib.closing(build_vecenv(config)) as vecenv:
        steps = train.horizon * vecenv.num_agents
    size = min(train.minibatch_size, steps)
    whole = train.horizon if config.policy.memory != "none" else 1  # with a memory, whole segments
    parts = math.gcd(steps // whole, max(1, size // whole)) * whole
    return with_settings(config, {"train.minibatch_size": parts})


def _evaluate(config: Config, policy: Any, metric: str) -> tuple[float, Mapping[str, Any]]:
    from pufferlib.training.evaluation import evaluate

    result = evaluate(config, policy)
    metrics = result.metrics()
    if metric != "score" and metric not in metrics:
        raise PufferError(f"sweep.metric: the environment reports {', '.join(sorted(metrics))}, got {metric!r}")
    score = result.score_mean if metric == "score" else metrics[metric]
    if not math.isfinite(score):
        raise PufferError(f"the evaluation came to the {metric} {score}")
    return score, {
        "score": result.score_mean,
        "score_std": result.score_std,
        "episode_length": result.episode_length,
        "episodes": result.episodes,
        "unfinished_episodes": result.unfinished,
        "metrics": metrics,
    }


class TrialReporter(Callback):
    """Tells the search how a training goes, and ends it when the search says so.

    Attributes:
        last: Score of the latest point of its curve; NaN before the first.
        is_pruned: The search has ended it.

    Args:
        conn: To the search.
        number: Of the trial.
        surrounding: Says which figure is the score, and how far points of the curve are apart.
    """

    def __init__(self, conn: Connection, number: int, surrounding: Surrounding) -> None:
        self._conn, self._number = conn, number
        self._key, self._interval = f"environment/{surrounding.metric}", surrounding.interval
        self._scores: list[float] = []
        self._steps_done: int | None = None
        self._pace_s = -math.inf
        self._begin: tuple[float, float] | None = None
        self.last, self.is_pruned = math.nan, False

    def on_update_end(self, trainer: TrainerView, metrics: Mapping[str, float]) -> None:
        """Send what is new since the update before, and hear what the search says."""
        self._begin = self._begin or (metrics["agent_steps"], metrics["uptime_s"])
        if math.isfinite(metrics.get(self._key, math.nan)):
            self._scores.append(metrics[self._key])
        step = int(metrics["agent_steps"] // self._interval)
        before = step if self._steps_done is None else self._steps_done
        self._steps_done = step
        if step > before and self._scores:
            self.last = sum(self._scores) / len(self._scores)
            self._scores.clear()
            self._conn.send(TrialCurvePoint(step, self.last))
        self._tell_pace(metrics)
        while self._conn.poll():
            message = self._conn.recv()
            if isinstance(message, Stop) and message.number == self._number:
                self.is_pruned = True
                trainer.stop("others were better after as many steps")

    def _tell_pace(self, metrics: Mapping[str, float]) -> None:
        now = time.monotonic()
        if now - self._pace_s < _PACE_S:
            return
        self._pace_s = now
        assert self._begin is not None
        steps, total = metrics["agent_steps"], max(1.0, metrics["total_agent_steps"])
        taken, elapsed = steps - self._begin[0], metrics["uptime_s"] - self._begin[1]
        left = (total - steps) * elapsed / taken if taken > 0 else math.nan
        score = self._scores[-1] if self._scores else self.last
        self._conn.send(TrialPace(min(1.0, steps / total), score, max(0.0, left) if taken > 0 else left))
