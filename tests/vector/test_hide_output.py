"""``hide_output``: hides everything that environments print, on every backend, but no exceptions."""

import contextlib
import ctypes
import functools
import os
import sys

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError
from tests.envs import VariedEnv
from tests.wrappers.batches import varied


class Loud(pufferlib.PufferEnv):
    """Environment that prints in every method: from Python, from C, and to the file descriptor."""

    def __init__(self, buf=None, seed=0, fails=False):
        self.single_observation_space, self.single_action_space, self.num_agents = Box(0, 1, (1,)), Discrete(2), 1
        super().__init__(buf)
        self.fails = fails
        print_everywhere("build")

    def reset(self, seed=None):
        print_everywhere("reset")
        return self.observations, []

    def step(self, actions):
        print_everywhere("step")
        if self.fails:
            raise ValueError("no voice")
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def sing(self):
        print_everywhere("sing")
        return "la"

    def close(self):
        print_everywhere("close")


def print_everywhere(text):
    print(f"loud: {text}")
    print(f"loud: {text}", file=sys.stderr)
    ctypes.CDLL(None).printf(b"loud: C\n")
    os.write(2, b"loud: descriptor\n")


BACKENDS = [
    {"backend": "native"},
    {"backend": "Serial", "num_envs": 2},
    {"backend": "Serial", "num_envs": 2, "on_crash": "restart"},
    {"backend": "Multiprocessing", "num_envs": 2, "num_workers": 2, "overwork": True},
]


@pytest.mark.parametrize("options", BACKENDS, ids=["native", "serial", "restarts", "workers"])
def test_hide_output_hides_python_c_and_descriptor_output(capfd, options):
    with contextlib.closing(pufferlib.vector.make(Loud, hide_output=True, **options)) as vecenv:
        actions = np.zeros(vecenv.num_agents, int)
        vecenv.reset()
        vecenv.step(actions)
        vecenv.send(actions)
        vecenv.recv()
        assert set(vecenv.call("sing")) == {"la"}
        print("mine")
    assert capfd.readouterr() == ("mine\n", "")


@pytest.mark.parametrize("options", [BACKENDS[0], BACKENDS[1], BACKENDS[3]], ids=["native", "serial", "workers"])
def test_hide_output_keeps_exceptions(capfd, options):
    vecenv = pufferlib.vector.make(Loud, env_kwargs={"fails": True}, hide_output=True, **options)
    vecenv.reset()
    with pytest.raises(Exception, match="no voice"):
        vecenv.step(np.zeros(vecenv.num_agents, int))
    vecenv.close()
    assert "loud" not in "".join(capfd.readouterr())


def test_output_is_shown_by_default(capfd):
    with pufferlib.vector.make(Loud, backend="Serial") as vecenv:
        vecenv.reset()
    assert "loud: reset" in capfd.readouterr().out


def test_hide_output_hides_emulated_environments(capfd):
    creator = varied(functools.partial(VariedEnv, info=lambda env: print_everywhere("info") or {}))
    with pufferlib.vector.make(creator, backend="Serial", num_envs=2, hide_output=True) as vecenv:
        vecenv.reset()
        vecenv.step([0, 1])
    assert capfd.readouterr() == ("", "")


def test_hide_output_must_be_a_bool():
    with pytest.raises(APIUsageError, match="hide_output must be True or False, got 'yes'"):
        pufferlib.vector.make(Loud, backend="Serial", hide_output="yes")
