"""The first environment: make it, step it, read what comes back.

Run it: python examples/01_first_environment.py --steps 1000
"""

import argparse
import time

import pufferlib


def main(steps: int) -> None:
    # One object plays 64 games of breakout at once. "atari/pong" works the same way, and
    # pufferlib.list_envs() has all names.
    env = pufferlib.make("breakout", num_envs=64, seed=0)

    # Spaces called single_* are those of one agent; the others are those of the whole batch.
    print("one observation:", env.single_observation_space)
    print("one action:     ", env.single_action_space)

    # Every array has one row per agent. They are the environment's own buffers, which the next
    # step overwrites: copy what you want to keep.
    observations, infos = env.reset(seed=0)
    print("all observations:", observations.shape, observations.dtype)

    env.action_space.seed(0)
    start = time.perf_counter()
    for _ in range(steps):
        actions = env.action_space.sample()  # a policy would look at the observations instead
        observations, rewards, terminals, truncations, infos = env.step(actions)

        # A game that ends starts again by itself; its row of terminals says so. Now and then
        # infos has one dict: means over the episodes that ended since the last one.
        for info in infos:
            print(f"{info['n']:.0f} episodes ended: score {info['score']:.2f}, length {info['episode_length']:.0f}")

    seconds = time.perf_counter() - start
    print(f"{steps * env.num_agents / seconds:,.0f} steps/s with random actions, most of it spent on choosing them")
    env.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="steps of all 64 games")
    main(parser.parse_args().steps)
