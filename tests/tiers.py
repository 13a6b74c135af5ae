"""Parameters of a matrix that stand for all of it in the day."""

from collections.abc import Container, Iterable
from typing import Any

import pytest

__all__ = ["once"]


def once(parameters: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """Parameters of a test, of which a run without flags takes ``chosen`` and ``--all`` takes every one."""
    return [parameter if parameter in chosen else as_all(parameter) for parameter in parameters]


def as_all(parameter: Any) -> Any:
    """Mark one parameter, or the tuple of one test."""
    values = parameter if isinstance(parameter, tuple) else (parameter,)
    return pytest.param(*values, marks=pytest.mark.all)
