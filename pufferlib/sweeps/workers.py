"""Worker processes that train trials, so that a crash in an environment costs one trial and not the search."""

import contextlib
import faulthandler
import math
import os
import pickle
import signal
import subprocess
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pufferlib.errors import PufferError
from pufferlib.machine.children import python_code
from pufferlib.registry.outside import REGISTERED, Registration
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config
from pufferlib.sweeps.spaces import trial_config, with_settings
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.vector.multiprocessing.worker import Parent

__all__ = [
    "ProbeRequest",
    "ProbeResult",
    "PruneRequest",
    "TrialCurvePoint",
    "TrialFailure",
    "TrialPace",
    "TrialProcess",
    "TrialReporter",
    "TrialRequest",
    "TrialScore",
    "WorkerSetup",
    "fit_minibatch",
    "main",
    "split_cores",
    "stop_all",
    "use_own_gpu",
    "wait_for_messages",
]

_MAIN = "from pufferlib.sweeps.workers import main; main(*map(int, sys.argv[1:]))"
_SAVE_S = 20.0  # time to save a checkpoint before a process is killed
_PACE_S = 0.5  # between two messages about the progress of a training


@dataclass(frozen=True)
class WorkerSetup:
    """First message to a worker.

    Attributes:
        config: Settings that all trials share.
        configs: Settings that all trials with a policy share, by its name, if ``policy.name`` is searched.
        registrations: Environments that the caller has registered, by name.
        metric: Metric of the environment that is the score.
        interval: Agent-steps between two points of a learning curve.
        index: Index of the worker.
    """

    config: Config
    configs: dict[str, Config]
    registrations: dict[str, Registration]
    metric: str
    interval: int
    index: int


@dataclass(frozen=True)
class ProbeRequest:
    """Request to build the environments and the policy once, without training."""

    folder: Path


@dataclass(frozen=True)
class TrialRequest:
    """Request to train and evaluate a trial.

    Attributes:
        number: Number of the trial.
        settings: Searched settings of the trial, by dotted name.
        folder: Folder of its run. If it has a checkpoint, training resumes there.
        num_agents: Number of agents, or None if the worker has to count them.
    """

    number: int
    settings: dict[str, Any]
    folder: Path
    num_agents: int | None


@dataclass(frozen=True)
class PruneRequest:
    """Request to stop the running trial early."""

    number: int


@dataclass(frozen=True)
class ProbeResult:
    """Answer to a ``ProbeRequest``: settings with all automatic values filled in, and the number of agents."""

    config: Config
    num_agents: int


@dataclass(frozen=True)
class TrialCurvePoint:
    """Mean score since the previous point. ``step`` counts intervals of agent-steps."""

    step: int
    score: float


@dataclass(frozen=True)
class TrialPace:
    """Progress of a training. The score is NaN until an episode has ended."""

    share: float
    score: float
    left_s: float


@dataclass(frozen=True)
class TrialScore:
    """Result of a trial: the score of its evaluation, or of its learning curve if it was pruned."""

    score: float
    seconds: float
    steps: int
    is_pruned: bool = False


@dataclass(frozen=True)
class TrialFailure:
    """Reason why a trial failed.

    Attributes:
        kind: Name of the exception's class.
        reason: Message without the stack.
        has_stack: True if the worker has printed the stack.
    """

    kind: str
    reason: str
    has_stack: bool = False


def split_cores(workers: int, usable: int) -> list[list[int]]:
    """Return the cores of each worker: equal shares, or one core each, reused if there are more workers than cores."""
    allowed = sorted(os.sched_getaffinity(0))[:usable] if usable else []
    each = max(1, len(allowed) // workers)
    return [[allowed[(worker * each + i) % len(allowed)] for i in range(each)] for worker in range(workers)]


class TrialProcess:
    """Worker process, as seen by the search.

    Args:
        cores: Cores that the worker may use.
        setup: Pickled ``WorkerSetup``.
        log: File for the worker's output, and for its stack if it crashes.

    Attributes:
        log: File for the worker's output.
        conn: Connection to the worker.
    """

    def __init__(self, cores: Sequence[int], setup: bytes, log: Path) -> None:
        ours, theirs = connection.Pipe()
        parent_fd, self._lifeline = os.pipe()  # closes when this process ends, however it ends
        arguments = [theirs.fileno(), os.getpid(), parent_fd, *cores]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the worker ignores Ctrl-C
        try:
            with log.open("ab") as output:
                self._popen = subprocess.Popen(
                    python_code(_MAIN, *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(), parent_fd),
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
            os.close(parent_fd)
        self.log, self.conn = log, ours
        with contextlib.suppress(OSError):  # if the worker has ended, ``receive`` reports it
            self.conn.send_bytes(setup)

    def send(self, message: Any) -> None:
        """Send a message. Do nothing if the worker has ended."""
        with contextlib.suppress(OSError):
            self.conn.send(message)

    def receive(self) -> Any:
        """Return the next message, or None if the worker has ended."""
        try:
            return self.conn.recv()
        except (EOFError, OSError):
            return None

    def wait(self) -> str:
        """Wait until the worker ends and return the name of the signal that ended it, or its exit code as text."""
        code = self._popen.wait()
        self.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def terminate(self) -> None:
        """Ask the worker to save a checkpoint and exit."""
        if self._popen.poll() is None:
            self._popen.terminate()

    def close(self, deadline: float | None = None) -> None:
        """Wait for the worker until ``deadline``, then kill it. Without a deadline, kill it at once."""
        if self.conn.closed:
            return
        if deadline is None:
            self._popen.kill()
        try:
            self._popen.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self.conn.close()
        os.close(self._lifeline)


def wait_for_messages(processes: Sequence[TrialProcess], limit_s: float) -> list[TrialProcess]:
    """Return the workers that have sent a message or ended, after at most ``limit_s`` seconds."""
    by_conn: dict[Any, TrialProcess] = {process.conn: process for process in processes}
    ready: list[Connection] = connection.wait(list(by_conn), limit_s)  # type: ignore[assignment]
    return [by_conn[conn] for conn in ready]


def stop_all(processes: Sequence[TrialProcess]) -> None:
    """Stop all workers. Running trials save a checkpoint first."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _SAVE_S
    for process in processes:
        process.close(deadline)


def main(conn_fd: int, parent_pid: int, parent_fd: int, *cores: int) -> None:
    """Run the requests of the parent process until it closes the connection.

    Args:
        conn_fd: File descriptor of the connection.
        parent_pid: Process id of the parent.
        parent_fd: File descriptor of a pipe that closes when the parent ends.
        cores: Cores that this process may use.
    """
    Parent(parent_pid, parent_fd).end_with_it()
    faulthandler.enable()
    if cores:  # before torch is imported, which counts them
        os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    conn = Connection(conn_fd)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        setup: WorkerSetup = pickle.loads(conn.recv_bytes())
        REGISTERED.update(setup.registrations)
        while True:
            request = conn.recv()
            if not isinstance(request, PruneRequest):  # too late, the trial has ended
                conn.send(_answer(request, setup, conn))


def _answer(request: ProbeRequest | TrialRequest, setup: WorkerSetup, conn: Connection) -> Any:
    try:
        return _train(request, setup, conn) if isinstance(request, TrialRequest) else _probe(request, setup)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except PufferError as error:
        if isinstance(request, ProbeRequest):  # no search starts, and the log with the stack is deleted
            return TrialFailure(type(error).__name__, str(error))
        reason, _, stack = str(error).partition("\n\n")
        if stack:
            traceback.print_exc()
        return TrialFailure(type(error).__name__, reason, bool(stack))
    except Exception as error:  # an error of the environment or a library fails this trial, not the search
        traceback.print_exc()
        return TrialFailure(type(error).__name__, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", True)


def _probe(request: ProbeRequest, setup: WorkerSetup) -> ProbeResult:
    from pufferlib.training.trainer import Trainer

    request.folder.mkdir(parents=True, exist_ok=True)
    use_own_gpu(setup.config, setup.index)
    with contextlib.chdir("."), contextlib.closing(Trainer(setup.config, request.folder)) as trainer:
        return ProbeResult(trainer.config, trainer.vecenv.num_agents)


def _train(request: TrialRequest, setup: WorkerSetup, conn: Connection) -> TrialScore:
    from pufferlib.runs.report import plot_learning_curve, read_metrics, write_summary
    from pufferlib.training.lifecycle import Hooks, trained
    from pufferlib.training.loggers.base import Result
    from pufferlib.training.result import run_metadata, warned

    run = Run.at(request.folder)
    run.folder.mkdir(parents=True, exist_ok=True)
    use_own_gpu(setup.config, setup.index)
    config = trial_config(setup.config, setup.configs, request.settings)
    if config.train.minibatch_size and config.train.horizon:  # neither follows from the number of agents
        config = fit_minibatch(config, request.num_agents or _count_agents(config))
    reporter = TrialReporter(conn, request.number, setup)
    hooks = Hooks("puffer sweep", callbacks=lambda: [reporter])
    with trained(config, run, run if run.has_checkpoint else None, hooks) as (trainer, tracking):
        if reporter.is_pruned:
            return TrialScore(reporter.last, trainer.uptime_s, trainer.agent_steps, is_pruned=True)
        score, result = _evaluate(trainer.config, trainer.policy, setup.metric)
        summary = {**run_metadata(trainer), **result}
        write_summary(run.summary, summary)
        with warned("the learning curve is not drawn"):
            title = f"trial {request.number}, evaluated: {score:g}"
            plot_learning_curve(run.curve, read_metrics(run.metrics), title)
        tracking.finish(Result(summary, run.curve, video=None))
    return TrialScore(score, trainer.uptime_s, trainer.agent_steps)


def use_own_gpu(config: Config, index: int) -> None:
    """Make the GPU of worker ``index`` the current one, if there are several and the settings name none.

    The settings of its runs keep "auto" or "cuda", so they are valid on other machines.
    """
    import torch

    count = torch.cuda.device_count() if config.train.device in ("auto", "cuda") else 0
    if count > 1:
        torch.cuda.set_device(index % count)


def fit_minibatch(config: Config, num_agents: int) -> Config:
    """Return ``config`` with a smaller ``minibatch_size`` if it does not divide the steps of an update.

    The new size is the largest divisor that is not above the old one. With a memory it is a multiple of ``horizon``.
    """
    train = config.train
    steps = train.horizon * num_agents
    size = min(train.minibatch_size, steps)
    unit = train.horizon if config.policy.memory != "none" else 1
    count = next(each for each in range(max(1, size // unit), 0, -1) if steps // unit % each == 0)
    return with_settings(config, {"train.minibatch_size": count * unit})


def _count_agents(config: Config) -> int:
    from pufferlib.training.build import make_vecenv

    with contextlib.chdir("."), contextlib.closing(make_vecenv(config)) as vecenv:  # which may change the directory
        return int(vecenv.num_agents)


def _evaluate(config: Config, policy: Any, metric: str) -> tuple[float, Mapping[str, Any]]:
    """Evaluate ``policy`` and return its score, and the values for ``summary.json``."""
    from pufferlib.training.evaluation import evaluate

    with contextlib.chdir("."):
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
    """Callback that sends scores and progress to the search, and stops the training if the search prunes it.

    Args:
        conn: Connection to the search.
        number: Number of the trial.
        setup: Metric that is the score, and the interval between points of the learning curve.

    Attributes:
        last: Score at the latest point of the learning curve, or NaN.
        is_pruned: True if the search has pruned the trial.
    """

    def __init__(self, conn: Connection, number: int, setup: WorkerSetup) -> None:
        self._conn, self._number = conn, number
        self._key, self._interval = f"environment/{setup.metric}", setup.interval
        self._scores: list[float] = []
        self._step: int | None = None
        self._sent_s = -math.inf
        self._start: tuple[float, float] | None = None
        self.last, self.is_pruned = math.nan, False

    def on_update_end(self, trainer: TrainerView, metrics: Mapping[str, float]) -> None:
        """Send the scores of the update, and read pending requests."""
        self._start = self._start or (metrics["agent_steps"], metrics["uptime_s"])
        if math.isfinite(metrics.get(self._key, math.nan)):
            self._scores.append(metrics[self._key])
        step = int(metrics["agent_steps"] // self._interval)
        before = step if self._step is None else self._step
        self._step = step
        if step > before and self._scores:
            self.last = sum(self._scores) / len(self._scores)
            self._scores.clear()
            self._conn.send(TrialCurvePoint(step, self.last))
        if time.monotonic() - self._sent_s >= _PACE_S:
            self._sent_s = time.monotonic()
            self._conn.send(self._pace(metrics, self._start))
        while self._conn.poll():
            message = self._conn.recv()
            if isinstance(message, PruneRequest) and message.number == self._number:
                self.is_pruned = True
                trainer.stop("others were better after as many steps")

    def _pace(self, metrics: Mapping[str, float], start: tuple[float, float]) -> TrialPace:
        steps, total = metrics["agent_steps"], max(1.0, metrics["total_agent_steps"])
        taken, elapsed = steps - start[0], metrics["uptime_s"] - start[1]
        left_s = max(0.0, (total - steps) * elapsed / taken) if taken > 0 else math.nan
        return TrialPace(min(1.0, steps / total), self._scores[-1] if self._scores else self.last, left_s)
