"""Contestants of bindings.py and paper.py. Each function in ``CASES`` is one measurement."""

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

BLOCKS = 32  # blocks of 8 steps, after which the actions of ``added`` repeat


def bare(name: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """Return an environment without our layers, and a function that resets it for the first time with a seed.

    ``BARE`` can create the package's own environment. Without an entry there, it is the environment of the binding.
    """
    import pufferlib

    binding, _, game = name.partition("/")
    emulated = pufferlib.make(name)
    env = emulated.env.env  # inside of emulation and EpisodeStats
    if binding in BARE:
        emulated.close()
        return BARE[binding](game, seed)
    return env, functools.partial(env.reset, seed=seed)


def bare_gymnasium(game: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """Create a Gymnasium environment without its checker."""
    env: Any = gymnasium.make(game, disable_env_checker=True)
    return env, functools.partial(env.reset, seed=seed)


def bare_crafter(game: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """Create the package's own class, which is seeded at creation and returns four values from ``step``."""
    env = sys.modules["crafter"].Env(seed=seed, reward=game == "CrafterReward-v1")
    return env, env.reset


def bare_nethack(game: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """Create the package's own class with the observations and seeds of ours, so that both play the same games."""
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
    """Return an environment like ``pufferlib.make`` with its own buffers, and a function that resets it with a seed."""
    import pufferlib

    env = pufferlib.env_creator(name)(buf=own_arrays, seed=seed)
    return env, functools.partial(env.reset, seed=seed)


def emulated(name: str, seed: int) -> tuple[Any, Callable[[], Any]]:
    """Return the binding's Gymnasium environment in our emulation, without EpisodeStats, and its seeded reset."""
    from pufferlib.emulation import GymnasiumPufferEnv

    env = GymnasiumPufferEnv(env=gymnasium_env(name), buf=own_arrays)
    return env, functools.partial(env.reset, seed=seed)


class Loop:
    """Plain loop over environments that resets each one when its episode ends."""

    def __init__(self, make: Callable[[str, int], tuple[Any, Callable[[], Any]]], name: str, num_envs: int) -> None:
        from pufferlib.seeding import env_seed

        pairs = [make(name, env_seed(0, index)) for index in range(num_envs)]
        self.envs = [env for env, _ in pairs]
        self._resets = [reset for _, reset in pairs]
        self.single_action_space = self.envs[0].action_space

    def reset(self, seed: int) -> None:
        """Reset all environments with the seeds that our batch uses for seed 0."""
        for reset in self._resets:
            reset()

    def step(self, actions: Any) -> None:
        """Step all environments."""
        for env, action in zip(self.envs, actions, strict=True):
            _, _, *ends, _ = env.step(action)
            if any(ends):
                env.reset()

    def close(self) -> None:
        """Close all environments that have a ``close`` method."""
        for env in self.envs:
            getattr(env, "close", lambda: None)()


class Bigfish(gymnasium.Env[Any, Any]):
    """Single Procgen game for the vector classes of Gymnasium and SB3."""

    observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(15)

    def __init__(self) -> None:
        from pufferlib.bindings.procgen import env

        self._games = env.ProcgenGym3Env(1, "bigfish", num_threads=0)
        self._action = np.zeros(1, np.int32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Return the current observation. The library starts the next level by itself."""
        return self._games.observe()[1]["rgb"][0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the game."""
        self._action[0] = action
        self._games.act(self._action)
        rewards, shown, ends = self._games.observe()
        return shown["rgb"][0], float(rewards[0]), bool(ends[0]), False, {}


BATCHES = {  # natively vectorized environments, and a single game of each for other libraries' vector classes
    "procgen/bigfish": Bigfish,
    "squared": functools.partial(gymnasium.make, "puffer/squared", disable_env_checker=True),
}


def gymnasium_env(name: str) -> gymnasium.Env[Any, Any]:
    """Create the Gymnasium environment of a binding, for Gymnasium's vector classes."""
    import pufferlib

    if name in BATCHES:
        return BATCHES[name]()
    inner: gymnasium.Env[Any, Any] = pufferlib.make(name).env.env
    return inner


def opened(library: str, name: str, num_envs: int, workers: int = 0, batch: int | None = None) -> Any:
    """Create the vector environment of ``library``.

    Args:
        library: "bare", "emulated", "sync", "async", "dummy", "subproc" or "puffer".
        name: Name of the environment.
        num_envs: Number of environments.
        workers: Number of worker processes of ours, or 0 for one process.
        batch: Number of environments per ``recv`` of ours, or None for all.
    """
    if library in ("bare", "emulated"):
        return Loop(bare if library == "bare" else emulated, name, num_envs)
    if library in ("dummy", "subproc"):
        return Sb3.of(library, [functools.partial(gymnasium_env, name)] * num_envs)
    if library in ("sync", "async"):
        kind = gymnasium.vector.SyncVectorEnv if library == "sync" else gymnasium.vector.AsyncVectorEnv
        mode = gymnasium.vector.AutoresetMode.SAME_STEP
        return kind([functools.partial(gymnasium_env, name)] * num_envs, autoreset_mode=mode)
    import pufferlib

    games = num_envs // (workers or 1) if name in BATCHES else 1  # games per environment
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
    """Return ``rows`` batches of ``per_row`` random actions, as arrays or as lists for a plain loop."""
    space.seed(0)
    chosen = [np.stack([np.asarray(space.sample()) for _ in range(per_row)]) for _ in range(rows)]
    if is_loop:
        return [list(row) if row.ndim > 1 else row.tolist() for row in chosen]
    return [row.astype(np.int32) if row.dtype.kind == "i" else row for row in chosen]


def added(library: str, name: str, num_envs: int, seconds: float) -> float:
    """Return the CPU time that a vector environment adds to bare environments, in percent.

    Both play the same games and are measured alternately.
    """
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
            for env, rows, times in turns if block % 2 else turns[::-1]:  # alternate which one comes first
                times.append(cpu_s(env.step, rows[8 * (block % BLOCKS) :][:8]))
        ratios = [more / less for less, more in zip(turns[0][2], turns[1][2], strict=True)]
        return 100 * (statistics.median(ratios) - 1)


def added_to_batch(name: str, num_envs: int, seconds: float) -> float:
    """Return the CPU time that our environment and Serial add to a gym3 batch, in percent.

    Both play the same games and are measured alternately.
    """
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
    """Return the CPU time of these steps in seconds."""
    start = time.thread_time()
    for row in rows:
        step(row)
    return time.thread_time() - start


def step(library: str, name: str, num_envs: int, workers: int, batch: int, seconds: float) -> float:
    """Return the time of a step per environment in microseconds, with random actions and ``batch`` rows per call."""
    vecenv = opened(library, name, num_envs, workers, batch)
    with contextlib.closing(vecenv):
        vecenv.reset(seed=0)
        rows = itertools.cycle(choices(vecenv.single_action_space, 64, batch, library == "bare"))
        return sides.us_per_call(lambda: vecenv.step(next(rows)), seconds) / batch


def reset(library: str, name: str, seconds: float) -> float:
    """Return the CPU time of a reset in milliseconds."""
    if library == "bare":
        env, first = bare(name, 0)
        first()
        next_reset = env.reset
    else:
        env = opened("puffer", name, 1)
        env.reset(seed=0)
        next_reset = env.reset
    return sides.us_per_call(next_reset, seconds, time.thread_time) / 1e3


def reset_without_numba(name: str) -> float:
    """Return the CPU time of a reset of the package without numba, in milliseconds."""
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
    """Return the CPU time of a step of one preprocessed Atari game in microseconds."""
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
    """Create a game with Gymnasium's AtariPreprocessing and FrameStackObservation."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    title = name.partition("/")[2].title().replace("_", "")
    env = gymnasium.make(f"ALE/{title}-v5", frameskip=1, repeat_action_probability=0.25)
    return gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.AtariPreprocessing(env), 4)


CASES = (added, added_to_batch, step, reset, reset_without_numba, preprocessed, world_added, world_step)
