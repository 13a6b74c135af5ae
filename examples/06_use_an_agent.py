"""Use a trained agent in an environment that you create, and in many environments at once.

Needs torch: puffer install train

Run it: python examples/06_use_an_agent.py --run runs/20261123-120000-CartPole-v1
"""

import argparse
import tempfile
from pathlib import Path

import gymnasium

import pufferlib
from pufferlib import vector
from pufferlib.training import Agent


def train(timesteps: int) -> Path:
    """Train an agent for a few seconds and return the folder of its run."""
    print(f"training for {timesteps:,} steps (use --run to load your own agent)")
    settings = {"train.total_timesteps": timesteps, "train.device": "cpu", "eval.episodes": 2}
    return pufferlib.train("CartPole-v1", settings, runs=tempfile.mkdtemp(prefix="runs-")).run.folder


def play_one(agent: Agent) -> float:
    """Play one episode of Gymnasium's environment. The agent uses its observations and actions directly."""
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    agent.reset()
    score, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(agent(observation))
        score += float(reward)
        ended = terminated or truncated
    return score


def play_many(agent: Agent, steps: int) -> int:
    """Play in 16 environments at once, and return the number of episodes that ended."""
    agent.reset()  # the number of rows may change after a reset
    ended, make = 0, pufferlib.env_creator("CartPole-v1")
    with vector.make(make, num_envs=16, backend="Serial", autoreset="same_step") as vecenv:
        observations, _ = vecenv.reset(seed=0)
        for _ in range(steps):
            observations, _, terminals, truncations, _ = vecenv.step(agent(observations))
            agent.reset(terminals | truncations)  # clears the memory of a recurrent agent
            ended += int((terminals | truncations).sum())
    return ended


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="folder of a run of CartPole-v1 (default: train one now)")
    parser.add_argument("--timesteps", type=int, default=100_000, help="agent-steps to train for")
    parser.add_argument("--steps", type=int, default=1_000, help="steps per environment")
    arguments = parser.parse_args()
    agent = pufferlib.load(arguments.run or train(arguments.timesteps), greedy=True)
    print(f"one episode of Gymnasium's environment: score {play_one(agent):.0f}")
    print(f"{arguments.steps} steps in 16 environments: {play_many(agent, arguments.steps)} episodes ended")
