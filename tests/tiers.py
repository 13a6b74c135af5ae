"""Selection of test parameters for the default suite."""

from collections.abc import Container, Iterable
from typing import Any

import pytest

__all__ = ["once"]


def once(parameters: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """Mark all ``parameters`` but the ``chosen`` ones with ``all``, so that the default suite skips them."""
    return [parameter if parameter in chosen else as_all(parameter) for parameter in parameters]


def as_all(parameter: Any) -> Any:
    """Return a parameter, or a tuple of them, with the mark ``all``."""
    values = parameter if isinstance(parameter, tuple) else (parameter,)
    return pytest.param(*values, marks=pytest.mark.all)
