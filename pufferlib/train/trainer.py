"""The collect-update loop."""

import contextlib
import dataclasses
import functools
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from pufferlib import registry
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import Policy
from pufferlib.seeding import env_seed
from pufferlib.train import checkpoint, ppo
from pufferlib.train.advantage import fit_reward_scale, generalized_advantage
from pufferlib.train.build import (
    build_policy,
    build_vecenv,
    fit_to_agents,
    pick_device,
    pick_num_threads,
)
from pufferlib.train.config import Config, TrainConfig
from pufferlib.train.curriculum import make_curriculum
from pufferlib.train.diagnosis import explained
from pufferlib.train.distributed.last_update import Contents, LastUpdate, part_of_rank
from pufferlib.train.distributed.rank_config import check_agents, config_of_all, config_of_rank, device_of_rank
from pufferlib.train.distributed.ranks import ALONE, Ranks
from pufferlib.train.distributed.reduction import build_reduction
from pufferlib.train.episodes import ScoreHint, ScoreMean
from pufferlib.train.games import load_games, save_games
from pufferlib.train.learning import build_loss
from pufferlib.train.loggers import Logger
from pufferlib.train.normalization import (
    attach_moments,
    load_wrappers,
    normalized,
    save_wrappers,
    store_moments,
    take_moments,
)
from pufferlib.train.optimizers import build_optimizer
from pufferlib.train.overlap import build_source
from pufferlib.train.precision import in_precision
from pufferlib.train.rollout import Rollout
from pufferlib.train.runs import Run, find_run
from pufferlib.train.schedules import annealed
from pufferlib.train.versions import versions_of, warn_of_differences

__all__ = ["Trainer"]


class Trainer:
    """Trains a policy with PPO; what it does follows from the settings and their seed alone.

    Each logger gets, after every update: ``update``, ``agent_steps``, ``total_agent_steps``,
    ``uptime_s``, ``sps`` (agent-steps per second of this update), ``learning_rate``,
    ``performance/collect_s`` (where learning overlaps it, seconds of waiting for it), ``performance/learn_s``,
    ``losses/policy``, ``losses/value``, ``losses/entropy``, ``losses/approx_kl``, ``losses/clip_fraction``,
    ``losses/explained_variance``, and ``environment/<key>`` (means over the episodes that ended)
    whenever environments report some.

    Attributes:
        config: The settings, with numbers in place of 0 for those that follow from the number of agents.

    Args:
        config: The settings.
        run_dir: A folder that exists; its folder ``checkpoints`` is written.
        loggers: Take the metrics; closed at the end.
        vecenv: Environments of your own instead of those that ``config`` names.
        policy: A network of your own instead of the one that ``config`` describes.
        ranks: The processes that train together; each has environments of its own, and rank 0 writes the run.

    Raises:
        APIUsageError: There is no folder ``run_dir``, or something does not fit ``config``.
        OSError: ``run_dir`` cannot be written to, or has no room for a checkpoint.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path | str,
        loggers: Sequence[Logger] = (),
        *,
        vecenv: Any = None,
        policy: Policy | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.run_dir, self.loggers, self.ranks = Path(run_dir), loggers, ranks
        self._saved_updates: int | None = None  # of the run's latest checkpoint
        self._scores = ScoreMean()  # since then
        if ranks.is_first and not self.run_dir.is_dir():  # said now, not after hours of training
            raise APIUsageError(f"Trainer: run_dir must be a folder that exists, got {run_dir}; make it first")
        config = config_of_all(config, ranks)
        self.device = device_of_rank(pick_device(config.train.device), ranks)
        self.agent_steps, self.updates, self.uptime_s = 0, 0, 0.0
        own = config_of_rank(config, ranks)
        self.vecenv = build_vecenv(own) if vecenv is None else normalized(vecenv, config.train)
        self._opened = contextlib.ExitStack()  # the last one is closed first
        self._opened.callback(self.vecenv.close)
        try:
            self.policy = (build_policy(config, self.vecenv) if policy is None else policy).to(self.device)
            if policy is not None:
                attach_moments(policy, self.vecenv)
            recurrent = bool(self.policy.initial_state(1))
            settings = fit_to_agents(config.train, self.vecenv.num_agents, recurrent)
            self.config = dataclasses.replace(config, train=settings)
            check_agents(ranks, self.vecenv)
            ranks.share_weights(self.policy)
            self._reduction = build_reduction(ranks, self.policy)
            self._reduction.start_moments(self.vecenv)
            self.num_threads = pick_num_threads(settings, self.policy)
            self.optimizer = build_optimizer(settings, self.policy)
            ranks.on_first(lambda: checkpoint.check_room(self.run_dir, self.policy))
            size = settings.minibatch_size * settings.accumulate_minibatches
            sizes = settings.horizon, size, self.device, settings.cpu_offload
            settings = config_of_rank(self.config, ranks).train
            self._seed = settings.seed
            self.generator = torch.Generator(self.device).manual_seed(settings.seed)
            self._network = in_precision(self.policy, settings.precision, self.device, not settings.cuda_graphs)
            self._loss = build_loss(settings, self.device)
            rollouts = functools.partial(Rollout, self.vecenv, self.policy, *sizes)
            self._source = build_source(self.vecenv, self.policy, rollouts, settings, self.generator)
            self.collector = self._source.collector
            self._opened.callback(self._source.close)
            self.collector.curriculum = make_curriculum(self.vecenv, settings.horizon, settings)
            ranks.when_lost(self.collector.stop)
            self._last_update = LastUpdate(ranks)
            # What has a name reports scores; where a life ends before its game does, later.
            self._score_hint = None if vecenv is None else ScoreHint(getattr(vecenv.driver_env, "log_interval", 1))
            self._start_episodes()
        except BaseException:
            self.close()
            raise

    @property
    def checkpoint_path(self) -> Path:
        """Path of the latest checkpoint of this run, a folder.

        Raises:
            APIUsageError: There is none yet.
        """
        return Run.at(self.run_dir).checkpoint

    def train(self) -> None:
        """Update until ``total_timesteps``, then save a checkpoint and close everything.

        A checkpoint that cannot be written, on a full disk for example, is tried again after the next update, with a
        warning; those before it stay.

        Ctrl-C, and the SIGTERM with which batch systems and containers end a job, finish the update in
        progress, save a checkpoint, and then raise KeyboardInterrupt, or SystemExit(143). The second one of a kind
        stops at once.

        Where several processes train, a signal to one stops all. When one is lost, the others end, and the weights of
        the last whole update are saved.

        Raises:
            OSError: The last checkpoint could not be written.
            RankLostError: Another process has ended.
            PufferError: Numbers became NaN or infinite; ``nan.safetensors`` has them for inspection.
        """
        every, is_due, stop = self.config.train.checkpoint_interval, False, 0
        try:
            with (
                _deferred(signal.SIGINT) as interrupted,
                _deferred(signal.SIGTERM) as ended,
                self._last_update.saved_when_lost(Run.at(self.run_dir).checkpoints),
            ):
                while self.agent_steps < self.config.train.total_timesteps:
                    self.step()
                    if is_due or (every and self.updates % every == 0):
                        is_due = not self._tries_to_save(is_quiet=is_due)
                    if stop := self.ranks.largest(_first_set(ended, interrupted)):
                        break
                if self._saved_updates != self.updates:
                    self.save()
            stop = stop or _first_set(ended, interrupted)
            if stop == signal.SIGTERM:
                raise SystemExit(128 + signal.SIGTERM)
            if stop == signal.SIGINT:
                raise KeyboardInterrupt
        finally:
            self.close()

    def step(self) -> dict[str, float]:
        """One update: collect a rollout, learn from it. Returns the metrics, which the loggers got too.

        Raises:
            APIUsageError: The weights of ``train.init`` are not there, or those of another network.
            PufferError: Not one agent was there during the whole rollout.
        """
        settings = self._anneal()
        if self.updates == 0 and settings.init:
            self._take_weights(Path(settings.init))
        start = time.perf_counter()
        with explained(self), self.ranks.interruptible():
            rollout = self._source.take()
        self._reduction.merge_moments(self.vecenv)
        store_moments(self.policy, self.vecenv)
        torch.set_num_threads(self.num_threads)
        collected = time.perf_counter()
        steps = self._reduction.count_experience(int(rollout.masks.sum()), self.collector.episodes)
        if steps == 0:
            raise PufferError(
                f"Trainer.step: the environment's masks must be True where an agent is there, got False for all "
                f"{rollout.num_agents} agents in all {rollout.horizon} steps; nothing can be learned from that, "
                "so set masks in the environment"
            )
        if self.updates == 0 and not (settings.reward_scale or settings.reward_clip or settings.normalize_rewards):
            self._scale_rewards()
        episodes = self._pop_episodes()
        if self.agent_steps + steps < settings.total_timesteps:
            self._source.start_next()
        advantages = generalized_advantage(
            rollout.rewards, rollout.values, rollout.episode_ends, settings.gamma, settings.gae_lambda
        )
        if self.collector.curriculum is not None:
            self.collector.curriculum.learn(advantages)
        with explained(self):
            learner = self._network, self.optimizer, rollout, advantages
            losses = ppo.update(*learner, settings, self.generator, self._loss, self._reduction)
        end = time.perf_counter()
        self.agent_steps += steps
        self.updates += 1
        self.uptime_s += end - start
        metrics = {
            "update": self.updates,
            "agent_steps": self.agent_steps,
            "total_agent_steps": settings.total_timesteps,
            "uptime_s": self.uptime_s,
            "sps": steps / (end - start),
            "learning_rate": settings.learning_rate,
            "performance/collect_s": collected - start,
            "performance/learn_s": end - collected,
            **losses,
            **episodes,
        }
        if self._score_hint is not None:
            self._score_hint.update(metrics, bool(rollout.episode_ends.any()), rollout.horizon)
        self._last_update.keep(self._contents)
        for logger in self.loggers:
            logger.log(metrics)
        return metrics

    @property
    def rollout(self) -> Rollout:
        """The rollout that was learned from last."""
        return self._source.rollout

    def save(self) -> None:
        """Write a checkpoint, in one piece, and remove old ones as ``train.keep_checkpoints`` says.

        Where learning overlaps collecting, the rollout in progress is finished first, and is part of it.

        Raises:
            OSError: It cannot be written; those before it stay.
        """
        contents, folder = self._contents(with_games=True), Run.at(self.run_dir).checkpoints
        self.ranks.on_first(lambda: checkpoint.save(folder, *contents))
        self._saved_updates, self._scores = self.updates, ScoreMean()
        self._last_update.forget()
        self.ranks.on_first(lambda: checkpoint.rotate(folder, self.config.train.keep_checkpoints))
        if self.config.train.exact_resume:
            self._start_episodes()

    def _contents(self, with_games: bool = False) -> Contents:
        """All that a checkpoint has; with the games of all ranks, which then all must ask for at once."""
        state = {
            "optimizer": self.optimizer.state_dict(),
            "agent_steps": self.agent_steps,
            "updates": self.updates,
            "uptime_s": self.uptime_s,
            "reward_scale": self.collector.reward_scale,
        }
        own = self._own_state(with_games)
        first, *others = self.ranks.gather(own) if with_games else [own]
        about = self._about()
        return Contents(self.policy.state_dict(), {**state, **first, **({"ranks": others} if others else {})}, about)

    def _own_state(self, with_games: bool) -> dict[str, Any]:
        """The part of a checkpoint in which ranks differ."""
        source = self._source.state_dict() if with_games else {}
        own = {"generator": self.generator.get_state(), "source": source, **save_wrappers(self.vecenv)}
        own |= self._reduction.state_dict()
        how = "none" if self.config.train.exact_resume or not with_games else self.config.train.save_games
        games = save_games(self.vecenv, how)
        return own if games is None else {**own, "games": games, "collector": self.collector.state_dict()}

    def _tries_to_save(self, is_quiet: bool) -> bool:
        """True if a checkpoint could be written, else there is a warning."""
        self._source.wait()  # its failure is none of the disk
        try:
            self.save()
        except OSError as error:
            if not is_quiet:
                warnings.warn(
                    f"{self.run_dir}: a checkpoint could not be written ({error.strerror}); training goes on, and "
                    "tries again after each update; make room there",
                    stacklevel=3,
                )
            return False
        return True

    def _about(self) -> checkpoint.About:
        try:
            settings = self.config.to_toml()
        except APIUsageError:  # keywords of the environment that TOML cannot write down, such as objects
            settings = ""
        return checkpoint.About(
            self.config.env_name, self.updates, self.agent_steps, self._scores.mean, settings, self.versions
        )

    @functools.cached_property
    def versions(self) -> dict[str, str]:
        """Versions of all that the run depends on."""
        return versions_of(self.config.env_name)

    def _pop_episodes(self) -> dict[str, float]:
        self._scores.add(self.collector.episodes)
        return self.collector.episodes.pop()

    def restore(self, path: Path, allow_pickle: bool = False) -> bool:
        """Go on from a checkpoint: weights, optimizer, random numbers, counters, and the games where it has them.

        With these the run goes on as the uninterrupted one did, on a CPU to the byte. Environments that cannot be saved
        start new episodes, from seeds that follow from ``train.seed`` and the number of updates, so that the
        same checkpoint always goes on in the same way; with ``exact_resume``, one of every
        ``checkpoint_interval`` updates also as the uninterrupted run did. A warning tells of games that were saved by
        another version, which start new episodes too; another one names versions that are not those of the run.

        Args:
            path: A checkpoint: a folder of a run's ``checkpoints``.
            allow_pickle: Load games that are pickles too, which may execute anything: only if you know who made them.

        Returns:
            True if the games go on where they were; False if new episodes begin.

        Raises:
            APIUsageError: It is missing, damaged, or belongs to another environment or policy.
        """
        about, weights, contents = self.ranks.on_first(lambda: self._read(path))
        contents, is_same = part_of_rank(contents, self.ranks.rank, self.ranks.size)
        checkpoint.load_weights(self.policy, weights, path, about.env_name)
        checkpoint.load_optimizer(self.optimizer, contents["optimizer"], path)
        self._restore_generator(contents["generator"].cpu(), is_same)
        self.agent_steps, self.updates = contents["agent_steps"], contents["updates"]
        self.uptime_s = contents["uptime_s"]
        if path.absolute().parent == Run.at(self.run_dir).checkpoints.absolute():
            self._saved_updates = self.updates
        if not self.config.train.reward_scale:
            self.collector.reward_scale = contents.get("reward_scale", 1.0)  # 1 before it was kept
        load_wrappers(self.vecenv, contents, with_episodes=False)
        self._reduction.start_moments(self.vecenv)
        self._start_episodes()
        goes_on = is_same and "games" in contents and self._restore_games(contents, path, allow_pickle)
        if is_same and contents.get("source"):
            self._source.load_state_dict(contents["source"])
        self._reduction.load_state_dict(contents)
        return goes_on

    def _read(self, path: Path) -> tuple[checkpoint.About, dict[str, torch.Tensor], dict[str, Any]]:
        about, contents = checkpoint.read_about(path), checkpoint.read_state(path, self.device)
        ours, theirs = (registry.short_name(name) for name in (self.config.env_name, about.env_name))
        if ours != theirs:
            raise APIUsageError(f"{path}: is of a run of {theirs}, got {ours}; begin a new run of {ours}")
        weights = checkpoint.read_policy(path, self.device)
        warn_of_differences(path, about.versions, self.versions)
        return about, weights, contents

    def _restore_games(self, contents: dict[str, Any], path: Path, allow_pickle: bool) -> bool:
        try:
            load_games(self.vecenv, contents["games"], allow_pickle)
        except APIUsageError as error:
            warnings.warn(f"{path}: new episodes begin, since its games cannot go on: {error}", stacklevel=3)
            self._start_episodes()
            return False
        self.collector.load_state_dict(contents["collector"])
        load_wrappers(self.vecenv, contents, with_episodes=True)
        return True

    def _restore_generator(self, state: torch.Tensor, is_own: bool) -> None:
        """Go on with its random numbers; those of another kind of device, or of no rank, are begun anew."""
        if is_own and len(state) == len(self.generator.get_state()):
            self.generator.set_state(state)
        else:
            self.generator.manual_seed(env_seed(self._seed, self.updates) % 2**63)

    def close(self) -> None:
        """Close the environments and the loggers; what is being collected is thrown away."""
        self._opened.close()
        for logger in self.loggers:
            logger.close()

    def _start_episodes(self) -> None:
        self.collector.reset(env_seed(self._seed, self.updates))

    def _scale_rewards(self) -> None:
        """Bring the rewards of the first rollout, and of all that follow, to a size that is learned from well."""
        rollout = self.rollout
        reports = rollout.rewards, rollout.episode_ends, rollout.masks
        scale = fit_reward_scale(*reports, self.config.train.gamma, self._reduction.deviation)
        self.collector.reward_scale = scale
        rollout.rewards *= scale

    def _take_weights(self, init: Path) -> None:
        """Begin with the weights of another run, and the moments that belong to them."""

        def read() -> tuple[Path, str, dict[str, torch.Tensor]]:
            path = find_run("train.init", str(init), init.parent).checkpoint
            return path, checkpoint.read_about(path).env_name, checkpoint.read_policy(path, self.device)

        path, env_name, weights = self.ranks.on_first(read)
        checkpoint.load_weights(self.policy, weights, path, env_name)
        take_moments(self.vecenv, self.policy)
        self._reduction.start_moments(self.vecenv)

    def _anneal(self) -> TrainConfig:
        """The settings of the next update; sets its learning rate."""
        settings = annealed(self.config.train, self.agent_steps / max(self.config.train.total_timesteps, 1))
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate
        return settings


def _first_set(ended: threading.Event, interrupted: threading.Event) -> int:
    """Number of the signal that came, 0 for none."""
    return signal.SIGTERM if ended.is_set() else signal.SIGINT if interrupted.is_set() else 0


@contextlib.contextmanager
def _deferred(number: signal.Signals) -> Iterator[threading.Event]:
    """While this holds, the first signal of that number only sets the event; the second does what it always does."""
    came = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread gets signals
        return
    before = signal.getsignal(number)

    def note(_signal: int, _frame: FrameType | None) -> None:
        came.set()
        signal.signal(number, before)

    signal.signal(number, note)
    try:
        yield came
    finally:
        signal.signal(number, before)
