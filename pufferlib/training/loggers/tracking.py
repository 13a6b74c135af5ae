"""Trackers that the settings name: how they are checked, opened and run in threads beside the training loop."""

import contextlib
import functools
import inspect
import shlex
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
from pufferlib.settings.config import Config
from pufferlib.training.loggers.base import Logger, LogGuard, Result, Tracker, wants_episodes
from pufferlib.training.loggers.files import CsvLogger
from pufferlib.training.loggers.tensorboard import TensorBoardLogger
from pufferlib.training.loggers.wandb import WandbLogger, check_account

__all__ = ["TRACKERS", "BackgroundTracker", "Tracking", "check_trackers", "open_tracking"]


# Seconds between two rounds of calls. W&B takes a third of the time per update if updates come in bursts.
INTERVAL_S = 2.0


class BackgroundTracker:
    """Tracker that runs in a thread. It passes metrics and the result on, in order, every two seconds.

    Fast environments make many updates per second, more than a plot can show. An update that comes less than
    ``interval_s`` after the last one is held back until another replaces it, or the run ends. A tracker that has failed
    receives nothing more. The next call gives one warning, and the training continues.

    Args:
        name: Name of the tracker, for the warning.
        tracker: Tracker, which is called in one thread only.
        interval_s: Minimum seconds between two updates that the tracker receives. 0 passes every update on.
    """

    def __init__(self, name: str, tracker: Tracker, interval_s: float) -> None:
        self._name, self._tracker = name, tracker
        self._interval_s, self._next = interval_s, 0.0  # by time.monotonic()
        self._held: dict[str, float] | None = None
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._closes = threading.Event()
        self._failure: Exception | None = None
        self._has_warned = False
        self._thread = threading.Thread(target=self._work, name=f"logger {name}", daemon=True)
        self._thread.start()

    def log(self, metrics: dict[str, float]) -> None:
        """Pass the metrics of an update to the tracker, or hold them back."""
        now = time.monotonic()
        self._held = dict(metrics)  # the caller may change them
        if now >= self._next:
            self._next = now + self._interval_s
            self._send_held()
        self._warn_of_failure()

    def finish(self, result: Result) -> None:
        """Pass the result to the tracker, after the last update."""
        self._send_held()
        self._calls.put(lambda: self._tracker.finish(result))
        self._warn_of_failure()

    def close(self) -> None:
        """Wait until the tracker has received everything, and close it. This may be called twice."""
        if self._thread.is_alive():
            self._send_held()
            self._calls.put(self._tracker.close)
            self._closes.set()
            self._thread.join()
        self._warn_of_failure()

    def _send_held(self) -> None:
        """Pass the metrics that are held back to the tracker, if there are any."""
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
            except Exception as error:  # must not end the training
                self._failure = error

    def _warn_of_failure(self) -> None:
        """Warn of a failure. This runs in the thread of the caller, because warnings may be configured as errors."""
        if self._failure is not None and not self._has_warned:
            self._has_warned = True
            reason = str(self._failure).partition("\n")[0] or type(self._failure).__name__
            warnings.warn(
                f"{self._name} failed ({reason}) and receives nothing more from this run; training continues, and "
                "metrics.jsonl has all metrics",
                stacklevel=3,
            )


class Tracking:
    """All trackers of a run as one logger, which stays open after the training for the result.

    Attributes:
        places: Sentences that describe where to find the data of each tracker.
    """

    def __init__(self) -> None:
        self._loggers: list[Logger] = []
        self.places: list[str] = []
        self._guard = LogGuard()

    def add(self, logger: Logger, place: str = "") -> None:
        """Add ``logger``. It also receives the result if it has a method ``finish``."""
        self._loggers.append(logger)
        self.places += [place] if place else []

    def log(self, metrics: dict[str, float]) -> None:
        """Log the metrics of an update."""
        self._guard.log(self._loggers, metrics)

    @property
    def log_episodes(self) -> Callable[[list[dict[str, float]]], None] | None:
        """Method that passes episodes to the loggers that take them, or None if there are none."""
        if not any(map(wants_episodes, self._loggers)):
            return None
        return functools.partial(self._guard.log_episodes, self._loggers)

    def close(self) -> None:
        """Do nothing. The result follows after the metrics, and ``open_tracking`` closes the trackers after that."""

    def finish(self, result: Result) -> None:
        """Log the result of the run."""
        self._guard.finish([each for each in self._loggers if isinstance(each, Tracker)], result)

    def end(self) -> None:
        """Close all trackers."""
        self._guard.close(self._loggers)


Opened = tuple[Logger, str]  # a tracker, and a sentence that describes where its data is, or ""


@dataclass(frozen=True)
class _Kind:
    """Built-in tracker.

    Attributes:
        open: Function of the settings, the run and its title that opens the tracker.
        check: Function that raises if the tracker cannot be opened, as far as this is known without the network.
    """

    open: Callable[[Config, Run, str], Opened]
    check: Callable[[Config], None] = lambda config: None


def _open_csv(config: Config, run: Run, title: str) -> Opened:
    return CsvLogger(run.table), ""


def _check_tensorboard(config: Config) -> None:
    try:
        import tensorboard  # noqa: F401 - checks that it is installed
    except ImportError as error:
        raise BindingMissing(f'TensorBoard: the logger "tensorboard" needs it; {way_to_install("track")}') from error


def _open_tensorboard(config: Config, run: Run, title: str) -> Opened:
    board = TensorBoardLogger(run.folder, _shown(config), title)
    place = f"TensorBoard: tensorboard --logdir {shlex.quote(str(run.folder.parent))}"
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


_KINDS = {
    "csv": _Kind(_open_csv),
    "tensorboard": _Kind(_open_tensorboard, _check_tensorboard),
    "wandb": _Kind(_open_wandb, lambda config: check_account(config.track.wandb)),
}
#: Names of the built-in trackers.
TRACKERS = tuple(_KINDS)


def _maker(name: str) -> Callable[[Run], Logger]:
    """Return a function that makes a user's logger for a run.

    The class is called with the run if it takes an argument.
    """
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
    """Raise an error if a tracker of ``config`` cannot be opened, as far as this is known without the network.

    Raises:
        APIUsageError: A tracker needs an account, or a user's class is not a logger.
        BindingMissing: A tracker is not installed.
        UnknownNameError: There is no such class.
    """
    for name in config.track.loggers:
        if name in _KINDS:
            _KINDS[name].check(config)
        else:
            _maker(name)


@contextlib.contextmanager
def open_tracking(config: Config, run: Run) -> Iterator[Tracking]:
    """Return a context with the trackers that ``config`` names.

    Args:
        config: Settings of the run, which the trackers show.
        run: Run to track.

    Yields:
        Trackers as one logger.

    Raises:
        APIUsageError: A tracker needs an account.
        BindingMissing: A tracker is not installed.
        PufferError: A tracker does not answer.
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
    """Return the settings by dotted name, without those of trackers and those that are unset."""
    sections = config.as_dict()
    del sections["track"]
    return {key: value for key, value in flat(sections).items() if value is not None}
