"""The collect-update loop."""

import dataclasses
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

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
from pufferlib.train.collector import make_collector
from pufferlib.train.config import Config, TrainConfig
from pufferlib.train.cuda_graphs import act_by_graph
from pufferlib.train.episodes import ScoreHint
from pufferlib.train.games import load_games, save_games
from pufferlib.train.learning import build_loss
from pufferlib.train.loggers import Logger
from pufferlib.train.optimizers import build_optimizer
from pufferlib.train.precision import autocast, in_precision
from pufferlib.train.rollout import Rollout
from pufferlib.train.runs import Run
from pufferlib.train.schedules import annealed

__all__ = ["Trainer"]


class Trainer:
    """Trains a policy with PPO; what it does follows from the settings and their seed alone.

    Each logger gets, after every update: ``update``, ``agent_steps``, ``total_agent_steps``,
    ``uptime_s``, ``sps`` (agent-steps per second of this update), ``learning_rate``,
    ``performance/collect_s``, ``performance/learn_s``, ``losses/policy``, ``losses/value``,
    ``losses/entropy``, ``losses/approx_kl``, ``losses/clip_fraction``,
    ``losses/explained_variance``, and ``environment/<key>`` (means over the episodes that ended)
    whenever environments report some.

    Attributes:
        config: The settings, with numbers in place of 0 for those that follow from the number of agents.

    Args:
        config: The settings.
        run_dir: A folder that exists; ``checkpoint.pt`` is written there.
        loggers: Take the metrics; closed at the end.
        vecenv: Environments of your own instead of those that ``config`` names.
        policy: A network of your own instead of the one that ``config`` describes.

    Raises:
        APIUsageError: There is no folder ``run_dir``, or something does not fit ``config``.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path | str,
        loggers: Sequence[Logger] = (),
        *,
        vecenv: Any = None,
        policy: Policy | None = None,
    ) -> None:
        self.run_dir, self.loggers = Path(run_dir), loggers
        if not self.run_dir.is_dir():  # said now, not after hours of training
            raise APIUsageError(f"Trainer: run_dir must be a folder that exists, got {run_dir}; make it first")
        self.device = pick_device(config.train.device)
        self.agent_steps, self.updates, self.uptime_s = 0, 0, 0.0
        self.vecenv = build_vecenv(config) if vecenv is None else vecenv
        try:
            self.policy = build_policy(config, self.vecenv) if policy is None else policy.to(self.device)
            recurrent = bool(self.policy.initial_state(1))
            settings = fit_to_agents(config.train, self.vecenv.num_agents, recurrent)
            self.config = dataclasses.replace(config, train=settings)
            self.num_threads = pick_num_threads(settings, self.policy)
            self.optimizer = build_optimizer(settings, self.policy)
            size = settings.minibatch_size * settings.accumulate_minibatches
            self.rollout = Rollout(self.vecenv, self.policy, settings.horizon, size, self.device, settings.cpu_offload)
            self.generator = torch.Generator(self.device).manual_seed(settings.seed)
            self._network = in_precision(self.policy, settings.precision, self.device, not settings.cuda_graphs)
            self._loss = build_loss(settings, self.device)
            actor = act_by_graph(self._network, self.vecenv.agents_per_batch) if settings.cuda_graphs else self._network
            self.collector = make_collector(self.vecenv, actor, self.rollout, settings, self.generator)
            # What has a name reports scores; where a life ends before its game does, later.
            self._score_hint = None if vecenv is None else ScoreHint(getattr(vecenv.driver_env, "log_interval", 1))
            self._start_episodes()
        except BaseException:
            self.close()
            raise

    @property
    def checkpoint_path(self) -> Path:
        """Path of the checkpoint of this run."""
        return Run.at(self.run_dir).checkpoint

    def train(self) -> None:
        """Update until ``total_timesteps``, then save a checkpoint and close everything.

        Ctrl-C, and the SIGTERM with which batch systems and containers end a job, finish the update in
        progress, save a checkpoint, and then raise KeyboardInterrupt, or SystemExit(143). The second one of a kind
        stops at once.
        """
        every = self.config.train.checkpoint_interval
        try:
            with _deferred(signal.SIGINT) as interrupted, _deferred(signal.SIGTERM) as ended:
                while self.agent_steps < self.config.train.total_timesteps:
                    self.step()
                    if every and self.updates % every == 0:
                        self.save()
                    if interrupted.is_set() or ended.is_set():
                        break
                self.save()
            if ended.is_set():
                raise SystemExit(128 + signal.SIGTERM)
            if interrupted.is_set():
                raise KeyboardInterrupt
        finally:
            self.close()

    def step(self) -> dict[str, float]:
        """One update: collect a rollout, learn from it. Returns the metrics, which the loggers got too.

        Raises:
            PufferError: Not one agent was there during the whole rollout.
        """
        settings = self._anneal()
        start = time.perf_counter()
        torch.set_num_threads(settings.act_threads)
        with autocast(settings.precision, self.device):
            self.collector.collect()
        torch.set_num_threads(self.num_threads)
        collected = time.perf_counter()
        rollout = self.rollout
        steps = int(rollout.masks.sum())
        if steps == 0:
            raise PufferError(
                f"Trainer.step: the environment's masks must be True where an agent is there, got False for all "
                f"{rollout.num_agents} agents in all {rollout.horizon} steps; nothing can be learned from that, "
                "so set masks in the environment"
            )
        if self.updates == 0 and not settings.reward_scale and not settings.reward_clip:
            self._scale_rewards()
        advantages = generalized_advantage(
            rollout.rewards, rollout.values, rollout.episode_ends, settings.gamma, settings.gae_lambda
        )
        losses = ppo.update(self._network, self.optimizer, rollout, advantages, settings, self.generator, self._loss)
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
            **self.collector.episodes.pop(),
        }
        if self._score_hint is not None:
            self._score_hint.update(metrics, bool(rollout.episode_ends.any()), rollout.horizon)
        for logger in self.loggers:
            logger.log(metrics)
        return metrics

    def save(self) -> None:
        """Write the checkpoint, in one piece."""
        contents = {
            "env_name": self.config.env_name,
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "agent_steps": self.agent_steps,
            "updates": self.updates,
            "uptime_s": self.uptime_s,
            "reward_scale": self.collector.reward_scale,
        }
        begins_anew = self.config.train.exact_resume
        games = None if begins_anew else save_games(self.vecenv)
        if games is not None:
            contents |= {"games": games, "collector": self.collector.state_dict()}
        checkpoint.save(self.checkpoint_path, contents)
        if begins_anew:
            self._start_episodes()

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint: weights, optimizer, random numbers, counters, and the games of C environments.

        With these the run goes on as the uninterrupted one did, on a CPU to the byte. Environments that cannot be saved
        start new episodes, from seeds that follow from ``train.seed`` and the number of updates, so that the
        same checkpoint always goes on in the same way; with ``exact_resume``, one of every
        ``checkpoint_interval`` updates also as the uninterrupted run did. A warning tells of games that were saved by
        another version, which start new episodes too.

        Raises:
            APIUsageError: The file is missing, damaged, or belongs to another policy.
        """
        contents = checkpoint.load(path, self.device)
        checkpoint.load_policy_weights(self.policy, contents, path)
        self.optimizer.load_state_dict(contents["optimizer"])
        self._restore_generator(contents["generator"].cpu())
        self.agent_steps, self.updates = contents["agent_steps"], contents["updates"]
        self.uptime_s = contents["uptime_s"]
        if not self.config.train.reward_scale:
            self.collector.reward_scale = contents.get("reward_scale", 1.0)  # 1 before it was kept
        self._start_episodes()
        if "games" in contents:
            self._restore_games(contents["games"], contents["collector"], path)

    def _restore_games(self, games: list[torch.Tensor], collector: dict[str, Any], path: Path) -> None:
        try:
            load_games(self.vecenv, games)
        except APIUsageError as error:
            warnings.warn(f"{path}: new episodes begin, since its games cannot go on: {error}", stacklevel=3)
            self._start_episodes()
        else:
            self.collector.load_state_dict(collector)

    def _restore_generator(self, state: torch.Tensor) -> None:
        """Go on with its random numbers; those of another kind of device are begun anew, as its state is another."""
        if len(state) == len(self.generator.get_state()):
            self.generator.set_state(state)
        else:
            self.generator.manual_seed(env_seed(self.config.train.seed, self.updates) % 2**63)

    def close(self) -> None:
        """Close the environments and the loggers."""
        self.vecenv.close()
        for logger in self.loggers:
            logger.close()

    def _start_episodes(self) -> None:
        self.collector.reset(env_seed(self.config.train.seed, self.updates))

    def _scale_rewards(self) -> None:
        """Bring the rewards of the first rollout, and of all that follow, to a size that is learned from well."""
        rollout = self.rollout
        scale = fit_reward_scale(rollout.rewards, rollout.episode_ends, rollout.masks, self.config.train.gamma)
        self.collector.reward_scale = scale
        rollout.rewards *= scale

    def _anneal(self) -> TrainConfig:
        """The settings of the next update; sets its learning rate."""
        settings = annealed(self.config.train, self.agent_steps / max(self.config.train.total_timesteps, 1))
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate
        return settings


@contextmanager
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
