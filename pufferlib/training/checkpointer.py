"""Checkpoints of a training: when one is written, what is in it, and how the training goes on from it."""

import contextlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pufferlib import registry
from pufferlib.errors import APIUsageError
from pufferlib.seeding import env_seed
from pufferlib.training import checkpoint
from pufferlib.training.distributed.last_update import Contents, LastUpdate, part_of_rank
from pufferlib.training.episodes import EpisodeMeans, ScoreMean
from pufferlib.training.games import load_games, save_games
from pufferlib.training.normalization import load_wrappers, save_wrappers
from pufferlib.training.runs import Run
from pufferlib.training.versions import versions_of, warn_of_differences

if TYPE_CHECKING:
    from pufferlib.training.trainer import Trainer

__all__ = ["Checkpointer"]


class Checkpointer:
    """Writes and reads the checkpoints of a trainer.

    Attributes:
        is_requested: A checkpoint was asked for, and not written yet.
        versions: Versions of all that the run depends on, as they were at its start.

    Args:
        trainer: All that is kept is in its public attributes.
        env_name: Its environment.
    """

    def __init__(self, trainer: "Trainer", env_name: str) -> None:
        self._trainer = trainer
        self.is_requested = self._failed = False
        self._evaluated: tuple[int, float] | None = None  # update and score of the latest evaluation
        self._saved_updates: int | None = None  # of the run's latest checkpoint
        self._scores = ScoreMean()  # since then
        self._last_update = LastUpdate(trainer.ranks)
        self.versions = versions_of(env_name)  # now: files may be edited or removed during the training

    @property
    def is_due(self) -> bool:
        """True where one was asked for, its turn has come by ``checkpoint_interval``, or the last one failed."""
        return self.is_requested or self._failed or self._is_at_interval

    @property
    def has_all(self) -> bool:
        """True if the latest checkpoint is of the latest update."""
        return self._saved_updates == self._trainer.updates

    def add(self, episodes: EpisodeMeans) -> None:
        """Take the episodes of an update, whose scores are those of the next checkpoint."""
        self._scores.add(episodes)

    def request(self, score: float | None) -> None:
        """See ``Trainer.request_checkpoint``."""
        self.is_requested = True
        if score is not None:
            self._evaluated = self._trainer.updates, score

    def save(self, begins_anew: bool) -> None:
        """Write a checkpoint; with ``begins_anew`` it has no games, and new episodes begin.

        Raises:
            OSError: It cannot be written; those before it stay.
        """
        trainer = self._trainer
        contents = self._contents("none" if begins_anew else trainer.config.train.save_games)
        path = trainer.ranks.on_first(lambda: self._write(contents))
        self._saved_updates, self._scores = trainer.updates, ScoreMean()
        self.is_requested = self._failed = False
        self._last_update.forget()
        trainer.ranks.on_first(lambda: checkpoint.rotate(self._folder, trainer.config.train.keep_checkpoints))
        if begins_anew:
            trainer.start_episodes()
        trainer.callbacks.on_checkpoint(trainer, path)

    def _write(self, contents: Contents) -> Path:
        """Write a checkpoint, after creating the run's folder again if it was deleted."""
        run = Run.at(self._trainer.run_dir)
        if not run.folder.exists():
            run.folder.mkdir(parents=True)
            self._trainer.config.save(run.config)
            warnings.warn(
                f"{run.folder}: the folder of the run was deleted during training; it is created again with the "
                "settings and a new checkpoint, earlier checkpoints and metrics are lost",
                stacklevel=4,
            )
        return checkpoint.save(self._folder, *contents)

    def keep(self) -> None:
        """Keep what the latest update has come to, where another rank may be lost during the next."""
        self._last_update.keep(lambda: self._of_all([self._of_rank()]))

    def rescued(self) -> contextlib.AbstractContextManager[None]:
        """Context in which what the latest update has come to is saved when a rank is lost.

        Raises:
            RankLostError: Says what was saved.
        """
        return self._last_update.saved_when_lost(self._folder)

    def _contents(self, how: str) -> Contents:
        """All that a checkpoint has, with the games of all ranks, which ask for it at once."""
        trainer = self._trainer
        own = {"source": trainer.source.state_dict(), **self._of_rank()}
        games = save_games(trainer.vecenv, how)
        if games is not None:
            own |= {"games": games, "collector": trainer.collector.state_dict()}
        return self._of_all(trainer.ranks.gather(own))

    def _of_rank(self) -> dict[str, Any]:
        """The state in which ranks differ, but for their games."""
        trainer = self._trainer
        generator = trainer.generator.get_state()
        own = {"generator": generator, "torch_random": trainer.torch_random.states}
        own["has_reward"] = trainer.collector.has_reward
        own |= {**trainer.reduction.state_dict(), **save_wrappers(trainer.vecenv)}
        return own if trainer.opponents is None else {**own, "opponents": trainer.opponents.pool_state()}

    def _of_all(self, ranks: list[dict[str, Any]]) -> Contents:
        """The checkpoint of ranks with these states; that of rank 0 is where a single process has its own."""
        trainer = self._trainer
        first, *others = ranks
        state = {
            "optimizer": trainer.optimizer.state_dict(),
            "agent_steps": trainer.agent_steps,
            "updates": trainer.updates,
            "uptime_s": trainer.uptime_s,
            "reward_scale": trainer.collector.reward_scale,
            "fits_reward_scale": trainer.fits_reward_scale,
            "callbacks": trainer.callbacks.state_dict(),
            **first,
            **({"ranks": others} if others else {}),
        }
        return Contents(trainer.policy.state_dict(), state, self._about())

    @property
    def _folder(self) -> Path:
        return Run.at(self._trainer.run_dir).checkpoints

    def try_to_save(self) -> None:
        """Write the checkpoint that is due; where it cannot be written it stays due, with a warning."""
        trainer = self._trainer
        trainer.source.wait()  # its failure is none of the disk
        try:
            # One that was asked for in between leaves the episodes as they are, and thereby the run.
            self.save(begins_anew=trainer.config.train.exact_resume and self._is_at_interval)
        except OSError as error:
            if not self._failed:
                warnings.warn(
                    f"{trainer.run_dir}: a checkpoint could not be written ({error.strerror}); training goes on, and "
                    "tries again after each update; make room there",
                    stacklevel=3,
                )
            self._failed = True

    def restore(self, path: Path, allow_pickle: bool) -> bool:
        """See ``Trainer.restore``."""
        trainer = self._trainer
        about, weights, contents = trainer.ranks.on_first(lambda: self._read(path))
        contents, is_own = part_of_rank(contents, trainer.ranks.rank, trainer.ranks.size)
        checkpoint.load_weights(trainer.policy, weights, path, about.env_name)
        checkpoint.load_optimizer(trainer.optimizer, contents["optimizer"], path)
        self._restore_generator(contents["generator"].cpu(), contents["updates"], is_own)
        if not (is_own and trainer.torch_random.load(contents.get("torch_random", []))):
            trainer.torch_random.seed(env_seed(trainer.seed, contents["updates"]))
        trainer.agent_steps, trainer.updates = contents["agent_steps"], contents["updates"]
        trainer.uptime_s = contents["uptime_s"]
        trainer.callbacks.load_state_dict(contents.get("callbacks", {}))
        if path.absolute().parent == Run.at(trainer.run_dir).checkpoints.absolute():
            self._saved_updates = trainer.updates
        if not trainer.config.train.reward_scale:
            trainer.collector.reward_scale = contents.get("reward_scale", 1.0)  # 1 before it was kept
        trainer.collector.has_reward = is_own and contents.get("has_reward", False)
        trainer.fits_reward_scale = contents.get("fits_reward_scale", False)  # final before it was kept
        load_wrappers(trainer.vecenv, contents, with_episodes=False)
        if trainer.opponents is not None and "opponents" in contents:  # not of a rank that is new
            trainer.opponents.load_pool_state(contents["opponents"], trainer.policy)
        trainer.reduction.start_moments(trainer.vecenv)
        trainer.start_episodes()
        goes_on = is_own and "games" in contents and self._restore_games(contents, path, allow_pickle)
        if is_own and "source" in contents:
            trainer.source.load_state_dict(contents["source"])
            trainer.reduction.load_state_dict(contents)
        return goes_on

    def _read(self, path: Path) -> tuple[checkpoint.About, dict[str, torch.Tensor], dict[str, Any]]:
        """Facts, weights and state of a checkpoint of a run like this."""
        trainer = self._trainer
        about, contents = checkpoint.read_about(path), checkpoint.read_state(path, trainer.device)
        ours, theirs = (registry.short_name(name) for name in (trainer.config.env_name, about.env_name))
        if ours != theirs:
            raise APIUsageError(f"{path}: is of a run of {theirs}, got {ours}; begin a new run of {ours}")
        weights = checkpoint.read_policy(path, trainer.device)
        warn_of_differences(path, about.versions, self.versions)
        return about, weights, contents

    def _restore_games(self, contents: dict[str, Any], path: Path, allow_pickle: bool) -> bool:
        trainer = self._trainer
        try:
            load_games(trainer.vecenv, contents["games"], allow_pickle)
        except APIUsageError as error:
            warnings.warn(f"{path}: new episodes begin, since its games cannot go on: {error}", stacklevel=4)
            trainer.start_episodes()
            return False
        trainer.collector.load_state_dict(contents["collector"])
        load_wrappers(trainer.vecenv, contents, with_episodes=True)
        return True

    def _restore_generator(self, state: torch.Tensor, updates: int, is_own: bool) -> None:
        """Go on with its random numbers; those of another kind of device, or of no rank before, are begun anew."""
        generator = self._trainer.generator
        if is_own and len(state) == len(generator.get_state()):
            generator.set_state(state)
        else:
            generator.manual_seed(env_seed(self._trainer.seed, updates) % 2**63)

    @property
    def _is_at_interval(self) -> bool:
        every = self._trainer.config.train.checkpoint_interval
        return every > 0 and self._trainer.updates % every == 0

    def _about(self) -> checkpoint.About:
        trainer = self._trainer
        score, score_of = self._scores.mean, "training"
        if self._evaluated is not None and self._evaluated[0] == trainer.updates:
            score, score_of = self._evaluated[1], "evaluation"
        return checkpoint.About(
            trainer.config.env_name,
            trainer.updates,
            trainer.agent_steps,
            score,
            trainer.config.to_toml(),
            self.versions,
            score_of=score_of,
        )
