"""Helpers for tests of distributed training: ranks in threads, and an environment whose rows can be split."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

import pufferlib
from pufferlib.settings.config import load_config
from pufferlib.training.build import build_policy, build_vecenv
from pufferlib.training.distributed.ranks import ALONE, JoinedRanks, Ranks, on_cpu
from pufferlib.training.trainer import Trainer

__all__ = [
    "AGENTS",
    "Patchy",
    "ThreadRanks",
    "in_threads",
    "make_config",
    "make_trainer",
    "train_as_one",
    "train_in_threads",
    "updates_of",
]

AGENTS, UPDATES = 6, 4
SETTINGS = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.horizon": 16,
    "train.update_epochs": 2,
    "train.learning_rate": 3e-3,
    "train.vf_clip_coef": 0.2,
    "train.reward_scale": 0.0,
    "train.reward_clip": 0.0,
    "train.max_grad_norm": 0.1,
    "policy.hidden_size": 16,
}


class ThreadRanks(Ranks):
    """Rank in a thread. Ranks exchange values in the list ``given`` and synchronize at the barrier ``meeting``."""

    def __init__(self, rank, meeting, given):
        self.rank, self.size = self.local_rank, self.local_size = rank, len(given)
        self.meeting, self.given = meeting, given

    def gather(self, value):
        self.given[self.rank] = on_cpu(value)
        self.meeting.wait(30)
        found = copy.deepcopy(self.given)  # as between processes
        self.meeting.wait(30)
        return found

    def sum(self, tensor):
        return tensor.copy_(torch.stack(self.gather(tensor.clone())).sum(0))

    def largest(self, *numbers):
        return [max(each) for each in zip(*self.gather(numbers), strict=True)]

    def share(self, value):
        return self.gather(value)[0]

    share_weights, on_first = JoinedRanks.share_weights, JoinedRanks.on_first


class Patchy(pufferlib.PufferEnv):
    """Environment that shows a number from 0 to 1 and rewards naming its half with 5. Agents are absent at random.

    Args:
        seeds: Seeds of the games, which have ``AGENTS`` rows each. By default one game with the seed of ``reset``.
    """

    def __init__(self, seeds=None, buf=None):
        self.seeds = seeds
        self.num_agents = AGENTS * len(seeds or [0])
        self.single_observation_space = Box(-100, 100, (2,), np.float32)
        self.single_action_space = Discrete(2)
        super().__init__(buf)

    def reset(self, seed=None):
        self.games = [np.random.default_rng(each) for each in self.seeds or [seed]]
        self.age = 0
        self.draw()
        return self.observations, []

    def draw(self):
        shown = np.concatenate([game.random((AGENTS, 2)) for game in self.games])
        self.numbers = shown[:, 0]
        self.observations[:] = 40 + 3 * shown
        self.masks[:] = shown[:, 1] > 0.2

    def step(self, actions):
        self.rewards[:] = 5 * (actions == (self.numbers > 0.5))
        self.age += 1
        self.terminals[:] = self.age % 5 == 0
        self.final_observations[:] = self.observations
        infos = [{"score": float(self.rewards.mean()), "n": self.num_agents}] if self.age % 5 == 0 else []
        self.draw()
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


def make_config(settings, rows, name="breakout"):
    steps = SETTINGS["train.horizon"] * rows
    sized = {"train.minibatch_size": steps, "train.total_timesteps": 10**6}
    return load_config(name, {**SETTINGS, **sized, **settings})


def updates_of(trainer, count=UPDATES):
    """Run ``count`` updates. Return their metrics."""
    torch.set_num_threads(1)
    return [trainer.step() for _ in range(count)]


_seeding = threading.Lock()  # threads share torch's global generator


def make_trainer(config, folder, ranks=ALONE, vecenv=None, **options):
    """Make a trainer whose initial weights depend only on the seed, even if another thread makes one too."""
    shown = build_vecenv(config) if vecenv is None else vecenv
    with _seeding:
        policy = build_policy(config, shown)
    if vecenv is None:
        shown.close()
    return Trainer(config, folder, vecenv=vecenv, policy=policy, ranks=ranks, **options)


def in_threads(function, size=2):
    """Call ``function(ranks)`` in ``size`` threads. Return the results by rank."""
    meeting, given = threading.Barrier(size), [None] * size

    def run(rank):
        try:
            return function(ThreadRanks(rank, meeting, given))
        except BaseException:
            meeting.abort()
            raise

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(run, range(size)))


def train_in_threads(folder, settings):
    """Train two ranks for some updates. Return the trainer and metrics of each."""

    def run(ranks):
        trainer = make_trainer(make_config(settings, AGENTS), folder, ranks, Patchy())
        return trainer, updates_of(trainer)

    return in_threads(run)


def train_as_one(folder, settings, updates=UPDATES, name="breakout"):
    """Train one process with the environments and random numbers of two ranks. Return the trainer and its metrics."""
    config = make_config(settings, 2 * AGENTS, name)
    seeds = seeds_of_ranks(config.train.seed)
    trainer = Trainer(config, folder, vecenv=Patchy(seeds))
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    noise = trainer.policy.distribution.noise
    segment = config.train.horizon if trainer.policy.initial_state(1) else 1

    def drawn_by_ranks(shape, generator):
        horizon, agents = shape
        found = torch.cat([noise((horizon, agents // 2), each) for each in generators], 1)
        for each in generators * config.train.update_epochs:  # ranks also shuffle with their generator
            torch.randperm(horizon * agents // 2 // segment, generator=each)
        return found

    object.__setattr__(trainer.policy.distribution, "noise", drawn_by_ranks)
    return trainer, updates_of(trainer, updates)


def seeds_of_ranks(seed):
    second = Ranks()
    second.rank = 1
    return [ALONE.seed(seed), second.seed(seed)]
