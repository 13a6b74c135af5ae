"""Selection of test parameters for the default suite."""

from collections.abc import Container, Iterable
from typing import Any

import pytest

__all__ = ["as_nightly", "once"]


def once(parameters: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """Mark all ``parameters`` but the ``chosen`` ones with ``all``, so that the default suite skips them."""
    return [parameter if parameter in chosen else as_all(parameter) for parameter in parameters]


def as_all(parameter: Any) -> Any:
    """Return a parameter, or a tuple of them, with the mark ``all``."""
    return _marked(parameter, pytest.mark.all)


def as_nightly(parameter: Any) -> Any:
    """Return a parameter, or a tuple of them, with the mark ``nightly``."""
    return _marked(parameter, pytest.mark.nightly)


def _marked(parameter: Any, mark: Any) -> Any:
    return pytest.param(*parameter if isinstance(parameter, tuple) else (parameter,), marks=mark)
