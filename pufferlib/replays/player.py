"""Replay of bundles, with the same environment, seed and actions."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pufferlib.errors import WorkerError
from pufferlib.replays.bundle import DIGESTED, Bundle, cause, digest
from pufferlib.vector.factory import make

__all__ = ["Replayed", "replay"]


@dataclass(frozen=True)
class Replayed:
    """Result of a replay.

    Attributes:
        is_same: True if the outcome is equal to the recorded one. If the bundle has no ``digest``, only the errors are
            compared.
        steps: Number of steps taken.
        episode_return: Sum of rewards since the last end of an episode, averaged over agents.
        error: Exception that was raised, in one line, or "".
        text: Description of the outcome, and of the recorded one if they differ.
    """

    is_same: bool
    steps: int
    episode_return: float
    error: str
    text: str


def replay(
    bundle: Bundle,
    creator: Callable[..., Any] | None = None,
    show: Callable[[Any], None] | None = None,
) -> Replayed:
    """Repeat the steps of a bundle.

    Without ``show`` the environment runs in a worker process, so that a crash does not affect this process.

    Args:
        bundle: Bundle to replay, from ``Bundle.load``.
        creator: Creator of the environment, by default the one in the bundle.
        show: Function that is called with the vector environment after the reset and each step. The environment then
            runs in this process.

    Raises:
        APIUsageError: The environment cannot be made here.
    """
    player, creator = _Player(bundle), creator or bundle.creator()
    try:
        player.play(creator, show)
    except Exception as error:
        player.note(error)
    return player.result()


class _Player:
    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._steps, self._return = 0, 0.0
        self._digest: int | None = None
        self._error, self._phase = "", "build"

    def play(self, creator: Callable[..., Any], show: Callable[[Any], None] | None) -> None:
        bundle = self._bundle
        backend = "Serial" if show else "Multiprocessing"
        with make(creator, backend=backend, seed=bundle.seed, num_workers=1, autoreset=bundle.autoreset) as vecenv:
            self._phase = "reset"
            vecenv.reset(seed=bundle.seed)
            if show:
                show(vecenv)
            self._phase = "step"
            for index, actions in enumerate(bundle.actions):
                for _ in range(bundle.resets.count(index)):
                    vecenv.reset()
                _, rewards, *_ = vecenv.step(actions)
                self._steps += 1
                self._return = float(rewards.mean()) + (0.0 if index in bundle.ends else self._return)
                if show:
                    show(vecenv)
            self._digest = digest({name: getattr(vecenv, name) for name in DIGESTED}, slice(None))

    def note(self, error: Exception) -> None:
        """Record an exception as the outcome."""
        self._error = cause(error)
        if isinstance(error, WorkerError):  # remove the bundle of this replay itself
            for path in error.bundles:
                with suppress(OSError):
                    path.unlink()

    def result(self) -> Replayed:
        """Compare the outcome with the recorded one."""
        bundle = self._bundle
        is_same = self._error == bundle.error and (bool(self._error) or bundle.digest in (None, self._digest))
        got = self._error or f"no error, return {self._return:g}"
        place = f"after {self._steps} of {len(bundle.actions)} steps" if bundle.phase == "step" else f"in {self._phase}"
        if is_same:
            text = f"same outcome {place}: {got}"
        else:
            expected = bundle.error or ("no error" if self._error else "other observations or rewards")
            text = f"different outcome {place}: {got}; recorded: {expected}"
        if not (is_same or bundle.is_complete):
            text += ". This bundle lacks some actions since the seed; vector.make(..., record=FOLDER) records all"
        return Replayed(is_same, self._steps, self._return, self._error, text)
