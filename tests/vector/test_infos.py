"""Infos of environments that change the objects they returned."""

import functools
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.vector._copies import copied
from tests.envs import ScriptedPufferEnv


class Walker(gymnasium.Env):
    """Environment that returns the same mutable info at each step. Its episodes have three steps."""

    observation_space, action_space = Box(0, 99, (1,), np.float32), Discrete(2)

    def __init__(self):
        self.info = {"position": np.zeros(2), "path": [{"x": [0]}]}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self._move(0)
        return np.zeros(1, np.float32), self.info

    def step(self, action):
        self.time += 1
        self._move(self.time)
        return np.full(1, self.time, np.float32), 1.0, self.time == 3, False, self.info

    def _move(self, x):
        self.info["position"][:] = self.info["path"][0]["x"][0] = x


def walkers(backend="Serial", **options):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Walker)
    return pufferlib.vector.make(creator, backend=backend, autoreset="same_step", **options)


@pytest.mark.parametrize(("backend", "options"), [("Serial", {}), ("Multiprocessing", {"num_workers": 1})])
def test_later_steps_do_not_change_returned_infos(backend, options):
    with walkers(backend, **options) as vecenv:
        kept = [vecenv.reset(seed=0)[1][0], *(vecenv.step([0])[4][0] for _ in range(3))]
    assert [info["position"].tolist() for info in kept] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert [info["path"] for info in kept] == [[{"x": [x]}] for x in range(4)]


def test_final_info_is_not_changed_by_same_step_reset():
    envs = pufferlib.vector.to_gymnasium(walkers(num_envs=2))
    envs.reset(seed=0)
    infos = [envs.step([0, 0])[4] for _ in range(3)][-1]
    assert infos["final_info"]["position"].tolist() == [[3, 3], [3, 3]]
    assert infos["position"].tolist() == [[0, 0], [0, 0]]


def test_infos_of_native_environments_are_copied():
    count = np.zeros(1)

    def on_step():
        count[:] += 1
        return [{"count": count}]

    with pufferlib.vector.make(ScriptedPufferEnv, env_kwargs={"on_step": on_step}, backend="Serial") as vecenv:
        vecenv.reset()
        kept = [vecenv.step(vecenv.actions)[4][0]["count"] for _ in range(2)]
    assert [count.tolist() for count in kept] == [[1], [2]]


def test_copied_shares_only_objects_that_cannot_be_copied():
    lock, loop = threading.Lock(), []
    loop.append(loop)
    structured = np.zeros(1, [("x", "f4")])
    value = {"lock": lock, "text": "a", "rows": (np.zeros(2), [bytearray(b"x")]), "number": np.int8(3), "loop": loop}
    duplicate = copied({**value, "row": structured[0], "objects": np.array([[1], None], object)})
    value["rows"][0][0] = structured["x"] = 7
    value["rows"][1][0][0] = 0
    assert duplicate["lock"] is lock
    assert (duplicate["rows"][0].tolist(), duplicate["rows"][1], duplicate["row"]["x"]) == (
        [0, 0],
        [bytearray(b"x")],
        0,
    )
    assert (duplicate["text"], duplicate["number"], type(duplicate["number"])) == ("a", 3, np.int8)
    assert duplicate["loop"][0] is not loop
