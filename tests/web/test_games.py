"""Games in the browser: what the page knows, and the equality of WebAssembly and native code."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.cli.verbs import web
from pufferlib.errors import APIUsageError, PufferError, UsageError
from pufferlib.native import compiler
from pufferlib.ocean.files import write_template
from pufferlib.runs.folder import shipped_agent
from pufferlib.web import games
from pufferlib.web.games import WebGame, build_game
from tests.browser import Browser, needs_browser
from tests.needs import missing_extra
from tests.ocean.helpers import actions_of

needs_zig = pytest.mark.skipif(bool(missing_extra("compiler")), reason=missing_extra("compiler") or "it is there")

SAME_STEP, NEXT_STEP = 0, 1  # PufferAutoreset
SEED = 7
STEPS = 400
# One agent, several, agents that end, continuous actions, labels of areas, and a text parameter.
COMPILED = {"breakout", "nmmo3", "pendulum", "go"}
GAMES = [
    pytest.param(name, marks=pytest.mark.all if name in COMPILED else pytest.mark.nightly) for name in ocean.names()
]


class Instance:
    """A compiled game, run by wasmtime."""

    def __init__(self, game: WebGame, autoreset: int = SAME_STEP) -> None:
        import wasmtime

        self.facts = game.facts
        self._store = wasmtime.Store()
        module = wasmtime.Module(self._store.engine, game.code)
        assert [each.name for each in module.imports] == []
        self._exports = wasmtime.Instance(self._store, module, []).exports(self._store)
        self.call("_initialize")
        for i, value in enumerate(self.facts["parameters"]):
            if isinstance(value, str):
                self.write(self.call("text_of", i), value.encode())
            else:
                self.call("set_number", i, float(value))
        assert self.call("make", autoreset) == 0

    def call(self, name: str, *arguments: float) -> int:
        return self._exports[name](self._store, *arguments)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self._exports["memory"].read(self._store, address, address + size))

    def write(self, address: int, data: bytes) -> None:
        self._exports["memory"].write(self._store, data, address)

    def array(self, name: str, like: np.ndarray) -> np.ndarray:
        return np.frombuffer(self.read(self.call(name), like.nbytes), like.dtype).reshape(like.shape)

    def picture(self) -> np.ndarray:
        size = (self.facts["height"], self.facts["width"], 4)
        return np.frombuffer(self.read(self.call("pixels"), int(np.prod(size))), np.uint8).reshape(size)


def digest_of_native(env, seen, rewards, terminals, truncations) -> bytes:
    return hashlib.sha256(b"".join(map(bytes, (seen, rewards, terminals, truncations, env.masks)))).digest()


def digest_of_web(instance: Instance, env) -> bytes:
    arrays = ("observations", "rewards", "terminals", "truncations", "masks")
    parts = (instance.read(instance.call(name), getattr(env, name).nbytes) for name in arrays)
    return hashlib.sha256(b"".join(parts)).digest()


@needs_zig
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize(("mode", "autoreset"), [(SAME_STEP, "same_step"), (NEXT_STEP, "next_step")])
def test_frames_rewards_and_observations_equal_the_native_bytes(name, mode, autoreset):
    instance = Instance(build_game("test", name), mode)
    env = pufferlib.make(name, num_envs=1, seed=SEED, autoreset=autoreset)
    agent = 0 if env.num_agents > 1 else None
    rng = np.random.default_rng(1)
    env.reset()
    instance.call("reset", SEED)
    for step in range(STEPS):
        actions = actions_of(env, rng)
        *arrays, _ = env.step(actions)
        instance.write(instance.call("actions"), actions.tobytes())
        instance.call("step")
        assert digest_of_web(instance, env) == digest_of_native(env, *arrays), step
        if step % 40 == 0:
            instance.call("draw", -1 if agent is None else agent)
            picture = instance.picture()
            np.testing.assert_array_equal(picture[..., :3], env.render(agent=agent), err_msg=f"step {step}")
            assert (picture[..., 3] == 255).all()
    env.close()


@needs_zig
@pytest.mark.all
def test_frames_within_a_step_equal_the_native_ones():
    instance = Instance(build_game("test", "breakout"), NEXT_STEP)
    env = pufferlib.make("breakout", num_envs=1, seed=SEED, autoreset="next_step")
    rng = np.random.default_rng(1)
    env.reset()
    instance.call("reset", SEED)
    for _ in range(30):
        actions = actions_of(env, rng)
        instance.write(instance.call("actions"), actions.tobytes())
        for frames, expected in enumerate(env.frames(actions), start=1):
            instance.call("draw_between", -1, frames)
            np.testing.assert_array_equal(instance.picture()[..., :3], expected)
        env.step(actions)
        instance.call("step")
        np.testing.assert_array_equal(instance.array("observations", env.observations), env.observations)
    env.close()
