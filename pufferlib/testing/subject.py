"""Environment under test."""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from pufferlib.errors import APIUsageError
from pufferlib.testing.arrays import takes
from pufferlib.testing.contract import ContractError
from pufferlib.testing.play import Trace

__all__ = ["Subject"]

DEFINITION = re.compile(r"\bspace\b|_space\b|num_agents|possible_agents")  # matches errors about spaces and agents


class Subject:
    """Environment under test. An environment made by ``create`` is closed at the end.

    Args:
        env: Environment, or a class or function that makes one.
        seed: Seed of every play.
        steps: Number of steps of every play.
        continuing: True if episodes need not end.

    Attributes:
        creator: Function that makes more environments, or None if ``env`` is an environment.
        env: First environment, or None before ``create``.
        trace: Digests of the first play.
        printed: Terminal output of the first play.
        first_end: Index of the step in which the first episode ended, or None.
        finish: Function for checks that need the whole first play. It does nothing if a step failed.
        repeats: True after another copy has repeated the first play with the same results.

    Raises:
        APIUsageError: ``env`` is not an environment and not callable, or ``steps`` is below 1.
    """

    def __init__(self, env: Any, seed: int, steps: int, continuing: bool) -> None:
        if steps < 1:
            raise APIUsageError(f"check_env: steps must be at least 1, got {steps}; use enough for episodes to end")
        is_made = hasattr(env, "step") and not isinstance(env, type)
        if not is_made and not callable(env):
            raise APIUsageError(
                f"check_env: env must be an environment, or a class or function that makes one, got {env!r}; "
                "for a name, pass pufferlib.env_creator(name)"
            )
        self.seed, self.steps, self.continuing, self.trace = seed, steps, continuing, Trace()
        self.printed, self.repeats = "", False
        self.first_end: int | None = None
        self.finish: Callable[[], None] = lambda: None
        self.creator: Callable[..., Any] | None = None if is_made else env
        self._keywords = {} if is_made or not takes(env, "seed") else {"seed": seed}
        self.env: Any = env if is_made else None

    def create(self) -> None:
        """Make the first environment.

        Raises:
            ContractError: The spaces or the number of agents are invalid.
        """
        if self.creator is None:
            return
        try:
            self.env = self.make()
        except APIUsageError as error:
            if DEFINITION.search(str(error)):
                raise ContractError.of("spaces", str(error)) from error
            raise

    @property
    def ended(self) -> bool:
        """True if an episode ended in the first play."""
        return self.first_end is not None and self.first_end <= self.steps

    def make(self, **keywords: Any) -> Any:
        """Make another environment, with the seed if the creator has a parameter ``seed``."""
        assert self.creator is not None
        return self.creator(**self._keywords, **keywords)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.creator is not None and self.env is not None:
            self.env.close()
