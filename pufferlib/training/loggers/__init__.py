"""Loggers, which write the metrics of every update to a file or a tracker such as TensorBoard."""

from pufferlib.training.loggers.base import Logger
from pufferlib.training.loggers.files import CsvLogger, JsonlLogger
from pufferlib.training.loggers.tensorboard import TensorBoardLogger
from pufferlib.training.loggers.tracking import Tracking, check_trackers, open_tracking
from pufferlib.training.loggers.wandb import WandbLogger

__all__ = [
    "CsvLogger",
    "JsonlLogger",
    "Logger",
    "TensorBoardLogger",
    "Tracking",
    "WandbLogger",
    "check_trackers",
    "open_tracking",
]
