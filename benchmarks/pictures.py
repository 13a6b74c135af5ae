"""Cost of playing an Atari game and preparing its pictures: one case of bindings.py."""

import contextlib
import itertools
import time
from typing import Any

import gymnasium
import numpy as np
from sides import us_per_call


def preprocessed(library: str, name: str, seconds: float) -> float:
    """Microseconds of CPU of a step of one game of Atari, shown small, grey and stacked."""
    import pufferlib

    env = pufferlib.make(name).env.env if library == "puffer" else atari_of_gymnasium(name)
    env.reset(seed=0)
    actions = itertools.cycle(np.random.default_rng(0).integers(env.action_space.n, size=997))

    def act() -> None:
        _, _, *ends, _ = env.step(next(actions))
        if any(ends):
            env.reset()

    with contextlib.closing(env):
        return us_per_call(act, seconds, time.thread_time)


def atari_of_gymnasium(name: str) -> gymnasium.Env[Any, Any]:
    """A game in Gymnasium's AtariPreprocessing and FrameStackObservation."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    title = name.partition("/")[2].title().replace("_", "")
    env = gymnasium.make(f"ALE/{title}-v5", frameskip=1, repeat_action_probability=0.25)
    return gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.AtariPreprocessing(env), 4)
