"""``on_crash="restart"`` without processes: an environment that raises is built anew, alone."""

import dataclasses
from collections.abc import Callable, Sequence

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.seeding import env_seed
from pufferlib.vector.env_runner import EnvRunner, Memory
from pufferlib.vector.multiprocessing.failures import envs_text, error_of
from pufferlib.vector.protocol import PHASES, RESET, STEP, Failed
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import Autoreset, EnvSpec

__all__ = ["RestartingRunner"]


class RestartingRunner(EnvRunner):
    """One environment, which goes on after a failure as the only one of a worker would.

    Args:
        spec: The environment to build.
        autoreset: What follows a finished episode; None takes what suits the environment.
        memory: As for ``EnvRunner``; gives the same rows for every environment that is built here.

    Attributes:
        restarts: What is known of all environments of the batch; to be set before the first reset.
    """

    restarts: Restarts

    def __init__(self, spec: EnvSpec, autoreset: Autoreset | None, memory: Memory) -> None:
        super().__init__([spec], autoreset, memory)
        self._spec, self._memory = spec, memory
        self._operation = self._num_commands = 0
        self._phase = "build"
        self._awaits_reset = False

    def reset(self, seeds: Sequence[int | None]) -> Infos:
        """Start a new episode; ``seeds`` has one entry."""
        self._awaits_reset = False
        (seed,) = seeds
        if seed is not None:
            self._spec = dataclasses.replace(self._spec, seed=seed)
        return self._attempt(RESET, lambda: EnvRunner.reset(self, seeds))

    def step(self) -> Infos:
        """Act with the actions that stand in the rows."""
        self.restarts.keep_observations([self._spec.index])
        if not self._awaits_reset:
            return self._attempt(STEP, lambda: EnvRunner.step(self))
        if self.autoreset == "next_step":
            self._awaits_reset = False
            return self._attempt(STEP, lambda: EnvRunner.reset(self, [self._spec.seed]))
        self.restarts.clear(self._spec.index)
        return []

    def _attempt(self, operation: int, act: Callable[[], Infos]) -> Infos:
        """Act; where that fails, begin a new episode in another environment like this one."""
        self._operation, self._phase = operation, PHASES[operation]
        while True:
            self._num_commands += 1
            try:
                return act()
            except Exception as error:
                failure = self._describe_failure(error)
            if isinstance(failure, APIUsageError):
                raise failure
            self.restarts.record_failure(self._spec.index, failure, self)
            act = self._begin_anew

    def _begin_anew(self) -> Infos:
        index = self._spec.index
        self._close_quietly()
        self._spec = dataclasses.replace(self._spec, seed=env_seed(self._spec.seed, self.restarts.count_of(index)))
        self._phase = "build"
        EnvRunner.__init__(self, [self._spec], self.autoreset, self._memory)
        self._phase = "reset"
        self._awaits_reset = self.restarts.awaits_reset(index)
        if self._awaits_reset:
            self.restarts.clear(index)
            return self.restarts.report(index)
        return EnvRunner.reset(self, [self._spec.seed]) + self.restarts.report(index)

    def _describe_failure(self, error: Exception) -> PufferError:
        index, seed = self._spec.index, self._spec.seed
        place = envs_text(None, index, [seed], self.restarts.last_actions(index))
        return error_of(Failed.of(self._phase, 0, error), place, None, "vector.Serial")

    # What Restarts asks of its log; nothing is in flight here, so the last command is the one that failed.

    def num_commands(self, _: int) -> int:
        """Commands that the environment was given."""
        return self._num_commands

    def num_completed(self, _: int) -> int:
        """Those that came to an end."""
        return self._num_commands - 1

    def operation(self, _: int) -> int:
        """What the last one was."""
        return self._operation

    def outcome(self, _: int) -> int:
        """Nothing to be told."""
        return 0
