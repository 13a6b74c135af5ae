"""Kinds of settings: the numbers and words that each may be. Those who take [vec] and [env] check them themselves."""

import math
import types
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from pufferlib.errors import UsageError

__all__ = [
    "Count",
    "CountOrAuto",
    "Decay",
    "Natural",
    "NotNegative",
    "Number",
    "OptionalCount",
    "Range",
    "Schedule",
    "Share",
    "StepSize",
    "Steps",
    "convert",
    "limits_of",
]

_MOST = 2**31 - 1  # of anything that is counted in memory


class Range(NamedTuple):
    """Least and greatest value of a setting; anything but NaN where both are infinite."""

    low: float
    high: float

    def check(self, name: str, value: float) -> None:
        """Raise UsageError if ``value`` is outside."""
        if not self.low <= value <= self.high:
            raise UsageError(f"{name} must be {self._text(value)}, got {value}")

    def _text(self, value: float) -> str:
        if self.low == -math.inf:
            return "a number"
        is_open = self.high == math.inf or (self.high >= _MOST and value < self.low)  # nobody means to come near it
        return f"at least {self.low}" if is_open else f"from {self.low} to {self.high}"


Count = Annotated[int, Range(1, _MOST)]
OptionalCount = Annotated[int | None, Range(1, _MOST)]
CountOrAuto = Annotated[int, Range(0, _MOST)]
Natural = Annotated[int, Range(0, 2**63 - 1)]  # what torch and numpy both take
Steps = Annotated[int, Range(1, 2**63 - 1)]
NotNegative = Annotated[float, Range(0, math.inf)]
StepSize = Annotated[float, Range(0, 1000)]  # infinity ends in NaN, and nobody means to come near a thousand
Share = Annotated[float, Range(0, 1)]
Decay = Annotated[float, Range(0, 0.999999)]
Number = Annotated[float, Range(-math.inf, math.inf)]
Schedule = Literal["constant", "linear", "cosine"]


def limits_of(section: type) -> dict[str, Range]:
    """Range of each setting that has one."""
    hints = get_type_hints(section, include_extras=True)
    return {key: hint.__metadata__[0] for key, hint in hints.items() if get_origin(hint) is Annotated}


def convert(where: str, hint: Any, value: Any) -> Any:
    """``value`` as the type that a setting declares.

    Args:
        where: Begins the message.
        hint: The type.
        value: Of a file or a caller; numpy's numbers, and whole ones like 1e6, are taken too.

    Raises:
        UsageError: It is of another type.
    """
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise UsageError(f"{where} must be {' or '.join(map(repr, get_args(hint)))}, got {value!r}")
        return value
    if get_origin(hint) is tuple:
        return _words(where, get_args(hint)[0], value)
    options = get_args(hint) if get_origin(hint) in (types.UnionType, Union) else (hint,)
    if isinstance(value, np.generic):
        value = value.item()
    if float in options and type(value) is int:
        return float(value)
    if int in options and float not in options and type(value) is float and value.is_integer():
        return int(value)  # 1e6
    if type(value) not in options and not (value is None and types.NoneType in options):
        expected = " or ".join("unset" if option is types.NoneType else option.__name__ for option in options)
        raise UsageError(f"{where} must be {expected}, got {value!r} ({type(value).__name__})")
    return value


def _words(where: str, kind: Any, value: Any) -> tuple[Any, ...]:
    """A list of words, or one text with commas between them."""
    words = [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise UsageError(f"{where} must be a list of strings, got {value!r} ({type(value).__name__})")
    return tuple(convert(where, kind, word) for word in words)
