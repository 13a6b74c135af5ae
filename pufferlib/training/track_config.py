"""Settings of a run's name and tags, and of the trackers that take its metrics."""

from dataclasses import dataclass, field
from typing import Literal

from pufferlib.training.kinds import NotNegative

__all__ = ["TRACKERS", "TrackConfig", "WandbConfig"]

TRACKERS = ("csv", "tensorboard", "wandb")


@dataclass(frozen=True)
class WandbConfig:
    """Weights & Biases.

    Attributes:
        project: Project that runs are shown in; "" is WANDB_PROJECT, or else "pufferlib".
        entity: User or team that the project belongs to; "" is WANDB_ENTITY, or else the account's own.
        group: Group that the run belongs to; "" is WANDB_RUN_GROUP, or else all seeds of one command.
        mode: "online"; "offline" keeps the run in its folder, until wandb sync sends it; "disabled"; or "auto":
            WANDB_MODE, or else online.
    """

    project: str = ""
    entity: str = ""
    group: str = ""
    mode: Literal["auto", "online", "offline", "disabled"] = "auto"


@dataclass(frozen=True)
class TrackConfig:
    """Name and tags of a run, and the trackers that take its metrics beside metrics.jsonl.

    Attributes:
        loggers: Any of "csv" (metrics.csv in the run's folder), "tensorboard" (event files there) and "wandb", and
            classes of your own, as path/to/my_logger.py:MyLogger or module:MyLogger.
        name: Name of the run, in that of its folder and in every tracker; "" is none.
        tags: Words to find runs by.
        interval: Seconds between two updates that TensorBoard and Weights & Biases get; an update that comes sooner
            waits, and the next one takes its place. 0: they get each. metrics.jsonl and metrics.csv have all.
        wandb: Weights & Biases.
    """

    loggers: tuple[str, ...] = ()
    name: str = ""
    tags: tuple[str, ...] = ()
    interval: NotNegative = 1.0
    wandb: WandbConfig = field(default_factory=WandbConfig)
