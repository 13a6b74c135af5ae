"""The interface of loggers, and of trackers, which take the result of a run too."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

__all__ = ["Logger", "Result", "Tracker"]


@runtime_checkable
class Logger(Protocol):
    """Takes the metrics of each update as they come.

    An exception in a method becomes a warning, and the training continues.
    """

    def log(self, metrics: dict[str, float]) -> None:
        """Take the metrics of one update; keys as listed at ``Trainer``."""

    def close(self) -> None:
        """No more will come. May be called twice."""


@dataclass(frozen=True)
class Result:
    """The result of a run, for trackers.

    Attributes:
        scores: Figures of its ``summary.json`` by their names.
        curve: The picture of its learning curve.
        video: The film of an episode; None where there is none.
    """

    scores: dict[str, Any]
    curve: Path
    video: Path | None

    @property
    def numbers(self) -> dict[str, float]:
        """Figures that are numbers."""
        return {key: float(value) for key, value in self.scores.items() if isinstance(value, int | float)}


@runtime_checkable
class Tracker(Logger, Protocol):
    """A logger that takes the result of the run too."""

    def finish(self, result: Result) -> None:
        """Take the result, after the metrics of all updates and before ``close``."""
