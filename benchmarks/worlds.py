"""Neural MMO for bindings.py and paper.py, with 128 agents per world. Gymnasium has no vector class for it."""

import contextlib
import itertools
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from report import OURS, Row
from sides import us_per_call

WORLD = "nmmo/default"
ALL = "waiting for all"
BLOCK = 8  # number of steps that are timed together


def world_rows(sides: Any) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield the rows with the measurements of their contestants."""
    row = Row(f"{WORLD}: emulation and Serial add to a step", "%", 10)
    yield row, {OURS: sides.ask("world_added", 6 * sides.seconds)}
    row = Row(f"{WORLD}: a step, 4 worlds, 2 workers, batches of half", "us", None, {ALL: 1.0})
    batches = {OURS: 2, ALL: 4}
    yield row, {who: sides.ask("world_step", 2, batch, 40 * sides.seconds) for who, batch in batches.items()}


def world_added(seconds: float) -> float:
    """Return the CPU time that emulation and Serial add to the bare world, in percent.

    Both play the same games and are measured alternately.
    """
    from pufferlib.seeding import env_seed

    with contextlib.closing(opened(1)) as layered:
        plain = bare()
        layered.reset(seed=0)
        plain.reset(seed=env_seed(0, 0))
        layered.action_space.seed(0)
        ratios: list[float] = []
        start = time.thread_time()
        while time.thread_time() - start < seconds or len(ratios) < 3:
            arrays = [layered.action_space.sample() for _ in range(BLOCK)]
            dicts = [by_agent(plain, array) for array in arrays]
            turns = [(bare_step(plain), dicts), (layered.step, arrays)]
            spent = {step: cpu_s(step, rows) for step, rows in (turns if len(ratios) % 2 else turns[::-1])}
            ratios.append(spent[turns[1][0]] / spent[turns[0][0]])
        return 100 * (statistics.median(ratios) - 1)


def world_step(workers: int, batch: int, seconds: float) -> float:
    """Return the time of a step per world in microseconds, with ``batch`` of four worlds per call and with resets."""
    with contextlib.closing(opened(4, workers, batch)) as worlds:
        worlds.reset(seed=0)
        worlds.action_space.seed(0)
        rows = itertools.cycle([worlds.action_space.sample() for _ in range(64)])
        return us_per_call(lambda: worlds.step(next(rows)), seconds) / batch


def world_loop(num_worlds: int, seconds: float) -> float:
    """Return the time of a step per world in microseconds, in a plain loop over bare worlds, including resets."""
    from pufferlib.seeding import env_seed

    worlds = [bare() for _ in range(num_worlds)]
    for index, world in enumerate(worlds):
        world.reset(seed=env_seed(0, index))
    with contextlib.closing(opened(1)) as layered:
        layered.action_space.seed(0)
        rows = itertools.cycle([by_agent(worlds[0], layered.action_space.sample()) for _ in range(64)])
    steps = [bare_step(world) for world in worlds]

    def step_all() -> None:
        for step in steps:
            step(next(rows))

    return us_per_call(step_all, seconds) / num_worlds


def opened(num_envs: int, workers: int = 0, batch: int | None = None) -> Any:
    """Create our vector environment of worlds."""
    import pufferlib

    several: dict[str, Any] = {}
    if workers:
        several = {"num_workers": workers, "batch_size": batch, "overwork": True, "zero_copy": batch == num_envs}
    backend = "Multiprocessing" if workers else "Serial"
    creator = pufferlib.env_creator(WORLD)
    return pufferlib.vector.make(creator, backend=backend, num_envs=num_envs, autoreset="same_step", **several)


def bare() -> Any:
    """Create the package's own class with the settings and maps of the binding."""
    from pufferlib.bindings.nmmo.env import make_env

    world = make_env("default").env

    class Own(type(world)):  # type: ignore[misc]
        _validate_actions = type(world).__mro__[1]._validate_actions

    world.__class__ = Own
    return world


def by_agent(world: Any, actions: Any) -> dict[int, Any]:
    """Convert actions to the dict for the bare environment, which ignores absent agents."""
    names = [(kind, part) for kind, parts in world.acted_space.items() for part in parts]
    chosen: dict[int, Any] = {}
    for agent, row in zip(world.possible_agents, np.asarray(actions).tolist(), strict=True):
        chosen[agent] = {kind: {} for kind, _ in names}
        for (kind, part), value in zip(names, row, strict=True):
            chosen[agent][kind][part] = value
    return chosen


def bare_step(world: Any) -> Any:
    """Return a function that steps a bare world, and resets it when no agent is left."""

    def step(actions: dict[int, Any]) -> None:
        world.step(actions)
        if not world.agents:
            world.reset()

    return step


def cpu_s(step: Any, rows: list[Any]) -> float:
    """Return the CPU time of these steps in seconds."""
    start = time.thread_time()
    for row in rows:
        step(row)
    return time.thread_time() - start
