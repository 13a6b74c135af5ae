"""``on_crash="restart"`` without processes: an environment that raises is built anew, alone."""

import dataclasses
from collections.abc import Callable, Sequence

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.seeding import env_seed
from pufferlib.vector.env_runner import EnvGroup, Memory
from pufferlib.vector.multiprocessing.failures import envs_text, error_of
from pufferlib.vector.protocol import PHASES, RESET, STEP, Failed
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import Autoreset, EnvPlan

__all__ = ["RestartingGroup"]


class RestartingGroup(EnvGroup):
    """One environment, which goes on after a failure as the only one of a worker would.

    Args:
        plan: The environment to build.
        autoreset: What follows a finished episode; None takes what suits the environment.
        memory: As for ``EnvGroup``; gives the same rows for every environment that is built here.

    Attributes:
        restarts: What is known of all environments of the batch; to be set before the first reset.
    """

    restarts: Restarts

    def __init__(self, plan: EnvPlan, autoreset: Autoreset | None, memory: Memory) -> None:
        super().__init__([plan], autoreset, memory)
        self._plan, self._memory = plan, memory
        self._operation = self._num_commands = 0
        self._phase = "build"
        self._stands_still = False

    def reset(self, seeds: Sequence[int | None]) -> Infos:
        """Start a new episode; ``seeds`` has one entry."""
        self._stands_still = False
        (seed,) = seeds
        if seed is not None:
            self._plan = dataclasses.replace(self._plan, seed=seed)
        return self._attempt(RESET, lambda: EnvGroup.reset(self, seeds))

    def step(self) -> Infos:
        """Act with the actions that stand in the rows."""
        self.restarts.remember([self._plan.index])
        if not self._stands_still:
            return self._attempt(STEP, lambda: EnvGroup.step(self))
        if self.autoreset == "next_step":
            self._stands_still = False
            return self._attempt(STEP, lambda: EnvGroup.reset(self, [self._plan.seed]))
        self.restarts.clear(self._plan.index)
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
            self.restarts.admit(self._plan.index, failure, self)
            act = self._begin_anew

    def _begin_anew(self) -> Infos:
        index = self._plan.index
        self._close_quietly()
        self._plan = dataclasses.replace(self._plan, seed=env_seed(self._plan.seed, self.restarts.count_of(index)))
        self._phase = "build"
        EnvGroup.__init__(self, [self._plan], self.autoreset, self._memory)
        self._phase = "reset"
        self._stands_still = self.restarts.stands_still(index)
        if self._stands_still:
            self.restarts.clear(index)
            return self.restarts.settle(index)
        return EnvGroup.reset(self, [self._plan.seed]) + self.restarts.settle(index)

    def _describe_failure(self, error: Exception) -> PufferError:
        index, seed = self._plan.index, self._plan.seed
        place = envs_text(None, index, [seed], self.restarts.last_actions(index))
        return error_of(Failed.of(self._phase, 0, error), place, None, "vector.Serial")

    # What Restarts asks of its ledger; nothing is in flight here, so the last command is the one that failed.

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
