"""Contestants of train.py: the same run with and without ``train.overlap``."""

import functools
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import toys
from trainers import run, us_per_step

ENVS = 8
ACT_S, STEP_S = 1e-3, 5e-4  # seconds to act and step, for all environments
PPO = {"train.device": "cpu", "train.num_threads": 1, "train.horizon": 128, "train.minibatch_size": 256}
PONG = {"vec.backend": "Multiprocessing", "vec.num_envs": ENVS, "vec.num_workers": 2}
NETWORK = {"policy.name": "NatureCNN", "policy.hidden_size": 512}


def overlapped(name: str, overlap: str, seconds: float) -> float:
    """Return the time per agent-step of one of ``RUNS`` in microseconds, with ``train.overlap``."""
    with RUNS[name](overlap) as trainer:
        return us_per_step(trainer.step, trainer.rollout.batch_size, seconds)


def longer_part(name: str, overlap: str, seconds: float) -> float:
    """Return a lower bound of ``overlapped``: the longer of the two parts that overlap, measured without overlap."""
    updates: list[float] = []
    with RUNS[name]("none") as trainer:
        recv, waited = trainer.vecenv.recv, [0.0]

        def timed_recv() -> Any:
            start = time.perf_counter()
            received = recv()
            waited[0] += time.perf_counter() - start
            return received

        trainer.vecenv.recv = timed_recv

        def update() -> None:
            waited[0] = 0.0
            metrics = trainer.step()
            collect, learn = metrics["performance/collect_s"], metrics["performance/learn_s"]
            envs = learn + max(waited[0], collect - waited[0])
            updates.append(envs if overlap == "envs" else max(collect, learn))

        us_per_step(update, trainer.rollout.batch_size, seconds)
        return 1e6 * statistics.median(updates[1:]) / trainer.rollout.batch_size


@contextmanager
def pong(overlap: str) -> Iterator[Any]:
    """Train on eight games of Pong in two workers, with the network of Mnih et al. (2015) in bfloat16 on one thread."""
    from pufferlib.training import load_config

    own = {"train.overlap": overlap, "train.precision": "bfloat16", "train.update_epochs": 4}
    batch = {"vec.batch_size": ENVS // 2 if overlap == "envs" else ENVS}
    with run(load_config("atari/pong", {**PPO, **PONG, **NETWORK, **own, **batch})) as trainer:
        yield trainer


@contextmanager
def waits(overlap: str) -> Iterator[Any]:
    """Train a policy that sleeps 1 ms per step, as if it waited for a GPU, with workers that need 0.5 ms."""
    import pufferlib.vector
    from pufferlib.emulation import GymnasiumPufferEnv
    from pufferlib.models import Default
    from pufferlib.training import load_config

    class Waiting(Default):
        """Policy that sleeps for a time proportional to its number of rows."""

        def forward_eval(self, observations: Any, state: Any = None) -> Any:
            time.sleep(ACT_S * len(observations) / ENVS)
            return super().forward_eval(observations, state)

    delays = ["sleep", STEP_S / (ENVS / 2), 0.0, 1]  # each worker steps its four environments one after another
    vecenv = pufferlib.vector.make(
        functools.partial(GymnasiumPufferEnv, env_creator=toys.Delayed, env_args=delays),
        num_envs=ENVS,
        num_workers=2,
        batch_size=ENVS // 2 if overlap == "envs" else ENVS,
        backend="Multiprocessing",
        autoreset="same_step",
    )
    config = load_config("waits", {**PPO, "train.overlap": overlap, "train.update_epochs": 16})
    with run(config, vecenv, Waiting(vecenv.driver_env, 64)) as trainer:
        yield trainer


RUNS = {"pong": pong, "waits": waits}
CASES = (overlapped, longer_part)
