import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

from pufferlib.models import make_policy
from pufferlib.models.players import PolicyPlayer
from tests.envs import EnvDescription


def actions_of(policy, rows, observations):
    """Return actions of a sampling player: of all agents, of some, after new episodes of two, and after an update."""
    torch.manual_seed(1)
    player = PolicyPlayer(policy, len(rows), torch.Generator().manual_seed(1), greedy=False)
    actions = [player.act(observations), player.act(observations, rows[2:])]
    player.begin(rows[:2])
    actions.append(player.act(observations))
    with torch.no_grad():
        policy.policy.decoder.weight *= -50
    player.begin()
    return [*actions, player.act(observations)]


def test_c_player_matches_torch_player(monkeypatch):
    env = EnvDescription(Box(-9, 9, (5,), np.float32), Discrete(100))
    rows, observations = np.arange(6), np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32)
    results = []
    for _ in range(2):
        torch.manual_seed(1)
        policy = make_policy(env, hidden_size=16, memory="LSTM")
        with torch.no_grad():
            policy.policy.decoder.weight *= 100  # so that actions depend on the memory
        results.append(actions_of(policy, rows, observations))
        monkeypatch.setattr("pufferlib.models.engine.compile_policy", lambda policy: None)
    for in_c, in_torch in zip(*results, strict=True):
        assert np.array_equal(in_c, in_torch)
