"""Vector environments for the tests of wrappers, and loops over them."""

import functools

import numpy as np

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.vector.proxy import VectorProxy
from tests.envs import ScriptedParallelEnv, VariedEnv, alive
from tests.tiers import once

__all__ = ["MATRIX", "Spy", "comes_and_goes", "make", "play", "varied"]

AUTORESETS = ("same_step", "next_step", "disabled")
LAYOUTS = {
    "serial": {"backend": "Serial"},
    "parts": {"backend": "Serial", "batch_size": 2},
    "workers": {"backend": "Multiprocessing", "num_workers": 2, "overwork": True},
    "first": {
        "backend": "Multiprocessing",
        "num_workers": 4,
        "batch_size": 2,
        "zero_copy": False,
        "overwork": True,
    },
}


#: All layouts of workers with all autoreset modes. Without ``--all``, each mode and most layouts run once.
MATRIX = once(
    [(layout, autoreset) for layout in LAYOUTS for autoreset in AUTORESETS],
    [*(("serial", autoreset) for autoreset in AUTORESETS), ("parts", "same_step"), ("first", "next_step")],
)


def varied(env_creator=VariedEnv, **options):
    return functools.partial(GymnasiumPufferEnv, env_creator=env_creator, env_kwargs=options)


def comes_and_goes():
    """Make a creator of a PettingZoo environment with three agents: one ends early, one is always absent."""
    script = [alive("a", "b"), alive("a", "b"), {"a": "dead", "b": "alive"}, alive("b"), {"b": "cut"}]
    return functools.partial(PettingZooPufferEnv, env_creator=ScriptedParallelEnv, env_args=script)


def make(creator=None, layout="serial", autoreset="same_step", num_envs=4, **options):
    return pufferlib.vector.make(
        creator or varied(), num_envs=num_envs, seed=3, autoreset=autoreset, **LAYOUTS[layout], **options
    )


def play(vecenv, steps, seed=1):
    """Reset ``vecenv``, act randomly and yield each result of ``recv``, ``steps`` times.

    With autoreset disabled, environments are reset when their episodes end.
    """
    rng = np.random.default_rng(seed)
    vecenv.async_reset(seed)
    ended = np.zeros(vecenv.num_agents, bool)
    for _ in range(steps):
        received = vecenv.recv()
        yield received
        _, _, terminals, truncations, _, agent_ids, _ = received
        ended[agent_ids] = terminals | truncations
        if vecenv.autoreset == "disabled" and ended[agent_ids].any():
            each = vecenv.num_agents // vecenv.num_envs
            env_ids = np.unique(agent_ids[ended[agent_ids]] // each)
            vecenv.reset(env_ids=env_ids.tolist())
            ended[agent_ids] = False
        vecenv.send(rng.integers(2, size=vecenv.agents_per_batch))
    vecenv.recv()


class Spy(VectorProxy):
    """Vector environment that records copies of all returned rows.

    Attributes:
        rows: One dict for each returned row: its agent, its arrays, and whether the agent "acted", "begins" an episode
            or "ended" one in this step.
    """

    def __init__(self, vecenv):
        super().__init__(vecenv)
        self.rows, self._new, self._over = [], set(range(vecenv.num_agents)), set()

    def async_reset(self, seed=None):
        self.vecenv.async_reset(seed)
        self._new, self._over = set(range(self.num_agents)), set()

    def recv(self):
        received = self.vecenv.recv()
        self._note(received[:4], range(len(received[0])))
        return received

    def reset(self, seed=None, env_ids=None):
        outcome = self.vecenv.reset(seed, env_ids=env_ids)
        rows = [row for row, agent in enumerate(self.agent_ids) if agent in env_ids]
        self._new |= set(env_ids)
        self._note((self.observations, self.rewards, self.terminals, self.truncations), rows)
        return outcome

    def _note(self, arrays, rows):
        same_step, final = self.autoreset == "same_step", self.final_observations
        for row in rows:
            agent = int(self.agent_ids[row])
            observation, reward, terminal, truncation = (array[row].copy() for array in arrays)
            new, over = agent in self._new, agent in self._over
            ended = bool(terminal | truncation)
            self._new.discard(agent)
            (self._over.add if ended and not same_step else self._over.discard)(agent)
            self.rows.append(
                {
                    "agent": agent,
                    "observation": observation,
                    "reward": float(reward),
                    "final": final[row].copy(),
                    "acted": not new and not over,
                    "begins": new or (over if not same_step else ended),
                    "ended": ended,
                }
            )
