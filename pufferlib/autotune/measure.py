"""Measurement of a single environment, and of many configurations in turns."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pufferlib.errors import PufferError
from pufferlib.legal_actions import LegalActions
from pufferlib.machine.memory import own_bytes, trim_memory

__all__ = ["ROUNDS", "EnvProfile", "Progress", "Trial", "profile_env", "run_trials"]

ROUNDS = 5
GIB = 1 << 30
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class EnvProfile:
    """Profile of a single environment on one core.

    Attributes:
        steps_per_second: Steps of the environment (with all its agents) per second.
        variation: Standard deviation of the step time, as a share of its mean.
        reset_share: Share of the time spent in resets. It is 0 for a native environment, which resets within its steps.
        ram_bytes: Memory used by a second environment.
        observation_bytes: Size of the observations of all agents.
        num_agents: Number of agents in one environment.
        is_native: True for a ``PufferEnv``, False for an emulated environment.
    """

    steps_per_second: float
    variation: float
    reset_share: float
    ram_bytes: int
    observation_bytes: int
    num_agents: int
    is_native: bool


class Trial:
    """Measurement of one configuration.

    Args:
        make: Function that makes the vector environment.
        num_envs: Number of environments.

    Attributes:
        rates: Agent-steps per second in every round.
        skipped: Why the configuration is not measured, or "" if it is.
    """

    def __init__(self, make: Callable[[], Any], num_envs: int) -> None:
        self.num_envs = num_envs
        self.rates: list[float] = []
        self.skipped = ""
        self._make = make
        self._vecenv: Any = None
        self._actions: _Actions | None = None

    def start(self, stack: ExitStack) -> None:
        """Make the environments. ``stack`` closes them."""
        try:
            self._vecenv = self._make()
            stack.callback(self._vecenv.close)
            self._vecenv.async_reset()
            self._actions = _Actions(self._vecenv)
        except Exception as error:  # with Serial, an exception of the environment
            self._skip(error)

    def measure(self, seconds: float, pause_s: float) -> None:
        """Measure for about ``seconds``, with a pause of ``pause_s`` between two batches, and add the rate."""
        try:
            self.rates.append(self._rate(seconds, pause_s))
        except Exception as error:  # with Serial, an exception of the environment
            self._skip(error)

    def _skip(self, error: Exception) -> None:
        text = str(error) if isinstance(error, PufferError) else f"{type(error).__name__}: {error}"
        self.skipped = text.strip().splitlines()[0]

    def _rate(self, seconds: float, pause_s: float) -> float:
        vecenv, actions = self._vecenv, self._actions
        assert actions is not None
        laps = math.ceil(vecenv.num_agents / vecenv.agents_per_batch)
        warm_up = laps  # do not count batches that finished before the measurement
        start, count = time.perf_counter(), 0
        while True:
            observations, *_ = vecenv.recv()
            if pause_s:
                time.sleep(pause_s)
            vecenv.send(actions.after(observations))
            count += 1
            if warm_up:
                warm_up -= 1
                start, count = time.perf_counter(), 0
            elif count >= laps and (elapsed := time.perf_counter() - start) >= seconds:
                return float(count * vecenv.agents_per_batch / elapsed)


def run_trials(
    trials: Sequence[Trial], seconds: float, pause_s: float, env_bytes: int, max_bytes: float, progress: Progress
) -> None:
    """Measure all trials in turns, so that other load on the machine affects all of them.

    Args:
        trials: Trials to measure.
        seconds: Duration of each trial over all rounds.
        pause_s: Seconds between two batches, in place of the forward pass of a policy.
        env_bytes: Memory of one environment.
        max_bytes: Maximum memory of all environments that exist at the same time.
        progress: Function that is called before each measurement with the completed share and a text.
    """

    def report_progress(text: str) -> None:
        done = sum(ROUNDS if trial.skipped else len(trial.rates) for trial in trials)
        progress(done / (ROUNDS * len(trials)), text)

    for trial in trials:
        if trial.num_envs * env_bytes > max_bytes:
            needed, limit = trial.num_envs * env_bytes / GIB, max_bytes / GIB
            trial.skipped = f"the environments need {needed:.3g} GiB of memory, max_env_ram_gb is {limit:.3g}"
    waiting = [trial for trial in trials if not trial.skipped]
    while waiting:
        together = _first_that_fit(waiting, max_bytes / env_bytes)
        with ExitStack() as stack:
            for trial in together:
                report_progress(f"starting {trial.num_envs} environments")
                trial.start(stack)
            for number in range(ROUNDS):
                for trial in together:
                    if not trial.skipped:
                        report_progress(f"round {number + 1} of {ROUNDS}")
                        trial.measure(seconds / ROUNDS, pause_s)
        waiting = waiting[len(together) :]


def _first_that_fit(trials: Sequence[Trial], max_envs: float) -> list[Trial]:
    """Return the first trials with at most ``max_envs`` environments in total."""
    together: list[Trial] = []
    for trial in trials:
        max_envs -= trial.num_envs
        if max_envs < 0:
            break
        together.append(trial)
    return together


def profile_env(make_one: Callable[[], Any], seconds: float) -> EnvProfile:
    """Measure one environment. ``make_one`` makes it, with the backend Serial."""
    with make_one() as vecenv:
        # Time the steps and resets of one environment.
        observations, _ = vecenv.reset()
        actions, driver = _Actions(vecenv), vecenv.driver_env
        steps, steps_s, squares, resets_s = 0, 0.0, 0.0, 0.0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or not steps:
            chosen = actions.after(observations)
            start = time.perf_counter()
            is_reset = driver.done  # in this case the step only starts the next episode
            observations, *_ = vecenv.step(chosen)
            elapsed = time.perf_counter() - start
            if is_reset:
                resets_s += elapsed
            else:
                steps, steps_s, squares = steps + 1, steps_s + elapsed, squares + elapsed**2
        # Measure the memory of a second environment.
        trim_memory()
        before = own_bytes()
        with make_one() as second:  # the first one also imported its packages
            second.reset()
            ram_bytes = own_bytes() - before
        observation_bytes = vecenv.observations.nbytes
    mean_s = steps_s / steps
    return EnvProfile(
        steps_per_second=1 / mean_s,
        variation=math.sqrt(max(0.0, squares / steps - mean_s**2)) / mean_s,
        reset_share=resets_s / (steps_s + resets_s),
        ram_bytes=max(0, ram_bytes),
        observation_bytes=observation_bytes,
        num_agents=int(vecenv.num_agents),
        is_native=not vecenv.emulated,
    )


class _Actions:
    """Random legal actions of a batch. Without action masks they are drawn in advance and take no time."""

    def __init__(self, vecenv: Any) -> None:
        self._legal = LegalActions(vecenv, vecenv.agents_per_batch, seed=0)
        self._drawn = itertools.cycle([] if self._legal.has_masks else [self._legal.sample(None) for _ in range(8)])

    def after(self, observations: Any) -> Any:
        """Return actions for ``observations``."""
        return self._legal.sample(observations) if self._legal.has_masks else next(self._drawn)
