"""Interface of loggers, and the guard that keeps their errors from ending a training."""

import contextlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pufferlib.errors import APIUsageError

__all__ = ["LogGuard", "Logger", "Result", "Tracker", "check_loggers", "wants_episodes"]


@runtime_checkable
class Logger(Protocol):
    """Logger of the metrics of each update.

    An exception in a method becomes a warning, and the training continues.

    A logger may also have the method ``log_episodes(episodes)``. It is called before ``log``, after each update in
    whose rollout episodes ended. Each episode is a dict of the numbers in its info, with ``agent_steps``, the steps at
    the end of the update, and ``n``, the number of episodes in the info. ``n`` is 1 for Python environments. C
    environments report the means of several episodes at once.
    """

    def log(self, metrics: dict[str, float]) -> None:
        """Log the metrics of one update. ``Trainer`` lists the keys."""

    def close(self) -> None:
        """Close the logger. This may be called twice."""


@dataclass(frozen=True)
class Result:
    """Result of a run, for trackers.

    Attributes:
        scores: Contents of ``summary.json``.
        curve: Path of the image of the learning curve.
        video: Path of the video of an episode, or None.
    """

    scores: dict[str, Any]
    curve: Path
    video: Path | None

    @property
    def numbers(self) -> dict[str, float]:
        """Entries of ``scores`` that are numbers."""
        return {key: float(value) for key, value in self.scores.items() if isinstance(value, int | float)}


@runtime_checkable
class Tracker(Logger, Protocol):
    """Logger that also receives the result of the run."""

    def finish(self, result: Result) -> None:
        """Log the result. This is called after the metrics of all updates and before ``close``."""


def check_loggers(where: str, loggers: Any) -> None:
    """Check that ``loggers`` is a list of loggers.

    Raises:
        APIUsageError: It is no list, or an element has no method ``log``.
    """
    if isinstance(loggers, str) or not isinstance(loggers, Sequence):
        raise APIUsageError(
            f"{where}: loggers must be a list of objects with a method log, got {loggers!r:.80}; put it into a list, "
            'or name trackers: track=["csv"]'
        )
    for logger in loggers:
        if isinstance(logger, type) or not callable(getattr(logger, "log", None)):
            advice = "call it first" if isinstance(logger, type) else 'or name a tracker: track=["csv"]'
            raise APIUsageError(f"{where}: a logger must be an object with a method log, got {logger!r:.80}; {advice}")


_FAILURES = (Exception, SystemExit)  # errors of a logger, which must not end the training


def _loggable(value: Any) -> float | None:
    """Return ``value`` as a Python number, or None. Arrays and tensors of one element are numbers."""
    if isinstance(value, str | bytes):
        return None
    with contextlib.suppress(Exception):  # tensors on a failed device, or objects that only resemble arrays
        value = value.item() if callable(getattr(value, "item", None)) else value
        number = float(value)  # fails for an integer above the largest float
        return int(value) if isinstance(value, bool) else value if type(value) in (int, float) else number
    return None


def wants_episodes(logger: Logger) -> bool:
    """Check whether a logger has the optional method ``log_episodes``."""
    return callable(getattr(logger, "log_episodes", None))


class LogGuard:
    """Guard that passes metrics to loggers and turns their errors, and metrics that are not numbers, into warnings."""

    def __init__(self) -> None:
        self._warned: set[Any] = set()

    def numbers(self, metrics: Mapping[Any, Any]) -> dict[str, float]:
        """Return the metrics that are numbers. Warn once about each of the others."""
        found: dict[str, float] = {}
        for name, value in metrics.items():
            number = _loggable(value)
            if number is not None:
                found[str(name)] = number
            elif name not in self._warned:
                self._warned.add(name)
                warnings.warn(
                    f"the metric {name!r} is not logged: metrics must be numbers, got {value!r:.80} "
                    f"({type(value).__name__}); training continues",
                    stacklevel=4,
                )
        return found

    def log(self, loggers: Sequence[Logger], metrics: dict[str, float]) -> None:
        """Pass a copy of the metrics to each logger. Warn at the first failure of each."""
        for logger in loggers:
            try:
                logger.log(dict(metrics))  # a logger may change its copy
            except _FAILURES as error:
                self._warn(logger, "log", error)

    def log_episodes(self, loggers: Sequence[Logger], episodes: Sequence[dict[str, float]]) -> None:
        """Let each logger that has ``log_episodes`` take a copy of the episodes. Warn at the first failure of each."""
        for logger in filter(wants_episodes, loggers):
            try:
                logger.log_episodes([dict(episode) for episode in episodes])  # type: ignore[attr-defined]
            except _FAILURES as error:
                self._warn(logger, "log_episodes", error)

    def finish(self, trackers: Iterable[Tracker], result: Result) -> None:
        """Pass the result to each tracker. Warn about those that fail."""
        for tracker in trackers:
            try:
                tracker.finish(result)
            except _FAILURES as error:
                self._warn(tracker, "finish", error)

    def close(self, loggers: Iterable[Logger]) -> None:
        """Close all loggers. Warn about those that fail."""
        for logger in loggers:
            try:
                logger.close()
            except _FAILURES as error:
                self._warn(logger, "close", error)

    def _warn(self, logger: Logger, method: str, error: BaseException) -> None:
        if (key := (id(logger), method)) in self._warned:
            return
        self._warned.add(key)
        reason = str(error).partition("\n")[0]
        warnings.warn(
            f"the logger {type(logger).__name__} failed in {method}: {type(error).__name__}: {reason}; training "
            "continues, and metrics.jsonl has the metrics",
            stacklevel=4,
        )
