"""The environment that is checked, and how to make more of it."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from pufferlib.errors import APIUsageError
from pufferlib.testing.arrays import takes
from pufferlib.testing.play import Trace

__all__ = ["Subject"]


class Subject:
    """An environment that is checked; closed at the end if it was made here.

    Args:
        env: An environment, or a class or function that makes one.
        seed: Of every play.
        steps: Of every play.

    Attributes:
        creator: Makes more of it; None for an environment that was made already.
        env: The first one.
        trace: Of its first play.
        printed: In its first play, to the terminal.
        ended: True if an episode ended in its first play.
        repeats: True once another copy has played the same.

    Raises:
        APIUsageError: ``env`` is none, or ``steps`` is below 1.
    """

    def __init__(self, env: Any, seed: int, steps: int) -> None:
        if steps < 1:
            raise APIUsageError(f"check_env: steps must be at least 1, got {steps}; take enough for episodes to end")
        is_made = hasattr(env, "step") and not isinstance(env, type)
        if not is_made and not callable(env):
            raise APIUsageError(
                f"check_env: env must be an environment, or a class or function that makes one, got {env!r}; "
                "of a name, pass pufferlib.env_creator(name)"
            )
        self.seed, self.steps, self.trace = seed, steps, Trace()
        self.printed, self.ended, self.repeats = "", False, False
        self.creator: Callable[..., Any] | None = None if is_made else env
        self._keywords = {} if is_made or not takes(env, "seed") else {"seed": seed}
        self.env = env if is_made else self.make()

    def make(self, **keywords: Any) -> Any:
        """Make another environment, with the seed if the creator names it."""
        assert self.creator is not None
        return self.creator(**self._keywords, **keywords)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.creator is not None:
            self.env.close()
