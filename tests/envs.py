"""Environments that tests share."""

import functools
import sys
from typing import Any, ClassVar

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from pettingzoo import ParallelEnv

import pufferlib

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that workers do not import pettingzoo

__all__ = [
    "NESTED",
    "EnvDescription",
    "FunctionEnv",
    "IteratingEnv",
    "MaskedEnv",
    "SamplePufferEnv",
    "ScriptedParallelEnv",
    "ScriptedPufferEnv",
    "TargetEnv",
    "VariedEnv",
    "alive",
    "counting_env",
]

#: Nested space with every kind of leaf of fixed size.
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
    """Attributes of an environment that a policy reads, without an environment."""

    def __init__(self, observation_space, action_space=None, action_mask=None, emulated=False):
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.action_mask, self.emulated = action_mask, emulated


# ---- Gymnasium --------------------------------------------------------------------------------------------


#: Action space of floats and integers, with a flat action of five elements.
MIXED = Dict(
    {
        "aim": Box(-2, 2, (2,), np.float32),
        "button": Discrete(3, start=5),
        "rest": Tuple([MultiBinary(1), MultiDiscrete([4])]),
    }
)


class FunctionEnv(gymnasium.Env):
    """Gymnasium environment whose observations, rewards and infos are functions of the environment.

    Args:
        observation_space: Space of observations, one number by default.
        action_space: Space of actions, two actions by default.
        length: Steps of an episode, or None for an endless one.
        truncates: Whether episodes are truncated instead of terminated.
        observe: Function that returns the observation of a reset or step. By default the space is sampled.
        reward: Function that returns the reward of a step, 1.0 by default.
        info: Function that returns the info of a step, {} by default.

    Attributes:
        count: Steps of the current episode.
        observations, actions, seeds: All observations, actions and reset seeds so far.
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


class IteratingEnv(FunctionEnv):
    """Environment with an iterator, which is not plain data but can be pickled. Episodes have 7 steps."""

    def __init__(self):
        super().__init__(length=7)

    def reset(self, *, seed=None, options=None):
        self.iterator = iter(range(self.length))
        return super().reset(seed=seed, options=options)

    def step(self, action):
        assert next(self.iterator) == self.count
        return super().step(action)


class MaskedEnv(gymnasium.Env):
    """Environment that asserts legal actions. Each of three actions is legal twice in an episode of six steps.

    The field ``action_mask`` of the observation is the mask.
    """

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
    """Return an environment whose observation is the number of steps in the episode."""
    return FunctionEnv(Box(0, high, (1,), dtype), length=length, observe=functools.partial(_count, dtype), **options)


def _count(dtype, env):
    return np.full(1, env.count, dtype)


class VariedEnv(FunctionEnv):
    """Environment with random observations, episodes of 1 to 6 random steps, and rewards 1, 2, 3 and so on."""

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
    """Return a dict that marks ``agents`` as alive, for the script of ``ScriptedParallelEnv``."""
    return dict.fromkeys(agents, "alive")


class ScriptedParallelEnv(ParallelEnv):
    """PettingZoo environment whose agents appear and end according to a script.

    Args:
        script: Agents after the reset, then for each step a dict from agent to "alive", "dead" or "cut".
        names: Possible agents.
        space: Observation space, or a dict from agent to space.
        action_space: Space of actions, three actions by default.
        observe: Function of environment and agent that returns an observation, by default the number of steps.
        reward: Function of environment and agent that returns a reward, by default the number of steps.
        info: Function of environment, agent and fate that returns an info, by default {}.
        echo: Whether dead agents are reported in every later step, as some environments do.

    Attributes:
        count: Steps of the current episode.
        got, seeds: All actions and reset seeds so far.
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
        self.observe, self.reward, self.info = observe or _observe_count, reward or _reward_count, info or _no_info
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


def _observe_count(env, agent):
    return np.full(1, env.count, np.float32)


def _reward_count(env, agent):
    return float(env.count)


def _no_info(env, agent, fate):
    return {}


# ---- Native -----------------------------------------------------------------------------------------------


class SamplePufferEnv(pufferlib.PufferEnv):
    """First environment of the documentation, with two arguments that become attributes."""

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
    """Native environment that observes its number of steps and calls functions at each step, reset and close.

    Args:
        num_agents: Number of agents, which have the same observation.
        size: Number of elements of an observation.
        num_actions: Number of actions.
        action_space: Space of actions, used instead of ``num_actions``.
        on_build, on_reset, on_step, on_close: Functions called when it is made, reset, stepped or closed.
            ``on_reset`` and ``on_step`` may return infos.
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
        action_space=None,
    ):
        if on_build:
            on_build()
        self.single_observation_space = Box(low=-1e6, high=1e6, shape=(size,))
        self.single_action_space = Discrete(num_actions) if action_space is None else action_space
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
    """Native environment that shows a number and rewards naming it with 1.

    Args:
        choices: Number of possible numbers.
        length: Steps of an episode.
        hide: Whether the number stays the same during an episode and is shown only in the first step.
        truncate: Whether episodes are truncated instead of terminated.
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
