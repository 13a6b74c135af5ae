"""Training loop of PPO: collect a rollout, learn from it, report, save."""

import contextlib
import dataclasses
import functools
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from pufferlib import registry
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.memory import freed_memory_kept
from pufferlib.machine.signals import ENDING_SIGNALS, deferred
from pufferlib.models import Policy, materialize
from pufferlib.models.devices import memory_explained, pick_device, ready_device, threads_kept
from pufferlib.models.factory import no_policy
from pufferlib.models.policies import check_default_dtype
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.runs.initial_weights import load_initial, read_initial
from pufferlib.runs.versions import versions_of
from pufferlib.settings.config import Config, TrainConfig
from pufferlib.training import ppo
from pufferlib.training.accelerate import build_fused_step, build_loss, in_precision, training_mode
from pufferlib.training.advantage import fit_reward_scale, generalized_advantage
from pufferlib.training.build import (
    build_policy,
    close_vecenv,
    fit_to_agents,
    make_vecenv,
    pick_num_threads,
    warn_of_action_bounds,
    warn_of_unread_masks,
)
from pufferlib.training.callbacks import Callback, CallbackFunction, CallbackList, checked_callbacks, names_of
from pufferlib.training.checkpointer import Checkpointer
from pufferlib.training.diagnosis import NonFiniteError, explain
from pufferlib.training.distributed.ranks import (
    ALONE,
    Ranks,
    check_agents,
    config_of_all,
    config_of_rank,
    device_of_rank,
)
from pufferlib.training.distributed.reduction import build_reduction
from pufferlib.training.episodes import EpisodeMeans, ScoreHint
from pufferlib.training.graphs import uses_cuda_graphs
from pufferlib.training.loggers import Logger
from pufferlib.training.loggers.base import LogGuard, check_loggers, wants_episodes
from pufferlib.training.normalization import (
    attach_moments,
    has_moments,
    normalized,
    store_moments,
    take_moments,
    warn_of_normalizing_wrappers,
    with_normalization,
)
from pufferlib.training.optimizers import build_optimizer
from pufferlib.training.rollout import Rollout
from pufferlib.training.sources import build_source
from pufferlib.training.standard_callbacks import build_callbacks
from pufferlib.training.state import TorchRandom, TrainState, adapted_rate, annealed
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["Trainer"]


class Trainer:
    """PPO training loop. Results depend only on ``config``, including its seed.

    Each logger gets the metrics of every update: ``update``, ``agent_steps``, ``total_agent_steps``, ``uptime_s``,
    ``sps`` (agent-steps per second of this update), ``learning_rate``, ``performance/collect_s`` (seconds of waiting
    for the rollout if learning overlaps collecting), ``performance/learn_s``, ``losses/policy``, ``losses/value``,
    ``losses/entropy``, ``losses/approx_kl``, ``losses/clip_fraction``, ``losses/explained_variance``, and
    ``environment/<key>`` (means over the episodes that ended) if environments report some.

    Attributes:
        config: Settings of the run. Automatic settings are replaced by their values.
        state: Network, optimizer, random numbers and counters.
        run_dir: Folder of the run.
        vecenv: Environments.
        versions: Versions of everything the run depends on, as of its start.
        stop_reason: Reason passed to the first call of ``stop()``, or None.
        on_signal: Function that is called when a signal arrives after which ``train`` stops. It may run between any two
            operations of the training.

    Args:
        config: Settings of the run.
        run_dir: Folder of the run, which must exist. Checkpoints are written into its folder ``checkpoints``.
        loggers: Loggers of the metrics. They are closed at the end.
        vecenv: Environments to use instead of those that ``config`` names.
        policy: Network to use instead of the one that ``config`` describes.
        callbacks: Objects like ``Callback``, or functions of trainer and metrics, called after each update. They come
            after the callbacks that the settings ask for, and are called in rank 0 only, unless ``every_rank`` is True.
        loss: Loss to minimize: a function of policy, ``Minibatch`` and ``TrainConfig`` that returns ``Losses``.
        ranks: Processes that train together. Each has its own environments, and rank 0 writes the run.

    Raises:
        APIUsageError: The folder ``run_dir`` does not exist, ``policy`` is not a ``Policy``, or an argument does not
            fit ``config``.
        OSError: ``run_dir`` cannot be written to, or has no room for a checkpoint.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path | str,
        loggers: Sequence[Logger] = (),
        *,
        vecenv: AnyVectorEnv | None = None,
        policy: Policy | None = None,
        callbacks: Sequence[Callback | CallbackFunction] = (),
        loss: ppo.Loss = ppo.ppo_loss,
        ranks: Ranks = ALONE,
    ) -> None:
        self.run_dir, self.loggers, self.ranks = Path(run_dir).absolute(), loggers, ranks
        self.stop_reason: str | None = None
        self.on_signal: Callable[[], None] = lambda: None
        self._log_guard = LogGuard()
        self._records: list[dict[str, float]] = []  # of the episodes that ended in the rollout, for loggers
        self._has_started = self._has_ended = False
        self.versions = versions_of(config.env_name)  # at the start, since files may be edited during the training
        if ranks.is_first and not self.run_dir.is_dir():  # an error now, not after hours of training
            raise APIUsageError(f"Trainer: run_dir must be a folder that exists, got {run_dir}; make it first")
        config = config_of_all(config, ranks)
        own = config_of_rank(config, ranks)
        check_loggers("Trainer", loggers)
        self.callbacks = CallbackList([*build_callbacks(own), *checked_callbacks(callbacks)], ranks.is_first)
        self.device = ready_device(device_of_rank(pick_device(config.train.device), ranks))
        self.vecenv = make_vecenv(own) if vecenv is None else vecenv
        self._opened = contextlib.ExitStack()  # closed in reverse order
        self._opened.enter_context(freed_memory_kept())
        self._opened.enter_context(threads_kept())
        self._opened.callback(close_vecenv, self.vecenv)
        try:
            config = dataclasses.replace(config, train=with_normalization(self.vecenv, config.train))
            self.vecenv = normalized(self.vecenv, config.train)
            self._is_policy_given = policy is not None
            with memory_explained(self.device):
                policy = self._prepare_policy(config, policy)
            self.vecenv = self.callbacks.wrap_envs(self.vecenv, policy)
            is_recurrent = bool(policy.initial_state(1))
            settings = fit_to_agents(config.train, self.vecenv.num_agents, is_recurrent)
            self.config = dataclasses.replace(config, train=settings)
            with memory_explained(self.device):
                self._build(policy, config_of_rank(self.config, ranks).train, loss, names_of(loss, callbacks))
            reports_scores = vecenv is None and registry.is_inside(config.env_name)
            self._score_hint = None if reports_scores else ScoreHint.of(self.vecenv)
            self.start_episodes()
        except BaseException:
            self.close()
            raise

    def _prepare_policy(self, config: Config, policy: Policy | None) -> Policy:
        """Build the policy, or take a given one, on the device and with the moments of normalized observations."""
        if policy is None:
            policy = build_policy(config, self.vecenv)
        elif not isinstance(policy, Policy):
            raise no_policy("Trainer: policy", policy)
        else:
            policy = materialize(policy)
            attach_moments(policy, self.vecenv)
            policy.distribution.rescale(config.train.rescale_actions)
        if self.ranks.is_first:
            if not config.train.rescale_actions:
                warn_of_action_bounds(self.vecenv)
            warn_of_unread_masks(self.vecenv, policy)
            warn_of_normalizing_wrappers(self.vecenv)
        self._has_moments = has_moments(policy)
        return policy.to(self.device).eval()

    def _build(self, policy: Policy, settings: TrainConfig, loss: ppo.Loss, given: list[str]) -> None:
        """Build everything that collects, learns and saves, from the settings of this rank."""
        ranks = self.ranks
        check_agents(ranks, self.vecenv)
        ranks.share_weights(policy)
        self.reduction = build_reduction(ranks, policy)
        self.reduction.start_moments(self.vecenv)
        self.num_threads = settings.num_threads if settings.num_threads is not None else pick_num_threads(policy)
        ranks.on_first(lambda: checkpoint.check_storable(self.run_dir, policy))
        self.state = TrainState(
            policy,
            build_optimizer(settings, policy),
            torch.Generator(self.device).manual_seed(settings.seed),
            TorchRandom(settings.seed, self.device),
            settings.seed,
            fits_reward_scale=not (settings.reward_scale or settings.reward_clip or settings.normalize_rewards),
        )
        is_cached = not uses_cuda_graphs(settings, self.device)
        self._network = in_precision(policy, settings.precision, self.device, is_cached)
        self._loss = build_loss(loss, settings, self.device)
        self._fused = build_fused_step(self._network, self.optimizer, self._loss, settings, self.device, ranks.size)
        # One minibatch of a rollout has the parts of all accumulated minibatches. ppo.accumulate_gradients splits it.
        size = settings.minibatch_size * settings.accumulate_minibatches
        sizes = settings.horizon, size, self.device, settings.cpu_offload
        rollouts = functools.partial(Rollout, self.vecenv, policy, *sizes)
        self.source = build_source(self.vecenv, policy, rollouts, settings, self.state.generator)
        self.collector = self.source.collector
        self._opened.callback(self.source.close)
        ranks.when_lost(self.collector.stop)
        parts = self.state, self.source, self.reduction, self.callbacks
        self.checkpointer = Checkpointer(*parts, self.config, self.run_dir, ranks, self.versions, given)

    @property
    def policy(self) -> Policy:
        """Network that learns."""
        return self.state.policy

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Optimizer of the policy."""
        return self.state.optimizer

    @property
    def agent_steps(self) -> int:
        """Number of steps of all agents so far."""
        return self.state.agent_steps

    @property
    def updates(self) -> int:
        """Number of updates completed."""
        return self.state.updates

    @property
    def uptime_s(self) -> float:
        """Seconds of collecting, learning and evaluating so far, including those before a resume."""
        return self.state.uptime_s

    @uptime_s.setter
    def uptime_s(self, seconds: float) -> None:
        self.state.uptime_s = seconds

    @property
    def rollout(self) -> Rollout:
        """Rollout that was collected last."""
        return self.source.rollout

    @property
    def episodes(self) -> EpisodeMeans:
        """Episodes that ended in the rollout, until the end of the update."""
        return self.collector.episodes

    @property
    def checkpoint_path(self) -> Path:
        """Path of the latest checkpoint of this run, a folder.

        Raises:
            APIUsageError: There is none yet.
        """
        return Run.at(self.run_dir).checkpoint

    def train(self) -> None:
        """Update until ``total_timesteps``, then save a checkpoint and close everything.

        If a checkpoint cannot be written, for example on a full disk, the trainer warns and tries again after the next
        update. Earlier checkpoints are unchanged.

        ``stop`` and an exception in a callback end the training early. The exception is raised after the checkpoint.

        Ctrl-C, SIGTERM (sent by batch systems and containers) and SIGHUP (sent by a closed terminal) finish the update
        in progress, save a checkpoint, and then raise KeyboardInterrupt, or SystemExit with code 143 or 129. A second
        signal of the same kind stops at once. While a rollout is collected, the latest update is still saved. A second
        signal in a callback ends the callback, and a checkpoint is saved. If SIGHUP is ignored, as by ``nohup``, it
        stays ignored.

        If the environments raise an exception, the latest update is saved first.

        If several processes train together, all of them stop when one does. If one is lost, the others stop, and the
        latest update is saved.

        Raises:
            OSError: The last checkpoint could not be written.
            RankLostError: Another process has ended.
            PufferError: Numbers became NaN or infinite. ``nan.safetensors`` contains them for inspection.
        """
        try:
            self._start()
            signals = deferred(signal.SIGINT, *ENDING_SIGNALS, then=self.on_signal)
            with signals as received, self.checkpointer.saved_when_lost():
                stopped, ends = self._synchronize_stop(received)
                while self.agent_steps < self.config.train.total_timesteps and not ends:  # the same in every rank
                    self._update()
                    stopped, ends = self._synchronize_stop(received)
                    if self.checkpointer.is_due and (path := self.checkpointer.try_to_save()):
                        self.callbacks.on_checkpoint(self, path)
                        stopped, ends = self._synchronize_stop(received)  # a callback may have asked for it
                if not self.checkpointer.has_all:
                    self.save()
                self.ranks.leave()
            self.callbacks.raise_failure()
            number = max([stopped, *received])
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            if number:
                raise SystemExit(128 + number)
        finally:
            self.close()

    def step(self) -> dict[str, float]:
        """Do one update: collect a rollout and learn from it.

        Returns:
            The metrics that callbacks and loggers received.

        Raises:
            APIUsageError: The weights of ``train.init`` are missing, or belong to another network.
            PufferError: No agent was present during the whole rollout.
            Exception: An exception of a callback, raised after the update.
        """
        self._start()
        metrics = self._update()
        if self.callbacks.members:
            self.callbacks.raise_failure()
        return metrics

    def stop(self, reason: str) -> None:
        """Stop ``train`` after the update in progress, with a checkpoint. The run counts as finished.

        Args:
            reason: Shown to the user and kept in the summary of the run. Later reasons are ignored.
        """
        self.stop_reason = self.stop_reason or reason

    def request_checkpoint(self, score: float | None = None) -> None:
        """Save a checkpoint after the update in progress.

        Args:
            score: Score of an evaluation of the current weights, which chooses the best checkpoint. None uses the mean
                score in training.
        """
        self.checkpointer.request(score)

    def save(self) -> None:
        """Write a checkpoint atomically, and remove old ones as ``train.keep_checkpoints`` says.

        If learning overlaps collecting, the rollout in progress is finished first and saved too.

        Raises:
            OSError: The checkpoint cannot be written. Earlier checkpoints are unchanged.
        """
        path = self.checkpointer.save(starts_episodes=self.config.train.exact_resume)
        self.callbacks.on_checkpoint(self, path)

    def restore(self, path: Path, allow_pickle: bool = False) -> bool:
        """Restore a checkpoint: weights, optimizer, random numbers, counters, and episodes if it contains them.

        With the episodes, a run on a CPU continues bit-identically to an uninterrupted one. If the environments cannot
        be saved, new episodes start, from seeds that depend on ``train.seed`` and the number of updates only. With
        ``exact_resume``, a checkpoint of every ``checkpoint_interval`` updates is bit-identical in that case too. A
        warning reports episodes of another version, which are not continued, and versions that differ from the run's.

        Args:
            path: Checkpoint, a folder in a run's ``checkpoints``.
            allow_pickle: Load pickled episodes too. Loading them can execute any code, so only do it if you trust
                their source.

        Returns:
            True if the episodes continue where they were saved, False if new ones start.

        Raises:
            APIUsageError: The checkpoint is missing, damaged, or belongs to another environment or policy.
        """
        return self.checkpointer.restore(path, allow_pickle)

    def start_episodes(self) -> None:
        """Start new episodes in all environments. Their seeds depend on ``train.seed`` and the number of updates."""
        self.collector.reset(self.state.episode_seed)

    def close(self) -> None:
        """Close the environments and the loggers. A rollout in progress is discarded.

        Raises:
            Exception: An exception of a callback's ``on_training_end``.
        """
        if self._has_started and not self._has_ended:
            self._has_ended = True
            self.callbacks.on_training_end(self)
        self._opened.close()
        self._log_guard.close(self.loggers)
        self.callbacks.raise_failure()

    def _start(self) -> None:
        if not self._has_started:
            self._has_started = True
            if self.ranks.on_first(lambda: any(map(wants_episodes, self.loggers))):
                self.episodes.keep_records()
            self.callbacks.on_training_start(self)
            self.callbacks.raise_failure()

    def _synchronize_stop(self, received: list[int]) -> tuple[int, bool]:
        """Stop or save if any rank wants to.

        Returns:
            Number of the signal that one of the ranks received, or 0, and whether the training ends.
        """
        number = max(received, default=0)
        number, stops, saves = self.ranks.largest(number, self.stop_reason is not None, self.checkpointer.is_requested)
        if stops:
            self.stop("another rank has stopped")
        if saves:
            self.checkpointer.request(None)
        return number, bool(number or stops)

    def _update(self) -> dict[str, float]:
        """Collect a rollout, learn from it, and report the metrics."""
        settings = self._anneal()
        if self.updates == 0 and settings.init:
            self._take_weights(settings.init)
        start = time.perf_counter()
        try:
            with memory_explained(self.device):
                steps, episodes = self._collect()
                collected = time.perf_counter()
                # With train.overlap "learning", the next rollout is collected while this one is learned from.
                if self.agent_steps + steps < settings.total_timesteps:
                    self.source.start_next()
                losses = self._learn(settings)
                learned = time.perf_counter()
                if settings.lr_schedule == "adaptive":
                    self._set_rate(adapted_rate(settings.learning_rate, losses["losses/approx_kl"], self.config.train))
                self.state.count_update(steps)
                if self.callbacks.members:  # they may call the environments, which must not be stepping then
                    self._wait_for_envs()
        except NonFiniteError as error:
            raise explain(error, self) from error
        end = time.perf_counter()
        self.uptime_s += end - start
        metrics = {
            "update": self.updates,
            "agent_steps": self.agent_steps,
            "total_agent_steps": settings.total_timesteps,
            "uptime_s": self.uptime_s,
            "sps": steps / (end - start),
            "learning_rate": settings.learning_rate,
            "performance/collect_s": collected - start + end - learned,
            "performance/learn_s": learned - collected,
            **losses,
            **episodes,
        }
        if self._score_hint is not None:
            self._score_hint.update(metrics, bool(self.rollout.episode_ends.any()), self.rollout.horizon)
        if self.ranks.size > 1:
            self.checkpointer.keep()
        return self._report(metrics) if self.callbacks.members or self.loggers else metrics

    def _report(self, metrics: dict[str, float]) -> dict[str, float]:
        """Pass metrics to callbacks, which may add some, and to loggers. Return those that are numbers."""
        self.callbacks.on_update_end(self, metrics)
        metrics = {**self._log_guard.numbers(metrics), "agent_steps": self.agent_steps}
        if self._records:
            records = [{"agent_steps": self.agent_steps, **record} for record in self._records]
            self._log_guard.log_episodes(self.loggers, records)
        self._log_guard.log(self.loggers, metrics)
        return metrics

    def _wait_for_envs(self) -> None:
        """Wait until a rollout that is collected meanwhile is finished."""
        try:
            self.source.wait()
        except BaseException as error:
            self.checkpointer.save_after(error)
            raise

    def _collect(self) -> tuple[int, dict[str, float]]:
        """Collect the next rollout. Return its number of agent-steps in all ranks, and the means of its episodes."""
        try:
            with self.state.torch_random.in_use():
                rollout = self.reduction.collect(self.source.take)
                check_default_dtype("Trainer")  # an environment in this process may have changed it
        except BaseException as error:
            self.checkpointer.save_after(error)
            raise
        self.reduction.merge_moments(self.vecenv)
        largest = rollout.horizon * rollout.num_agents * self.ranks.size
        if self.agent_steps + largest >= self.config.train.total_timesteps:
            self.collector.take_pending()
        steps = self.reduction.count_experience(int(rollout.masks.sum()), self.episodes)
        if self._has_moments:
            store_moments(self.policy, self.vecenv)
        torch.set_num_threads(self.num_threads)
        if steps == 0:
            raise PufferError(
                f"Trainer.step: the environment's masks must be True where an agent is there, got False for all "
                f"{rollout.num_agents} agents in all {rollout.horizon} steps; nothing can be learned from that, "
                "so set masks in the environment"
            )
        if self.state.fits_reward_scale:
            self._fit_reward_scale()
        if self.callbacks.members:
            self.callbacks.on_rollout_end(self)
        self.state.scores.add(self.episodes)
        self._records = self.episodes.pop_records()
        return steps, self.episodes.pop()

    def _learn(self, settings: TrainConfig) -> dict[str, float]:
        """Learn from the rollout and return the losses."""
        rollout = self.rollout
        advantages = generalized_advantage(
            rollout.rewards, rollout.values, rollout.episode_ends, settings.gamma, settings.gae_lambda
        )
        with self.state.torch_random.in_use(), training_mode(self._network, self.policy):
            learner = self._network, self.optimizer, rollout, advantages
            return ppo.update(*learner, settings, self.state.generator, self._loss, self.reduction, self._fused)

    def _fit_reward_scale(self) -> None:
        """Scale the rewards of this rollout and of all later ones so that returns have a size that is easy to learn.

        The scale is final after a rollout in which an episode ended and there was a reward. Before that, the large
        rewards of the environment may not have occurred yet.
        """
        rollout = self.rollout
        reports = rollout.rewards, rollout.episode_ends, rollout.masks
        scale = fit_reward_scale(*reports, self.config.train.gamma, self.reduction.deviation)
        self.collector.reward_scale *= scale
        rollout.rewards *= scale
        (is_final,) = self.ranks.largest(self.collector.has_reward and bool(rollout.episode_ends.any()))
        self.state.fits_reward_scale, self.collector.has_reward = not is_final, False

    def _take_weights(self, init: str) -> None:
        """Start with the weights of another run, and with the moments of its observations."""
        initial = self.ranks.on_first(lambda: read_initial(init, self.device))
        load_initial(initial, self.policy, self.config, self._is_policy_given)
        take_moments(self.vecenv, self.policy)
        self.reduction.start_moments(self.vecenv)

    def _anneal(self) -> TrainConfig:
        """Return the settings of the next update, and set its learning rate."""
        settings = annealed(self.config.train, self.agent_steps / max(self.config.train.total_timesteps, 1))
        if settings.lr_schedule == "adaptive":
            return dataclasses.replace(settings, learning_rate=self.optimizer.param_groups[0]["lr"])
        self._set_rate(settings.learning_rate)
        return settings

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
