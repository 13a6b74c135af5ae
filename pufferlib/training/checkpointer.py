"""Checkpoints of a training in progress: when one is written, what it contains, and how it is restored."""

import contextlib
import copy
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pufferlib import registry
from pufferlib.emulation.state import is_pickle
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.runs.versions import warn_of_differences, warn_of_missing
from pufferlib.settings.config import Config
from pufferlib.training.callbacks import CallbackList
from pufferlib.training.diagnosis import NonFiniteError
from pufferlib.training.distributed.ranks import RankLostError, Ranks
from pufferlib.training.episodes import ScoreMean
from pufferlib.training.normalization import load_wrappers, save_wrappers
from pufferlib.training.ppo import Reduction
from pufferlib.training.sources import RolloutSource
from pufferlib.training.state import TrainState
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector import VectorWrapper

__all__ = ["Checkpointer", "Contents", "LastUpdate", "load_games", "part_of_rank", "save_games"]


class Contents(NamedTuple):
    """Contents of a checkpoint, as ``checkpoint.save`` takes them.

    Attributes:
        policy: ``state_dict()`` of the policy.
        state: Everything else that is needed to resume the run.
        about: Facts of the checkpoint.
    """

    policy: Mapping[str, Tensor]
    state: Mapping[str, Any]
    about: checkpoint.About


def save_games(vecenv: Any, how: str) -> list[Tensor] | None:
    """Return the state of each environment as uint8, or None if it cannot be saved.

    States can be saved for batches of all environments, also in wrappers that normalize. Environments in C are always
    saved, and others as ``how`` allows, which is ``train.save_games``.
    """
    if how == "none" or vecenv.agents_per_batch != vecenv.num_agents:
        return None
    if isinstance(vecenv, VectorWrapper) and vecenv.episode_arrays() is None:
        return None
    try:
        is_native = isinstance(vecenv, PufferEnv)
        states = vecenv.call("save_state") if is_native else vecenv.save_state(allow_pickle=how == "pickle")
    except (AttributeError, APIUsageError) as error:
        if how == "pickle":
            warnings.warn(
                f"the checkpoint has no games, which train.save_games='pickle' asks for: {error}", stacklevel=3
            )
        return None
    except Exception as error:  # a bug in the environment; the weights must be saved anyway
        warnings.warn(f"the checkpoint has no games: {type(error).__name__}: {error}", stacklevel=3)
        return None
    return [torch.from_numpy(np.frombuffer(state, np.uint8).copy()) for state in states]


def load_games(vecenv: AnyVectorEnv, states: Sequence[Tensor], allow_pickle: bool = False) -> None:
    """Restore the states that ``save_games`` returned. The environments must have been reset.

    Raises:
        APIUsageError: The states belong to other environments, settings or versions, or are pickles that are not
            allowed.
    """
    found = [state.cpu().numpy().tobytes() for state in states]
    if not allow_pickle and any(map(is_pickle, found)):
        raise APIUsageError(
            "they are pickles, which can execute any code when loaded; resume with --train.save-games pickle if you "
            "trust their source"
        )
    if isinstance(vecenv, PufferEnv):
        vecenv.call("load_state", *found)
    else:
        vecenv.load_state(found, allow_pickle=allow_pickle)


class Checkpointer:
    """Writer and reader of the checkpoints of a training.

    Attributes:
        is_requested: Whether a checkpoint was requested and is not written yet.

    Args:
        state: Network, optimizer, random numbers and counters.
        source: Rollouts, with the collector and its environments.
        reduction: Statistics shared by the ranks.
        callbacks: Callbacks whose state is saved.
        config: Settings of the run.
        run_dir: Folder of the run.
        ranks: Processes that train together. Rank 0 writes.
        versions: Versions of everything the run depends on, as of its start.
        given: Names of the loss and callbacks, which a checkpoint does not contain. A resumed training warns about
            those of its checkpoint that are missing.
    """

    def __init__(
        self,
        state: TrainState,
        source: RolloutSource,
        reduction: Reduction,
        callbacks: CallbackList,
        config: Config,
        run_dir: Path,
        ranks: Ranks,
        versions: dict[str, str],
        given: list[str],
    ) -> None:
        self._state, self._source, self._reduction, self._callbacks = state, source, reduction, callbacks
        self._config, self._run, self._ranks, self._versions = config, Run.at(run_dir), ranks, versions
        self._given = given
        self._owner = os.getpid()
        self.is_requested = self._failed = False
        self._evaluated: tuple[int, float] | None = None  # update and score of the latest evaluation
        self._saved_updates: int | None = None  # updates of the latest checkpoint
        self._last_update = LastUpdate(ranks)

    @property
    def is_due(self) -> bool:
        """True if a checkpoint was requested, the last attempt failed, or ``checkpoint_interval`` is reached."""
        return self.is_requested or self._failed or self._is_at_interval

    @property
    def has_all(self) -> bool:
        """True if the latest checkpoint is of the latest update."""
        return self._saved_updates == self._state.updates

    @property
    def _is_at_interval(self) -> bool:
        every = self._config.train.checkpoint_interval
        return every > 0 and self._state.updates % every == 0

    def request(self, score: float | None) -> None:
        """Request a checkpoint after this update. See ``Trainer.request_checkpoint``."""
        self.is_requested = True
        if score is not None:
            self._evaluated = self._state.updates, score

    def save(self, starts_episodes: bool) -> Path:
        """Write a checkpoint and return its folder.

        Args:
            starts_episodes: Save no episodes in progress, and start new ones.

        Raises:
            OSError: The checkpoint cannot be written. Earlier checkpoints are unchanged.
        """
        train = self._config.train
        contents = self._contents("none" if starts_episodes else train.save_games)
        path = self._ranks.on_first(lambda: self._write(contents))
        self._saved_updates, self._state.scores = self._state.updates, ScoreMean()
        self.is_requested = self._failed = False
        self._last_update.forget()
        self._ranks.on_first(lambda: checkpoint.rotate(self._run.checkpoints, train.keep_checkpoints))
        if starts_episodes:
            self._source.collector.reset(self._state.episode_seed)
        return path

    def _write(self, contents: Contents) -> Path:
        """Write a checkpoint. Create the folder of the run again if it was deleted."""
        run = self._run
        if not run.folder.exists():
            run.folder.mkdir(parents=True)
            self._config.save(run.config)
            warnings.warn(
                f"{run.folder}: the folder of the run was deleted during training; it is created again with the "
                "settings and a new checkpoint, earlier checkpoints and metrics are lost",
                stacklevel=5,
            )
        return checkpoint.save(run.checkpoints, *contents)

    def keep(self) -> None:
        """Keep a copy of the latest update if another rank may be lost during the next one."""
        self._last_update.keep(lambda: self._merged_contents([self._rank_state()]))

    def saved_when_lost(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that saves the latest update if a rank is lost.

        Raises:
            RankLostError: A rank was lost. The message says what was saved.
        """
        return self._last_update.saved_when_lost(self._run.checkpoints)

    def save_after(self, error: BaseException) -> None:
        """Save the latest update after the environments raised ``error``, or Ctrl-C stopped them.

        The checkpoint has no episodes. The error gets a note that says how to resume. After NaN, nothing is saved. If
        another rank fails, ``saved_when_lost`` saves the update.
        """
        is_forked = os.getpid() != self._owner  # by the environment
        is_saved = self.has_all or not self._state.updates
        if is_saved or is_forked or isinstance(error, NonFiniteError | RankLostError):
            return
        if self._ranks.is_first and self._ranks.saves_last_update():
            error.add_note(self._saved_after_failure())

    def _saved_after_failure(self) -> str:
        """Save the latest update, and return a sentence that says so."""
        updates = self._state.updates
        try:
            self._write(self._merged_contents([self._rank_state()]))
            self._saved_updates = updates
        except Exception as failure:
            return f"update {updates} could not be saved: {type(failure).__name__}: {failure}"
        command = as_typed("puffer train --resume", self._run.folder)
        return f"a checkpoint of update {updates} was saved; to resume: {command}"

    def try_to_save(self) -> Path | None:
        """Write the checkpoint that is due and return its folder. Warn and return None if it cannot be written."""
        try:
            self._source.wait()  # outside of the other try, because an OSError of the environments is not a full disk
        except BaseException as error:
            self.save_after(error)
            raise
        try:
            # A requested checkpoint between two intervals does not start new episodes, so it does not change the run.
            return self.save(starts_episodes=self._config.train.exact_resume and self._is_at_interval)
        except OSError as error:
            if not self._failed:
                warnings.warn(
                    f"{self._run.folder}: a checkpoint could not be written ({error.strerror}); training continues, "
                    "and tries again after each update; make room there",
                    stacklevel=3,
                )
            self._failed = True
            return None

    def _contents(self, how: str) -> Contents:
        """Return the contents of a checkpoint, with the episodes of all ranks.

        All ranks must call this at the same time.
        """
        collector = self._source.collector
        own = {"source": self._source.state_dict(), **self._rank_state()}
        games = save_games(collector.vecenv, how)
        if games is not None:
            own |= {"games": games, "collector": collector.state_dict()}
        return self._merged_contents(self._ranks.gather(own))

    def _rank_state(self) -> dict[str, Any]:
        """Return the state that differs between ranks, without their episodes."""
        collector = self._source.collector
        return {
            **self._state.rank_state_dict(),
            "has_reward": collector.has_reward,
            "callbacks": self._callbacks.state_dict(),
            **self._reduction.state_dict(),
            **save_wrappers(collector.vecenv),
        }

    def _merged_contents(self, ranks: list[dict[str, Any]]) -> Contents:
        """Return the checkpoint for these states of ranks.

        The state of rank 0 is stored like the state of a single process.
        """
        first, *others = ranks
        state = {
            **self._state.state_dict(),
            "reward_scale": self._source.collector.reward_scale,
            **first,
            **({"ranks": others} if others else {}),
        }
        return Contents(self._state.policy.state_dict(), state, self._about())

    def _about(self) -> checkpoint.About:
        score, score_of = self._state.scores.mean, "training"
        if self._evaluated is not None and self._evaluated[0] == self._state.updates:
            score, score_of = self._evaluated[1], "evaluation"
        return checkpoint.About(
            self._config.env_name,
            self._state.updates,
            self._state.agent_steps,
            score,
            self._config.to_toml(),
            self._versions,
            score_of=score_of,
            given=self._given,
            spaces=getattr(self._state.policy, "described_spaces", {}),
        )

    def restore(self, path: Path, allow_pickle: bool) -> bool:
        """Restore a checkpoint. See ``Trainer.restore``."""
        state, collector = self._state, self._source.collector
        about, weights, contents = self._ranks.on_first(lambda: self._read(path))
        contents, is_own = part_of_rank(contents, self._ranks.rank, self._ranks.size)
        checkpoint.check_spaces(state.policy, about, path)
        checkpoint.load_weights(state.policy, weights, path, about.env_name)
        checkpoint.load_optimizer(state.optimizer, contents["optimizer"], path)
        state.load_state_dict(contents)
        state.load_rank_state_dict(contents, is_own)
        self._callbacks.load_state_dict(_callback_states(contents))
        if self._ranks.is_first and state.agent_steps < self._config.train.total_timesteps:
            warn_of_missing(path, about.given, self._given)
        if path.absolute().parent == self._run.checkpoints.absolute():
            self._saved_updates = state.updates
        if not self._config.train.reward_scale:
            collector.reward_scale = contents.get("reward_scale", 1.0)  # absent in old checkpoints
        collector.has_reward = is_own and contents.get("has_reward", False)
        load_wrappers(collector.vecenv, contents, with_episodes=False)
        self._reduction.start_moments(collector.vecenv)
        collector.reset(state.episode_seed)
        are_continued = is_own and "games" in contents and self._restore_games(contents, path, allow_pickle)
        if is_own and "source" in contents:
            self._source.load_state_dict(contents["source"])
            self._reduction.load_state_dict(contents)
        return are_continued

    def _read(self, path: Path) -> tuple[checkpoint.About, dict[str, torch.Tensor], dict[str, Any]]:
        """Return facts, weights and state of a checkpoint of the same environment."""
        device = self._state.generator.device
        about, contents = checkpoint.read_about(path), checkpoint.read_state(path, device)
        ours, theirs = (registry.short_name(name) for name in (self._config.env_name, about.env_name))
        if ours != theirs and not registry.is_new_name(self._config.env_name, about.env_name):
            raise APIUsageError(f"{path}: belongs to a run of {theirs}, got {ours}; start a new run of {ours}")
        weights = checkpoint.read_policy(path, device)
        warn_of_differences(path, about.versions, self._versions)
        return about, weights, contents

    def _restore_games(self, contents: dict[str, Any], path: Path, allow_pickle: bool) -> bool:
        collector = self._source.collector
        try:
            load_games(collector.vecenv, contents["games"], allow_pickle)
        except APIUsageError as error:
            warnings.warn(
                f"{path}: new episodes start, because the saved ones cannot be continued: {error}", stacklevel=4
            )
            collector.reset(self._state.episode_seed)
            return False
        collector.load_state_dict(contents["collector"])
        load_wrappers(collector.vecenv, contents, with_episodes=True)
        return True


def _callback_states(contents: dict[str, Any]) -> dict[str, Any]:
    """Return the states of callbacks by name. Checkpoints of earlier versions have the opponent pool beside them."""
    states: dict[str, Any] = contents.get("callbacks", {})
    return {"SelfPlay": contents["opponents"], **states} if "opponents" in contents else states


def part_of_rank(state: dict[str, Any], rank: int, size: int) -> tuple[dict[str, Any], bool]:
    """Return the state of a checkpoint for ``rank``, and whether it was saved by the same number of ranks."""
    others = state.get("ranks", [])
    if len(others) + 1 != size:
        return state, False
    return ({**state, **others[rank - 1]} if rank else state), True


class LastUpdate:
    """Copy of the state after the latest update, kept if there are several ranks, because any of them may be lost.

    Every rank has the same weights. If rank 0 is lost, rank 1 saves them.

    Args:
        ranks: Processes that train together.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self._kept = ranks, None if ranks.size == 1 else list[Contents]()

    def keep(self, contents: Callable[[], Contents]) -> None:
        """Copy the state after an update. With a single rank, do nothing."""
        if self._kept is not None:
            self._kept[:] = [copy.deepcopy(contents())]

    def forget(self) -> None:
        """Delete the copy, because the update has been saved."""
        if self._kept is not None:
            self._kept.clear()

    @contextlib.contextmanager
    def saved_when_lost(self, folder: Path) -> Iterator[None]:
        """Return a context that saves the latest update in ``folder`` if another rank is lost.

        Raises:
            RankLostError: A rank was lost. The message says what was saved.
        """
        try:
            yield
        except RankLostError as error:
            raise RankLostError(f"{error}{self._saved(folder)}") from error

    def _saved(self, folder: Path) -> str:
        if not self._kept or not self._ranks.saves_last_update():
            return ""
        (contents,) = self._kept
        try:
            checkpoint.save(folder, *contents)
        except OSError as failure:
            return f"; update {contents.about.updates} could not be saved ({failure.strerror})"
        saved = f"; a checkpoint of update {contents.about.updates} was saved"
        if self._ranks.rank == 0:  # its command prints how to resume
            return saved
        return f"{saved}; to resume: {as_typed('puffer train --resume', folder.parent)}"
