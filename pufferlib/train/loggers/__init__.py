"""Loggers: each is given the metrics of every update, for a file or for a tracker such as TensorBoard."""

from pufferlib.train.loggers.csv_file import CsvLogger
from pufferlib.train.loggers.jsonl import JsonlLogger
from pufferlib.train.loggers.logger import Logger
from pufferlib.train.loggers.tensorboard import TensorBoardLogger
from pufferlib.train.loggers.tracking import Tracking, check_trackers, open_tracking
from pufferlib.train.loggers.wandb import WandbLogger

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
