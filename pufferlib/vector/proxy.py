"""Proxy of a vector environment: an object around one that is taken for it."""

from typing import Any, Self

__all__ = ["VectorProxy"]


class VectorProxy:
    """An object that is like the vector environment inside, but for what a subclass defines.

    Args:
        vecenv: Of any backend, native, or a proxy itself.

    Attributes:
        vecenv: The vector environment inside.
    """

    def __init__(self, vecenv: Any) -> None:
        self.vecenv = vecenv

    def __getattr__(self, name: str) -> Any:
        if name == "vecenv":  # while it is copied there is none yet
            raise AttributeError(name)
        return getattr(self.vecenv, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Class of the vector environment, so that ``isinstance`` takes this for what it is around."""
        kind: type = self.vecenv.__class__
        return kind

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every environment."""
        self.vecenv.close()
