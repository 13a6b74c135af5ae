"""PPO in the style of CleanRL's ppo.py: CartPole, on the vector environments of Gymnasium or pufferlib.

Needs torch and tyro: puffer install train

Run it: python examples/cleanrl/ppo.py --vectorization pufferlib
"""

import functools
import random
import time
from dataclasses import dataclass
from typing import Literal

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import nn
from torch.distributions import Categorical

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.models import layer_init


@dataclass
class Args:
    """Settings with the names and defaults of CleanRL, but fewer steps in total."""

    vectorization: Literal["gymnasium", "pufferlib"] = "pufferlib"
    seed: int = 1
    env_id: str = "CartPole-v1"
    total_timesteps: int = 100_000
    learning_rate: float = 2.5e-4
    num_envs: int = 4
    num_steps: int = 128
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


def make_env(env_id):
    def thunk():
        return gym.wrappers.RecordEpisodeStatistics(gym.make(env_id))

    return thunk


def make_envs(args):
    thunks = [make_env(args.env_id) for _ in range(args.num_envs)]
    if args.vectorization == "gymnasium":
        return gym.vector.SyncVectorEnv(thunks, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    creators = [functools.partial(GymnasiumPufferEnv, env_creator=thunk) for thunk in thunks]
    # This is the line that changes.
    vecenv = pufferlib.vector.make(creators, num_envs=args.num_envs, backend="Serial", autoreset="same_step")
    return pufferlib.vector.to_gymnasium(vecenv)


class Agent(nn.Module):
    """Separate small networks for policy and values."""

    def __init__(self, envs):
        super().__init__()
        size = int(np.prod(envs.single_observation_space.shape))
        self.critic = nn.Sequential(
            layer_init(nn.Linear(size, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 1), std=1.0),
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(size, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, envs.single_action_space.n), std=0.01),
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def episode_returns(infos):
    """Return the episode returns that `RecordEpisodeStatistics` recorded in a step."""
    final = infos.get("final_info", {})
    return final["episode"]["r"][final["_episode"]].tolist() if "episode" in final else []


def estimate_advantages(args, rewards, values, dones, next_value, next_done):
    """Compute generalized advantage estimates (Schulman et al., 2015)."""
    advantages = torch.zeros_like(rewards)
    last = 0
    for step in reversed(range(args.num_steps)):
        is_last = step == args.num_steps - 1
        not_done = 1.0 - (next_done if is_last else dones[step + 1])
        after = next_value if is_last else values[step + 1]
        delta = rewards[step] + args.gamma * after * not_done - values[step]
        advantages[step] = last = delta + args.gamma * args.gae_lambda * not_done * last
    return advantages


def ppo_loss(args, log_ratio, entropy, new_value, advantages, values):
    """Compute the clipped PPO loss (Schulman et al., 2017) for policy and values."""
    normalized = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
    policy = torch.max(-normalized * ratio, -normalized * clipped).mean()
    returns = advantages + values
    near = values + (new_value - values).clamp(-args.clip_coef, args.clip_coef)
    value = 0.5 * torch.max((new_value - returns) ** 2, (near - returns) ** 2).mean()
    return policy - args.ent_coef * entropy.mean() + args.vf_coef * value


def main(args):
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # more threads do not help with a small network
    envs = make_envs(args)
    agent = Agent(envs)  # or pufferlib.frameworks.cleanrl.Policy(policy)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = args.num_steps, args.num_envs
    obs = torch.zeros(shape + envs.single_observation_space.shape)
    actions = torch.zeros(shape + envs.single_action_space.shape)
    logprobs, rewards, dones, values = (torch.zeros(shape) for _ in range(4))

    start = time.time()
    next_obs = torch.Tensor(envs.reset(seed=args.seed)[0])
    next_done = torch.zeros(args.num_envs)
    batch_size = args.num_steps * args.num_envs
    num_iterations = args.total_timesteps // batch_size
    for iteration in range(num_iterations):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - iteration / num_iterations)
        returned = []
        for step in range(args.num_steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                actions[step], logprobs[step], _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
            next_obs, reward, terminations, truncations, infos = envs.step(actions[step].int().numpy())
            rewards[step] = torch.as_tensor(reward)
            next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(terminations | truncations)
            returned += episode_returns(infos)

        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = estimate_advantages(args, rewards, values, dones, next_value, next_done)
        batch = [x.flatten(0, 1) for x in (obs, actions, logprobs, advantages, values)]
        for _ in range(args.update_epochs):
            for rows in torch.randperm(batch_size).chunk(args.num_minibatches):
                b_obs, b_actions, b_logprobs, b_advantages, b_values = (x[rows] for x in batch)
                _, new_logprob, entropy, new_value = agent.get_action_and_value(b_obs, b_actions.long())
                loss = ppo_loss(args, new_logprob - b_logprobs, entropy, new_value.view(-1), b_advantages, b_values)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
        if returned:
            steps = (iteration + 1) * batch_size
            print(f"{steps:8,} steps, {steps / (time.time() - start):7,.0f} a second: return {np.mean(returned):.1f}")
    envs.close()


if __name__ == "__main__":
    main(tyro.cli(Args))
