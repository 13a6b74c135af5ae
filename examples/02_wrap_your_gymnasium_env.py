"""Your own Gymnasium environment, with the observation and action spaces that suit it.

Learners like one flat array to see and one action to take. Emulation gives them that, and
gives the fields back by name where a policy wants them.

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
    """A creator: vector.make calls it once per environment and says where to write (buf)."""
    # EpisodeStats puts score, episode_return and episode_length into the info of each last step.
    env = pufferlib.EpisodeStats(Explorer(fuel))
    return pufferlib.emulation.GymnasiumPufferEnv(env=env, buf=buf, seed=seed)


def main(steps: int) -> None:
    envs = pufferlib.vector.make(make_explorer, num_envs=8, backend=pufferlib.vector.Serial, env_kwargs={"fuel": 12})
    print("the learner sees:", envs.single_observation_space, "and does:", envs.single_action_space)

    observations, _ = envs.reset(seed=0)
    fields = observations.view(envs.driver_env.obs_dtype)[:, 0]  # the same bytes, by name
    print("fields:", fields.dtype.names, "map of the first one:")
    print(fields["map"][0])

    envs.action_space.seed(0)
    for _ in range(steps):
        *_, infos = envs.step(envs.action_space.sample())
        for info in infos:
            print(f"score {info['score']:.0f} after {info['episode_length']} steps")
    envs.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="steps of all 8 environments")
    main(parser.parse_args().steps)
