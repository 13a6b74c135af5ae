"""Proxy of a vector environment."""

from typing import Any, Self, TypeAlias

from gymnasium.spaces import Box

from pufferlib.env import PufferEnv
from pufferlib.spaces import Space
from pufferlib.vector.vector_env import VectorEnv

__all__ = ["AnyVectorEnv", "VectorProxy"]


class VectorProxy:
    """Object that forwards everything that a subclass does not define to a vector environment.

    Args:
        vecenv: Vector environment of any backend, native, or another proxy.

    Attributes:
        vecenv: Vector environment inside.
    """

    # Declared for pyright, which does not look for the members of protocols such as HasSpaces in __getattr__.
    single_observation_space: Box
    single_action_space: Space
    emulated: Any

    def __init__(self, vecenv: "AnyVectorEnv") -> None:
        self.vecenv: Any = vecenv  # some attributes exist only in some classes

    def __getattr__(self, name: str) -> Any:
        if name == "vecenv":  # not set yet while the object is copied
            raise AttributeError(name)
        return getattr(self.vecenv, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Class of the vector environment, so that ``isinstance`` treats the proxy as an instance of it."""
        kind: type = self.vecenv.__class__
        return kind

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all environments."""
        self.vecenv.close()


AnyVectorEnv: TypeAlias = VectorEnv | PufferEnv | VectorProxy
"""Vector environment of any backend, native or in wrappers."""
