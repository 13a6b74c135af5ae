"""Recorder of a vector environment. It writes a bundle with all actions for every environment."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.env import Infos, PufferEnv, Received, Stepped, env_seeds
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.replays.bundle import Bundle, cause, digest, free_path
from pufferlib.vector.proxy import VectorProxy
from pufferlib.vector.specs import EnvSpec
from pufferlib.vector.vector_env import VectorEnv

__all__ = ["Recorder"]

Sent = tuple[Array, Any]  # environments, and the actions of their agents
UNSEEN = ("load_state", "notify", "restart_from", "set_attr")  # methods whose changes are not recorded
HARMLESS = ("pending_infos", "render", "save_state")  # methods that change nothing


class Recorder(VectorProxy):
    """Vector environment that records the actions of every environment since its last reset with a seed.

    Bundles are written at the next reset with a seed, in ``close``, and if an environment fails. Everything else is
    forwarded to the wrapped vector environment.

    Args:
        vecenv: Vector environment to record. It must not have been reset yet.
        specs: Specifications of the environments in it.
        folder: Folder for the bundles, such as ``env3-seed7.npz``.
    """

    def __init__(self, vecenv: VectorEnv | PufferEnv, specs: Sequence[EnvSpec], folder: str | os.PathLike[str]) -> None:
        super().__init__(vecenv)
        self._specs = list(specs)
        self._folder = Path(folder).absolute()  # environments may change the working directory
        self._rows = vecenv.num_agents // len(specs)
        self._is_complete, self._is_changed = True, False
        self._clear()

    def __getattr__(self, name: str) -> Any:
        if name in UNSEEN:
            self._is_changed = True
        return super().__getattr__(name)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method of environments, as ``VectorEnv.call`` does. Changes made by the method are not recorded."""
        self._is_changed = self._is_changed or name not in HARMLESS
        results: list[Any] = self.vecenv.call(name, *args, **kwargs)
        return results

    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        """Start new episodes, as ``VectorEnv.reset`` does."""
        seed = self._record_reset(seed, others)
        outcome: tuple[Array, Infos] = self._recorded_call("reset", self.vecenv.reset, seed, **others)
        return outcome

    def async_reset(self, seed: Any = None, **others: Any) -> None:
        """Start new episodes. ``recv`` returns their first observations."""
        seed = self._record_reset(seed, others)
        self._recorded_call("reset", self.vecenv.async_reset, seed, **others)

    def step(self, actions: Any) -> Stepped:
        """Apply one action of every agent in the last batch."""
        outcome: Stepped = self._recorded_call("step", self.vecenv.step, actions, sent=(self._envs_of_batch(), actions))
        self._record_ends()
        return outcome

    def send(self, actions: Any) -> None:
        """Send one action of every agent in the last batch. ``recv`` returns the next finished batch."""
        self._recorded_call("step", self.vecenv.send, actions, sent=(self._envs_of_batch(), actions))

    def recv(self) -> Received:
        """Return the next batch."""
        outcome: Received = self._recorded_call("step" if self._actions else "reset", self.vecenv.recv)
        if self._actions:
            self._record_ends()
        return outcome

    def close(self) -> None:
        """Write the bundles, and close every environment."""
        try:
            self._save_all()
            self._clear()
        finally:
            super().close()

    def actions_of(self, index: int) -> Array:
        """Return the actions of environment ``index`` since its last reset with a seed, ``(steps, agents, ...)``."""
        parts = []
        for envs, actions in self._actions:
            place = np.flatnonzero(envs == index)
            if len(place):
                start = int(place[0]) * self._rows
                parts.append(actions[start : start + self._rows])
        return np.array(parts) if parts else np.zeros(0, np.int32)

    def _clear(self) -> None:
        self._actions: list[tuple[Array, Array]] = []  # environments of a batch, and the actions of their agents
        self._steps = np.zeros(len(self._specs), np.int64)
        self._ends: list[list[int]] = [[] for _ in self._specs]
        self._resets: list[int] = []

    def _record_reset(self, seed: Any, others: dict[str, Any]) -> Any:
        if any(value is not None for value in others.values()):  # a reset of some environments, or with options
            self._is_complete = False
            return seed
        if seed is None and (self._actions or self._resets):
            self._resets.append(int(self._steps[0]))
            self._is_complete = self._is_complete and len(set(self._steps)) == 1
            return None
        is_of_games = isinstance(self.vecenv, PufferEnv) and isinstance(seed, list | tuple | range | np.ndarray)
        count = range(len(self._specs))
        seeds = [] if seed is None or is_of_games else env_seeds("reset", seed, count)  # before anything is written
        self._save_all()
        self._clear()
        self._is_complete = not (is_of_games or None in seeds)  # a bundle has one seed
        if seeds:
            found = zip(self._specs, seeds, strict=True)
            self._specs = [spec if new is None else replace(spec, seed=new) for spec, new in found]
        elif seed is None and isinstance(
            self.vecenv, PufferEnv
        ):  # without a seed its random numbers would continue from the constructor
            seed = self._specs[0].seed
        return seed

    def _envs_of_batch(self) -> Array:
        """Return the environments of the last batch, int64, in the order of their rows."""
        envs: Array = self.vecenv.agent_ids[:: self._rows] // self._rows
        return envs

    def _record_actions(self, sent: Sent | None) -> None:
        if sent is not None:
            envs, actions = sent
            self._actions.append((envs, np.array(actions)))
            self._steps[envs] += 1

    def _record_ends(self) -> None:
        vecenv = self.vecenv
        ended = (vecenv.terminals | vecenv.truncations).reshape(-1, self._rows)
        if not ended.any():
            return
        over = ended.any(axis=1) & (ended | ~vecenv.masks.reshape(-1, self._rows)).all(axis=1)
        for index in self._envs_of_batch()[over]:
            self._ends[index].append(int(self._steps[index]))

    def _recorded_call(self, phase: str, act: Any, *args: Any, sent: Sent | None = None, **others: Any) -> Any:
        """Call ``act`` and record the actions. If an environment fails, write the bundles and re-raise the error."""
        try:
            outcome = act(*args, **others)
        except APIUsageError:  # the environments did not step
            raise
        except Exception as error:
            self._record_actions(sent)
            self._save_failure(phase, error)
            self._clear()
            raise
        self._record_actions(sent)
        return outcome

    def _save_failure(self, phase: str, error: Exception) -> None:
        if not isinstance(error, WorkerError):
            self._save_all(phase, cause(error), {_failed_env(error)})
            return
        failed = {path: Bundle.load(path) for path in error.bundles}  # these may lack actions, so write them again
        for path, bundle in failed.items():
            self._bundle(bundle.index, bundle.phase, bundle.error).save(path)
        self._save_all(phase, cause(error), {bundle.index for bundle in failed.values()})

    def _save_all(self, phase: str = "step", error: str = "", failed: Collection[int] = ()) -> None:
        """Write a bundle for each environment that was stepped or has failed.

        Args:
            phase: Phase in which the ``failed`` environments failed.
            error: Error of these environments. The last step of all others is omitted, because it may not have run.
            failed: Indices of the environments that failed.
        """
        for index in range(len(self._specs)):
            if index in failed:
                self._save(self._bundle(index, phase=phase, error=error))
            elif self._steps[index]:
                bundle = self._bundle(index)
                self._save(replace(bundle, actions=bundle.actions[:-1], digest=None) if error else bundle)

    def _save(self, bundle: Bundle) -> None:
        bundle.save(free_path(self._folder, f"env{bundle.index}-seed{bundle.seed}"))

    def _bundle(self, index: int, phase: str = "step", error: str = "") -> Bundle:
        return Bundle.of(
            self._specs[index],
            self.actions_of(index),
            autoreset=self.vecenv.autoreset,
            is_complete=self._is_complete and not self._is_changed,
            phase=phase,
            error=error,
            resets=tuple(self._resets),
            ends=tuple(self._ends[index]),
            digest=None if error else self._digest(index),
        )

    def _digest(self, index: int) -> int | None:
        """Return the digest of the rows of an environment, or None if they are not in the last batch."""
        place = np.flatnonzero(self.vecenv.agent_ids == index * self._rows)
        if not len(place) or not self._actions or index not in self._actions[-1][0]:
            return None
        arrays = {name: getattr(self.vecenv, name) for name in ("observations", "rewards", "terminals", "truncations")}
        return digest(arrays, slice(int(place[0]), int(place[0]) + self._rows))


def _failed_env(error: BaseException) -> int:
    """Return the index of the environment that raised, from the note on the error, or 0 if there is only one."""
    for note in getattr(error, "__notes__", ()):
        words = note.split()
        if words[:1] == ["while"] and "environment" in words:
            return int(words[words.index("environment") + 1])
    return 0
