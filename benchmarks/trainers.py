"""Contestants of train.py. Unless noted otherwise, each returns the time of PPO per agent-step in microseconds.

sides.py runs this with our Python, and with a Python that has PufferLib 3.0.0 and Stable-Baselines3.
"""

import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import gymnasium
import numpy as np
import sides
import torch

THREADS = 1  # threads wait for each other, so more would measure how busy the machine is


def settings(
    env: str, frameskip: int, memory: str = "none", layers: int = 1, precision: str = "float32"
) -> dict[str, Any]:
    """Return the settings of ours that match the settings of the peer."""
    return {
        "env.num_envs": 1024,
        "env.frameskip": frameskip,
        "policy.hidden_size": 128,
        "policy.num_layers": 1,
        "policy.memory": memory,
        "policy.memory_layers": layers,
        "train.precision": precision,
        "train.horizon": 64,
        "train.minibatch_size": 16_384,
        "train.update_epochs": 1,
        "train.num_threads": THREADS,
        "train.act_threads": THREADS,
    }


def batch_of(env: str) -> tuple[int, int]:
    """Return the horizon and the minibatch size of our settings for an environment."""
    from pufferlib.training import load_config

    train = load_config(env).train
    return train.horizon, train.minibatch_size


def ours(env: str, overrides: dict[str, Any], seconds: float) -> float:
    """Train on a C environment with its own settings and ``overrides``."""
    from pufferlib.training import load_config

    with run(load_config(env, {"train.device": "cpu", **overrides})) as trainer:
        return us_per_step(trainer.step, trainer.rollout.batch_size, seconds)


def ours_without_c(env: str, overrides: dict[str, Any], part: str, seconds: float) -> float:
    """Train like ``ours`` with the Python environments, with torch's gradient steps, or with both."""
    from pufferlib.training import load_config

    python = {"env.native": False} if part != "gradient steps" else {}
    with run(load_config(env, {"train.device": "cpu", **overrides, **python})) as trainer:
        if part != "environments":
            trainer.policy.register_full_backward_hook(lambda *_: None)  # torch alone has hooks
        return us_per_step(trainer.step, trainer.rollout.batch_size, seconds)


def ours_cartpole(minibatch: int, epochs: int, seconds: float) -> float:
    """Train on eight CartPole-v1 environments of Gymnasium in this process."""
    with cartpole(minibatch, epochs) as trainer:
        return us_per_step(trainer.step, trainer.rollout.batch_size, seconds)


@contextmanager
def cartpole(minibatch: int, epochs: int) -> Iterator[Any]:
    """Create the trainer of ``ours_cartpole``, and close it at the end."""
    import pufferlib
    from pufferlib.emulation import GymnasiumPufferEnv
    from pufferlib.training import load_config

    def make(buf: Any = None, seed: int = 0) -> Any:
        return GymnasiumPufferEnv(pufferlib.EpisodeStats(gymnasium.make("CartPole-v1")), buf=buf, seed=seed)

    envs = pufferlib.vector.make(make, num_envs=8, backend="Serial", autoreset="same_step")
    same = {"policy.hidden_size": 64, "train.horizon": 128, "train.minibatch_size": minibatch}
    same |= {"train.device": "cpu", "train.num_threads": 1, "train.update_epochs": epochs}
    config = load_config("CartPole-v1", same)
    with run(config, envs) as trainer:
        yield trainer


def bare_cartpole(minibatch: int, epochs: int, seconds: float) -> float:
    """Measure only the environments of ``ours_cartpole`` in a loop and the matrix products of its network."""
    carts = [gymnasium.make("CartPole-v1") for _ in range(8)]
    for cart in carts:
        cart.reset(seed=0)

    def step() -> None:
        for cart in carts:
            _, _, terminated, truncated, _ = cart.step(1)
            if terminated or truncated:
                cart.reset()

    us = sides.us_per_call(step, seconds / 2) / len(carts)
    with cartpole(minibatch, epochs) as trainer:
        return us + _products(trainer, seconds / 2)


def sb3_cartpole(minibatch: int, epochs: int, seconds: float) -> float:
    """Train like ``ours_cartpole`` with Stable-Baselines3."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    sizes = {"n_steps": 128, "batch_size": minibatch, "n_epochs": epochs}
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", 8), device="cpu", **sizes)
    update = functools.partial(model.learn, 8 * 128, reset_num_timesteps=False)
    return us_per_step(update, 8 * 128, seconds)


def puffer(env: str, frameskip: int, recurrent: bool, seconds: float) -> float:
    """Train with PufferLib 3.0.0, with the settings of ``settings`` and its own defaults otherwise."""
    import pufferlib.models
    import pufferlib.vector
    from pufferlib import pufferl
    from pufferlib.ocean import environment

    torch.set_num_threads(THREADS)
    keywords = {"num_envs": 1024, "frameskip": frameskip}
    creator, backend = environment.env_creator(f"puffer_{env}"), pufferlib.vector.Serial
    vecenv = pufferlib.vector.make(creator, env_kwargs=keywords, num_envs=1, backend=backend)
    policy = pufferlib.models.Default(vecenv.driver_env, hidden_size=128)
    if recurrent:
        policy = pufferlib.models.LSTMWrapper(vecenv.driver_env, policy, 128, 128)
    sys.argv = ["puffer"]  # load_config parses the command line
    own = pufferl.load_config(f"puffer_{env}")["train"]
    same = {"device": "cpu", "use_rnn": recurrent, "bptt_horizon": 64, "minibatch_size": 16_384, "batch_size": "auto"}
    same |= {"update_epochs": 1, "optimizer": "adam", "compile": False, "env": env, "precision": "float32"}
    pufferl.PuffeRL.print_dashboard = lambda *args, **kwargs: None
    trainer = pufferl.PuffeRL({**own, **same}, vecenv, policy)

    def update() -> None:
        trainer.evaluate()
        trainer.train()

    try:
        return us_per_step(update, 1024 * 64, seconds)
    finally:
        trainer.utilization.stop()
        vecenv.close()


def puffer_own(env: str, keywords: dict[str, Any], horizon: int, minibatch_size: int, seconds: float) -> float:
    """Train with PufferLib 3.0.0 and its own network for the environment, including memory, on batches like ours."""
    torch.set_num_threads(THREADS)
    same = {"bptt_horizon": horizon, "minibatch_size": minibatch_size, "batch_size": "auto", "update_epochs": 1}
    with own_puffer(env, same | {"optimizer": "adam"}, {"num_envs": 1}, keywords) as trainer:

        def update() -> None:
            trainer.evaluate()
            trainer.train()

        return us_per_step(update, trainer.config["batch_size"], seconds)


def ours_to_bar(env: str, score: float, limit_s: float) -> float | None:
    """Return the seconds until our training reaches the score, with the environment's own settings."""
    from pufferlib.training import load_config

    with run(load_config(env, {"train.device": "cpu", "train.checkpoint_interval": 0})) as trainer:
        return seconds_until(lambda: trainer.step().get("environment/score"), score, limit_s)


def puffer_to_bar(env: str, score: float, limit_s: float) -> float | None:
    """Return the seconds until PufferLib 3.0.0 reaches the score with its own settings."""
    torch.set_num_threads(2)
    with own_puffer(env, {}) as trainer:

        def update() -> float | None:
            scores = trainer.evaluate().get("score")
            mean = statistics.fmean(scores) if scores else None
            trainer.stats.clear()
            trainer.train()
            return mean

        return seconds_until(update, score, limit_s)


def puffer_on_gpu(recurrent: bool, seconds: float) -> float:
    """Return the agent-steps per second of PufferLib 3.0.0 on a GPU, on breakout with its own settings."""
    vec = {"backend": "Multiprocessing"}
    with own_puffer("breakout", {"device": "cuda"}, vec, recurrent=recurrent) as trainer:

        def update() -> None:
            trainer.evaluate()
            trainer.train()

        update()
        return 1e6 / us_per_step(update, trainer.config["batch_size"], seconds)


def seconds_until(update: Callable[[], float | None], score: float, limit_s: float) -> float | None:
    """Return the seconds until an update returns at least the score, or None after ``limit_s``."""
    start = time.perf_counter()
    while (seconds := time.perf_counter() - start) < limit_s:
        reached = update()
        if reached is not None and reached >= score:
            return time.perf_counter() - start
    print(f"{score} not reached in {seconds:.0f} s", file=sys.stderr)
    return None


@contextmanager
def own_puffer(
    env: str,
    train: dict[str, Any],
    vec: dict[str, Any] | None = None,
    keywords: dict[str, Any] | None = None,
    recurrent: bool = True,
) -> Iterator[Any]:
    """Create PufferLib 3.0.0's trainer with its own network and settings, and close it at the end.

    The arguments override its settings. By default it runs in one process, because its workers wait in a busy loop.
    """
    from pufferlib import pufferl

    sys.argv = ["puffer"]  # load_config parses the command line
    own = pufferl.load_config(f"puffer_{env}")
    own["vec"] |= {"backend": "Serial", **(vec or {})}
    own["env"] |= keywords or {}
    own["train"] |= {"device": "cpu", "compile": False, "env": env, **train}
    if not recurrent:
        own["rnn_name"], own["train"]["use_rnn"] = None, False
    vecenv = pufferl.load_env(f"puffer_{env}", own)
    pufferl.PuffeRL.print_dashboard = lambda *args, **kwargs: None
    trainer = pufferl.PuffeRL(own["train"], vecenv, pufferl.load_policy(own, vecenv))
    try:
        yield trainer
    finally:
        trainer.utilization.stop()
        vecenv.close()


def products(env: str, overrides: dict[str, Any], seconds: float) -> float:
    """Measure only the matrix products of ``ours``, in its precision.

    These are one product per matrix to act, and three per matrix and epoch to learn. The first matrix needs only two,
    because no gradient with respect to the observations is computed.
    """
    from pufferlib.training import load_config

    config = load_config(env, {"train.device": "cpu", **overrides})
    with run(config) as trainer:
        return _products(trainer, seconds)


def _products(trainer: Any, seconds: float) -> float:
    config, agents, threads = trainer.config, trainer.rollout.num_agents, trainer.num_threads
    shapes = {name: tuple(weight.shape) for name, weight in trainer.policy.named_parameters() if weight.ndim == 2}
    first = [shape for name, shape in shapes.items() if name.endswith("encoder.0.weight")]
    dtype = getattr(torch, config.train.precision)
    time_of = functools.partial(_product_us, dtype=dtype, seconds=seconds / 3)
    act = time_of(list(shapes.values()), agents, config.train.act_threads)
    whole, spared = (time_of(some, config.train.minibatch_size, threads) for some in (list(shapes.values()), first))
    return act + config.train.update_epochs * (3 * whole - spared)


def _product_us(shapes: list[tuple[int, int]], rows: int, threads: int, dtype: torch.dtype, seconds: float) -> float:
    """Return the time of the products of all matrices with ``rows`` rows, per row, in microseconds."""
    torch.set_num_threads(threads)
    pairs = [(torch.ones(rows, ins, dtype=dtype), torch.ones(ins, outs, dtype=dtype)) for outs, ins in shapes]
    results = [torch.empty(rows, outputs, dtype=dtype) for outputs, _ in shapes]

    def multiply() -> None:
        for (left, right), result in zip(pairs, results, strict=True):
            torch.mm(left, right, out=result)

    return sides.us_per_call(multiply, seconds) / rows


def ours_loop(agents: int, seconds: float) -> float:
    """Return the time of a step of our rollout loop in microseconds, with an environment and a network without cost."""
    import free_env

    return free_env.ours(agents, seconds)


def copies_of_a_loop(agents: int, seconds: float) -> float:
    """Return the time to copy all data of a step with numpy, in microseconds."""
    import free_env

    return free_env.copies(agents, seconds)


def puffer_loop(agents: int, seconds: float) -> float:
    """Return the time of a step of PufferLib 3.0.0's ``evaluate`` in microseconds, like ``ours_loop``."""
    import free_env

    return free_env.puffer(agents, seconds)


def ours_atari(precision: str, seconds: float) -> float:
    """Train on eight games of Pong in two workers, with the network of Mnih et al. (2015)."""
    with run(atari(precision)) as trainer:
        return us_per_step(trainer.step, trainer.rollout.batch_size, seconds)


def bare_atari(precision: str, seconds: float) -> float:
    """Measure only the games of ``ours_atari`` in two processes, and the passes of its network."""
    from pufferlib.registry import env_creator

    config = atari(precision)
    with run(config) as trainer:
        policy, threads = trainer.policy, config.train.num_threads
        shape = trainer.rollout.observations.shape[2:]
    torch.set_num_threads(threads)
    game = env_creator(config.env_name)(**config.env)
    game.reset(seed=0)
    few, many = (torch.zeros(rows, *shape, dtype=torch.uint8) for rows in (8, config.train.minibatch_size))

    def play() -> None:
        _, _, terminal, truncation, _ = game.step([0])
        if np.any(terminal) or np.any(truncation):
            game.reset()

    def learn() -> None:
        params, values = policy(many[None])
        (params.sum() + values.sum()).backward()

    with closing(game), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        play_us = sides.us_per_call(play, seconds / 3)
        with torch.no_grad():
            act_us = sides.us_per_call(lambda: policy.forward_eval(few), seconds / 3)
        learn_us = sides.us_per_call(learn, seconds / 3)
    return play_us / 2 + act_us / len(few) + config.train.update_epochs * learn_us / len(many)


def atari(precision: str) -> Any:
    """Return the settings of ``ours_atari``."""
    from pufferlib.training import load_config

    same = {"train.horizon": 128, "train.minibatch_size": 256, "train.update_epochs": 4, "train.precision": precision}
    vec = {"vec.backend": "Multiprocessing", "vec.num_envs": 8, "vec.num_workers": 2, "vec.batch_size": 8}
    policy = {"policy.name": "NatureCNN", "policy.hidden_size": 512}
    return load_config("atari/pong", {"train.device": "cpu", "train.num_threads": 2, **same, **vec, **policy})


def sb3_atari(seconds: float) -> float:
    """Train like ``ours_atari`` with Stable-Baselines3 and its SubprocVecEnv."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

    torch.set_num_threads(2)
    envs = make_atari_env(frames_of_pong, 8, vec_env_cls=SubprocVecEnv)
    envs = VecFrameStack(envs, 4)
    model = PPO("CnnPolicy", envs, n_steps=128, batch_size=256, n_epochs=4, device="cpu")
    update = functools.partial(model.learn, 8 * 128, reset_num_timesteps=False)
    with closing(envs):
        return us_per_step(update, 8 * 128, seconds)


def frames_of_pong(**_: Any) -> Any:
    """Create one game of Pong. Registers ale-py, because this runs in a worker process."""
    import ale_py

    gymnasium.register_envs(ale_py)
    return gymnasium.make("ALE/Pong-v5", frameskip=1, render_mode="rgb_array")


@contextmanager
def run(config: Any, vecenv: Any = None, policy: Any = None, loggers: Sequence[Any] = ()) -> Iterator[Any]:
    """Create our trainer in a temporary folder, and close it at the end."""
    from pufferlib.training import Trainer

    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Trainer(config, folder, loggers, vecenv=vecenv, policy=policy)) as trainer,
    ):
        yield trainer


def us_per_step(update: Callable[[], Any], steps: int, seconds: float) -> float:
    """Return the median time per agent-step in microseconds, over at least 2 updates after a warm-up update."""
    update()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 2:
        start = time.perf_counter()
        update()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times) / steps


CASES = (
    ours,
    ours_without_c,
    ours_to_bar,
    puffer_to_bar,
    ours_cartpole,
    bare_cartpole,
    sb3_cartpole,
    puffer,
    puffer_own,
    puffer_on_gpu,
    products,
    ours_loop,
    copies_of_a_loop,
    puffer_loop,
    ours_atari,
    bare_atari,
    sb3_atari,
)
