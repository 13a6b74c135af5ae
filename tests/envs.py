"""Environments that tests share, made of functions and scripts."""

import functools
import sys
from typing import Any, ClassVar

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from pettingzoo import ParallelEnv

import pufferlib

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pettingzoo

__all__ = [
    "NESTED",
    "EnvDescription",
    "FunctionEnv",
    "SamplePufferEnv",
    "ScriptedParallelEnv",
    "ScriptedPufferEnv",
    "TargetEnv",
    "VariedEnv",
    "alive",
    "counting_env",
]

#: A space in which every kind of leaf that is not variable lies, nested.
NESTED = Dict(
    {
        "map": Box(0, 255, (3, 5), np.uint8),
        "hero": Tuple([Discrete(4, start=7), Box(-1, 1, (2,), np.float64)]),
        "items": MultiDiscrete([3, 4, 5]),
        "flags": MultiBinary(3),
        "gold": Box(0, 1, (), np.float32),
    }
)


class EnvDescription:
    """The attributes that a policy reads of an environment, without an environment."""

    def __init__(self, observation_space, action_space=None, action_mask=None, emulated=False):
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.action_mask, self.emulated = action_mask, emulated


# ---- Gymnasium --------------------------------------------------------------------------------------------


class FunctionEnv(gymnasium.Env):
    """Gymnasium environment made of functions of itself.

    Args:
        observation_space: One number by default. Its samples are the observations, unless ``observe`` is given.
        action_space: Two actions by default.
        length: Steps of an episode, without end if None.
        truncates: Truncate episodes instead of terminating them.
        observe: Returns the observation; called at each reset and step.
        reward: Returns the reward of a step, 1.0 by default.
        info: Returns the info of a step, {} by default.

    Attributes:
        count: Steps of the running episode.
        observations, actions, seeds: What it showed, was sent, and was reset with, from the first on.
    """

    def __init__(
        self,
        observation_space=None,
        action_space=None,
        length=None,
        truncates=False,
        observe=None,
        reward=None,
        info=None,
    ):
        self.observation_space = Box(0, 1, (1,)) if observation_space is None else observation_space
        self.action_space = Discrete(2) if action_space is None else action_space
        self.length, self.truncates = length, truncates
        self.observe, self.reward, self.info = observe, reward, info
        self.count = 0
        self.observations, self.actions, self.seeds = [], [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.seeds.append(seed)
        self.count = 0
        return self._observation(), options or {}

    def step(self, action):
        assert self.action_space.contains(action)
        assert self.count != self.length, "the episode is over"
        self.actions.append(action)
        self.count += 1
        ended = self.count == self.length
        reward = self.reward(self) if self.reward else 1.0
        info = self.info(self) if self.info else {}
        return self._observation(), reward, ended and not self.truncates, ended and self.truncates, info

    def _observation(self):
        self.observations.append(self.observe(self) if self.observe else self.observation_space.sample())
        return self.observations[-1]


class MaskedEnv(gymnasium.Env):
    """Three actions, each legal twice in an episode, and a mask in the field ``action_mask`` of the observation."""

    action_space = Discrete(3)
    observation_space = Dict({"action_mask": Box(0, 1, (3,), np.int8), "left": Box(0, 2, (3,), np.float32)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = np.full(3, 2)
        return self._observation(), {}

    def step(self, action):
        assert self.left[action], f"illegal action {action}"
        self.left[action] -= 1
        return self._observation(), 1.0, not self.left.any(), False, {}

    def _observation(self):
        mask = self.left > 0 if self.left.any() else np.ones(3)
        return {"action_mask": np.asarray(mask, np.int8), "left": self.left.astype(np.float32)}


def counting_env(length=3, high=1000, dtype=np.float32, **options):
    """Environment that observes the number of its steps."""
    return FunctionEnv(Box(0, high, (1,), dtype), length=length, observe=functools.partial(_count, dtype), **options)


def _count(dtype, env):
    return np.full(1, env.count, dtype)


class VariedEnv(FunctionEnv):
    """Environment of random observations, three reals by default, in episodes of 1 to 6 steps that earn 1, 2, 3..."""

    def __init__(self, observation_space=None, **options):
        space = Box(-5, 5, (3,)) if observation_space is None else observation_space
        super().__init__(space, reward=_steps_taken, **options)

    def reset(self, *, seed=None, options=None):
        outcome = super().reset(seed=seed, options=options)
        self.length = int(self.np_random.integers(1, 7))
        return outcome


def _steps_taken(env):
    return float(env.count)


# ---- PettingZoo -------------------------------------------------------------------------------------------


def alive(*agents):
    """Fate of agents in a step that leaves them alive."""
    return dict.fromkeys(agents, "alive")


class ScriptedParallelEnv(ParallelEnv):
    """PettingZoo environment whose agents come and go as a script says.

    Args:
        script: First the agents of the reset, then for each step a dict from agent to "alive", "dead" or "cut".
        names: Possible agents.
        space: Observation space, or a dict of one for each agent.
        action_space: Three actions by default.
        observe: Takes the environment and an agent, returns its observation; the number of steps by default.
        reward: Takes the environment and an agent, returns its reward; the number of steps by default.
        info: Takes the environment, an agent and its fate, returns its info; {} by default.
        echo: Report dead agents again and again, as some environments do.

    Attributes:
        count: Steps of the running episode.
        got, seeds: Actions and seeds that it was given, from the first on.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "scripted"}

    def __init__(
        self,
        *script,
        names=("c", "a", "b"),
        space=None,
        action_space=None,
        observe=None,
        reward=None,
        info=None,
        echo=False,
    ):
        self.possible_agents = list(names)
        self.script, self.echo = script, echo
        self.space = Box(0, 100, (1,)) if space is None else space
        self.actions = Discrete(3) if action_space is None else action_space
        self.observe, self.reward, self.info = observe or _steps_seen, reward or _steps_paid, info or _no_info
        self.got, self.seeds = [], []

    def observation_space(self, agent):
        return self.space[agent] if isinstance(self.space, dict) else self.space

    def action_space(self, agent):
        return self.actions

    def reset(self, seed=None, options=None):
        self.seeds.append(seed)
        if seed is not None and not isinstance(self.space, dict):
            self.space.seed(seed)
        self.count = 0
        self.agents = list(self.script[0])
        return self._by_agent(self.observe), {agent: self.info(self, agent, fate="alive") for agent in self.agents}

    def step(self, actions):
        self.got.append(actions)
        self.count += 1
        fate = self.script[self.count]
        if self.echo:
            fate = {**dict.fromkeys(self.possible_agents, "dead"), **fate}
        self.agents = [agent for agent, how in fate.items() if how == "alive"]
        return (
            self._by_agent(self.observe, fate),
            self._by_agent(self.reward, fate),
            {agent: how == "dead" for agent, how in fate.items()},
            {agent: how == "cut" for agent, how in fate.items()},
            {agent: self.info(self, agent, fate=how) for agent, how in fate.items()},
        )

    def _by_agent(self, function, agents=None):
        return {agent: function(self, agent) for agent in (self.agents if agents is None else agents)}


def _steps_seen(env, agent):
    return np.full(1, env.count, np.float32)


def _steps_paid(env, agent):
    return float(env.count)


def _no_info(env, agent, fate):
    return {}


# ---- Native -----------------------------------------------------------------------------------------------


class SamplePufferEnv(pufferlib.PufferEnv):
    """The documentation's first environment, with two arguments that it keeps."""

    def __init__(self, foo=0, bar=1, buf=None, seed=0):
        self.single_observation_space = Box(low=-1, high=1, shape=(1,))
        self.single_action_space = Discrete(2)
        self.num_agents = 2
        super().__init__(buf)
        self.foo, self.bar, self.seed = foo, bar, seed

    def reset(self, seed=0):
        self.observations[:] = self.observation_space.sample()
        return self.observations, []

    def step(self, actions):
        self.observations[:] = self.observation_space.sample()
        infos = [{"info": "list of dictionaries"}]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


class ScriptedPufferEnv(pufferlib.PufferEnv):
    """Native environment that observes how often it has acted, and calls functions at the points of its life.

    Args:
        num_agents: Agents, which all see the same.
        size: Numbers in an observation.
        num_actions: Actions, from 0 on.
        on_build, on_reset, on_step, on_close: Called before it is built, resets, steps or closes; those of reset and
            step may return infos.
    """

    def __init__(
        self,
        num_agents=1,
        size=1,
        num_actions=5,
        on_build=None,
        on_reset=None,
        on_step=None,
        on_close=None,
        buf=None,
        seed=0,
    ):
        if on_build:
            on_build()
        self.single_observation_space = Box(low=-1e6, high=1e6, shape=(size,))
        self.single_action_space = Discrete(num_actions)
        self.num_agents = num_agents
        super().__init__(buf)
        self.on_reset, self.on_step, self.on_close = on_reset, on_step, on_close

    def reset(self, seed=None):
        infos = self.on_reset() if self.on_reset else None
        self.observations[:] = 0
        return self.observations, infos or []

    def step(self, actions):
        infos = self.on_step() if self.on_step else None
        self.observations += 1
        return self.observations, self.rewards, self.terminals, self.truncations, infos or []

    def close(self):
        if self.on_close:
            self.on_close()


class TargetEnv(pufferlib.PufferEnv):
    """Native environment that shows one of ``choices`` numbers; naming it earns 1. An episode has ``length`` steps.

    With ``hide`` the number is shown only at the first step of an episode and stays the same.
    """

    def __init__(self, num_agents=8, choices=3, length=4, hide=False, truncate=False, seed=0, buf=None):
        self.num_agents = num_agents
        self.single_observation_space = Box(0, 1, (choices,), np.float32)
        self.single_action_space = Discrete(choices)
        self.choices, self.length, self.hide, self.truncate = choices, length, hide, truncate
        self.rng = np.random.default_rng(seed)
        self.closed = 0
        super().__init__(buf)

    def reset(self, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.returns = np.zeros(self.num_agents)
        self.age = 0
        self.draw()
        return self.observations, []

    def draw(self):
        if not self.hide or self.age == 0:
            self.target = self.rng.integers(self.choices, size=self.num_agents)
        self.observations[:] = np.eye(self.choices)[self.target]
        if self.hide and self.age:
            self.observations[:] = 0

    def step(self, actions):
        self.rewards[:] = actions == self.target
        self.returns += self.rewards
        self.age += 1
        ended = self.age == self.length
        self.terminals[:] = ended and not self.truncate
        self.truncations[:] = ended and self.truncate
        self.final_observations[:] = self.observations
        infos = []
        if ended:
            infos = [{"score": self.returns.mean(), "episode_length": self.length, "n": self.num_agents}]
            self.returns[:] = 0
            self.age = 0
        self.draw()
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        self.closed += 1
