"""Spaces of settings: the values that a search may try, and how Optuna draws them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError, UnknownNameError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["BOUNDS", "DISTRIBUTIONS", "FIXED", "KEYS", "Space", "check_table", "read_bound"]

#: Kinds of spaces, with what each draws.
DISTRIBUTIONS = {
    "uniform": "any number between min and max, all alike",
    "log": "as many between 0.001 and 0.01 as between 0.01 and 0.1",
    "logit": "of shares: log towards 0 and towards 1, as many between 0.99 and 0.999 as between 0.9 and 0.99",
    "pow2": "powers of two",
    "int": "whole numbers, all alike",
    "choice": "one of choices",
}
#: Takes a setting out of the search; it keeps the environment's own value.
FIXED = "fixed"
BOUNDS = ("min", "max")
#: Of the table of a space.
KEYS = ("distribution", *BOUNDS, "choices")
_DIGITS = 4  # of a value that is drawn: short enough to type, and finer than any score can tell
_EDGE = 1e-9  # of rounding, beside a bound


@dataclass(frozen=True)
class Space:
    """Values that a search may try for one setting.

    Attributes:
        setting: Its dotted key, as ``train.learning_rate``.
        distribution: One of ``DISTRIBUTIONS``.
        low: Least value; 0 where there are choices.
        high: Greatest value.
        choices: What "choice" draws from.
        is_whole: Whole numbers only.

    Raises:
        APIUsageError: The bounds do not fit the distribution.
    """

    setting: str
    distribution: str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()
    is_whole: bool = False

    def __post_init__(self) -> None:
        if self.distribution == "choice":
            return
        where = f"sweep.{self.setting}"
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise APIUsageError(f"{where}: min must be less than max, got min {self.low} and max {self.high}")
        bounds = f"got {self.low} to {self.high}"
        if self.distribution == "log" and self.low <= 0:
            raise APIUsageError(f"{where}: min must be above 0 for log, {bounds}; use uniform, or a small min")
        if self.distribution == "logit" and not 0 < self.low < self.high < 1:
            raise APIUsageError(f"{where}: min and max must be between 0 and 1, and neither, for logit, {bounds}")
        if self.distribution == "pow2" and not all(_is_power(bound) for bound in (self.low, self.high)):
            near = " and ".join(str(2 ** max(0, round(math.log2(max(b, 1))))) for b in (self.low, self.high))
            raise APIUsageError(f"{where}: min and max must be powers of two for pow2, {bounds}; try {near}")

    @property
    def key(self) -> str:
        """Name of its parameter in the study, which is that of its scale, as in ``logit(train.gamma)``."""
        scale = {"logit": "logit", "pow2": "log2"}.get(self.distribution)
        return f"{scale}({self.setting})" if scale else self.setting

    def to_optuna(self) -> "BaseDistribution":
        """Its distribution, on the scale of ``key``."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.distribution == "choice":
            return CategoricalDistribution(self.choices)
        low, high = self._scaled(self.low), self._scaled(self.high)
        is_log = self.distribution == "log"
        if self.is_whole:
            return IntDistribution(int(low), int(high), log=is_log)
        return FloatDistribution(low, high, log=is_log)

    def setting_of(self, drawn: Any) -> Any:
        """The value of the setting that Optuna's ``drawn`` stands for, in few digits."""
        if self.distribution == "choice":
            return drawn
        if self.distribution == "pow2":
            return 2 ** int(drawn)
        if self.is_whole:
            return int(drawn)
        value = drawn if self.distribution != "logit" else 1 / (1 + math.exp(-drawn))
        is_near_1 = self.distribution == "logit" and value > 0.5  # there the digits of its distance from 1 count
        value = round(1 - _rounded(1 - value), 12) if is_near_1 else _rounded(value)
        return min(max(value, self.low), self.high)

    def drawn_of(self, value: Any) -> Any:
        """The value that Optuna would draw for ``value``, taken to the nearest bound where it is outside."""
        if self.distribution == "choice":
            return value if value in self.choices else self.choices[0]
        drawn = self._scaled(min(max(float(value), self.low), self.high))
        return round(drawn) if self.is_whole else drawn

    def holds(self, value: Any) -> bool:
        """True if a search may come to ``value``."""
        if self.distribution == "choice":
            return value in self.choices
        is_inside = self.low - abs(self.low) * _EDGE <= value <= self.high + abs(self.high) * _EDGE
        return is_inside and (self.distribution != "pow2" or _is_power(value))

    @property
    def is_curved(self) -> bool:
        """True where a picture needs another than a linear axis."""
        return self.distribution in ("log", "pow2", "logit")

    def __str__(self) -> str:
        if self.distribution == "choice":
            return f"choice of {', '.join(map(str, self.choices))}"
        return f"{self.distribution}, {self.low:.6g} to {self.high:.6g}"

    def as_dict(self) -> dict[str, Any]:
        """The table that describes it, as TOML has it."""
        if self.distribution == "choice":
            return {"distribution": "choice", "choices": list(self.choices)}
        low, high = (int(bound) if self.is_whole else bound for bound in (self.low, self.high))
        return {"distribution": self.distribution, "min": low, "max": high}

    def _scaled(self, value: float) -> float:
        scale: Callable[[float], float] = {"logit": _logit, "pow2": math.log2}.get(self.distribution, float)
        return scale(value)


def check_table(where: str, table: Mapping[str, Any]) -> None:
    """Check keys and distribution of a space that a person wrote.

    Raises:
        UnknownNameError: A key or a distribution that does not exist.
        APIUsageError: Something is missing, or belongs to another distribution.
    """
    if unknown := [key for key in table if key not in KEYS]:
        raise UnknownNameError.of(where, "key", unknown[0], KEYS)
    kind = table.get("distribution")
    if kind is None:
        raise APIUsageError(f"{where}: must have a distribution: {', '.join((*DISTRIBUTIONS, FIXED))}; got none")
    if kind not in (*DISTRIBUTIONS, FIXED):
        raise UnknownNameError.of(where, "distribution", kind, (*DISTRIBUTIONS, FIXED))
    needed = {"choice": ("choices",), FIXED: ()}.get(kind, BOUNDS)
    if missing := [key for key in needed if key not in table]:
        given = ", ".join(f"{key} = {value!r}" for key, value in table.items())
        raise APIUsageError(f"{where}: {kind} needs {' and '.join(missing)}, got {given}")
    choices = table.get("choices", [0])
    if not isinstance(choices, list | tuple) or not choices:
        raise APIUsageError(f"{where}: choices must be a list of at least one value, got {choices!r}")


def read_bound(where: str, key: str, given: Any, own: Any) -> float:
    """The number that a bound of a table stands for; "0.5x" is half of ``own``, the environment's value.

    Raises:
        APIUsageError: It is no number, or a multiple of a value that has none.
    """
    expected = f'{where}: {key} must be a number, or a multiple of the environment\'s own value, as "0.1x"'
    if isinstance(given, str) and given.endswith("x"):
        try:
            factor = float(given[:-1])
        except ValueError:
            raise APIUsageError(f"{expected}, got {given!r}") from None
        if isinstance(own, bool) or not isinstance(own, int | float) or own == 0:
            raise APIUsageError(
                f"{where}: {key} {given!r} is a multiple of the environment's own value, which is {own!r}"
            )
        return factor * own
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise APIUsageError(f"{expected}, got {given!r}")
    return float(given)


def _logit(value: float) -> float:
    return math.log(value / (1 - value))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _is_power(value: float) -> bool:
    return value >= 1 and math.log2(value).is_integer()
