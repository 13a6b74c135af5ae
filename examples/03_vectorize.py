"""Vectorize slow environments: in this process, in several processes, and asynchronously.

Needs the Atari games: puffer install atari

Run it: python examples/03_vectorize.py --steps 200
"""

import argparse
import time

import numpy as np

import pufferlib
import pufferlib.vector

NUM_ENVS = 4


def make_envs(backend, **kwargs):
    """Create four games of Pong. With the same seed, they are identical on every backend."""
    creator = pufferlib.env_creator("atari/pong")
    return pufferlib.vector.make(creator, num_envs=NUM_ENVS, backend=backend, seed=0, **kwargs)


def synchronous(envs, actions) -> np.ndarray:
    """Use reset and step. Every step waits for all environments."""
    envs.reset()
    start = time.perf_counter()
    for row in actions:
        observations, *_ = envs.step(row)
    speed = actions.size / (time.perf_counter() - start)
    print(f"{type(envs).__name__:16} {speed:8,.0f} steps/s")
    last = observations.copy()
    envs.close()
    return last


def asynchronous(envs, steps) -> None:
    """Use async_reset, recv and send. Each recv returns the half that is ready while the other half runs."""
    envs.async_reset()
    start = time.perf_counter()
    for _ in range(2 * steps):
        observations, rewards, terminals, truncations, infos, agent_ids, masks = envs.recv()
        # A policy would use the observations here. agent_ids are the indices of their agents.
        envs.send(np.zeros(len(agent_ids), np.int32))
    speed = NUM_ENVS * steps / (time.perf_counter() - start)
    print(f"{'asynchronous':16} {speed:8,.0f} steps/s")
    envs.close()


def main(steps: int) -> None:
    actions = np.random.default_rng(0).integers(6, size=(steps, NUM_ENVS))
    serial = synchronous(make_envs(pufferlib.vector.Serial), actions)
    parallel = synchronous(make_envs(pufferlib.vector.Multiprocessing, num_workers=2, overwork=True), actions)
    print("same observations:", np.array_equal(serial, parallel))
    asynchronous(make_envs(pufferlib.vector.Multiprocessing, num_workers=2, batch_size=2, overwork=True), steps)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="steps per game")
    main(parser.parse_args().steps)
