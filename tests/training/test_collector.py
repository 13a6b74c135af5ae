import functools

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import Default, Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training.advantage import generalized_advantage
from pufferlib.training.collector import Collector
from pufferlib.training.partial_collectors import HalvesCollector, PartialCollector
from pufferlib.training.rollout import Rollout
from pufferlib.training.sources import make_collector
from tests.envs import FunctionEnv, counting_env


class Scripted:
    """Vector environment with observations ``[agent, steps so far]``. The n-th reward of agent a is ``10 a + n``.

    Args:
        batches: Agents of each ``recv`` in turn.
        terminal, truncated, absent: Pairs ``(agent, step)``.
    """

    emulated = False
    action_mask = None

    def __init__(self, num_agents, batches=None, terminal=(), truncated=(), absent=(), autoreset="same_step"):
        self.autoreset = autoreset
        self.single_observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = Discrete(2)
        self.num_agents = num_agents
        self.batches = batches or [list(range(num_agents))]
        self.agents_per_batch = len(self.batches[0])
        self.terminal, self.truncated, self.absent = set(terminal), set(truncated), set(absent)
        self.driver_env = self

    def async_reset(self, seed=None):
        self.seed = seed
        self.age = np.full(self.num_agents, -1)
        self.turn = 0
        self.sent = []

    def send(self, actions):
        assert len(actions) == len(self.ids)
        self.sent.append(np.array(actions))

    def recv(self):
        self.ids = np.array(self.batches[self.turn % len(self.batches)])
        self.turn += 1
        self.age[self.ids] += 1
        marks = [(int(agent), int(self.age[agent])) for agent in self.ids]
        self.final_observations = np.array(marks, np.float32) + 1000
        return (
            np.array(marks, np.float32),
            np.array([10 * agent + age for agent, age in marks], np.float32),
            np.array([mark in self.terminal for mark in marks]),
            np.array([mark in self.truncated for mark in marks]),
            [{"score": 1.0}] if any(mark in self.terminal for mark in marks) else [],
            self.ids,
            np.array([mark not in self.absent for mark in marks]),
        )


class Sum(Policy):
    """Policy whose value is the sum of the observation. With memory it adds all earlier ones of the episode."""

    def __init__(self, env, recurrent=False):
        super().__init__(env, 2)
        self.recurrent = recurrent

    def initial_state(self, num_agents, device="cpu"):
        return {"sum": torch.zeros(num_agents)} if self.recurrent else {}

    def forward_eval(self, observations, state=None):
        values = observations.sum(-1)
        if self.recurrent:
            values = state["sum"] = state["sum"] + values
        return torch.zeros(len(observations), 2), values


def collected(vecenv, horizon=3, rollouts=1, recurrent=False, make=make_collector, **settings):
    policy = Sum(vecenv, recurrent)
    rollout = Rollout(vecenv, policy, horizon, horizon * vecenv.num_agents)
    collector = make(vecenv, policy, rollout, TrainConfig(gamma=0.5, **settings), torch.Generator().manual_seed(0))
    collector.reset(7)
    for _ in range(rollouts):
        collector.collect()
    return rollout, collector


def test_rollout_step_has_observation_action_and_reward():
    vecenv = Scripted(2)
    rollout, _ = collected(vecenv)
    assert vecenv.seed == 7
    assert rollout.observations[..., 0].tolist() == [[0, 1]] * 3
    assert rollout.observations[..., 1].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert rollout.rewards.tolist() == [[1, 11], [2, 12], [3, 13]]  # rewards of the step, received after it
    assert rollout.values.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]  # one row more than steps
    assert np.array_equal(rollout.actions.numpy(), vecenv.sent)
    assert torch.allclose(rollout.log_probs, torch.tensor(0.5).log())


def test_next_rollout_continues_from_last_step():
    rollout, _ = collected(Scripted(2), rollouts=2)
    assert rollout.observations[..., 1].tolist() == [[3, 3], [4, 4], [5, 5]]
    assert rollout.rewards[:, 0].tolist() == [4, 5, 6]


def test_episode_start_follows_episode_end():
    rollout, collector = collected(Scripted(2, terminal={(1, 2)}))
    assert rollout.episode_ends.tolist() == [[False, False], [False, True], [False, False]]
    assert rollout.episode_starts.tolist() == [[False, False], [False, False], [False, True]]
    assert collector.episodes.pop() == {"environment/score": 1.0}


def test_truncated_episode_is_bootstrapped():
    # agent 0 is truncated at observation 2, where its final observation is [1000, 1002]
    rollout, _ = collected(Scripted(2, truncated={(0, 2)}))
    assert rollout.rewards[:, 0].tolist() == [1, 2 + 0.5 * 2002, 3]
    assert rollout.episode_ends[:, 0].tolist() == [False, True, False]
    both = {(0, 2)}
    rollout, _ = collected(Scripted(2, truncated=both, terminal=both))
    assert rollout.rewards[:, 0].tolist() == [1, 2, 3]  # a terminal episode is not bootstrapped


def test_terminated_and_truncated_episode_keeps_nested_observations():
    space = Dict(position=Box(-1, 1, (2,), np.float32), kind=Discrete(4))
    creator = functools.partial(GymnasiumPufferEnv, env_creator=functools.partial(EndsBothWays, space, length=3))
    with vector.make(creator, backend="Serial", num_envs=2, autoreset="same_step") as vecenv:
        policy = Default(vecenv.driver_env, hidden_size=8)
        rollout = Rollout(vecenv, policy, 6, 12)
        generator = torch.Generator().manual_seed(0)
        collector = make_collector(vecenv, policy, rollout, TrainConfig(), generator)
        collector.reset(0)
        collector.collect()
    assert rollout.episode_ends.any()


class EndsBothWays(FunctionEnv):
    """Environment whose episodes are terminated and truncated in the same step."""

    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, terminated, info


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_truncated_episode_is_bootstrapped_from_final_observation(backend):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=counting_env, env_kwargs={"truncates": True})
    with vector.make(creator, backend=backend, num_envs=2, autoreset="same_step") as vecenv:
        rollout, _ = collected(vecenv, horizon=4)
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 0]
    assert rollout.rewards[:, 0].tolist() == [1, 1, 1 + 0.5 * 3, 1]  # the value of the final observation is 3
    assert rollout.values[:, 0].tolist() == [0, 1, 2, 0, 1]
    assert rollout.episode_ends[:, 0].tolist() == [False, False, True, False]
    # by hand, gamma 0.5, lambda 1: A_2 = 2.5 - 2, A_1 = 1 + 0.5 * 2 - 1 + 0.5 * A_2, A_0 = 1 + 0.5 * 1 - 0 + 0.5 * A_1
    advantages = generalized_advantage(rollout.rewards, rollout.values, rollout.episode_ends, 0.5, 1.0)
    assert advantages[:3, 0].tolist() == [2.125, 1.25, 0.5]


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_reset_step_is_masked(backend):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=counting_env, env_kwargs={"truncates": True})
    with vector.make(creator, backend=backend, num_envs=2, autoreset="next_step") as vecenv:
        rollout, _ = collected(vecenv, horizon=6)
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 3, 0, 1]
    assert rollout.masks[:, 0].tolist() == [True, True, True, False, True, True]
    assert rollout.rewards[:, 0].tolist() == [1, 1, 1 + 0.5 * 3, 0, 1, 1]  # the value of the final observation is 3
    assert rollout.values[:, 0].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert rollout.episode_ends[:, 0].tolist() == [False, False, True, False, False, False]
    assert rollout.episode_starts[:, 0].tolist() == [False, False, False, False, True, False]
    advantages = generalized_advantage(rollout.rewards, rollout.values, rollout.episode_ends, 0.5, 1.0)
    assert advantages[:3, 0].tolist() == [2.125, 1.25, 0.5]  # as with "same_step" above
    assert advantages[4:, 0].tolist() == [1 + 0.5 * 1 - 0 + 0.5 * 1.0, 1 + 0.5 * 2 - 1]


def test_terminated_episode_ignores_value_of_reset_step():
    rollout, _ = collected(Scripted(1, terminal={(0, 2)}, autoreset="next_step"), horizon=4)
    assert rollout.rewards[:, 0].tolist() == [1, 2, 3, 4]
    assert rollout.masks[:, 0].tolist() == [True, True, False, True]
    advantages = generalized_advantage(rollout.rewards, rollout.values, rollout.episode_ends, 0.5, 1.0)
    assert advantages[:2, 0].tolist() == [1 + 0.5 * 1 - 0 + 0.5 * (2 - 1), 2 - 1]


def test_memory_is_reset_after_reset_step():
    vecenv = Scripted(1, truncated={(0, 2)}, autoreset="next_step")
    rollout, _ = collected(vecenv, horizon=4, recurrent=True)
    assert rollout.values[:, 0].tolist() == [0, 1, 1 + 2, 3, 3 + 4]
    assert rollout.rewards[1, 0] == 2 + 0.5 * (1 + 2)  # with the memory of the truncated episode
    assert rollout.episode_starts[:, 0].tolist() == [False, False, False, True]
    assert rollout.initial_state["sum"].tolist() == [0]


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_reset_step_may_be_in_next_rollout(horizon):
    vecenv = Scripted(1, terminal={(0, 2)}, autoreset="next_step")
    masks, starts = [], []
    for rollouts in range(1, 7 // horizon + 1):
        rollout, _ = collected(vecenv, horizon, rollouts)
        masks += rollout.masks[:, 0].tolist()
        starts += rollout.episode_starts[:, 0].tolist()
    assert masks[:6] == [True, True, False, True, True, True]
    assert starts[:6] == [False, False, False, True, False, False]
    if horizon == 2:
        rollout, collector = collected(vecenv, horizon)  # ends right after an episode
        collector.reset(7)
        collector.collect()
        assert rollout.masks.all()
        assert not rollout.episode_starts.any()


def test_rewards_are_scaled_then_clipped():
    rollout, _ = collected(Scripted(2), reward_scale=0.5, reward_clip=1.2)
    assert rollout.rewards[:, 0].tolist() == pytest.approx([0.5, 1.0, 1.2])


def test_absent_agents_are_masked():
    rollout, _ = collected(Scripted(2, absent={(1, 0), (1, 1)}))
    assert rollout.masks.tolist() == [[True, False], [True, False], [True, True]]


def test_memory_resets_with_episode_and_is_kept_between_rollouts():
    vecenv = Scripted(1, terminal={(0, 2)}, truncated={(0, 4)})
    rollout, _ = collected(vecenv, recurrent=True)
    assert rollout.initial_state["sum"].tolist() == [0]
    assert rollout.values[:, 0].tolist() == [0, 1, 2, 2 + 3]
    rollout, _ = collected(vecenv, rollouts=2, recurrent=True)
    assert rollout.initial_state["sum"].tolist() == [2]  # not 5, because the last observation is read again
    assert rollout.values[:, 0].tolist() == [5, 4, 9, 15]
    assert rollout.rewards[0, 0] == 4 + 0.5 * (2 + 3 + 1000 + 1004)  # with the memory of the truncated episode


def test_memory_resets_when_absent_agent_returns():
    vecenv = Scripted(1, absent={(0, 1)})
    rollout, _ = collected(vecenv, recurrent=True)
    assert rollout.episode_starts[:, 0].tolist() == [False, False, True]
    assert rollout.values[:, 0].tolist() == [0, 1, 2, 2 + 3]


POOL = [[0, 1], [2, 3], [0, 1], [0, 1], [2, 3], [0, 1], [0, 1], [2, 3], [2, 3], [0, 1]]


def test_make_collector_chooses_class_by_batch_size():
    assert type(collected(Scripted(4))[1]) is Collector
    assert type(collected(Scripted(4, POOL))[1]) is PartialCollector


def test_policy_acts_on_observations_in_rollout_memory():
    class Watched(Sum):
        def forward_eval(self, observations, state=None):
            seen.append(observations.data_ptr())
            return super().forward_eval(observations, state)

    seen, vecenv = [], Scripted(2)
    policy = Watched(vecenv)
    rollout = Rollout(vecenv, policy, 3, 6)
    collector = make_collector(vecenv, policy, rollout, TrainConfig(), torch.Generator())
    collector.reset(0)
    collector.collect()
    assert seen[:3] == [row.data_ptr() for row in rollout.observations]


@pytest.mark.parametrize("batches", [POOL, [[0, 1], [2, 3]], [[3, 1, 0, 2]]], ids=["uneven", "turns", "shuffled"])
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
def test_partial_batches_match_whole_batches(batches, recurrent, autoreset):
    events = {"terminal": {(0, 2), (3, 1)}, "truncated": {(2, 2)}, "absent": {(1, 1)}, "autoreset": autoreset}
    whole, _ = collected(Scripted(4, **events), recurrent=recurrent)
    parts, _ = collected(Scripted(4, batches, **events), recurrent=recurrent, make=PartialCollector)
    for name in ("observations", "rewards", "values", "episode_starts", "episode_ends", "masks"):
        assert torch.equal(getattr(whole, name), getattr(parts, name)), name
    assert all(torch.equal(whole.initial_state[name], parts.initial_state[name]) for name in whole.initial_state)


@pytest.mark.parametrize("rollouts", [1, 2])
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
def test_halves_match_partial_batches(rollouts, recurrent, autoreset):
    events = {"terminal": {(0, 2), (3, 1)}, "truncated": {(2, 2), (1, 6)}, "absent": {(1, 1)}, "autoreset": autoreset}
    turns = [[0, 1], [2, 3]]
    each = {"rollouts": rollouts, "recurrent": recurrent}
    parts, _ = collected(Scripted(4, turns, **events), **each, make=PartialCollector)
    halves, collector = collected(Scripted(4, turns, **events), **each, overlap="envs")
    assert type(collector) is HalvesCollector
    for name in ("observations", "rewards", "values", "episode_starts", "episode_ends", "masks"):
        assert torch.equal(getattr(parts, name), getattr(halves, name)), name
    assert all(torch.equal(halves.initial_state[name], parts.initial_state[name]) for name in parts.initial_state)


def test_halves_store_actions_with_their_observations():
    vecenv = Scripted(4, [[0, 1], [2, 3]])
    rollout, _ = collected(vecenv, horizon=3, overlap="envs")
    sent = [vecenv.sent[turn : turn + 2] for turn in (0, 2, 4)]
    assert np.array_equal(rollout.actions.numpy(), np.reshape(sent, (3, 4)))
    assert len(vecenv.sent) == 7  # the first half steps once more, unrecorded, until the second arrives


def test_batches_that_are_not_alternating_halves_raise():
    with pytest.raises(APIUsageError, match=r"alternate between the two halves of the agents.*zero_copy=True"):
        collected(Scripted(4, [[0, 1], [2, 3], [2, 3], [0, 1]]), overlap="envs")
    with pytest.raises(APIUsageError, match=r"batches of half of the agents, got 4 of 4; pass batch_size"):
        collected(Scripted(4), overlap="envs")


def test_disabled_autoreset_raises():
    with pytest.raises(APIUsageError, match="autoreset must be 'same_step' or 'next_step', got 'disabled'"):
        collected(Scripted(2, autoreset="disabled"))


def test_next_step_autoreset_raises_if_agents_end_separately():
    vecenv = Scripted(2, autoreset="next_step")
    vecenv.agents_end = True
    with pytest.raises(APIUsageError, match="whose agents end one by one"):
        collected(vecenv)


def test_nan_outputs_raise():
    class Broken(Sum):
        def forward_eval(self, observations, state=None):
            return torch.full((len(observations), 2), float("nan")), observations.sum(-1)

    vecenv = Scripted(2)
    policy = Broken(vecenv)
    collector = Collector(vecenv, policy, Rollout(vecenv, policy, 3, 6), TrainConfig(), torch.Generator())
    collector.reset(0)
    with pytest.raises(PufferError, match="the policy's outputs must be finite"):
        collector.collect()
