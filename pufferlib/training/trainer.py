"""The collect-update loop."""

import contextlib
import dataclasses
import functools
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from pufferlib import registry
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.memory import freed_memory_kept
from pufferlib.models import Policy, materialize
from pufferlib.seeding import env_seed
from pufferlib.training import checkpoint, ppo
from pufferlib.training.advantage import fit_reward_scale, generalized_advantage
from pufferlib.training.build import (
    build_callbacks,
    build_policy,
    build_vecenv,
    fit_to_agents,
    pick_device,
    pick_num_threads,
    ready_device,
    warn_of_action_bounds,
)
from pufferlib.training.callbacks import Callback, CallbackFunction, CallbackList
from pufferlib.training.checkpointer import Checkpointer
from pufferlib.training.closing import close_vecenv
from pufferlib.training.config import Config, TrainConfig
from pufferlib.training.cuda_graphs import uses_cuda_graphs
from pufferlib.training.curriculum import make_curriculum
from pufferlib.training.diagnosis import explained
from pufferlib.training.distributed.rank_config import check_agents, config_of_all, config_of_rank, device_of_rank
from pufferlib.training.distributed.ranks import ALONE, Ranks
from pufferlib.training.distributed.reduction import build_reduction
from pufferlib.training.episodes import ScoreHint, score_advice
from pufferlib.training.learning import build_graphed_step, build_loss, training_mode
from pufferlib.training.loggers import Logger
from pufferlib.training.loggers.guard import LogGuard
from pufferlib.training.normalization import attach_moments, normalized, store_moments, take_moments
from pufferlib.training.opponents import with_opponents
from pufferlib.training.optimizers import build_optimizer
from pufferlib.training.overlap import build_source
from pufferlib.training.precision import in_precision
from pufferlib.training.rollout import Rollout
from pufferlib.training.runs import Run, find_run
from pufferlib.training.schedules import annealed
from pufferlib.training.signals import deferred, ending_signals
from pufferlib.training.text import flag
from pufferlib.training.torch_random import TorchRandom

__all__ = ["Trainer"]


class Trainer:
    """Trains a policy with PPO; what it does follows from the settings and their seed alone.

    Each logger gets, after every update: ``update``, ``agent_steps``, ``total_agent_steps``,
    ``uptime_s``, ``sps`` (agent-steps per second of this update), ``learning_rate``,
    ``performance/collect_s`` (where learning overlaps it, seconds of waiting for it), ``performance/learn_s``,
    ``losses/policy``, ``losses/value``, ``losses/entropy``, ``losses/approx_kl``, ``losses/clip_fraction``,
    ``losses/explained_variance``, and ``environment/<key>`` (means over the episodes that ended)
    whenever environments report some. With opponents also ``selfplay/elo``, ``selfplay/pool`` (how many there are) and,
    of the games against them, ``selfplay/games``, ``selfplay/win_rate``, ``selfplay/draw_rate``,
    ``selfplay/win_rate_oldest`` and ``selfplay/win_rate_newest``.

    Attributes:
        config: The settings, with numbers in place of 0 for those that follow from the number of agents.
        agent_steps: Steps of all agents so far.
        updates: Their number so far.
        uptime_s: Seconds of collecting, learning and evaluations so far, those before a resume included.
        policy: The network that learns.
        vecenv: The environments.
        opponents: The same, where a pool has one side of games; None otherwise.
        stop_reason: Argument of the first ``stop``; None where nobody called it.

    Args:
        config: The settings.
        run_dir: A folder that exists; its folder ``checkpoints`` is written.
        loggers: Take the metrics; closed at the end.
        vecenv: Environments of your own instead of those that ``config`` names.
        policy: A network of your own instead of the one that ``config`` describes.
        callbacks: Called after those that the settings ask for, ``eval.interval`` and ``stop``: objects like
            ``Callback``, or functions of trainer and metrics, called after each update; in rank 0 alone.
        loss: What is minimised: takes the policy, a ``Minibatch`` and the ``TrainConfig``, and returns ``Losses``.
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
        callbacks: Sequence[Callback | CallbackFunction] = (),
        loss: ppo.Loss = ppo.ppo_loss,
        ranks: Ranks = ALONE,
    ) -> None:
        self.run_dir, self.loggers, self.ranks = Path(run_dir).absolute(), loggers, ranks
        self._log_guard = LogGuard()
        self.stop_reason: str | None = None
        self.callbacks = CallbackList([*build_callbacks(config), *callbacks] if ranks.is_first else [])
        self._has_started = self._has_ended = False
        self.checkpointer = Checkpointer(self, config.env_name)
        if ranks.is_first and not self.run_dir.is_dir():  # said now, not after hours of training
            raise APIUsageError(f"Trainer: run_dir must be a folder that exists, got {run_dir}; make it first")
        config = config_of_all(config, ranks)
        self.device = ready_device(device_of_rank(pick_device(config.train.device), ranks))
        self.agent_steps, self.updates, self.uptime_s = 0, 0, 0.0
        own = config_of_rank(config, ranks)
        self.vecenv = build_vecenv(own) if vecenv is None else normalized(vecenv, config.train)
        self._opened = contextlib.ExitStack()  # the last one is closed first
        self._opened.enter_context(freed_memory_kept())
        self._opened.callback(close_vecenv, self.vecenv)
        try:
            self.policy = build_policy(config, self.vecenv) if policy is None else materialize(policy)
            self.policy.to(self.device).eval()
            if policy is not None:
                attach_moments(policy, self.vecenv)
            if ranks.is_first:
                warn_of_action_bounds(self.vecenv)
            self.opponents = with_opponents(own, self.vecenv, self.policy)
            self.vecenv = self.vecenv if self.opponents is None else self.opponents
            recurrent = bool(self.policy.initial_state(1))
            settings = fit_to_agents(config.train, self.vecenv.num_agents, recurrent)
            self.config = dataclasses.replace(config, train=settings)
            check_agents(ranks, self.vecenv)
            ranks.share_weights(self.policy)
            self.reduction = build_reduction(ranks, self.policy)
            self.reduction.start_moments(self.vecenv)
            self.num_threads = pick_num_threads(settings, self.policy)
            self.optimizer = build_optimizer(settings, self.policy)
            ranks.on_first(lambda: checkpoint.check_room(self.run_dir, self.policy))
            size = settings.minibatch_size * settings.accumulate_minibatches
            sizes = settings.horizon, size, self.device, settings.cpu_offload
            settings = config_of_rank(self.config, ranks).train
            self.seed = settings.seed
            self.fits_reward_scale = not (settings.reward_scale or settings.reward_clip or settings.normalize_rewards)
            self.generator = torch.Generator(self.device).manual_seed(self.seed)
            self.torch_random = TorchRandom(self.seed, self.device)
            is_cached = not uses_cuda_graphs(settings, self.device)
            self._network = in_precision(self.policy, settings.precision, self.device, is_cached)
            self._loss = build_loss(loss, settings, self.device)
            self._graphed = build_graphed_step(
                self._network, self.optimizer, self._loss, settings, self.device, ranks.size
            )
            rollouts = functools.partial(Rollout, self.vecenv, self.policy, *sizes)
            self.source = build_source(self.vecenv, self.policy, rollouts, settings, self.generator)
            self.collector = self.source.collector
            self._opened.callback(self.source.close)
            self.collector.curriculum = make_curriculum(self.vecenv, settings.horizon, settings)
            ranks.when_lost(self.collector.stop)
            # Ours report scores; where a life ends before its game does, later.
            interval = getattr(self.vecenv.driver_env, "log_interval", 1)
            reports = vecenv is None and registry.is_inside(config.env_name)
            self._score_hint = None if reports else ScoreHint(interval, score_advice(self.vecenv))
            self.start_episodes()
        except BaseException:
            self.close()
            raise

    @property
    def versions(self) -> dict[str, str]:
        """Versions of all that the run depends on."""
        return self.checkpointer.versions

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

        ``stop`` ends it earlier, in the same way. An exception in a callback does so too, and is raised then.

        Ctrl-C, the SIGTERM with which batch systems and containers end a job, and the SIGHUP of a closed terminal
        finish the update in progress, save a checkpoint, and then raise KeyboardInterrupt, or SystemExit with code 143
        or 129. The second one of a kind stops at once. An ignored SIGHUP, as by ``nohup``, stays ignored.

        Where several processes train, whatever stops one of them stops all. When one is lost, the others end, and what
        the last whole update came to is saved.

        Raises:
            OSError: The last checkpoint could not be written.
            RankLostError: Another process has ended.
            PufferError: Numbers became NaN or infinite; ``nan.safetensors`` has them for inspection.
        """
        try:
            self._start()
            with deferred(signal.SIGINT, *ending_signals()) as came, self.checkpointer.rescued():
                stopped = self._agree(came)
                while self.agent_steps < self.config.train.total_timesteps and self.stop_reason is None:
                    self._update()
                    stopped = self._agree(came)
                    if self.checkpointer.is_due:
                        self.checkpointer.try_to_save()
                    if stopped:
                        break
                if not self.checkpointer.has_all:
                    self.save()
                self.ranks.part()
            self.callbacks.raise_failure()
            number = max([stopped, *came])
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            if number:
                raise SystemExit(128 + number)
        finally:
            self.close()

    def step(self) -> dict[str, float]:
        """One update: collect a rollout, learn from it. Returns the metrics, which callbacks and loggers got too.

        Raises:
            APIUsageError: The weights of ``train.init`` are not there, or those of another network.
            PufferError: Not one agent was there during the whole rollout.
            Exception: Whatever a callback raised, after the update.
        """
        self._start()
        metrics = self._update()
        self.callbacks.raise_failure()
        return metrics

    def stop(self, reason: str) -> None:
        """End ``train`` after the update in progress, with a checkpoint; the run is finished, and tells the reason."""
        self.stop_reason = self.stop_reason or reason

    def request_checkpoint(self, score: float | None = None) -> None:
        """Let ``train`` save a checkpoint after the update in progress.

        Args:
            score: Of an evaluation of the weights as they are now, by which checkpoints are compared then; None keeps
                to the mean score in training.
        """
        self.checkpointer.request(score)

    def _agree(self, came: list[int]) -> int:
        """Do as any of the ranks wants to: stop, or save; returns the number of the signal that one got, or 0."""
        number = max(came, default=0)
        number, stops, saves = self.ranks.largest(number, self.stop_reason is not None, self.checkpointer.is_requested)
        if stops:
            self.stop("another rank has stopped")
        if saves:
            self.checkpointer.request(None)
        return number

    def _start(self) -> None:
        if not self._has_started:
            self._has_started = True
            self.callbacks.on_training_start(self)
            self.callbacks.raise_failure()

    def _update(self) -> dict[str, float]:
        settings = self._anneal()
        if self.updates == 0 and settings.init:
            self._take_weights(Path(settings.init))
        start = time.perf_counter()
        with explained(self), self.ranks.interruptible(), self.torch_random.in_use():
            rollout = self.source.take()
        self.reduction.merge_moments(self.vecenv)
        steps = self.reduction.count_experience(int(rollout.masks.sum()), self.collector.episodes)
        self.callbacks.on_rollout_end(self)
        store_moments(self.policy, self.vecenv)
        torch.set_num_threads(self.num_threads)
        collected = time.perf_counter()
        if steps == 0:
            raise PufferError(
                f"Trainer.step: the environment's masks must be True where an agent is there, got False for all "
                f"{rollout.num_agents} agents in all {rollout.horizon} steps; nothing can be learned from that, "
                "so set masks in the environment"
            )
        if self.fits_reward_scale:
            self._fit_reward_scale()
        episodes = self._pop_episodes()
        if self.opponents is not None:
            episodes |= self.opponents.end_rollout(self.policy, self.updates, self.ranks)
        if self.agent_steps + steps < settings.total_timesteps:
            self.source.start_next()
        advantages = generalized_advantage(
            rollout.rewards, rollout.values, rollout.episode_ends, settings.gamma, settings.gae_lambda
        )
        if self.collector.curriculum is not None:
            self.collector.curriculum.learn(advantages)
        with explained(self), self.torch_random.in_use(), training_mode(self._network, self.policy):
            learner = self._network, self.optimizer, rollout, advantages
            losses = ppo.update(*learner, settings, self.generator, self._loss, self.reduction, self._graphed)
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
        self.checkpointer.keep()
        self.callbacks.on_update_end(self, metrics)
        metrics = {**self._log_guard.numbers(metrics), "agent_steps": self.agent_steps}
        self._log_guard.log(self.loggers, metrics)
        return metrics

    @property
    def rollout(self) -> Rollout:
        """The rollout that was learned from last."""
        return self.source.rollout

    def save(self) -> None:
        """Write a checkpoint, in one piece, and remove old ones as ``train.keep_checkpoints`` says.

        Where learning overlaps collecting, the rollout in progress is finished first, and is part of it.

        Raises:
            OSError: It cannot be written; those before it stay.
        """
        self.checkpointer.save(begins_anew=self.config.train.exact_resume)

    def _pop_episodes(self) -> dict[str, float]:
        self.checkpointer.add(self.collector.episodes)
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
        return self.checkpointer.restore(path, allow_pickle)

    def close(self) -> None:
        """Close the environments and the loggers; what is being collected is thrown away.

        Raises:
            Exception: Whatever a callback raised at the end.
        """
        if self._has_started and not self._has_ended:
            self._has_ended = True
            self.callbacks.on_training_end(self)
        self._opened.close()
        self._log_guard.close(self.loggers)
        self.callbacks.raise_failure()

    def start_episodes(self) -> None:
        """Begin new episodes everywhere, from seeds that follow from ``train.seed`` and the number of updates."""
        self.collector.reset(env_seed(self.seed, self.updates))

    def _fit_reward_scale(self) -> None:
        """Bring the rewards of a rollout, and of all that follow, to a size that is learned from well.

        The scale is final after a rollout in which an episode ended and there was a reward: before, the large rewards
        of the environment may be still to come.
        """
        rollout = self.rollout
        reports = rollout.rewards, rollout.episode_ends, rollout.masks
        scale = fit_reward_scale(*reports, self.config.train.gamma, self.reduction.deviation)
        self.collector.reward_scale *= scale
        rollout.rewards *= scale
        (is_final,) = self.ranks.largest(self.collector.has_reward and bool(rollout.episode_ends.any()))
        self.fits_reward_scale, self.collector.has_reward = not is_final, False

    def _take_weights(self, init: Path) -> None:
        """Begin with the weights of another run, and the moments that belong to them."""

        def read() -> tuple[Path, checkpoint.About, dict[str, torch.Tensor]]:
            path = find_run("train.init", str(init), init.parent).checkpoint
            return path, checkpoint.read_about(path), checkpoint.read_policy(path, self.device)

        path, about, weights = self.ranks.on_first(read)
        try:
            checkpoint.load_weights(self.policy, weights, path, about.env_name)
        except APIUsageError as error:
            raise APIUsageError(f"{error}{self._other_network(path, about)}") from error
        take_moments(self.vecenv, self.policy)
        self.reduction.start_moments(self.vecenv)

    def _other_network(self, path: Path, about: checkpoint.About) -> str:
        """The flags that make the network of a checkpoint, where its own settings are known and others."""
        if not about.config:
            return ""
        theirs = dataclasses.asdict(Config.parse(str(path), about.config).policy)
        ours = dataclasses.asdict(self.config.policy)
        flags = " ".join(flag(f"policy.{name}", value) for name, value in theirs.items() if value != ours[name])
        return f": {flags}" if flags else ""

    def _anneal(self) -> TrainConfig:
        """The settings of the next update; sets its learning rate."""
        settings = annealed(self.config.train, self.agent_steps / max(self.config.train.total_timesteps, 1))
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate
        return settings
