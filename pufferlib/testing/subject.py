"""The environment that is checked, and how to make more of it."""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from pufferlib.errors import APIUsageError
from pufferlib.testing.arrays import takes
from pufferlib.testing.contract import ContractError
from pufferlib.testing.play import Trace

__all__ = ["Subject"]

DEFINITION = re.compile(r"\bspace\b|_space\b|num_agents|possible_agents")  # in errors about how it is defined


class Subject:
    """An environment that is checked, made by ``create`` and closed at the end if it was made here.

    Args:
        env: An environment, or a class or function that makes one.
        seed: Of every play.
        steps: Of every play.
        continuing: Whether episodes need no end.

    Attributes:
        creator: Makes more of it; None for an environment that was made already.
        env: The first one; None before ``create``.
        trace: Of its first play.
        printed: In its first play, to the terminal.
        first_end: Index of the step in which the first episode ended, or None.
        finish: Checks what only the whole first play shows, if no step of it broke a line.
        repeats: True once another copy has played the same.

    Raises:
        APIUsageError: ``env`` is none, or ``steps`` is below 1.
    """

    def __init__(self, env: Any, seed: int, steps: int, continuing: bool) -> None:
        if steps < 1:
            raise APIUsageError(f"check_env: steps must be at least 1, got {steps}; take enough for episodes to end")
        is_made = hasattr(env, "step") and not isinstance(env, type)
        if not is_made and not callable(env):
            raise APIUsageError(
                f"check_env: env must be an environment, or a class or function that makes one, got {env!r}; "
                "of a name, pass pufferlib.env_creator(name)"
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
            ContractError: Its spaces or its number of agents cannot be used.
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
        """Make another environment, with the seed if the creator names it."""
        assert self.creator is not None
        return self.creator(**self._keywords, **keywords)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.creator is not None and self.env is not None:
            self.env.close()
