"""CleanRL: policies with the methods of CleanRL agents, and CleanRL agents as policies for the trainer."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from torch import nn
from torch.distributions import Categorical, Normal

import pufferlib
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.cleanrl import AgentPolicy, Policy, RecurrentPolicy
from pufferlib.models import make_policy
from pufferlib.settings.config import load_config
from pufferlib.training.trainer import Trainer
from tests.envs import EnvDescription, FunctionEnv, TargetEnv

VECTOR = Box(-1, 1, (6,), np.float32)
ROWS = torch.linspace(-1, 1, 30).view(5, 6)


class Agent(nn.Module):
    """Agent of CleanRL's ppo.py, but with scaled observations as in ppo_atari.py."""

    def __init__(self, observations=6, actions=3):
        super().__init__()
        self.critic, self.actor = nn.Linear(observations, 1), nn.Linear(observations, actions)

    def get_value(self, x):
        return self.critic(x / 2)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x / 2))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x / 2)


class ContinuousAgent(Agent):
    """Agent of CleanRL's ppo_continuous_action.py."""

    def __init__(self):
        super().__init__()
        self.actor_mean, self.actor_logstd = nn.Linear(6, 2), nn.Parameter(torch.full((1, 2), 0.3))

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, self.actor_logstd.expand_as(mean).exp())
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x / 2)


class LSTMAgent(Agent):
    """Agent of CleanRL's ppo_atari_lstm.py."""

    def __init__(self):
        super().__init__(observations=4)
        self.lstm = nn.LSTM(6, 4)

    def get_states(self, x, lstm_state, done):
        rows = lstm_state[0].shape[1]
        outputs = []
        for step, starts in zip(x.view(-1, rows, 6), done.view(-1, rows), strict=True):
            keep = (1.0 - starts).view(1, -1, 1)
            output, lstm_state = self.lstm(step[None], (keep * lstm_state[0], keep * lstm_state[1]))
            outputs.append(output)
        return torch.cat(outputs).flatten(0, 1), lstm_state

    def get_action_and_value(self, x, lstm_state, done, action=None):
        hidden, lstm_state = self.get_states(x, lstm_state, done)
        return *super().get_action_and_value(hidden, action), lstm_state


@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete([2, 3]), Box(-1, 1, (2,), np.float32)], ids=str)
def test_policy_has_get_value_and_get_action_and_value(space):
    policy = make_policy(EnvDescription(VECTOR, space), hidden_size=8)
    agent = pufferlib.frameworks.cleanrl.Policy(policy)
    torch.manual_seed(3)
    action, log_prob, entropy, value = agent.get_action_and_value(ROWS)
    assert action.shape == (5, *space.shape)
    assert log_prob.shape == entropy.shape == (5,)
    assert value.shape == (5, 1)
    torch.manual_seed(3)
    assert torch.equal(agent.get_action_and_value(ROWS)[0], action)
    repeated = agent.get_action_and_value(ROWS, action)
    assert all(torch.equal(one, other) for one, other in zip(repeated, (action, log_prob, entropy, value), strict=True))
    assert torch.equal(agent.get_value(ROWS), value)
    params, _ = policy.forward_eval(ROWS)
    assert torch.equal(log_prob, policy.distribution.log_prob(params, action))


@pytest.mark.parametrize(
    ("outputs", "shape"),
    [
        (torch.zeros(5, 3), ()),
        ((torch.zeros(5, 3), torch.zeros(5, 2)), (2,)),
        (Normal(torch.zeros(5, 2), torch.ones(5, 2)), (2,)),
    ],
    ids=["logits", "several", "distribution"],
)
def test_policy_accepts_any_module_with_logits_and_values(outputs, shape):
    class FixedOutputs(nn.Module):
        def forward(self, x):
            return outputs, x[:, 0]

    agent = Policy(FixedOutputs())
    action, log_prob, entropy, value = agent.get_action_and_value(ROWS)
    assert action.shape == (5, *shape)
    assert torch.equal(value, ROWS[:, :1])
    assert torch.equal(agent.get_value(ROWS), value)
    repeated = agent.get_action_and_value(ROWS, action)
    assert torch.equal(repeated[1], log_prob)
    if not isinstance(outputs, Normal):
        num_actions = 3 if isinstance(outputs, torch.Tensor) else 6
        assert torch.allclose(-log_prob, torch.tensor(float(np.log(num_actions))).expand(5))
        assert torch.allclose(entropy, -log_prob)


def test_emulated_observations_can_be_converted_to_float():
    env = GymnasiumPufferEnv(FunctionEnv(Dict({"a": VECTOR, "b": Discrete(4)}), Discrete(3)))
    policy = make_policy(env, hidden_size=8)
    rows = torch.as_tensor(env.reset(seed=1)[0].copy())[None]
    assert rows.dtype == torch.uint8
    assert torch.equal(Policy(policy).get_value(rows.float())[0], policy.forward_eval(rows)[1])


def test_recurrent_policy_keeps_state_within_episodes_only():
    agent = RecurrentPolicy(make_policy(EnvDescription(VECTOR, Discrete(3)), hidden_size=8, memory="LSTM"))
    x, done = torch.randn(4, 5, 6), torch.zeros(4, 5)
    done[2, 1:3] = 1
    first = state = tuple(torch.randn(agent.lstm.num_layers, 5, agent.lstm.hidden_size) for _ in range(2))
    values, actions = [], []
    for step in range(4):
        assert torch.equal(agent.get_value(x[step], state, done[step]), agent.get_value(x[step], state, done[step]))
        action, _, _, value, state = agent.get_action_and_value(x[step], state, done[step])
        values.append(value)
        actions.append(action)
    flat = agent.get_action_and_value(x.flatten(0, 1), first, done.flatten(), torch.cat(actions))
    assert torch.allclose(flat[3], torch.cat(values), atol=1e-6)
    assert flat[1].shape == (20,)
    state = tuple(torch.zeros_like(part) for part in first)
    fresh = agent.get_value(x[2, 1:3], tuple(part[:, :2] for part in state), torch.zeros(2))
    assert torch.allclose(values[2][1:3], fresh, atol=1e-6)


def test_wrong_policies_and_agents_are_refused():
    env = EnvDescription(VECTOR, Discrete(3))
    with pytest.raises(APIUsageError, match=r"cleanrl.Policy: policy must be one without memory, got LSTMWrapper"):
        Policy(make_policy(env, memory="LSTM"))
    with pytest.raises(APIUsageError, match=r"RecurrentPolicy: policy must be an LSTMWrapper, got Default"):
        RecurrentPolicy(make_policy(env))
    with pytest.raises(APIUsageError, match=r"RecurrentPolicy: actor and critic must share one LSTM"):
        RecurrentPolicy(make_policy(env, memory="LSTM", networks="separate"))
    with pytest.raises(APIUsageError, match=r"an agent for Box.* must have a module actor_mean .*, got Agent; call"):
        AgentPolicy(EnvDescription(VECTOR, Box(-1, 1, (2,))), Agent())


@pytest.mark.parametrize(("agent", "space"), [(Agent(), Discrete(3)), (ContinuousAgent(), Box(-1, 1, (2,)))])
def test_agent_policy_has_the_same_log_probs_and_values(agent, space):
    policy = AgentPolicy(EnvDescription(VECTOR, space), agent)
    action, log_prob, entropy, value = agent.get_action_and_value(ROWS)
    params, values = policy.forward_eval(ROWS)
    assert torch.allclose(policy.distribution.log_prob(params, action), log_prob)
    assert torch.allclose(policy.distribution.entropy(params), entropy)
    assert torch.equal(values, value[:, 0])


def test_agent_policy_accepts_recurrent_agents():
    agent = LSTMAgent()
    policy = AgentPolicy(EnvDescription(VECTOR, Discrete(3)), agent)
    x, starts = torch.randn(4, 5, 6), torch.zeros(4, 5, dtype=torch.bool)
    state = policy.initial_state(5)
    steps = [policy.forward_eval(step, state) for step in x]
    params, values = policy(x, policy.initial_state(5), starts)
    assert torch.allclose(params, torch.stack([step[0] for step in steps]), atol=1e-6)
    assert torch.allclose(values, torch.stack([step[1] for step in steps]), atol=1e-6)
    starts[2] = True
    fresh, _ = policy.forward_eval(x[2])
    assert torch.allclose(policy(x, policy.initial_state(5), starts)[0][2], fresh, atol=1e-6)


def test_trainer_trains_a_cleanrl_agent(tmp_path):
    envs = TargetEnv(num_agents=64, choices=3)
    overrides = {"train.horizon": 16, "train.minibatch_size": 256, "train.learning_rate": 0.05, "train.device": "cpu"}
    agent = Agent(observations=3)
    trainer = Trainer(load_config("target", overrides), tmp_path, vecenv=envs, policy=AgentPolicy(envs, agent))
    for _ in range(30):
        metrics = trainer.step()
    trainer.close()
    assert metrics["environment/score"] > 3  # the maximum is 4, a random policy reaches 1.3
    assert agent.actor(torch.eye(3) / 2).argmax(1).tolist() == [0, 1, 2]


def test_actions_include_the_start_of_their_space():
    space = MultiDiscrete([3, 2], start=[5, -1])
    policy = make_policy(EnvDescription(VECTOR, space), hidden_size=8)
    agent = Policy(policy)
    actions, log_probs, _, _ = agent.get_action_and_value(ROWS.repeat(20, 1))
    assert all(space.contains(action) for action in actions.numpy())
    assert actions.amin(0).tolist() == [5, -1]
    assert torch.allclose(agent.get_action_and_value(ROWS.repeat(20, 1), actions.float().long())[1], log_probs)
