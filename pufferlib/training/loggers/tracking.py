"""Trackers that the settings of a run name: how each is checked, opened and kept off the training loop."""

import contextlib
import functools
import inspect
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from pufferlib import registry
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from pufferlib.machine.commands import way_to_install
from pufferlib.runs.folder import Run
from pufferlib.runs.resume import flat
from pufferlib.training.config import TRACKERS, Config
from pufferlib.training.loggers.base import Logger, LogGuard, Result, Tracker, wants_episodes
from pufferlib.training.loggers.files import CsvLogger
from pufferlib.training.loggers.tensorboard import TensorBoardLogger
from pufferlib.training.loggers.wandb import WandbLogger, check_account

__all__ = ["BackgroundTracker", "Tracking", "check_trackers", "open_tracking"]


# Seconds between two looks: W&B takes a third of the time for each update where they come in bursts.
INTERVAL_S = 2.0


class BackgroundTracker:
    """Hands a tracker metrics and result from a thread, in order, every two seconds.

    An update that comes sooner than ``interval_s`` after the last one is held back until the next takes its place, or
    the run ends: fast environments make many updates a second, which nobody sees apart in a plot. Once the tracker has
    failed it gets nothing more. The next call warns of that, once; the training goes on.

    Args:
        name: Of the tracker, for the warning.
        tracker: Gets its calls from one thread alone.
        interval_s: Seconds between two updates that it gets; 0: it gets each.
    """

    def __init__(self, name: str, tracker: Tracker, interval_s: float) -> None:
        self._name, self._tracker = name, tracker
        self._interval_s, self._next = interval_s, 0.0  # by time.monotonic()
        self._held: dict[str, float] | None = None
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._closes = threading.Event()
        self._failure: Exception | None = None
        self._is_told = False
        self._thread = threading.Thread(target=self._work, name=f"logger {name}", daemon=True)
        self._thread.start()

    def log(self, metrics: dict[str, float]) -> None:
        """Let the tracker take the metrics of an update, or hold them back."""
        now = time.monotonic()
        self._held = dict(metrics)  # the caller may change them
        if now >= self._next:
            self._next = now + self._interval_s
            self._pass_on()
        self._tell()

    def finish(self, result: Result) -> None:
        """Let it take the result, after the last update."""
        self._pass_on()
        self._calls.put(lambda: self._tracker.finish(result))
        self._tell()

    def close(self) -> None:
        """Wait until it has taken everything, and close it; may be called twice."""
        if self._thread.is_alive():
            self._pass_on()
            self._calls.put(self._tracker.close)
            self._closes.set()
            self._thread.join()
        self._tell()

    def _pass_on(self) -> None:
        """Hand on the metrics that are held back, if there are any."""
        metrics, self._held = self._held, None
        if metrics is not None:
            self._calls.put(lambda: self._tracker.log(metrics))

    def _work(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closes.wait(INTERVAL_S)
            try:
                while self._failure is None:
                    self._calls.get_nowait()()
            except Empty:
                pass
            except Exception as error:  # whatever it is: it must not end the training
                self._failure = error

    def _tell(self) -> None:
        """Warn of a failure in the thread of the caller, who may have made an error of warnings."""
        if self._failure is not None and not self._is_told:
            self._is_told = True
            reason = str(self._failure).partition("\n")[0] or type(self._failure).__name__
            warnings.warn(
                f"{self._name} failed ({reason}), and gets nothing more of this run; training goes on, and "
                "metrics.jsonl has all figures",
                stacklevel=3,
            )


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

    @property
    def log_episodes(self) -> Callable[[list[dict[str, float]]], None] | None:
        """Method that passes episodes to the loggers that take them, or None if there are none."""
        if not any(map(wants_episodes, self._loggers)):
            return None
        return functools.partial(self._guard.log_episodes, self._loggers)

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
