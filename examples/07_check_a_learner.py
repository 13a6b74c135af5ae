"""Check your own learning code: PPO with an LSTM in one file, and a test suite that finds bugs in it.

Run it: python examples/07_check_a_learner.py --scale 0.5 (needs torch: puffer install train)
"""

import argparse

import torch

from pufferlib.frameworks.cleanrl import RecurrentPolicy
from pufferlib.models import make_policy
from pufferlib.testing import check_learner

HORIZON, EPOCHS, MINIBATCHES, RATE, GAMMA, LAMBDA, CLIP, ENTROPY = 16, 4, 4, 3e-3, 0.9, 0.9, 0.2, 0.03


class Actor:
    """Agent for all rows. Each row has a memory that is cleared when its episode ends."""

    def __init__(self, agent, rows):
        self.agent, self.starts = agent, torch.ones(rows)
        self.state = torch.zeros(1, rows, agent.lstm.hidden_size), torch.zeros(1, rows, agent.lstm.hidden_size)

    @torch.no_grad()
    def choose(self, seen):
        *chosen, _, value, self.state = self.agent.get_action_and_value(seen, self.state, self.starts)
        return *chosen, value.flatten()

    def __call__(self, observations):
        return self.choose(torch.as_tensor(observations))[0].numpy()

    def reset(self, ended):
        self.starts = torch.as_tensor(ended).float()


def collect(vecenv, actor, seen):
    steps = []
    for _ in range(HORIZON):
        starts, (action, log_prob, value) = actor.starts, actor.choose(seen)
        observations, reward, terminals, truncations, _ = vecenv.step(action.numpy())
        actor.reset(terminals | truncations)
        steps.append((seen, starts, action, log_prob, value, torch.tensor(reward), actor.starts))
        seen = torch.tensor(observations)
    *kept, values, rewards, ends = (torch.stack(part) for part in zip(*steps, strict=True))
    next_value = actor.agent.get_value(seen, actor.state, actor.starts).detach().flatten()
    advantages, last = torch.zeros_like(rewards), 0
    for t in reversed(range(HORIZON)):  # generalized advantage estimation
        last = rewards[t] - values[t] + GAMMA * (1 - ends[t]) * (next_value + LAMBDA * last)
        advantages[t], next_value = last, values[t]
    return (*kept, advantages, advantages + values), seen


def ppo_loss(agent, state, seen, starts, action, old_log_prob, advantage, value_target):
    _, log_prob, entropy, value, _ = agent.get_action_and_value(seen, state, starts, action)
    normal, ratio = (advantage - advantage.mean()) / (advantage.std() + 1e-8), (log_prob - old_log_prob).exp()
    gain = torch.min(normal * ratio, normal * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    return 0.5 * (value.flatten() - value_target).square().mean() - gain - ENTROPY * entropy.mean()


def train(vecenv, seed, total_timesteps):
    torch.set_num_threads(1)  # more threads do not help with a small network
    torch.manual_seed(seed)
    agent = RecurrentPolicy(make_policy(vecenv.driver_env, hidden_size=64, memory="LSTM"))
    optimizer = torch.optim.Adam(agent.parameters(), lr=RATE, eps=1e-5)
    actor, seen = Actor(agent, vecenv.num_agents), torch.tensor(vecenv.reset(seed)[0])
    for _ in range(total_timesteps // (HORIZON * vecenv.num_agents)):
        first_state, (batch, seen) = actor.state, collect(vecenv, actor, seen)
        for rows in [part for _ in range(EPOCHS) for part in torch.randperm(vecenv.num_agents).chunk(MINIBATCHES)]:
            optimizer.zero_grad()
            ppo_loss(agent, [s[:, rows] for s in first_state], *(b[:, rows].flatten(0, 1) for b in batch)).backward()
            optimizer.step()
    return Actor(agent, vecenv.num_agents)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    for result in check_learner(train, scale=parser.parse_args().scale):
        print(f"{result.env_name}: {result.score:.2f} of {result.bar}; {result.finding}")
