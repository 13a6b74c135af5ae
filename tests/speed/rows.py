"""Hot paths whose instructions are counted. ``instructions.py`` runs this file under callgrind.

Everything is built and warmed up before callgrind starts to count, because counting is slow.
"""

import ctypes
import functools
import gc
import itertools
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import pufferlib
import pufferlib.vector
from pufferlib import ocean
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.settings.config import load_config
from pufferlib.training.callbacks import Callback
from pufferlib.training.trainer import Trainer
from pufferlib.vector.multiprocessing._channel import WorkerChannel
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.multiprocessing.worker import CLOSE, Setup, Surroundings, Worker
from pufferlib.vector.specs import RESET, STEP, EnvSpec, RowSpec

COUNTER = ctypes.CDLL(None)  # counter.c is preloaded
WARM_STEPS = 32  # CPython specializes code that has run this often
STEPS = 64
NUM_ENVS = 8
AGENTS = 256  # so many that the loop over agents takes longer than the call
TRAINING = {
    "env.num_envs": 64,
    "policy.hidden_size": 64,
    "policy.memory": "none",
    "train.act_threads": 1,
    "train.checkpoint_interval": 0,
    "train.device": "cpu",
    "train.horizon": 16,
    "train.minibatch_size": 512,
    "train.num_threads": 1,
    "train.precision": "float32",
    "train.update_epochs": 1,
}


def end_count(row: str, steps: int) -> None:
    """Dump the count of ``row``, which took so many steps."""
    COUNTER.end_count(f"{steps} {row}".encode())


class Still(gymnasium.Env[Any, Any]):
    """Environment that returns the same observation forever, so that only the code around it is counted."""

    observation_space: gymnasium.Space[Any] = Box(-1, 1, (4,))
    action_space = Discrete(4)

    def __init__(self) -> None:
        self.observation_space.seed(0)
        self.observation = self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation, 1.0, False, False, {}


class StillDict(Still):
    observation_space = Dict(
        {
            "position": Box(-1, 1, (3,)),
            "velocity": Box(-1, 1, (3,)),
            "weapon": Discrete(5),
            "items": MultiDiscrete([4, 4, 4, 4]),
            "health": Box(0, 100, (1,), np.uint8),
        }
    )


class Conductor(Still):
    """First environment of a worker. Each step gives the worker its next command, in place of a parent process."""

    command: Callable[[int, int], None]
    steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.command(0, STEP)
        return super().reset()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == WARM_STEPS:
            COUNTER.begin_count()
        elif self.steps == WARM_STEPS + STEPS:
            end_count(f"worker step, {NUM_ENVS} environments", STEPS)
        self.command(0, STEP if self.steps < WARM_STEPS + STEPS else CLOSE)
        return super().step(action)


def emulated(env: type[Still]) -> Callable[..., GymnasiumPufferEnv]:
    return functools.partial(GymnasiumPufferEnv, env_creator=env)


def serve_in_this_process() -> Callable[[], Any]:
    """Build a worker of ``Multiprocessing`` in this process. Returns its loop, whose first command is given."""
    envs = [Conductor, *itertools.repeat(Still, NUM_ENVS - 1)]
    specs = tuple(EnvSpec(index, emulated(env), (), {}, index) for index, env in enumerate(envs))
    row_spec = RowSpec.of(specs[0].creator())
    batch = SharedBatch(row_spec, NUM_ENVS, 1)
    near, far = multiprocessing.Pipe()
    batch.send(near, os.getpid())
    setup = Setup(0, 1, NUM_ENVS, pickle.dumps(specs), "next_step", row_spec, Surroundings(), 0, False, False)
    worker = Worker(far, setup)
    assert worker.build(), near.recv()
    Conductor.command = WorkerChannel(batch.memory, 1, False, 1.0).command_one
    Conductor.command(0, RESET)
    return functools.partial(worker.serve, parent=None)  # a parent is only asked for while there is no command


def other_steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each other row, and its step."""
    serial = pufferlib.vector.make(emulated(Still), num_envs=NUM_ENVS, backend="Serial")
    serial.reset(seed=0)
    zeros = np.zeros(NUM_ENVS, np.int64)
    yield f"Serial.step, {NUM_ENVS} environments", lambda: serial.step(zeros)
    for name, kind in (("Box", Still), ("Dict", StillDict)):
        env = emulated(kind)()
        env.reset(seed=0)
        yield f"GymnasiumPufferEnv.step, {name}", functools.partial(env.step, 1)
    for name in ocean.names():
        yield f"ocean {name}, {AGENTS} agents", native_step(name)


def native_step(name: str) -> Callable[[], Any]:
    """Return a step of so many games that they have about ``AGENTS`` agents, with random actions."""
    players = ocean.OceanEnv(name, num_envs=1).num_agents
    env = ocean.OceanEnv(name, num_envs=max(1, AGENTS // players))
    env.reset(seed=1)
    space, shape, rng = env.single_action_space, (STEPS, *env.actions.shape), np.random.default_rng(0)
    if isinstance(space, Box):
        drawn = rng.uniform(space.low, space.high, shape).astype(np.float32)
    else:
        drawn = rng.integers(0, getattr(space, "nvec", getattr(space, "n", None)), shape, np.int32)
    actions = itertools.cycle(drawn)
    return lambda: env.step(next(actions))


class CountTraining(Callback):
    """Counts the next update of a trainer, in two parts."""

    is_counting = False

    def on_rollout_end(self, trainer: Trainer) -> None:
        if self.is_counting:
            end_count("acting step, breakout", TRAINING["train.horizon"])
            COUNTER.begin_count()

    def on_update_end(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        if self.is_counting:
            end_count("update, breakout", 1)


def main() -> None:
    counting = CountTraining()
    trainer = Trainer(load_config("breakout", TRAINING), ".", callbacks=[counting])
    for _ in range(3):
        trainer.step()
    serve, steps = serve_in_this_process(), dict(other_steps())
    for step in steps.values():
        repeat(step, WARM_STEPS)
    gc.collect()
    gc.disable()
    counting.is_counting = True
    COUNTER.begin_count()
    trainer.step()
    serve()
    for row, step in steps.items():
        COUNTER.begin_count()
        repeat(step, STEPS)
        end_count(row, STEPS)
    trainer.close()


def repeat(step: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        step()


if __name__ == "__main__":
    main()
