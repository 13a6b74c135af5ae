"""Contestants of benchmarks/bindings.py and paper.py on one side: every function is one case."""

import contextlib
import functools
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import sides
from contestants import Sb3, own_arrays
from worlds import world_added, world_step

BLOCKS = 32  # of 8 steps each, after which the actions of ``added`` come again


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


def made(name: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """An environment as ``pufferlib.make`` makes it, in arrays like those of a batch, and its first reset, seeded."""
    import pufferlib

    env = pufferlib.env_creator(name)(buf=own_arrays, seed=seed)
    return env, functools.partial(env.reset, seed=seed)


def emulated(name: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """The environment under the binding's adaptor in our emulation, which counts no episodes."""
    from pufferlib.emulation import GymnasiumPufferEnv

    env = GymnasiumPufferEnv(env=gymnasium_env(name), buf=own_arrays)
    return env, functools.partial(env.reset, seed=seed)


class Loop:
    """Environments that ``make`` makes, in a plain loop that starts their next episodes."""

    def __init__(self, make: Callable[[str, int], tuple[Any, Callable[[], Any]]], name: str, num_envs: int) -> None:
        from pufferlib.seeding import env_seed

        pairs = [make(name, env_seed(0, index)) for index in range(num_envs)]
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


class Bigfish(gymnasium.Env[Any, Any]):
    """One game of Procgen's batch of one, as Gymnasium's and SB3's vector classes need it."""

    observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(15)

    def __init__(self) -> None:
        from pufferlib.bindings.procgen import env

        self._games = env.ProcgenGym3Env(1, "bigfish", num_threads=0)
        self._action = np.zeros(1, np.int32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Show the level, which the library began when the last one ended."""
        return self._games.observe()[1]["rgb"][0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        self._action[0] = action
        self._games.act(self._action)
        rewards, shown, ends = self._games.observe()
        return shown["rgb"][0], float(rewards[0]), bool(ends[0]), False, {}


BATCHES = {  # environments that batch themselves, and one game of each for vector classes that do not know this
    "procgen/bigfish": Bigfish,
    "squared": functools.partial(gymnasium.make, "puffer/squared", disable_env_checker=True),
}


def gymnasium_env(name: str) -> gymnasium.Env[Any, Any]:
    """Make the Gymnasium environment under the binding's adaptor, for Gymnasium's vector classes."""
    import pufferlib

    if name in BATCHES:
        return BATCHES[name]()
    inner: gymnasium.Env[Any, Any] = pufferlib.make(name).env.env
    return inner


def opened(library: str, name: str, num_envs: int, workers: int = 0, batch: int | None = None) -> Any:
    """A vector environment: "bare", "emulated", "sync", "async", "dummy", "subproc" or "puffer"."""
    if library in ("bare", "emulated"):
        return Loop(bare if library == "bare" else emulated, name, num_envs)
    if library in ("dummy", "subproc"):
        return Sb3.of(library, [functools.partial(gymnasium_env, name)] * num_envs)
    if library in ("sync", "async"):
        kind = gymnasium.vector.SyncVectorEnv if library == "sync" else gymnasium.vector.AsyncVectorEnv
        mode = gymnasium.vector.AutoresetMode.SAME_STEP
        return kind([functools.partial(gymnasium_env, name)] * num_envs, autoreset_mode=mode)
    import pufferlib

    games = num_envs // (workers or 1) if name in BATCHES else 1  # of an environment
    several: dict[str, Any] = {}
    if workers:
        first = batch is not None and batch < num_envs
        several = {"num_workers": workers, "batch_size": (batch or num_envs) // games, "overwork": True}
        several["zero_copy"] = not first
    return pufferlib.vector.make(
        pufferlib.env_creator(name),
        env_kwargs={"num_envs": games} if name in BATCHES else {},
        backend="Multiprocessing" if workers else "Serial",
        num_envs=num_envs // games,
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
        turns = [(env, choices(space, 8 * BLOCKS, num_envs, isinstance(env, Loop)), []) for env in (plain, layered)]
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
        return sides.us_per_call(lambda: vecenv.step(next(rows)), seconds) / batch


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
    return sides.us_per_call(start_again, seconds, time.thread_time) / 1e3


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
        return sides.us_per_call(act, seconds, time.thread_time)


def atari_of_gymnasium(name: str) -> gymnasium.Env[Any, Any]:
    """A game in Gymnasium's AtariPreprocessing and FrameStackObservation."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    title = name.partition("/")[2].title().replace("_", "")
    env = gymnasium.make(f"ALE/{title}-v5", frameskip=1, repeat_action_probability=0.25)
    return gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.AtariPreprocessing(env), 4)


CASES = (added, added_to_batch, step, reset, reset_without_numba, preprocessed, world_added, world_step)
