"""Wrap your own Gymnasium environment with structured observation and action spaces.

Learning code works best with flat arrays. Emulation converts observations and actions to flat
arrays. A policy can still access the fields of an observation by name.

Run it: python examples/02_wrap_your_gymnasium_env.py --steps 100
"""

import argparse

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import pufferlib.emulation
import pufferlib.vector


class Explorer(gymnasium.Env):
    """Walk a 5 by 5 map to the treasure, with a lantern that burns down."""

    def __init__(self, fuel=20):
        self.fuel_at_start = fuel
        self.observation_space = Dict(
            {"map": Box(0, 2, (5, 5), np.uint8), "fuel": Box(0, np.inf, (1,), np.float32), "near": Discrete(2)}
        )
        self.action_space = MultiDiscrete([3, 3])  # up, stay or down; left, stay or right

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.position = np.array([2, 2])
        self.treasure = self.np_random.choice([0, 1, 3, 4], size=2)
        self.fuel = self.fuel_at_start
        return self.observe(), {}

    def step(self, action):
        self.position = np.clip(self.position + action - 1, 0, 4)
        self.fuel -= 1
        found = bool((self.position == self.treasure).all())
        return self.observe(), float(found), found, self.fuel == 0, {}

    def observe(self):
        board = np.zeros((5, 5), np.uint8)
        board[tuple(self.treasure)], board[tuple(self.position)] = 2, 1
        near = int(np.abs(self.position - self.treasure).max() <= 1)
        return {"map": board, "fuel": np.array([self.fuel], np.float32), "near": near}


def make_explorer(fuel=20, buf=None, seed=0):
    """Create one environment. vector.make calls this and passes the buffers to write to (buf)."""
    # EpisodeStats adds score, episode_return and episode_length to the info of each last step.
    env = pufferlib.EpisodeStats(Explorer(fuel))
    return pufferlib.emulation.GymnasiumPufferEnv(env=env, buf=buf, seed=seed)


def main(steps: int) -> None:
    envs = pufferlib.vector.make(make_explorer, num_envs=8, backend=pufferlib.vector.Serial, env_kwargs={"fuel": 12})
    print("flat spaces:", envs.single_observation_space, "and", envs.single_action_space)

    observations, _ = envs.reset(seed=0)
    fields = observations.view(envs.driver_env.obs_dtype)[:, 0]  # the same data with named fields
    print("fields:", fields.dtype.names, "map of the first environment:")
    print(fields["map"][0])

    envs.action_space.seed(0)
    for _ in range(steps):
        *_, infos = envs.step(envs.action_space.sample())
        for info in infos:
            print(f"score {info['score']:.0f} after {info['episode_length']} steps")
    envs.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="steps per environment")
    main(parser.parse_args().steps)
