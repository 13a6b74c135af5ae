import dataclasses
import itertools

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import make_policy
from pufferlib.settings.config import load_config
from pufferlib.training.evaluation import evaluate
from tests.envs import ScriptedParallelEnv, alive, counting_env


@pytest.fixture
def config():
    return load_config("squared")


@pytest.fixture
def policy(config):
    from pufferlib import ocean

    torch.manual_seed(0)
    env = ocean.OceanEnv("squared")
    yield make_policy(env, hidden_size=8)
    env.close()


def test_same_seed_gives_same_scores(config, policy):
    for player in (None, policy):
        first, again = (evaluate(config, player, 5, seed=3) for _ in range(2))
        assert first == again
        assert evaluate(config, player, 5, seed=4).scores != first.scores
        assert evaluate(config, player, 5, seed=2**64 + 3).scores != first.scores
        assert first.episodes == 5
        assert first.score_mean == pytest.approx(np.mean(first.scores))
        assert first.score_std == pytest.approx(np.std(first.scores, ddof=1))


def test_first_episodes_do_not_depend_on_number_of_episodes(config):
    assert evaluate(config, None, 40, seed=3).scores[:5] == evaluate(config, None, 5, seed=3).scores


def test_record_gets_frames_of_first_episode(config):
    pictures = []
    result = evaluate(config, None, 1, seed=3, record=lambda picture, fps: pictures.append(picture))
    assert len(pictures) == result.episode_length
    assert all(picture.dtype == np.uint8 and picture.shape == pictures[0].shape for picture in pictures)
    many = []
    evaluate(config, None, 3, seed=3, record=lambda picture, fps: many.append(picture))
    assert len(many) == len(pictures)


def test_record_gets_frames_between_steps():
    config = load_config("pong", {"env.frameskip": 8, "env.max_score": 1})
    shown = []
    result = evaluate(config, None, 1, seed=3, record=lambda picture, fps: shown.append((picture, fps)))
    assert result == evaluate(config, None, 1, seed=3)
    assert len(shown) == 4 * result.episode_length
    assert {fps for _, fps in shown} == {30}
    assert all((one != other).any() for (one, _), (other, _) in itertools.pairwise(shown[:40]))


class FirstSeen(torch.nn.Module):
    """Policy that always names the number that it saw first in the episode."""

    def __init__(self, env):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.distribution = make_policy(env).distribution

    def initial_state(self, num_agents, device="cpu"):
        return {"seen": torch.zeros(num_agents, 3)}

    def forward_eval(self, observations, state):
        state["seen"] = torch.where(state["seen"].any(-1, keepdim=True), state["seen"], observations)
        return 100 * state["seen"], torch.zeros(len(observations))


def test_memory_is_kept_per_episode(target_env, config):
    lengths = iter([4, 1, 3, 2])

    def creator(buf=None, seed=0, **_):
        return target_env(2, length=next(lengths), hide=True, buf=buf, seed=seed)

    result = evaluate(config, FirstSeen(target_env(1)), 4, seed=0, env_creator=creator)
    assert result.scores == (4.0, 1.0, 3.0, 2.0)
    assert result.episode_length == 2.5


def test_memory_resets_at_terminal_of_agent(target_env, config):
    class Lives(target_env):
        """Environment with five lives, each with its own number. The score is reported after the last one."""

        lives, total = 0, 0.0

        def step(self, actions):
            *outcome, infos = super().step(actions)
            if infos:
                self.lives, self.total = self.lives + 1, self.total + infos[0]["score"]
            return *outcome, [{"score": self.total}] if self.lives == 5 else []

    def creator(buf=None, seed=0, **_):
        return Lives(2, length=3, hide=True, buf=buf, seed=seed)

    assert evaluate(config, FirstSeen(target_env(1)), 1, seed=0, env_creator=creator).scores == (15.0,)


def test_episodes_longer_than_max_steps_are_unfinished(target_env):
    config = load_config("squared", {"eval.max_steps": 5})
    config = dataclasses.replace(config, env={})
    lengths = iter([5, 6])

    def creator(buf=None, seed=0):
        return target_env(1, length=next(lengths), buf=buf)

    result = evaluate(config, None, 2, seed=0, env_creator=creator)
    assert (result.episodes, result.unfinished) == (1, 1)
    with pytest.raises(APIUsageError, match="none of 3 episodes of squared reported a score within 5 steps"):
        evaluate(config, None, 3, seed=0, env_creator=lambda buf=None: target_env(1, length=99, buf=buf))


class Crowd(PufferEnv):
    """Environment of four agents. Agent a ends after ``a + 1`` steps and reports a score. The last one is absent."""

    def __init__(self, per_agent, buf=None):
        self.single_observation_space, self.single_action_space = Box(0, 1, (1,), np.float32), Discrete(2)
        self.num_agents, self.per_agent, self.age = 4, per_agent, 0
        super().__init__(buf)

    def reset(self, seed=None):
        self.age = 0
        self.masks[:] = [True, True, True, False]
        return self.observations, []

    def step(self, actions):
        ends = self.age if self.age < 3 else None
        self.age += 1
        self.terminals[:] = np.arange(4) == ends
        infos = []
        if ends is not None:
            self.masks[ends] = False
            infos = [{f"agent_{ends}": {"score": 10.0**ends}} if self.per_agent else {"score": 10.0**ends, "n": 1}]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


@pytest.mark.parametrize("per_agent", [False, True])
def test_multi_agent_episode_lasts_until_last_agent_ends(config, per_agent):
    config = dataclasses.replace(config, env={})
    result = evaluate(config, None, 1, env_creator=lambda buf=None, **_: Crowd(per_agent, buf))
    assert result.scores == (111 / 3,)
    assert result.episode_length == 3


class Batch(PufferEnv):
    """Batch of ``num_envs`` games. Episodes of game i last i + 1 steps, which is their score."""

    def __init__(self, num_envs=1, buf=None, seed=0):
        self.single_observation_space, self.single_action_space = Box(0, 1, (1,), np.float32), Discrete(2)
        self.num_agents, self.age = num_envs, 0
        super().__init__(buf)

    def reset(self, seed=None):
        self.age = 0
        return self.observations, []

    def step(self, actions):
        self.age += 1
        lengths = np.arange(self.num_agents) + 1
        self.terminals[:] = self.age % lengths == 0
        infos = [{"score": float(length)} for length in lengths[self.terminals]]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


def test_each_episode_has_its_own_env(config):
    assert config.env["num_envs"] > 1
    result = evaluate(config, None, 2, env_creator=Batch)
    assert result.scores == (1.0, 1.0)
    assert result.episode_length == 1


class Respawning(Batch):
    """Game with three agents whose lives last 1, 2 and 3 steps. Lives that end together report their mean score."""

    def __init__(self, buf=None, seed=0):
        super().__init__(3, buf)

    def step(self, actions):
        *rows, infos = super().step(actions)
        scores = [info["score"] for info in infos]
        return *rows, [{"score": sum(scores) / len(scores), "n": len(scores)}]


def test_only_first_life_of_respawning_agents_counts(config):
    """Counting all lives within the three steps would give 1, 1, 2, 1 and 3, mostly short ones."""
    config = dataclasses.replace(config, env={})
    result = evaluate(config, None, 1, env_creator=lambda buf=None, **_: Respawning(buf))
    # In the second step a second life of the first agent and a first life end. Half of their report counts.
    assert result.scores == ((1 + 1.5 + 2) / 3,)
    assert result.episode_length == 3


class ReportsGames(Batch):
    """Game of three lives with one step each. Each life is terminal, and the score is reported after the last one."""

    def step(self, actions):
        *rows, _ = super().step(actions)
        return *rows, [{"score": 7.0}] if self.age == 3 else []


def test_score_reported_after_several_lives_counts(config):
    config = dataclasses.replace(config, env={})
    result = evaluate(config, None, 1, env_creator=lambda buf=None, **_: ReportsGames(1, buf))
    assert (result.scores, result.episode_length) == ((7.0,), 3)


def test_zero_episodes_raise(config):
    with pytest.raises(APIUsageError, match="episodes must be at least 1, got 0"):
        evaluate(config, None, 0)


def test_policy_with_nan_outputs_raises(config, policy):
    next(policy.parameters()).data.fill_(torch.nan)
    with pytest.raises(PufferError, match="the policy's outputs must be numbers, got NaN"):
        evaluate(config, policy, 1)


def countdown(length):
    return counting_env(length, info=lambda env: {"score": 1.0} if env.count == length else {})


def countdown_of_two(length):
    script = [alive("a", "b")] * length + [{"a": "dead", "b": "dead"}]
    return ScriptedParallelEnv(*script, names="ab", info=lambda *_, fate: {"score": 1.0} if fate == "dead" else {})


@pytest.mark.parametrize(
    ("emulation", "game"), [(GymnasiumPufferEnv, countdown), (PettingZooPufferEnv, countdown_of_two)]
)
def test_finished_env_is_not_stepped(config, emulation, game):
    config, lengths = dataclasses.replace(config, env={}), iter([2, 7, 1])
    result = evaluate(
        config, None, 3, env_creator=lambda buf=None, seed=0: emulation(game(next(lengths)), buf=buf, seed=seed)
    )
    assert result.episodes == 3
    assert result.episode_length == (2 + 7 + 1) / 3


def test_result_keeps_all_reports(config, policy):
    result = evaluate(config, policy, episodes=3)
    assert [report["score"] for report in result.reports] == list(result.scores)
    assert result.metrics()["score"] == pytest.approx(result.score_mean)
    assert {"perf", "score"} <= result.metrics().keys()
