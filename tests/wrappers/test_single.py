"""Wrappers of single environments: episode statistics, and changes of spaces."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from pufferlib import APIUsageError, vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.wrappers import (
    ClipAction,
    EpisodeStats,
    MeanOverAgents,
    MultiagentEpisodeStats,
    PadAgents,
    ResizeObservation,
)
from tests.envs import FunctionEnv, ScriptedParallelEnv, alive


def env_with_steps(*steps, truncates=False):
    """Make an environment whose steps have these pairs of reward and info."""
    reward, info = (lambda env, part=part: steps[env.count - 1][part] for part in range(2))
    return FunctionEnv(length=len(steps), truncates=truncates, reward=reward, info=info)


@pytest.mark.parametrize("truncate", [False, True])
def test_episode_stats_are_reported_once_at_the_end(truncate):
    env = EpisodeStats(
        env_with_steps(
            (1, {"kills": 1, "map": {"seen": np.float32(0.5)}, "level": "a"}),
            (2.5, {"kills": np.int64(2), "level": "b"}),
            (-1, {"won": True, "map": {"seen": 0.25}, "trace": [1]}),
            truncates=truncate,
        )
    )
    for _ in range(2):  # the second episode starts from zero
        assert env.reset()[1] == {}
        assert env.step(0)[4] == env.step(0)[4] == {}
        assert env.step(0)[4] == {
            "score": 2.5,
            "episode_return": 2.5,
            "episode_length": 3,
            "kills": 2.0,
            "map/seen": 0.25,
            "level": "b",
            "won": 1.0,
            "trace": [1],
        }


@pytest.mark.parametrize(
    ("values", "stat"),
    [
        ((None, 3), 3.0),
        (("near", 2, 5), 5.0),
        ((2, "far"), "far"),
        ((np.ones(2), 2), 2.0),
        ((False, True, True), 1.0),
        ((np.bool_(True), np.bool_(False)), 0.0),
        ((np.array(0.5), np.array([7])), 7.0),
        ((torch.tensor(0.5), torch.tensor([7])), 7.0),
        ((torch.tensor(2.5, requires_grad=True),), 2.5),
        ((np.array([2 + 1j]),), np.array([2 + 1j])),
    ],
)
def test_stats_are_the_last_values_of_infos(values, stat):
    env = EpisodeStats(env_with_steps(*((1, {"x": value}) for value in values), (1, {})))
    env.reset()
    infos = [env.step(0)[4] for _ in range(len(values) + 1)]
    assert infos[-1]["x"] == stat


def test_reward_can_be_an_array_of_one_number():
    env = EpisodeStats(env_with_steps(*[(np.array([2.0]), {})] * 2))
    env.reset()
    assert [env.step(0)[4].get("episode_return") for _ in range(2)] == [None, 4.0]


@pytest.mark.parametrize("reward", [None, "much", [1.0], np.zeros(2)], ids=repr)
def test_reward_that_is_no_number_raises(reward):
    env = EpisodeStats(env_with_steps((reward, {})))
    env.reset()
    with pytest.raises(APIUsageError, match=r"^episode: the reward must be a number, got .*; return a float"):
        env.step(0)


def test_info_that_is_no_dict_raises():
    env = EpisodeStats(env_with_steps((1.0, [3])))
    env.reset()
    with pytest.raises(
        APIUsageError, match=r"^episode: the info must be a dict, got \[3\]; return {} if there is none"
    ):
        env.step(0)


def test_step_with_four_values_raises_in_emulation():
    inner = env_with_steps((1, {}))
    inner.step = lambda action: (inner.reset()[0], 1.0, False, {})
    env = GymnasiumPufferEnv(EpisodeStats(inner))
    env.reset()
    with pytest.raises(
        APIUsageError, match=r"step must return observation, reward, .* got 4 values from <EpisodeStats"
    ):
        env.step(0)


def test_multiagent_step_with_four_values_raises_in_emulation():
    inner = ScriptedParallelEnv(alive(*"ab"), alive(*"ab"), names="ab")
    inner.step = lambda actions: ({}, {}, {}, {})
    env = PettingZooPufferEnv(MultiagentEpisodeStats(inner))
    env.reset()
    with pytest.raises(APIUsageError, match=r"step must return .* got 4 values from scripted"):
        env.step([0, 0])


def test_score_of_the_environment_is_kept():
    env = EpisodeStats(env_with_steps((1, {}), (1, {"score": 40})))
    env.reset()
    env.step(0)
    info = env.step(0)[4]
    assert (info["score"], info["episode_return"]) == (40, 2)


def test_episode_stats_pass_through_emulation():
    env = GymnasiumPufferEnv(EpisodeStats(env_with_steps((3, {}))))
    env.reset()
    assert env.step(0)[4] == {"score": 3, "episode_return": 3, "episode_length": 1}


TWO_AND_THREE_STEPS = (alive("a", "b"), alive("a", "b"), {"a": "dead", "b": "alive"}, {"b": "dead"})


def make_two_agents(*script, **options):
    """Make an environment of two agents. By default, episodes of a have two steps and those of b three."""
    functions = {"reward": lambda env, agent: {"a": 1.0, "b": 10.0}[agent], "info": step_info}
    return ScriptedParallelEnv(*script or TWO_AND_THREE_STEPS, names="ab", **{**functions, **options})


def step_info(env, agent, fate):
    return {**({"x": env.count} if env.count else {"size": 2.0}), f"only_{agent}": 1, "name": agent}


def test_multiagent_episode_stats_are_reported_per_agent():
    env = MultiagentEpisodeStats(make_two_agents())
    for _ in range(2):
        assert env.reset()[1] == {"a": {}, "b": {}}
        assert env.step({"a": 0, "b": 0})[4] == {"a": {}, "b": {}}
        infos = env.step({"a": 0, "b": 0})[4]
        assert infos["b"] == {}
        assert infos["a"] == {
            "score": 2.0,
            "episode_return": 2.0,
            "episode_length": 2,
            "x": 2.0,
            "only_a": 1.0,
            "name": "a",
        }
        infos = env.step({"b": 0})[4]
        assert (infos["b"]["score"], infos["b"]["episode_length"]) == (30, 3)


def test_agent_reported_after_its_end_has_no_second_episode():
    env = MultiagentEpisodeStats(make_two_agents(echo=True))
    for _ in range(2):
        env.reset()
        stats = [env.step({})[4] for _ in range(3)]
        assert [step["a"].get("episode_length") for step in stats] == [None, 2, None]
        assert [step["b"].get("episode_length") for step in stats] == [None, None, 3]


def test_agent_that_vanishes_and_returns_has_two_episodes():
    both = alive("a", "b")
    env = MultiagentEpisodeStats(
        make_two_agents(both, both, alive("a"), both, {"a": "cut", "b": "cut"}, info=lambda *_, fate: {})
    )
    env.reset()
    stats = [env.step({})[4] for _ in range(4)]
    assert [step["b"].get("episode_length") for step in stats] == [None, 1, None, 2]
    assert [step["a"].get("episode_length") for step in stats] == [None, None, None, 4]


@pytest.mark.parametrize(
    ("wrapper", "make", "message"),
    [
        (
            EpisodeStats,
            lambda: make_two_agents(),
            "EpisodeStats: env must be a gymnasium.Env, .*; use MultiagentEpisodeStats",
        ),
        (EpisodeStats, lambda: FunctionEnv, "EpisodeStats: env must be a gymnasium.Env, .*; pass an instance"),
        (MultiagentEpisodeStats, FunctionEnv, "MultiagentEpisodeStats: .* be of PettingZoo, .*; EpisodeStats is"),
    ],
)
def test_stats_wrappers_name_the_right_wrapper_for_other_apis(wrapper, make, message):
    with pytest.raises(APIUsageError, match=message):
        wrapper(make())


def test_mean_over_agents_reports_means_and_number():
    env = MeanOverAgents(MultiagentEpisodeStats(make_two_agents()))
    assert env.reset()[1] == {}
    assert env.step({"a": 0, "b": 0})[4] == {}
    assert env.step({"a": 0, "b": 0})[4]["score"] == 2.0
    means = MeanOverAgents(make_two_agents())
    assert means.reset()[1] == {"size": 2.0, "only_a": 1.0, "only_b": 1.0, "n": 2}
    assert means.step({"a": 0, "b": 0})[4] == {"x": 1.0, "only_a": 1.0, "only_b": 1.0, "n": 2}


def test_multiagent_wrappers_pass_through_emulation():
    env = PettingZooPufferEnv(MeanOverAgents(MultiagentEpisodeStats(make_two_agents())))
    env.reset()
    assert env.step([0, 0])[4] == {}
    means = {"score": 2.0, "episode_return": 2.0, "episode_length": 2.0, "x": 2.0, "only_a": 1.0}
    assert env.step([0, 0])[4] == {**means, "n": 1}
    assert env.terminals.tolist() == [True, False]


REALS = Box(-1, np.array([1, 2], np.float32))


GREY = Box(0, 255, (4, 6), np.uint8)


def image_env(space=GREY):
    return FunctionEnv(space, observe=lambda env: np.arange(24, dtype=np.uint8).reshape(4, 6))


def test_clip_action_clips_to_the_box_of_the_environment():
    env = GymnasiumPufferEnv(ClipAction(FunctionEnv(action_space=REALS)))
    assert env.action_space.contains(np.full(2, 1e9, np.float32))
    env.reset()
    env.step(np.array([-5, 5]))
    np.testing.assert_array_equal(env.unwrapped.actions[-1], [-1, 2])
    assert env.unwrapped.actions[-1].dtype == np.float32
    with pytest.raises(APIUsageError, match=r"expected a Box of floats.*got Discrete\(2\)"):
        ClipAction(FunctionEnv())


def test_resize_observation_keeps_every_second_pixel():
    env = ResizeObservation(image_env(), downscale=2)
    assert env.observation_space == Box(0, 255, (2, 3), np.uint8)
    observation, _ = env.reset()
    np.testing.assert_array_equal(observation, [[0, 2, 4], [12, 14, 16]])
    assert observation.flags.c_contiguous
    colour = ResizeObservation(image_env(Box(0, 255, (4, 6, 3), np.uint8)))
    assert colour.observation_space.shape == (2, 3, 3)
    for downscale in (4, 2.0, True):
        with pytest.raises(APIUsageError, match=rf"that divides height and width, got {downscale} for \(4, 6\)"):
            ResizeObservation(image_env(), downscale=downscale)
    with pytest.raises(APIUsageError, match=r"expected a Box \(height, width"):
        ResizeObservation(image_env(Discrete(2)))


def test_means_of_zero_are_reported():
    def poor(buf=None):
        return PettingZooPufferEnv(
            MeanOverAgents(MultiagentEpisodeStats(make_two_agents(reward=lambda *_: 0.0))), buf=buf
        )

    batch = vector.make(poor, backend=vector.Serial)
    batch.reset()
    assert batch.step([0, 0])[4] == []
    assert batch.step([0, 0])[4][0]["score"] == 0
    batch.close()


class UnequalAgents(ParallelEnv):
    """PettingZoo environment of two agents with different spaces, which records the actions that it gets."""

    metadata = {"name": "unequal"}  # noqa: RUF012
    possible_agents = ("small", "large")

    def __init__(self, observations, actions):
        self.observations = dict(zip(self.possible_agents, observations, strict=True))
        self.actions = dict(zip(self.possible_agents, actions, strict=True))

    def observation_space(self, agent):
        return self.observations[agent]

    def action_space(self, agent):
        return self.actions[agent]

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return {agent: space.high for agent, space in self.observations.items()}, {}

    def step(self, actions):
        self.got = actions
        return self.reset()[0], *(dict.fromkeys(self.agents, value) for value in (0, False, False)), {}


def test_pad_agents_pads_observations_and_wraps_actions():
    env = PadAgents(UnequalAgents([Box(1, 2, (1, 2)), Box(-1, 1, (3, 1))], [Discrete(2), Discrete(4)]))
    low, high = [[0, 0], [-1, 0], [-1, 0]], [[2, 2], [1, 0], [1, 0]]
    low[0] = [-1, 0]
    assert env.observation_space("small") == env.observation_space("large")
    assert env.observation_space("small") == Box(np.array(low, np.float32), np.array(high, np.float32))
    emulated = PettingZooPufferEnv(env)
    emulated.reset()
    assert emulated.observations.tolist() == [[[2, 2], [0, 0], [0, 0]], [[1, 0], [1, 0], [1, 0]]]
    for sent, got in (([1, 3], [1, 3]), ([3, 2], [0, 2])):
        emulated.step(sent)
        assert list(env.env.got.values()) == got


def test_pad_agents_with_real_actions():
    space = Box(0, 1, (2,))
    env = PadAgents(UnequalAgents([space, space], [Box(-1, 1, (1,)), Box(-2, 2, (3,))]))
    assert env.observation_space("small") is space
    emulated = PettingZooPufferEnv(env)
    emulated.reset()
    emulated.step(np.array([[2, 0, 0], [2, 1, -2]], np.float32))
    assert [action.tolist() for action in env.env.got.values()] == [[1], [2, 1, -2]], "clipped to the agent's own Box"


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        ([Box(0, 1, (2,)), Box(0, 1, (2, 2))], [Discrete(2)] * 2, "observation spaces must be Boxes of one dtype"),
        ([Discrete(2), Discrete(3)], [Discrete(2)] * 2, "observation spaces must be Boxes"),
        (
            [Box(0, 1, (2,))] * 2,
            [Discrete(2), Discrete(2, start=1)],
            "action spaces must be .* Discrete from one start",
        ),
        ([Box(0, 1, (2,))] * 2, [Discrete(2), Box(0, 1)], "action spaces must be Boxes"),
    ],
)
def test_pad_agents_refuses_incompatible_spaces(observations, actions, message):
    with pytest.raises(APIUsageError, match=message):
        PadAgents(UnequalAgents(observations, actions))
    with pytest.raises(APIUsageError, match=r"all agents must have the same .*PadAgents"):
        PettingZooPufferEnv(UnequalAgents(observations, actions))
