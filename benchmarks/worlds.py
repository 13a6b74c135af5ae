"""Neural MMO in ``bindings.py`` and ``paper.py``: 128 agents in one world, for which Gymnasium has no vector class."""

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
BLOCK = 8  # steps that are timed together


def world_rows(sides: Any) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The rows, and how their contestants are measured."""
    row = Row(f"{WORLD}: emulation and Serial add to a step", "%", 10)
    yield row, {OURS: sides.ask("world_added", 6 * sides.seconds)}
    row = Row(f"{WORLD}: a step, 4 worlds, 2 workers, batches of half", "us", None, {ALL: 1.0})
    batches = {OURS: 2, ALL: 4}
    yield row, {who: sides.ask("world_step", 2, batch, 40 * sides.seconds) for who, batch in batches.items()}


def world_added(seconds: float) -> float:
    """Percent that emulation and Serial add to the CPU time of the bare world, which plays the same game in turns."""
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
    """Microseconds of a step of one of four worlds, resets included, in calls of ``batch``."""
    with contextlib.closing(opened(4, workers, batch)) as worlds:
        worlds.reset(seed=0)
        worlds.action_space.seed(0)
        rows = itertools.cycle([worlds.action_space.sample() for _ in range(64)])
        return us_per_call(lambda: worlds.step(next(rows)), seconds) / batch


def world_loop(num_worlds: int, seconds: float) -> float:
    """Microseconds of a step of one of several bare worlds in a plain loop, resets included."""
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
    """A vector environment of worlds."""
    import pufferlib

    several: dict[str, Any] = {}
    if workers:
        several = {"num_workers": workers, "batch_size": batch, "overwork": True, "zero_copy": batch == num_envs}
    backend = "Multiprocessing" if workers else "Serial"
    creator = pufferlib.env_creator(WORLD)
    return pufferlib.vector.make(creator, backend=backend, num_envs=num_envs, autoreset="same_step", **several)


def bare() -> Any:
    """The package's own class, with the settings and maps that the binding gives it."""
    from pufferlib.bindings.nmmo.env import make_env

    world = make_env("default").env

    class Own(type(world)):  # type: ignore[misc]
        _validate_actions = type(world).__mro__[1]._validate_actions

    world.__class__ = Own
    return world


def by_agent(world: Any, actions: Any) -> dict[int, Any]:
    """Convert actions to the dict that the bare environment takes; it ignores absent agents."""
    names = [(kind, part) for kind, parts in world.acted_space.items() for part in parts]
    chosen: dict[int, Any] = {}
    for agent, row in zip(world.possible_agents, np.asarray(actions).tolist(), strict=True):
        chosen[agent] = {kind: {} for kind, _ in names}
        for (kind, part), value in zip(names, row, strict=True):
            chosen[agent][kind][part] = value
    return chosen


def bare_step(world: Any) -> Any:
    """A step, and the next game when nobody is left."""

    def step(actions: dict[int, Any]) -> None:
        world.step(actions)
        if not world.agents:
            world.reset()

    return step


def cpu_s(step: Any, rows: list[Any]) -> float:
    """Seconds of CPU that these steps take."""
    start = time.thread_time()
    for row in rows:
        step(row)
    return time.thread_time() - start
