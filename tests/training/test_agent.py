"""Tests of Agent, which acts on single observations, lists of observations and vector environments."""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Tuple

import pufferlib
from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.models import make_policy
from pufferlib.models.players import PolicyPlayer
from pufferlib.training.agent import Agent
from tests.envs import FunctionEnv

pytestmark = pytest.mark.usefixtures("blank_curves")


def nested_env():
    """Make an environment with nested observations and actions."""
    return FunctionEnv(
        Dict({"near": Box(-1, 1, (3,)), "far": Tuple([Discrete(4), MultiBinary(2)])}),
        Dict({"turn": Discrete(3, start=-1), "push": MultiBinary(2)}),
    )


def make_agent(creator, greedy=True, seed=3, **policy):
    torch.manual_seed(0)
    with vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step") as vecenv:
        network = make_policy(vecenv, hidden_size=8, **policy)
        for weights in network.parameters():
            torch.nn.init.normal_(weights)  # so that actions depend on observations and memory
        return Agent(network, vecenv, greedy, seed)


def cartpole(buf=None, seed=0):
    return GymnasiumPufferEnv(gymnasium.make("CartPole-v1"), buf=buf, seed=seed)


def nested(buf=None, seed=0):
    return GymnasiumPufferEnv(nested_env(), buf=buf, seed=seed)


@pytest.mark.parametrize("creator", [cartpole, nested])
def test_no_observations_give_no_actions(creator):
    agent = make_agent(creator)
    assert agent([]) == []
    if creator is cartpole:
        assert agent(np.zeros((0, 4), np.float32)).shape == (0,)


def test_load_returns_agent_that_acts_in_env(tmp_path):
    settings = {"train.total_timesteps": 1024, "eval.episodes": 1, "train.device": "cpu", "vec.num_envs": 2}
    done = pufferlib.train("CartPole-v1", settings, runs=tmp_path)
    agent = pufferlib.load(done.run.folder)
    assert agent.config.env_name == "CartPole-v1"
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    ended = False
    while not ended:
        action = agent(observation)
        assert type(action) is int
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    assert isinstance(pufferlib.load("CartPole-v1", runs=tmp_path, greedy=True, best=False), Agent)
    with pytest.raises(UsageError, match="is not a run, a checkpoint or an environment"):
        pufferlib.load("CartPoel", runs=tmp_path)
    with pytest.raises(APIUsageError, match=r"got TrainedRun; .* pass result\.run\.folder$"):
        pufferlib.load(done)
    with pytest.raises(APIUsageError, match=r"train\.device must be auto, cpu, cuda or cuda:<n>, got 'warp'"):
        pufferlib.load("CartPole-v1", runs=tmp_path, device="warp")
    with pytest.raises(APIUsageError, match=r"train\.device: this torch .* GPU.?, got 'cuda:99'"):
        pufferlib.load("CartPole-v1", runs=tmp_path, device="cuda:99")


def test_single_observation_gets_same_action_as_in_batch():
    agent = make_agent(cartpole)
    observations = np.random.uniform(-1, 1, (5, 4)).astype(np.float32)
    actions = agent(observations)
    assert (actions.shape, actions.dtype) == ((5,), np.int32)
    assert [agent(observation) for observation in observations] == actions.tolist()
    assert agent(list(observations)) == actions.tolist()
    assert agent(observations.tolist()) == actions.tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_agent_accepts_scalar_observations(dtype):
    def creator(buf=None, seed=0):
        return GymnasiumPufferEnv(FunctionEnv(Box(-9, 9, (), dtype)), buf=buf, seed=seed)

    agent = make_agent(creator)
    observations = np.linspace(-9, 9, 5, dtype=dtype)
    actions = agent(observations).tolist()
    assert len(set(actions)) > 1
    for convert in (dtype, np.array, float):
        assert [agent(convert(observation)) for observation in observations] == actions
    assert agent([float(observation) for observation in observations]) == actions


def test_sampled_actions_depend_on_seed():
    observations = np.zeros((64, 4), np.float32)
    first, again = (make_agent(cartpole, greedy=False)(observations) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert 0 < first.sum() < 64
    other, same, random = (
        make_agent(cartpole, greedy=False, seed=seed)(observations) for seed in (1, np.int64(1), None)
    )
    assert other.tolist() == same.tolist()
    assert len({tuple(actions.tolist()) for actions in (first, other, random)}) == 3
    with pytest.raises(APIUsageError, match=r"Agent: seed must be an int or None, got 1\.5"):
        make_agent(cartpole, seed=1.5)


def test_agent_accepts_nested_observations_and_returns_nested_actions():
    agent, env = make_agent(nested), nested_env()
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        observation, *_ = env.step(agent(observation))
    both = agent([observation, observation])
    assert all(env.action_space.contains(action) for action in both)
    with pytest.raises(APIUsageError, match="observation"):
        agent({"near": observation["near"]})


def test_agent_acts_in_vector_env():
    agent = make_agent(nested)
    with vector.make(nested, num_envs=3, backend="Serial") as vecenv:
        observations, _ = vecenv.reset(seed=0)
        for _ in range(3):
            actions = agent(observations)
            assert vecenv.action_space.contains(actions)
            observations, *_ = vecenv.step(actions)


@pytest.mark.parametrize("memory", ["LSTM", "MinGRU"])
def test_memory_is_kept_per_agent_until_reset(memory):
    agent = make_agent(cartpole, memory=memory)
    observations = np.random.normal(0, 5, (4, 64, 4)).astype(np.float32)
    together = [agent(step).tolist() for step in observations]
    with pytest.raises(APIUsageError, match=r"memory for 64 agents, got 32 observations"):
        agent(observations[0, :32])
    agent.reset()
    assert [agent(step[:32]).tolist() for step in observations] == [actions[:32] for actions in together]

    agent.reset()
    fresh = agent(observations[3]).tolist()
    agent.reset()
    for step in observations[:3]:
        agent(step)
    for rows in (np.arange(63) < 32, [64], [-1], 0.5, "all"):
        with pytest.raises(APIUsageError, match=r"rows must be a mask of 64 agents.*, or indices from 0 to 63"):
            agent.reset(rows)
    agent.reset(np.arange(64) < 32)
    assert agent(observations[3]).tolist() == fresh[:32] + together[3][32:]
    assert fresh[32:] != together[3][32:]


def test_agent_is_thread_safe(monkeypatch):
    agent = make_agent(cartpole)
    batches = [np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32) for rows in (64, 65, 66, 67)]
    expected = [agent(batch) for batch in batches]
    inside, most, act = 0, 0, PolicyPlayer.act

    def counted(player, rows):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.001)  # lets the other threads run
        inside -= 1
        return act(player, rows)

    monkeypatch.setattr(PolicyPlayer, "act", counted)
    with ThreadPoolExecutor(4) as pool:
        actions = list(pool.map(agent, batches * 4))
    assert most == 1
    assert all(map(np.array_equal, actions, expected * 4))


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_copy_or_pickle_of_agent_raises(duplicate):
    with pytest.raises(TypeError, match=r"load it in each process: pufferlib.load\(run\)"):
        duplicate(make_agent(cartpole))


def test_observation_of_wrong_shape_raises():
    with pytest.raises(
        APIUsageError, match=r"must be of shape \(4,\), or of shape \(n, 4\) for n agents, got shape \(3,\)"
    ):
        make_agent(cartpole)(np.zeros(3))


def agent_for(space):
    return make_agent(lambda buf=None, seed=0: GymnasiumPufferEnv(FunctionEnv(space), buf=buf, seed=seed))


BYTES = Box(0, 255, (4,), np.uint8)


@pytest.mark.parametrize(
    ("space", "observation", "match"),
    [
        (BYTES, np.full(4, 0.5, np.float32), "values that uint8 can hold, got 0.5"),
        (BYTES, np.full((2, 4), 0.7), "values that uint8 can hold, got 0.7"),
        (BYTES, [np.full(4, 0.7)] * 2, "values that uint8 can hold, got 0.7"),
        (BYTES, np.full(4, np.nan), "values that uint8 can hold, got nan"),
        (BYTES, np.full(4, -1), "values that uint8 can hold, got -1"),
        (BYTES, np.full(4, 300), "values that uint8 can hold, got 300"),
        (BYTES, np.full(4, "a"), "must have dtype uint8, got dtype <U1"),
        (Box(0, 9, (2,), np.int32), np.array([3, 10]), "within the space, 0 to 9, got 3 to 10"),
        (Discrete(5), 7, "within the space, 0 to 4, got 7 to 7"),
        (Dict(gear=Discrete(3), speed=Box(0, 1, (1,))), {"gear": 3, "speed": [0.5]}, r"observations\['gear'\] must be"),
        (Box(-1, 1, (2,)), np.array([0.0, np.nan]), "must be numbers, got NaN"),
    ],
)
def test_observation_outside_space_raises(space, observation, match):
    with pytest.raises(APIUsageError, match=match):
        agent_for(space)(observation)


def test_observation_of_other_dtype_is_converted():
    agent = agent_for(BYTES)
    expected = agent(np.array([0, 3, 9, 255], np.uint8))
    for dtype in (np.float32, np.float64, np.int64):
        assert agent(np.array([0, 3, 9, 255], dtype)) == expected
    agent_for(Box(-1, 1, (2,)))(np.array([-1.5, 1.0]))


def test_float_observation_far_outside_space_warns_once():
    agent = agent_for(Box(0, 1, (2,), np.float32))
    with pytest.warns(UserWarning, match=r"within the space, 0.0 to 1.0, got 3.0 to 255.0; .*without scaling"):
        agent(np.array([3.0, 255.0]))
    agent(np.array([3.0, 255.0]))


class Far(gymnasium.Env):
    """Environment with float64 positions around 5e8. The sign of the offset is the rewarded action."""

    action_space = Discrete(2)

    def __init__(self, nested=False):
        position = Box(-np.inf, np.inf, (2,), np.float64)
        self.nested = nested
        self.observation_space = Dict(position=position, gear=Discrete(3)) if nested else position

    def _observe(self):
        self.position = 5e8 + self.np_random.normal(size=2)
        return {"position": self.position, "gear": 1} if self.nested else self.position

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {}

    def step(self, action):
        self.steps += 1
        reward = float(action == (self.position[0] > 5e8))
        return self._observe(), reward, False, self.steps == 20, {}


@pytest.mark.parametrize("nested", [False, True])
def test_loaded_agent_normalizes_float64_observations_as_in_training(tmp_path, nested):
    settings = {
        "train.total_timesteps": 2048,
        "train.device": "cpu",
        "train.normalize_observations": True,
        "env.nested": nested,
        "vec.num_envs": 8,
        "vec.backend": "Serial",
        "eval.episodes": 1,
    }
    done = pufferlib.train(Far, settings, runs=tmp_path)
    agent = pufferlib.load(done.run.folder, greedy=True)
    seen = []
    act = agent.policy.forward_eval
    agent.policy.forward_eval = lambda observations, *state: (seen.append(observations), act(observations, *state))[1]
    env = Far(nested)
    observation, _ = env.reset(seed=0)
    agent.reset()
    agent(observation)
    moments = agent.policy.observation_moments
    mean, var = (moments.get_buffer(f"position/{part}" if nested else part).numpy() for part in ("mean", "var"))
    expected = (env.position - mean) / np.sqrt(var + 1e-8)
    assert np.abs(expected).max() < 5
    shown = seen[0].numpy()
    shown = shown.view(np.float32)[0, :2] if nested else shown[0]
    assert np.allclose(np.sort(shown), np.sort(expected), atol=1e-3)
