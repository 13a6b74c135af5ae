"""Proxy of a vector environment."""

from typing import Any, Self, TypeAlias

from pufferlib.env import PufferEnv
from pufferlib.vector.vector_env import VectorEnv

__all__ = ["AnyVectorEnv", "VectorProxy"]


class VectorProxy:
    """Object that forwards everything that a subclass does not define to a vector environment.

    Args:
        vecenv: Vector environment of any backend, native, or another proxy.

    Attributes:
        vecenv: Vector environment inside.
    """

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
