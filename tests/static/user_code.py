"""User code as in the README and the tutorials. No call returns Any, and none needs a type-ignore comment."""

from pathlib import Path
from typing import Any, assert_type

import gymnasium
import numpy as np
import torch

import pufferlib
import pufferlib.envpool
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.envpool import DMEnvPool, GymnasiumEnvPool
from pufferlib.frameworks.cleanrl import AgentPolicy, RecurrentPolicy
from pufferlib.frameworks.pettingzoo import PettingZooEnv, to_pettingzoo
from pufferlib.frameworks.rllib import RLlibVectorEnv, to_rllib
from pufferlib.frameworks.sb3 import SB3VecEnv, to_sb3
from pufferlib.frameworks.torchrl import TorchRLEnv, to_torchrl
from pufferlib.models import Policy, make_policy
from pufferlib.ocean import OceanEnv
from pufferlib.runs import TrainedSeeds, new_run
from pufferlib.training import (
    Agent,
    Callback,
    Config,
    EvalResult,
    JsonlLogger,
    TrainedRun,
    Trainer,
    TrainerView,
    evaluate,
    load_config,
)
from pufferlib.vector import AutoresetMode, GymnasiumVectorEnv, Multiprocessing, Serial, VectorEnv, to_gymnasium
from pufferlib.wrappers.vector import NormalizeObservation


def environments() -> None:
    one = pufferlib.make("breakout")
    one.reset(seed=1)
    batch = pufferlib.make("breakout", num_envs=1024, seed=0)
    assert_type(batch, OceanEnv)
    observations, infos = batch.reset()
    observations, rewards, terminals, truncations, infos = batch.step(batch.action_space.sample())
    print(observations.shape, rewards.sum(), terminals.any(), truncations.any(), len(infos))
    assert_type(pufferlib.make("CartPole-v1", num_envs=8), pufferlib.PufferEnv | VectorEnv)
    assert_type(pufferlib.make("CartPole-v1", num_envs=8, backend=Multiprocessing), Multiprocessing)
    assert_type(pufferlib.make("corridor.c", num_envs=8, backend="native"), pufferlib.PufferEnv)


def states_resets_and_calls() -> None:
    games = pufferlib.make("breakout", num_envs=4)
    games.reset(seed=[8, 9], env_ids=[0, 2])
    games.load_state(games.save_state(env_ids=[0, 2]), env_ids=[1, 3])
    envs = pufferlib.make("FrozenLake-v1", num_envs=4, backend="Multiprocessing", num_workers=2)
    envs.reset(seed=[7, 8, 9, 10])
    envs.reset(seed=np.arange(4))
    envs.reset(env_ids=[1, 3], options={"hard": True})
    envs.load_state(envs.save_state())
    print(envs.info_sources, envs.get_attr("spec", env_ids=0), envs.driver_env.obs_dtype)


def emulation() -> None:
    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.make("CartPole-v1")

    env = GymnasiumPufferEnv(env_creator=make)
    observation, _ = env.reset(seed=0)
    print(observation.dtype)


def vectorization() -> None:
    creator = pufferlib.env_creator("squared")
    assert_type(pufferlib.vector.make(creator), pufferlib.PufferEnv)
    assert_type(pufferlib.vector.make(creator, num_envs=4, backend=Serial), Serial)
    assert_type(pufferlib.vector.make(creator, num_envs=4, backend="Multiprocessing", num_workers=2), VectorEnv)
    with pufferlib.vector.make(creator, num_envs=4, backend=Serial) as envs:
        envs.send(np.zeros(4, np.int64))
        received = envs.recv()
        print(received[0].shape)
        assert_type(to_gymnasium(envs), GymnasiumVectorEnv)
        assert_type(to_sb3(envs), SB3VecEnv)
        assert_type(to_torchrl(envs), TorchRLEnv)
    assert_type(to_rllib(creator)({}), RLlibVectorEnv)
    with pufferlib.vector.make(creator, num_envs=4, backend=Serial, autoreset=AutoresetMode.NEXT_STEP) as envs:
        assert_type(envs.autoreset, AutoresetMode)
    assert_type(to_pettingzoo(pufferlib.make("connect4", players=2)), PettingZooEnv)


def pools() -> None:
    envs = pufferlib.envpool.make("CartPole-v1", env_type="gymnasium", num_envs=8)
    assert_type(envs, GymnasiumEnvPool)
    observations, infos = envs.reset()
    rewards = envs.step(np.zeros(8, np.int64))[1]
    print(observations.shape, infos["env_id"], rewards.mean())
    assert_type(pufferlib.envpool.make_dm("CartPole-v1", num_envs=8), DMEnvPool)


class Network(Policy):
    """Network defined by the user."""

    def forward_eval(
        self, observations: torch.Tensor, state: dict[str, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return observations, observations


def networks(agent: torch.nn.Module) -> None:
    games, envs = pufferlib.make("breakout", num_envs=64), pufferlib.make("CartPole-v1", num_envs=8)
    workers = pufferlib.make("CartPole-v1", num_envs=8, backend="Multiprocessing")
    for each in (games, envs, workers, workers.driver_env, NormalizeObservation(games)):
        assert_type(make_policy(each), Policy)
    assert_type(make_policy(NormalizeObservation(envs), Network, hidden_size=64), Policy)
    print(AgentPolicy(envs, agent), Network(workers, hidden_size=64))
    assert_type(make_policy(games, memory="GRU"), Policy)
    print(RecurrentPolicy(make_policy(workers, hidden_size=64, memory="LSTM")))


class Stop(Callback):
    """Callback defined by the user."""

    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        if metrics.get("score", 0.0) > 1:
            trainer.stop("good enough")


def training(folder: Path) -> None:
    settings = {"train.total_timesteps": 8192}
    run = pufferlib.train("squared", settings, runs=folder, callbacks=[Stop()])
    assert_type(run, TrainedRun)
    assert_type(pufferlib.train("squared", settings, seeds=3), TrainedSeeds)
    agent = pufferlib.load(run.run.folder)
    assert_type(agent, Agent)
    config = load_config("squared", settings)
    assert_type(config, Config)
    with new_run(folder, "squared") as kept:
        trainer = Trainer(config, kept.folder, loggers=[JsonlLogger(kept.metrics)])
        trainer.train()
    assert_type(evaluate(config, trainer.policy), EvalResult)


def others(folder: Path) -> None:
    found = pufferlib.sweep("squared", {"train.total_timesteps": 8192}, trials=3)
    print(found.best)
    exported = pufferlib.export(folder, to="c", path=folder / "agent.c")
    print(exported.path)
