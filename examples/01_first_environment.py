"""Your first environment: create it, step it and read the results.

Run it: python examples/01_first_environment.py --steps 1000
"""

import argparse
import time

import pufferlib


def main(steps: int) -> None:
    # One object runs 64 games of breakout at once. pufferlib.list_envs() returns the names of
    # all environments, such as "atari/pong".
    env = pufferlib.make("breakout", num_envs=64, seed=0)

    # The single_* spaces are for one agent. The other spaces are for the whole batch.
    print("one observation:", env.single_observation_space)
    print("one action:     ", env.single_action_space)

    # Every array has one row per agent. The arrays are buffers of the environment, and the next
    # step overwrites them. Copy data that you want to keep.
    observations, infos = env.reset(seed=0)
    print("all observations:", observations.shape, observations.dtype)

    env.action_space.seed(0)
    start = time.perf_counter()
    for _ in range(steps):
        actions = env.action_space.sample()  # a policy would choose actions from the observations
        observations, rewards, terminals, truncations, infos = env.step(actions)

        # A finished game is reset automatically, and its row in terminals or truncations is True.
        # From time to time, infos contains a dict with means over the episodes since the previous dict.
        for info in infos:
            print(f"{info['n']:.0f} episodes ended: score {info['score']:.2f}, length {info['episode_length']:.0f}")

    seconds = time.perf_counter() - start
    print(f"{steps * env.num_agents / seconds:,.0f} steps/s with random actions (sampling them takes most of the time)")
    env.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="steps per game")
    main(parser.parse_args().steps)
