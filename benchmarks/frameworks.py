"""Training loops of other libraries on our vectorization and on theirs, and the cost of the adapters.

    python benchmarks/frameworks.py                  # Stable-Baselines3, PPO in the style of CleanRL, the adapters
    python benchmarks/frameworks.py --only SB3       # some rows
    python benchmarks/frameworks.py --quick          # quick check

Needs the extras train, atari and test. The contestants are measured in turns and in a separate process. Figures are
medians over the rounds, and ratios compare figures of the same round. Also writes benchmarks/results/frameworks.json.
"""

import functools
import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from contestants import bare, handover, together
from report import ASYNC, DUMMY, LIMIT, OURS, SUBPROC, SYNC, Row
from sides import Sides, us_per_call
from turns import Measure, main

LOCKSTEP = "two such processes, which wait for one another after every step"
GAMES, AGENTS = 8, 1024
FREE = "environments that cost nothing, with its own network"
EXAMPLE = Path(__file__).parents[1] / "examples" / "cleanrl" / "ppo_atari.py"


def _cartpole() -> Any:
    import gymnasium

    return gymnasium.make("CartPole-v1")


def _atari_shape() -> Any:
    """Import the example in the style of CleanRL's ppo_atari.py."""
    spec = importlib.util.spec_from_file_location("ppo_atari", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ppo_atari"] = module
    spec.loader.exec_module(module)
    return module


def _still_agents() -> Any:
    """Create a native environment with constant observations of four numbers."""
    import gymnasium

    from pufferlib import PufferEnv

    class Still(PufferEnv):
        def __init__(self) -> None:
            self.single_observation_space = gymnasium.spaces.Box(-1, 1, (4,))
            self.single_action_space = gymnasium.spaces.Discrete(2)
            self.num_agents = AGENTS
            super().__init__()

        def reset(self, seed: int | None = None) -> Any:
            return self.observations, []

        def step(self, actions: Any) -> Any:
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self) -> None:
            pass

    return Still()


def _thunks(env: str) -> list[Callable[[], Any]]:
    return [_cartpole if env == "cartpole" else _atari_shape().make_env("ALE/Breakout-v5")] * GAMES


def _ours(env: str) -> Any:
    import pufferlib.vector
    from pufferlib.emulation import GymnasiumPufferEnv

    creators = [functools.partial(GymnasiumPufferEnv, env_creator=thunk) for thunk in _thunks(env)]
    backend = "Serial" if env == "cartpole" else "Multiprocessing"
    return pufferlib.vector.make(creators, num_envs=GAMES, backend=backend, autoreset="same_step", num_workers="auto")


def _free_sb3(thunks: list[Callable[[], Any]]) -> Any:
    """Create a VecEnv that returns the first observations forever, at no cost."""
    import numpy as np
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Free(DummyVecEnv):
        def step_wait(self) -> Any:
            return self._observation, self._rewards, self._ends, self.buf_infos

        def reset(self) -> Any:
            self._observation = super().reset()
            self._rewards, self._ends = np.zeros(GAMES, np.float32), np.zeros(GAMES, bool)
            return self._observation

    return Free(thunks)


def learn_by_sb3(kind: str, env: str, steps: int) -> float:
    """Return the time of Stable-Baselines3's PPO per step of one environment in microseconds, including updates."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from pufferlib.frameworks.sb3 import image_policy_kwargs, to_sb3

    make = {
        "ours": lambda: to_sb3(_ours(env)),
        "float32": lambda: to_sb3(_ours(env)),
        "bfloat16": lambda: to_sb3(_ours(env)),
        "subproc": lambda: SubprocVecEnv(_thunks(env)),
        "dummy": lambda: DummyVecEnv(_thunks(env)),
        "free": lambda: _free_sb3(_thunks(env)),
    }
    vecenv = make[kind]()
    policy = "MlpPolicy" if env == "cartpole" else "CnnPolicy"
    # The default is ten epochs. The Stable-Baselines3 project's own settings for Atari have four.
    epochs = 10 if env == "cartpole" else 4
    settings = {"n_steps": 128, "batch_size": 256, "n_epochs": epochs, "device": "cpu", "seed": 0}
    if kind in ("float32", "bfloat16"):
        settings["policy_kwargs"] = image_policy_kwargs(precision=kind)
    model = PPO(policy, vecenv, **settings)
    model.learn(GAMES * 128)
    start = time.perf_counter()
    model.learn(steps)
    elapsed = time.perf_counter() - start
    vecenv.close()
    return 1e6 * elapsed / steps


def step_atari(kind: str, seconds: float) -> float:
    """Return the time of a step of all games of the example in microseconds, with random actions."""
    import gymnasium as gym

    import pufferlib.vector

    if kind == "lockstep":
        thunks = _thunks("atari")
        halves = (thunks[: GAMES // 2], thunks[GAMES // 2 :])
        return together([functools.partial(bare, half, GAMES * place) for place, half in enumerate(halves)], seconds)
    mode = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
    make = {
        "ours": lambda: pufferlib.vector.to_gymnasium(_ours("atari")),
        "sync": lambda: gym.vector.SyncVectorEnv(_thunks("atari"), **mode),
        "async": lambda: gym.vector.AsyncVectorEnv(_thunks("atari"), **mode),
    }
    envs = make[kind]()
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(64)]
    numbers = iter(range(1 << 60))
    figure = us_per_call(lambda: envs.step(actions[next(numbers) % 64]), seconds)
    envs.close()
    return figure


def adapter_adds(kind: str, seconds: float) -> float:
    """Return the time that an adapter adds to a step of 1,024 agents without episode ends, in microseconds."""
    import numpy as np

    import pufferlib.vector
    from pufferlib.frameworks.sb3 import to_sb3

    env, actions = _still_agents(), np.zeros(AGENTS, np.int32)
    adapter = to_sb3(env, monitor=False) if kind == "sb3" else pufferlib.vector.to_gymnasium(env, copy=kind == "copied")
    adapter.reset()
    bare = [us_per_call(lambda: env.step(actions), seconds / 4)]
    whole = us_per_call(lambda: adapter.step(actions), seconds / 2)
    bare.append(us_per_call(lambda: env.step(actions), seconds / 4))
    adapter.close()
    return max(0.0, whole - min(bare))


def call_one(seconds: float) -> float:
    """Return the time of a ``get_attr`` call for one environment in a worker, in microseconds."""
    import pufferlib.vector
    from pufferlib.emulation import GymnasiumPufferEnv

    creator = functools.partial(GymnasiumPufferEnv, env_creator=_cartpole)
    with pufferlib.vector.make(creator, num_envs=2, num_workers=1, backend="Multiprocessing") as vecenv:
        vecenv.reset()
        return us_per_call(lambda: vecenv.get_attr("render_mode", env_ids=1) and None, seconds)


def echo(seconds: float) -> float:
    """Return the time to send a byte to another process through a pipe and back, in microseconds."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_echo, args=(theirs,), daemon=True)
    process.start()

    def there_and_back() -> None:
        ours.send_bytes(b"x")
        ours.recv_bytes()

    figure = us_per_call(there_and_back, seconds)
    ours.send_bytes(b"")
    process.join()
    return figure


def _echo(conn: Any) -> None:
    while data := conn.recv_bytes():
        conn.send_bytes(data)


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure | None]]]:
    """Yield every row with the measurements of its contestants."""
    seconds, steps = sides.seconds, int(8192 * sides.seconds)
    for env, name, ours in (
        ("cartpole", "CartPoles", "ours"),
        ("atari", "games of Atari", "ours"),
        ("atari", "games of Atari, with our network", "float32"),
        ("atari", "games of Atari, with our network in bfloat16", "bfloat16"),
    ):
        count = steps if env == "cartpole" else steps // 4
        row = Row(f"SB3's PPO on {GAMES} {name}, a step", "us", ratios={SUBPROC: 1.3}, limit=FREE)
        kinds = {OURS: ours, SUBPROC: "subproc", DUMMY: "dummy", LIMIT: "free"}
        yield row, {name: sides.ask("learn_by_sb3", kind, env, count) for name, kind in kinds.items()}
    row = Row(f"CleanRL's {GAMES} games of Atari, a step", "us", ratios={SYNC: 1.65}, limit=LOCKSTEP)
    kinds = {OURS: "ours", SYNC: "sync", ASYNC: "async", LIMIT: "lockstep"}
    yield row, {name: sides.ask("step_atari", kind, seconds) for name, kind in kinds.items()}
    for kind, name in (("copied", "to_gymnasium"), ("views", "to_gymnasium without copies"), ("sb3", "to_sb3")):
        row = Row(f"{name} adds to a step of {AGENTS:,} agents", "us", 3.0)
        yield row, {OURS: sides.ask("adapter_adds", kind, seconds)}
    row = Row("get_attr of one environment in a worker", "us", 30.0, limit="a byte to another process and back")
    kinds = {OURS: sides.ask("call_one", seconds), "pipe": sides.ask("echo", seconds)}
    yield row, {**kinds, LIMIT: sides.ask("handover", 1, seconds)}


if __name__ == "__main__":
    cases = (learn_by_sb3, step_atari, adapter_adds, call_one, echo, handover)
    main(__doc__, __file__, rows, cases, minutes=8, rounds=5, seconds=2.0, quick=(2, 0.1))
