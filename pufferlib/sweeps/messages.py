"""Messages between a search and the processes that train its trials."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferlib.registry.outside import Registration
from pufferlib.training.config import Config

__all__ = [
    "Description",
    "Stop",
    "Surrounding",
    "TrialCurvePoint",
    "TrialFailure",
    "TrialOrder",
    "TrialPace",
    "TrialScore",
]


@dataclass(frozen=True)
class Surrounding:
    """All that a process needs to know of the search, before its first trial.

    Attributes:
        config: Settings of every trial, under its own.
        registrations: Environments that the caller has registered, by name.
        metric: The figure of the environment that is the score.
        interval: Agent-steps between two points of a curve.
        index: Of the process.
    """

    config: Config
    registrations: dict[str, Registration]
    metric: str
    interval: int
    index: int


@dataclass(frozen=True)
class TrialOrder:
    """To a process: train a trial.

    Attributes:
        number: Of the trial.
        settings: Its own, by dotted keys.
        folder: Of its run; where it has a checkpoint, training goes on from there.
        is_whole: Train and evaluate it; else only look at what the environment makes of the settings.
    """

    number: int
    settings: dict[str, Any]
    folder: Path
    is_whole: bool = True


@dataclass(frozen=True)
class Stop:
    """To a process: end the trial in progress, which others were better than."""

    number: int


@dataclass(frozen=True)
class Description:
    """From a process: the settings of a run, with numbers in place of those that follow from the number of agents."""

    config: Config


@dataclass(frozen=True)
class TrialCurvePoint:
    """From a process: the mean score since the point before; ``step`` counts intervals of agent-steps."""

    step: int
    score: float


@dataclass(frozen=True)
class TrialPace:
    """From a process: how far a training is. The score is NaN until an episode has ended."""

    share: float
    score: float
    left_s: float


@dataclass(frozen=True)
class TrialScore:
    """From a process: a trial is trained and evaluated, or was stopped; then the score is that of its curve."""

    score: float
    seconds: float
    steps: int
    is_whole: bool


@dataclass(frozen=True)
class TrialFailure:
    """From a process: why a trial failed.

    Attributes:
        kind: Class of the error.
        reason: Its message, without a stack.
        has_stack: True if the process has printed one.
    """

    kind: str
    reason: str
    has_stack: bool = False
