"""A PettingZoo environment whose agents come and go, as rows of one batch.

Every possible agent has its own row. Rows of absent agents are zero and their mask is False, so
a learner can skip them.

Run it: python examples/05_many_agents.py --steps 30
"""

import argparse

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

import pufferlib.emulation
import pufferlib.vector


class Relay(ParallelEnv):
    """Runners on a track with 8 fields. Each one leaves when it reaches the end."""

    metadata = {"name": "relay"}
    possible_agents = ["ann", "bob", "cid"]

    def observation_space(self, agent):
        return Box(0, 8, (2,), np.float32)

    def action_space(self, agent):
        return Discrete(3)  # number of fields to run

    def reset(self, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.places = dict.fromkeys(self.agents, 0)
        return self.observe(), {agent: {} for agent in self.agents}

    def step(self, actions):
        for agent, fields in actions.items():
            self.places[agent] = min(8, self.places[agent] + int(fields) * int(self.random.integers(2)))
        observations = self.observe()
        finished = {agent: self.places[agent] == 8 for agent in self.agents}
        rewards = {agent: float(done) for agent, done in finished.items()}
        truncations, infos = dict.fromkeys(self.agents, False), {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not finished[agent]]
        return observations, rewards, finished, truncations, infos

    def observe(self):
        lead = max(self.places.values())
        return {agent: np.array([self.places[agent], lead], np.float32) for agent in self.agents}


def make_relay(buf=None, seed=0):
    return pufferlib.emulation.PettingZooPufferEnv(env_creator=Relay, buf=buf, seed=seed)


def main(steps: int) -> None:
    envs = pufferlib.vector.make(make_relay, num_envs=2, backend=pufferlib.vector.Serial)
    print(f"{envs.num_envs} environments, {envs.num_agents} agents, one row for each")

    envs.async_reset(seed=0)
    envs.action_space.seed(0)
    for step in range(steps):
        observations, rewards, terminals, truncations, infos, agent_ids, masks = envs.recv()
        finished = agent_ids[terminals & masks]
        print(f"step {step:2}: present {masks.sum()}, finished in this step {finished.tolist()}")
        envs.send(envs.action_space.sample())
    envs.recv()
    envs.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30, help="steps per environment")
    main(parser.parse_args().steps)
