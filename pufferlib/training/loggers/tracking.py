"""The trackers that the settings of a run name."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from pufferlib.errors import BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.training.config import Config
from pufferlib.training.loggers.background import BackgroundTracker
from pufferlib.training.loggers.csv_file import CsvLogger
from pufferlib.training.loggers.guard import LogGuard
from pufferlib.training.loggers.logger import Logger, Result
from pufferlib.training.loggers.tensorboard import TensorBoardLogger
from pufferlib.training.loggers.wandb import WandbLogger, check_account
from pufferlib.training.resume import flat
from pufferlib.training.runs import Run

__all__ = ["Tracking", "check_trackers", "open_tracking"]


class Tracking:
    """All trackers of a run as one logger, which stays open after the training for the result.

    Args:
        table: The file in CSV, if it is asked for.
        trackers: Get metrics and result.
        places: Sentences on where to look.
    """

    def __init__(
        self, table: CsvLogger | None = None, trackers: Sequence[BackgroundTracker] = (), places: Sequence[str] = ()
    ) -> None:
        self._loggers: list[Logger] = [*([table] if table else []), *trackers]
        self._trackers, self.places = trackers, places
        self._guard = LogGuard()

    def log(self, metrics: dict[str, float]) -> None:
        """Take the metrics of an update."""
        self._guard.log(self._loggers, metrics)

    def close(self) -> None:
        """Do nothing: the result comes after the metrics, and ``open_tracking`` closes the trackers after that."""

    def finish(self, result: Result) -> None:
        """Take the result of the run."""
        for tracker in self._trackers:
            tracker.finish(result)

    def end(self) -> None:
        """Close all of them."""
        self._guard.close(self._loggers)


def check_trackers(config: Config) -> None:
    """Raise unless the trackers of ``config`` can be opened, as far as that is known without the network.

    Raises:
        APIUsageError: One lacks an account.
        BindingMissing: One is not installed.
    """
    if "tensorboard" in config.track.loggers:
        try:
            import tensorboard  # noqa: F401 - it is looked for here
        except ImportError as error:
            raise BindingMissing(
                f'TensorBoard: the logger "tensorboard" needs it; {way_to_install("track")}'
            ) from error
    if "wandb" in config.track.loggers:
        check_account(config.track.wandb)


@contextlib.contextmanager
def open_tracking(config: Config, run: Run) -> Iterator[Tracking]:
    """The trackers that ``config`` names, until the end of this context.

    Args:
        config: The settings of the run, which the trackers show.
        run: Its folder.

    Raises:
        APIUsageError: One lacks an account.
        BindingMissing: One is not installed.
        PufferError: One does not answer.
    """
    wanted, folder, interval = config.track.loggers, run.folder, config.track.interval
    group = folder.parent.name if run.is_seed else ""
    name = config.track.name or group or folder.name
    name = f"{name}-{folder.name}" if group else name
    trackers, places = [], []
    table = CsvLogger(run.table) if "csv" in wanted else None
    if "tensorboard" in wanted:
        board = TensorBoardLogger(folder, _shown(config), name)
        trackers.append(BackgroundTracker("TensorBoard", board, interval))
        places.append(f"TensorBoard: tensorboard --logdir {folder.parent}")
    if "wandb" in wanted:
        page = WandbLogger(
            folder,
            config.track.wandb,
            name=name,
            tags=config.track.tags,
            group=group,
            config=config.as_dict(),
        )
        trackers.append(BackgroundTracker("Weights & Biases", page, interval))
        places += [f"Weights & Biases: {page.place}"] if page.place else []
    tracking = Tracking(table, trackers, places)
    try:
        yield tracking
    finally:
        tracking.end()


def _shown(config: Config) -> dict[str, Any]:
    """Settings by their dotted names, but for those of the trackers; what is unset is left out."""
    sections = config.as_dict()
    del sections["track"]
    return {key: value for key, value in flat(sections).items() if value is not None}
