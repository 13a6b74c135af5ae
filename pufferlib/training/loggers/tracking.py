"""The trackers that the settings of a run name: how each is checked and opened."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pufferlib import registry
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from pufferlib.machine.commands import way_to_install
from pufferlib.training.config import Config
from pufferlib.training.loggers.background import BackgroundTracker
from pufferlib.training.loggers.csv_file import CsvLogger
from pufferlib.training.loggers.guard import LogGuard
from pufferlib.training.loggers.logger import Logger, Result, Tracker
from pufferlib.training.loggers.tensorboard import TensorBoardLogger
from pufferlib.training.loggers.wandb import WandbLogger, check_account
from pufferlib.training.resume import flat
from pufferlib.training.runs import Run
from pufferlib.training.track_config import TRACKERS

__all__ = ["Tracking", "check_trackers", "open_tracking"]


class Tracking:
    """All trackers of a run as one logger, which stays open after the training for the result.

    Attributes:
        places: Sentences on where to look.
    """

    def __init__(self) -> None:
        self._loggers: list[Logger] = []
        self.places: list[str] = []
        self._guard = LogGuard()

    def add(self, logger: Logger, place: str = "") -> None:
        """Give the metrics to ``logger`` too, and the result if it has a method ``finish``."""
        self._loggers.append(logger)
        self.places += [place] if place else []

    def log(self, metrics: dict[str, float]) -> None:
        """Take the metrics of an update."""
        self._guard.log(self._loggers, metrics)

    def close(self) -> None:
        """Do nothing: the result comes after the metrics, and ``open_tracking`` closes the trackers after that."""

    def finish(self, result: Result) -> None:
        """Take the result of the run."""
        self._guard.finish([each for each in self._loggers if isinstance(each, Tracker)], result)

    def end(self) -> None:
        """Close all of them."""
        self._guard.close(self._loggers)


Opened = tuple[Logger, str]  # a tracker, and a sentence on where to look; "" is none


@dataclass(frozen=True)
class _Kind:
    """A tracker that has a name.

    Attributes:
        open: Takes the settings, the run and the run's title.
        check: Raises if it cannot be opened, as far as that is known without the network.
    """

    open: Callable[[Config, Run, str], Opened]
    check: Callable[[Config], None] = lambda config: None


def _open_csv(config: Config, run: Run, title: str) -> Opened:
    return CsvLogger(run.table), ""


def _check_tensorboard(config: Config) -> None:
    try:
        import tensorboard  # noqa: F401 - it is looked for here
    except ImportError as error:
        raise BindingMissing(f'TensorBoard: the logger "tensorboard" needs it; {way_to_install("track")}') from error


def _open_tensorboard(config: Config, run: Run, title: str) -> Opened:
    board = TensorBoardLogger(run.folder, _shown(config), title)
    place = f"TensorBoard: tensorboard --logdir {run.folder.parent}"
    return BackgroundTracker("TensorBoard", board, config.track.interval), place


def _open_wandb(config: Config, run: Run, title: str) -> Opened:
    page = WandbLogger(
        run.folder,
        config.track.wandb,
        name=title,
        tags=config.track.tags,
        group=_group(run),
        config=config.as_dict(),
    )
    place = f"Weights & Biases: {page.place}" if page.place else ""
    return BackgroundTracker("Weights & Biases", page, config.track.interval), place


#: Every tracker that has a name in ``TRACKERS``.
_KINDS = {
    "csv": _Kind(_open_csv),
    "tensorboard": _Kind(_open_tensorboard, _check_tensorboard),
    "wandb": _Kind(_open_wandb, lambda config: check_account(config.track.wandb)),
}


def _maker(name: str) -> Callable[[Run], Logger]:
    """Return what makes a user's logger for a run: its class, called with the run if it takes an argument."""
    where = "track.loggers"
    if not registry.is_object_name(name):
        raise UnknownNameError.of(where, "tracker", name, [*TRACKERS, "my_logger.py:MyLogger"])
    found = registry.load_object(where, name, (Logger,))
    kind = found if isinstance(found, type) else type(found)
    if not all(callable(getattr(kind, method, None)) for method in ("log", "close")):
        raise APIUsageError(f"{where}: {name} must have the methods log(metrics) and close(), got {kind.__name__}")
    if not isinstance(found, type):
        return lambda run: found
    for arguments in ((None,), ()):
        with contextlib.suppress(TypeError):
            inspect.signature(found).bind(*arguments)
            return lambda run: found(*arguments and (run,))
    raise APIUsageError(f"{where}: the class {name} must need no arguments, or one, the run")


def check_trackers(config: Config) -> None:
    """Raise unless the trackers of ``config`` can be opened, as far as that is known without the network.

    Raises:
        APIUsageError: One lacks an account, or a user's class is no logger.
        BindingMissing: One is not installed.
        UnknownNameError: There is no such class.
    """
    for name in config.track.loggers:
        if name in _KINDS:
            _KINDS[name].check(config)
        else:
            _maker(name)


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
    group = _group(run)
    title = config.track.name or group or run.folder.name
    title = f"{title}-{run.folder.name}" if group else title
    tracking = Tracking()
    try:
        for name in config.track.loggers:
            if name in _KINDS:
                tracking.add(*_KINDS[name].open(config, run, title))
            else:
                tracking.add(_maker(name)(run))
        yield tracking
    finally:
        tracking.end()


def _group(run: Run) -> str:
    return run.folder.parent.name if run.is_seed else ""


def _shown(config: Config) -> dict[str, Any]:
    """Settings by their dotted names, but for those of the trackers; what is unset is left out."""
    sections = config.as_dict()
    del sections["track"]
    return {key: value for key, value in flat(sections).items() if value is not None}
