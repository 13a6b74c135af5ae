"""Every speed goal of the bindings, beside the bare environments and Gymnasium's vector classes.

    python benchmarks/bindings.py                        # what is installed; the rest is left out
    python benchmarks/bindings.py --only crafter minigrid
    python benchmarks/bindings.py --quick --only minigrid    # to see that it works

A new binding gets its rows by a line in ``GAMES``, and one in ``BARE`` where its package has an
environment of its own. The contestants are measured in turns, in processes of their own, and all
figures are medians over the rounds. Also writes benchmarks/results/bindings.json.
"""

import argparse
import contextlib
import functools
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from engine import ASYNC, SERIAL, SYNC, Measure, measure
from pictures import preprocessed
from report import LIMIT, OURS, RESULTS, Row, machine, write
from sides import Side, serve, us_per_call
from worlds import world_added, world_rows, world_step

BLOCKS = 32  # of 8 steps each, after which the actions of ``added`` come again
BARE_LOOP, ALL = "bare environments, one process", "waiting for all"
WRAPPERS = "AtariPreprocessing and FrameStackObservation"


@dataclass(frozen=True)
class Game:
    """Goals for one environment of a binding.

    Attributes:
        name: An environment of it.
        adds: Percent that emulation and Serial may add to a bare step.
        two_workers: How many times as fast as bare environments in one process two workers must be.
        envs: How many side by side; more where a step is over sooner than two workers can be told.
        slow_reset: Whether batches of half the environments must be faster than waiting for all. They are then
            what must be as many times as fast as ``two_workers`` says.
        reset_ms: The longest that a reset may take.
        preprocessing: How many times as much Gymnasium's own wrappers must cost, which show the same.
    """

    name: str
    adds: float | None = None
    two_workers: float | None = None
    envs: int = 8
    slow_reset: bool = False
    reset_ms: float | None = None
    preprocessing: float | None = None


GAMES = (
    Game("minigrid/MiniGrid-DoorKey-8x8-v0", adds=2, two_workers=1.8, envs=64),
    Game("crafter/CrafterReward-v1", adds=2, two_workers=1.8, slow_reset=True, reset_ms=150),
    Game("atari/breakout", adds=2, two_workers=1.8, preprocessing=1.3),
    Game("nethack/NetHackScore-v0", adds=6, two_workers=1.8, envs=64),
    Game("classic/CartPole-v1", envs=64),
    Game("box2d/LunarLander-v3", envs=64),
    Game("mujoco/HalfCheetah-v5", envs=64),
)


def bare(name: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """An environment without our layers, and its first reset, seeded.

    That is the package's own where ``BARE`` says how to make it, else what the binding's adaptor makes.
    """
    import pufferlib

    binding, _, game = name.partition("/")
    emulated = pufferlib.make(name)
    env = emulated.env.env  # in the emulation and EpisodeStats
    if binding in BARE:
        emulated.close()
        return BARE[binding](game, seed)
    return env, functools.partial(env.reset, seed=seed)


def bare_gymnasium(game: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """As Gymnasium makes it, without the checker that only looks for mistakes."""
    env: Any = gymnasium.make(game, disable_env_checker=True)
    return env, functools.partial(env.reset, seed=seed)


def bare_crafter(game: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """The package's own class, which is seeded when it is made and has the four results of the old API."""
    env = sys.modules["crafter"].Env(seed=seed, reward=game == "CrafterReward-v1")
    return env, env.reset


def bare_nethack(game: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """The package's own class, which shows the same and is seeded in every reset as ours: they play the same games."""
    task, stream = getattr(sys.modules["nle.env.tasks"], game.removesuffix("-v0")), np.random.default_rng(seed)

    class Seeded(task):  # type: ignore[misc, valid-type]  # nle has no types
        def reset(self, **_: Any) -> Any:
            self.seed(*stream.integers(1 << 62, size=2).tolist(), False)
            return super().reset()

    env = Seeded(observation_keys=("glyphs", "blstats", "message"), render_mode=None, fix_moon_phase=True)
    return env, env.reset


BARE: dict[str, Callable[[str, int], tuple[Any, Callable[[], Any]]]] = {
    **dict.fromkeys(("minigrid", "classic", "box2d", "mujoco"), bare_gymnasium),
    "crafter": bare_crafter,
    "nethack": bare_nethack,
}


class Loop:
    """Bare environments in a plain loop, which starts their next episodes."""

    def __init__(self, name: str, num_envs: int) -> None:
        from pufferlib.seeding import env_seed

        pairs = [bare(name, env_seed(0, index)) for index in range(num_envs)]
        self.envs = [env for env, _ in pairs]
        self._resets = [reset for _, reset in pairs]
        self.single_action_space = self.envs[0].action_space

    def reset(self, seed: int) -> None:
        """Start all, with the seeds that our batch of seed 0 gives them."""
        for reset in self._resets:
            reset()

    def step(self, actions: Any) -> None:
        """Act in all."""
        for env, action in zip(self.envs, actions, strict=True):
            _, _, *ends, _ = env.step(action)
            if any(ends):
                env.reset()

    def close(self) -> None:
        """Close all that can be closed."""
        for env in self.envs:
            getattr(env, "close", lambda: None)()


def game_env(name: str) -> gymnasium.Env[Any, Any]:
    """Make the Gymnasium environment under the binding's adaptor, for Gymnasium's vector classes."""
    import pufferlib

    inner: gymnasium.Env[Any, Any] = pufferlib.make(name).env.env
    return inner


def opened(library: str, name: str, num_envs: int, workers: int = 0, batch: int | None = None) -> Any:
    """A vector environment: "bare", "sync", "async" or "puffer"."""
    if library == "bare":
        return Loop(name, num_envs)
    if library in ("sync", "async"):
        kind = gymnasium.vector.SyncVectorEnv if library == "sync" else gymnasium.vector.AsyncVectorEnv
        mode = gymnasium.vector.AutoresetMode.SAME_STEP
        return kind([functools.partial(game_env, name)] * num_envs, autoreset_mode=mode)
    import pufferlib

    several: dict[str, Any] = {}
    if workers:
        first = batch is not None and batch < num_envs
        several = {"num_workers": workers, "batch_size": batch or num_envs, "overwork": True, "zero_copy": not first}
    return pufferlib.vector.make(
        pufferlib.env_creator(name),
        backend="Multiprocessing" if workers else "Serial",
        num_envs=num_envs,
        autoreset="same_step",
        **several,
    )


def choices(space: Any, rows: int, per_row: int, is_loop: bool = False) -> list[Any]:
    """Random actions, ``per_row`` at a time: an array, or for a plain loop a list."""
    space.seed(0)
    chosen = [np.stack([np.asarray(space.sample()) for _ in range(per_row)]) for _ in range(rows)]
    if is_loop:
        return [list(row) if row.ndim > 1 else row.tolist() for row in chosen]
    return [row.astype(np.int32) if row.dtype.kind == "i" else row for row in chosen]


def added(library: str, name: str, num_envs: int, seconds: float) -> float:
    """Percent that a vector environment adds to the CPU time of bare ones, which play the same games in turns."""
    from pufferlib.seeding import env_seed

    plain, layered = opened("bare", name, num_envs), opened(library, name, num_envs)
    with contextlib.closing(plain), contextlib.closing(layered):
        plain.reset(seed=0)
        layered.reset(seed=0 if library == "puffer" else [env_seed(0, index) for index in range(num_envs)])
        space = plain.single_action_space
        turns = [(env, choices(space, 8 * BLOCKS, num_envs, env is plain), []) for env in (plain, layered)]
        start = time.thread_time()
        for block in itertools.count():
            if time.thread_time() - start > seconds and block > 2:
                break
            for env, rows, times in turns if block % 2 else turns[::-1]:  # neither is always the first
                times.append(cpu_s(env.step, rows[8 * (block % BLOCKS) :][:8]))
        ratios = [more / less for less, more in zip(turns[0][2], turns[1][2], strict=True)]
        return 100 * (statistics.median(ratios) - 1)


def added_to_batch(name: str, num_envs: int, seconds: float) -> float:
    """Percent that Serial and we add to the CPU time of a batch of gym3, which plays the same games in turns."""
    import pufferlib

    creator, options = pufferlib.env_creator(name), {"num_envs": num_envs}
    layered = pufferlib.vector.make(creator, num_envs=1, env_kwargs=options, backend="Serial", seed=0)
    layered.reset(seed=0)
    plain = sys.modules["procgen"].ProcgenGym3Env(num_envs, name.partition("/")[2], rand_seed=0, num_threads=0)

    def step(row: Any) -> None:
        plain.act(row)
        plain.observe()

    with contextlib.closing(layered), contextlib.closing(plain):
        blocks = choices(layered.single_action_space, 8 * BLOCKS, num_envs)
        ratios, start = [], time.thread_time()
        while time.thread_time() - start < seconds or len(ratios) < 3:
            rows = blocks[8 * (len(ratios) % BLOCKS) :][:8]
            first, second = (step, layered.step) if len(ratios) % 2 else (layered.step, step)
            times = {play: cpu_s(play, rows) for play in (first, second)}
            ratios.append(times[layered.step] / times[step])
        return 100 * (statistics.median(ratios) - 1)


def cpu_s(step: Callable[[Any], Any], rows: list[Any]) -> float:
    """Seconds of CPU that these steps take."""
    start = time.thread_time()
    for row in rows:
        step(row)
    return time.thread_time() - start


def step(library: str, name: str, num_envs: int, workers: int, batch: int, seconds: float) -> float:
    """Microseconds of a step of one environment, with random actions, in calls of ``batch``."""
    vecenv = opened(library, name, num_envs, workers, batch)
    with contextlib.closing(vecenv):
        vecenv.reset(seed=0)
        rows = itertools.cycle(choices(vecenv.single_action_space, 64, batch, library == "bare"))
        return us_per_call(lambda: vecenv.step(next(rows)), seconds) / batch


def reset(library: str, name: str, seconds: float) -> float:
    """Milliseconds of CPU that a reset takes."""
    if library == "bare":
        env, first = bare(name, 0)
        first()
        start_again = env.reset
    else:
        env = opened("puffer", name, 1)
        env.reset(seed=0)
        start_again = env.reset
    return us_per_call(start_again, seconds, time.thread_time) / 1e3


def reset_without_numba(name: str) -> float:
    """Milliseconds of CPU that a reset of the package takes where numba is not installed."""
    code = """if True:
        import sys, time
        sys.modules["numba"] = sys.modules["gym"] = None
        import crafter
        env = crafter.Env(seed=0)
        start = time.process_time()
        env.reset()
        print(1e3 * (time.process_time() - start))
    """
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


ALL_CASES = (added, added_to_batch, step, reset, reset_without_numba, preprocessed, world_added, world_step)
CASES: dict[str, Callable[..., Any]] = {case.__name__: case for case in ALL_CASES}


class Sides:
    """Two processes that measure; the second is for what takes two cores."""

    def __init__(self, seconds: float) -> None:
        self.first, self.second = Side(sys.executable, __file__), Side(sys.executable, __file__)
        self.seconds = seconds

    def ask(self, case: str, *args: Any) -> Measure:
        """To be called: measures a case."""
        return functools.partial(self.first.ask, case, *args)

    def both(self, case: str, *args: Any) -> Measure:
        """To be called: the slower of two processes that measure the same at the same time."""

        def measure() -> float | None:
            for side in (self.first, self.second):
                side.post(case, *args)
            figures = [side.answer() for side in (self.first, self.second)]
            return None if None in figures else max(figures)

        return measure

    def close(self) -> None:
        """End them."""
        self.first.close()
        self.second.close()


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Every row, and how its contestants are measured."""
    for game in GAMES:
        yield from game_rows(game, sides)
    row = Row("procgen/bigfish: Serial adds to a step of a batch of 8", "%", 6)
    yield row, {OURS: sides.ask("added_to_batch", "procgen/bigfish", 8, 3 * sides.seconds)}
    yield from world_rows(sides)


def game_rows(game: Game, sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """The rows of one environment."""
    name, envs, seconds = game.name, game.envs, sides.seconds
    row = Row(f"{name}: emulation and Serial add to a step", "%", game.adds)
    libraries = {OURS: "puffer", SYNC: "sync"}
    yield row, {who: sides.ask("added", library, name, 8, 3 * seconds) for who, library in libraries.items()}
    goal = {} if game.two_workers is None else {BARE_LOOP: game.two_workers}
    limit = "two processes, each with half of the bare ones"
    row = Row(f"{name}: a step, {envs} envs, 2 workers", "us", None, {} if game.slow_reset else goal, limit)
    yield (
        row,
        {
            OURS: sides.ask("step", "puffer", name, envs, 2, envs, seconds),
            BARE_LOOP: sides.ask("step", "bare", name, envs, 0, envs, seconds),
            SERIAL: sides.ask("step", "puffer", name, envs, 0, envs, seconds),
            SYNC: sides.ask("step", "sync", name, envs, 0, envs, seconds),
            ASYNC: sides.ask("step", "async", name, envs, 0, envs, seconds),
            LIMIT: lambda: halved(sides.both("step", "bare", name, envs // 2, 0, envs // 2, seconds)()),
        },
    )
    if game.slow_reset:
        row = Row(f"{name}: a step, 2 workers, batches of half", "us", None, {ALL: 1.0, **goal}, limit)
        long = 20 * seconds  # for as many resets in each
        yield (
            row,
            {
                OURS: sides.ask("step", "puffer", name, envs, 2, envs // 2, long),
                ALL: sides.ask("step", "puffer", name, envs, 2, envs, long),
                BARE_LOOP: sides.ask("step", "bare", name, envs, 0, envs, long),
                ASYNC: sides.ask("step", "async", name, envs, 0, envs, long),
                LIMIT: lambda: halved(sides.both("step", "bare", name, envs // 2, 0, envs // 2, long)()),
            },
        )
    if game.reset_ms is not None:
        row = Row(f"{name}: a reset", "ms", game.reset_ms)
        calls = {
            OURS: sides.ask("reset", "puffer", name, 3 * seconds),
            "bare": sides.ask("reset", "bare", name, seconds),
        }
        if name.startswith("crafter"):
            calls["bare, without numba"] = sides.ask("reset_without_numba", name)
        yield row, calls
    if game.preprocessing is not None:
        row = Row(f"{name}: a step of one game, pictures prepared", "us", None, {WRAPPERS: game.preprocessing})
        libraries = {OURS: "puffer", WRAPPERS: "gymnasium"}
        yield row, {who: sides.ask("preprocessed", library, name, seconds) for who, library in libraries.items()}


def halved(figure: float | None) -> float | None:
    """Halve the time of a step, for two processes that step at the same time."""
    return None if figure is None else figure / 2


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="for all rows together, about")
    parser.add_argument("--rounds", type=int, default=7, help="of a row, at most")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a short measurement; some take 20 times as long")
    parser.add_argument("--json", type=Path, default=RESULTS / "bindings.json", help="file to write the figures to")
    parser.add_argument("--only", nargs="+", default=[""], metavar="ROW", help="parts of the names of rows")
    parser.add_argument("--quick", action="store_true", help="one short round: only to see that it works")
    options = parser.parse_args()
    count, seconds = (1, 0.03) if options.quick else (options.rounds, options.seconds)
    before = machine()
    sides = Sides(seconds)
    try:
        done = measure(rows(sides), options.only, count, options.minutes)
    finally:
        sides.close()
    print(f"load {before['load_1min']:.1f} before, {os.getloadavg()[0]:.1f} after, {before['cpus']} CPUs")
    settings = {"minutes": options.minutes, "rounds": count, "seconds": seconds}
    write(options.json, {"machine": before, "settings": settings, "rows": [row.as_dict() for row in done]})


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(CASES)
    else:
        main()
