"""Settings of a search: ``[sweep]`` in the settings files, and its search spaces ``[sweep.train.gamma]``."""

import functools
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from pufferlib import registry
from pufferlib.errors import APIUsageError, PufferError, UnknownNameError, UsageError
from pufferlib.settings.config import Config, Count, Natural, Range, Section, Share, limits_of, setting_names
from pufferlib.settings.sources import convert
from pufferlib.settings.suggestions import suggest
from pufferlib.settings.toml import parse_toml

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = [
    "DISTRIBUTIONS",
    "FIXED",
    "KEYS",
    "POLICY",
    "SECTIONS",
    "Search",
    "Space",
    "SweepConfig",
    "load_search",
    "setting_value",
    "trial_config",
    "with_settings",
]

#: Distributions of numbers and choices, with a description of each.
DISTRIBUTIONS = {
    "uniform": "any number between min and max",
    "log": "uniform on a log scale: as many values between 0.001 and 0.01 as between 0.01 and 0.1",
    "logit": "for shares: as many values between 0.99 and 0.999 as between 0.9 and 0.99, and the same towards 0",
    "pow2": "powers of two",
    "int": "whole numbers",
    "choice": "one of choices",
}
#: Distribution of a setting that is not searched.
FIXED = "fixed"
BOUNDS = ("min", "max")
#: Keys in the table of a space.
KEYS = ("distribution", *BOUNDS, "choices")
SECTIONS = ("env", "vec", "policy", "train")
LENGTH = "train.total_timesteps"
POLICY = "policy.name"
# With two objectives the length is searched as well: the cheapest way to a score is often a shorter run.
_LENGTH_SPACE = {"train": {"total_timesteps": {"distribution": "log", "min": "0.1x", "max": "1x"}}}
_DIGITS = 4  # significant digits of a drawn value: short enough to type, finer than any difference in score
_TOLERANCE = 1e-9  # relative rounding error at the bounds


@dataclass(frozen=True)
class Space:
    """Search space of one setting.

    Attributes:
        setting: Dotted name of the setting, such as ``train.learning_rate``.
        distribution: One of ``DISTRIBUTIONS``.
        low: Smallest value, 0 for choices.
        high: Largest value, 0 for choices.
        choices: Values of the distribution "choice".
        is_integer: True if only whole numbers are drawn.

    Raises:
        APIUsageError: The bounds do not fit the distribution.
    """

    setting: str
    distribution: str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()
    is_integer: bool = False

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
        if self.distribution == "pow2" and not all(_is_power_of_two(bound) for bound in (self.low, self.high)):
            near = " and ".join(str(2 ** max(0, round(math.log2(max(b, 1))))) for b in (self.low, self.high))
            raise APIUsageError(f"{where}: min and max must be powers of two for pow2, {bounds}; try {near}")

    @property
    def param_name(self) -> str:
        """Name of the parameter in the study, with its scale, such as ``logit(train.gamma)``."""
        scale = {"logit": "logit", "pow2": "log2"}.get(self.distribution)
        return f"{scale}({self.setting})" if scale else self.setting

    def to_optuna(self) -> "BaseDistribution":
        """Return Optuna's distribution of this space, on the scale of ``param_name``."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.distribution == "choice":
            return CategoricalDistribution(self.choices)
        low, high = self._scale(self.low), self._scale(self.high)
        is_log = self.distribution == "log"
        if self.is_integer:
            return IntDistribution(int(low), int(high), log=is_log)
        return FloatDistribution(low, high, log=is_log)

    def decode(self, drawn: Any) -> Any:
        """Return the value of the setting for a value that Optuna drew, rounded to a few digits."""
        if self.distribution == "choice":
            return drawn
        if self.distribution == "pow2":
            return 2 ** int(drawn)
        if self.is_integer:
            return int(drawn)
        value = drawn if self.distribution != "logit" else 1 / (1 + math.exp(-drawn))
        # Close to 1, the digits of the distance from 1 matter.
        is_near_1 = self.distribution == "logit" and value > 0.5
        value = round(1 - _round(1 - value), 12) if is_near_1 else _round(value)
        return min(max(value, self.low), self.high)

    def encode(self, value: Any) -> Any:
        """Return the value that Optuna would draw for ``value``, clipped to the bounds."""
        if self.distribution == "choice":
            return _storable(value) if self.contains(value) else self.choices[0]
        drawn = self._scale(min(max(float(value), self.low), self.high))
        return round(drawn) if self.is_integer else drawn

    def contains(self, value: Any) -> bool:
        """Return True if a search can draw ``value``."""
        if self.distribution == "choice":
            return _storable(value) in self.choices
        is_inside = self.low - abs(self.low) * _TOLERANCE <= value <= self.high + abs(self.high) * _TOLERANCE
        return is_inside and (self.distribution != "pow2" or _is_power_of_two(value))

    def __str__(self) -> str:
        if self.distribution == "choice":
            return f"choice of {', '.join(map(str, self.choices))}"
        return f"{self.distribution}, {self.low:.6g} to {self.high:.6g}"

    def as_dict(self) -> dict[str, Any]:
        """Return the TOML table of this space."""
        if self.distribution == "choice":
            return {"distribution": "choice", "choices": list(self.choices)}
        low, high = (int(bound) if self.is_integer else bound for bound in (self.low, self.high))
        return {"distribution": self.distribution, "min": low, "max": high}

    @classmethod
    def from_dict(cls, setting: str, table: Mapping[str, Any]) -> "Space":
        """Return the space of a table that ``as_dict`` returned."""
        low, high, choices = table.get("min", 0.0), table.get("max", 0.0), tuple(table.get("choices", ()))
        return cls(setting, table["distribution"], float(low), float(high), choices, isinstance(low, int))

    def _scale(self, value: float) -> float:
        if self.distribution == "logit":
            return math.log(value / (1 - value))
        return math.log2(value) if self.distribution == "pow2" else float(value)


@dataclass(frozen=True)
class SweepConfig(Section):
    """Search for settings."""

    trials: Count = 20
    """Number of trials of the sweep, including pruned ones, failed ones and those of earlier commands."""
    workers: Count = 1
    """Number of trials that run at the same time. Each has its own process and share of the cores."""
    name: str = ""
    """Folder of the sweep in sweeps/. Empty means the name of the environment."""
    objective: Literal["score", "score,cost"] = "score"
    """Objective: the best score, or with score,cost the best score for each cost (a Pareto front)."""
    cost: Literal["seconds", "steps"] = "seconds"
    """Cost of a trial: its training time or its agent-steps."""
    metric: str = "score"
    """Metric of the environment to use as the score."""
    direction: Literal["maximize", "minimize"] = "maximize"
    """Direction in which the score improves."""
    prune: typing.Annotated[float, Range(0, 0.95)] = 0.5
    """Stop a trial unless it is better than this share of finished ones at the same step. 0 or score,cost: off."""
    prune_after: Share = 0.25
    """Share of its steps before which no trial is pruned."""
    only: str = ""
    """Settings to search, separated by commas, such as train.gamma,train.ent_coef. Empty means all spaces."""
    seed: Natural = 42
    """Seed of the search. The seed of each training run is train.seed."""
    storage: str = ""
    """Database for several machines, such as postgresql://..., or a shared file NAME.log. Empty means SQLite."""


@dataclass(frozen=True)
class Search:
    """Complete description of a search.

    Attributes:
        sweep: Settings of the search.
        base: Settings of all trials. The searched ones have the defaults of the environment.
        spaces: Search space of each searched setting, by dotted name.
        fixed: Settings given by the caller, by dotted name. They are not searched.
        bases: Settings of all trials with a policy, by its name, if ``policy.name`` is searched. A table such as
            ``[perceptron.policy]`` applies to some policies only.
    """

    sweep: SweepConfig
    base: Config
    spaces: dict[str, Space]
    fixed: dict[str, Any]
    bases: dict[str, Config] = field(default_factory=dict)

    @property
    def is_pareto(self) -> bool:
        """True if the cost is a second objective."""
        return self.sweep.objective == "score,cost"

    @property
    def longest(self) -> int:
        """Number of agent-steps of the longest possible trial."""
        space = self.spaces.get(LENGTH)
        if space is None:
            return self.base.train.total_timesteps
        return int(max(space.choices) if space.choices else space.high)


def load_search(
    base: Config,
    fixed: Mapping[str, Any],
    sources: Sequence[tuple[str, dict[str, Any]]],
    overrides: Mapping[str, Any],
) -> Search:
    """Combine the settings of a search and check them.

    Args:
        base: Settings of the environment, with ``fixed`` applied.
        fixed: Values of settings that are not searched, by dotted name, even if a file has a space for them.
        sources: Name and parsed content of each settings file. Later files override earlier ones.
        overrides: Values by dotted name without ``sweep.``, such as ``{"trials": 20, "train.gamma.min": 0.9}``. They
            override the files.

    Raises:
        UnknownNameError: A key, setting or distribution does not exist. The message suggests similar names.
        APIUsageError: A value is out of range or of the wrong type.
    """
    given = [_parse(where, data["sweep"]) for where, data in sources if "sweep" in data]
    called = _parse("overrides", _nest(overrides))
    sweep = SweepConfig(**{key: value for source in [*given, called] for key, value in source.values.items()})
    own = parse_toml("default.toml", (resources.files("pufferlib.sweeps") / "default.toml").read_text("utf-8"))
    defaults = [_parse("default.toml", own["sweep"])]
    if sweep.objective == "score,cost":
        defaults.append(_parse("default.toml", _LENGTH_SPACE))
    if both := [key for key in called.tables if key in fixed]:
        raise UsageError(
            f"sweep.{both[0]}: is given a space, and {both[0]} a value of its own ({fixed[both[0]]!r}); leave one out"
        )
    spaces = _build_spaces([*defaults, *given, called], sweep, base, fixed)
    if not spaces:
        raise APIUsageError("sweep: nothing is left to search; give at least one setting a space, or fix fewer")
    if sweep.objective == "score,cost" and sweep.cost == "steps" and LENGTH not in spaces:
        raise APIUsageError(
            f"sweep.cost: all trials have the same steps unless {LENGTH} is searched, got cost steps and no such "
            "space; give it one, or take cost seconds"
        )
    return Search(sweep, base, spaces, dict(fixed))


def setting_value(config: Config, setting: str) -> Any:
    """Return the value of a setting by its dotted name.

    A keyword of the environment that ``config`` does not set has the default in the environment's signature, or None.
    """
    section, _, key = setting.partition(".")
    if section != "env":
        return functools.reduce(getattr, setting.split("."), config)
    return config.env[key] if key in config.env else _keyword_defaults(config.env_name).get(key)


def _keyword_defaults(env_name: str) -> dict[str, Any]:
    try:
        return {} if registry.is_inside(env_name) else registry.own_keywords(env_name)
    except PufferError:  # an unknown environment is reported where it is made
        return {}


def trial_config(base: Config, bases: Mapping[str, Config], settings: Mapping[str, Any]) -> Config:
    """Return the settings of a trial with the searched ``settings``. ``base`` and ``bases`` are those of ``Search``."""
    return with_settings(bases.get(str(settings.get(POLICY)), base), settings)


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a copy of ``config`` with values by dotted name applied.

    Raises:
        APIUsageError: A number is out of range.
    """
    converted = {}
    for setting, value in settings.items():
        section, _, key = setting.partition(".")
        hints = {} if section == "env" else typing.get_type_hints(type(getattr(config, section)))
        converted[setting] = convert(setting, hints[key], value) if hints else value
    return config.override(converted)


@dataclass(frozen=True)
class _Source:
    """Content of ``[sweep]`` in one source: values of ``SweepConfig``, and tables of spaces by dotted name."""

    where: str
    values: dict[str, Any]
    tables: dict[str, dict[str, Any]]


def _parse(where: str, data: Any) -> _Source:
    if not isinstance(data, dict):
        raise APIUsageError(f"{where}: sweep must be a table of settings, got {data!r}")
    hints = typing.get_type_hints(SweepConfig)
    values: dict[str, Any] = {}
    tables: dict[str, dict[str, Any]] = {}
    for key, value in data.items():
        if key in SECTIONS:
            tables |= _parse_section(where, key, value)
        elif key in hints:
            values[key] = convert(f"{where}: sweep.{key}", hints[key], value)
        else:
            meant = [setting for setting in setting_names() if setting.partition(".")[2] == key]  # without its section
            raise UnknownNameError.of(f"{where}, [sweep]", "key", key, (*hints, *SECTIONS), meant)
    return _Source(where, values, tables)


def _parse_section(where: str, section: str, tables: Any) -> dict[str, dict[str, Any]]:
    for key, table in tables.items() if isinstance(tables, dict) else [("", tables)]:
        if not isinstance(table, dict):
            name = f"{section}.{key}" if key else section
            raise APIUsageError(
                f'{where}: sweep.{name} must be a space, as {{distribution = "log", min = 1e-4, max = 1e-1}}, '
                f"got {table!r}"
            )
        if section != "env" and f"{section}.{key}" not in setting_names():
            close = suggest(f"{section}.{key}", setting_names())
            raise UnknownNameError.of(f"{where}, [sweep]", "setting", f"{section}.{key}", setting_names(), close)
    return {f"{section}.{key}": table for key, table in tables.items()}


def _build_spaces(
    sources: Sequence[_Source], sweep: SweepConfig, base: Config, fixed: Mapping[str, Any]
) -> dict[str, Space]:
    """Merge the tables of all sources and return the spaces of the settings that are searched."""
    tables: dict[str, tuple[str, dict[str, Any]]] = {}
    for source in sources:
        for setting, table in source.tables.items():
            if "choices" in table:
                table = {"distribution": "choice", **table}
            merged = tables.get(setting, ("", {}))[1] | table
            if "distribution" in table:  # drop earlier keys that the new distribution does not take
                dropped = BOUNDS if table["distribution"] == "choice" else ("choices",)
                merged = {key: value for key, value in merged.items() if key in table or key not in dropped}
            tables[setting] = source.where, merged
    for setting, (where, table) in tables.items():
        check_table(f"{where}: sweep.{setting}", table)
    kept = {key: each for key, each in tables.items() if key not in fixed and each[1]["distribution"] != FIXED}
    if sweep.only:
        kept = {key: kept[key] for key in _parse_only(sweep.only, tables, kept)}
    return {key: _build_space(f"{where}: sweep.{key}", key, table, base) for key, (where, table) in kept.items()}


def _parse_only(only: str, tables: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    chosen = [name.strip().replace("-", "_") for name in only.split(",") if name.strip()]
    for name in chosen:
        if name not in tables:
            raise UnknownNameError.of("sweep.only", "space", name, tables, suggest(name, tables))
        if name not in kept:
            raise APIUsageError(f"sweep.only: {name} must have a space, got a value; leave the value or the name out")
    return list(dict.fromkeys(chosen))


def check_table(where: str, table: Mapping[str, Any]) -> None:
    """Check the keys and the distribution in the table of a space.

    Raises:
        UnknownNameError: A key or the distribution does not exist.
        APIUsageError: A key is missing, or ``choices`` is not a list of values.
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


def _build_space(where: str, setting: str, table: Mapping[str, Any], base: Config) -> Space:
    section, _, key = setting.partition(".")
    kind, own = table["distribution"], setting_value(base, setting)
    limits = Range(-math.inf, math.inf)
    if section == "env":  # the environment checks its own values
        hint = type(own) if own is not None else None
    else:
        hint = typing.get_type_hints(type(getattr(base, section)))[key]
        limits = limits_of(type(getattr(base, section))).get(key, limits)
    if kind == "choice":
        choices = tuple(
            _storable(convert(f"{where}: choices", hint, each)) if section != "env" else each
            for each in table["choices"]
        )
        for choice in choices:
            if isinstance(choice, int | float):
                limits.check(f"{where}: choices", choice)
        return Space(setting, kind, choices=choices)
    low, high = (parse_bound(where, name, table[name], own) for name in BOUNDS)
    is_integer = _draws_integers(where, setting, kind, hint)
    if is_integer:  # multiples of the default are rounded
        low = round(low) if isinstance(table["min"], str) else low
        high = round(high) if isinstance(table["max"], str) else high
        if low != int(low) or high != int(high):
            raise APIUsageError(f"{where}: min and max must be whole numbers, got {low} and {high}")
    limits.check(f"{where}: min", low)
    limits.check(f"{where}: max", high)
    return Space(setting, kind, low, high, is_integer=is_integer)


def _storable(value: Any) -> Any:
    """Return a list setting as text with commas, which Optuna can store and every source of settings accepts."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def parse_bound(where: str, key: str, given: Any, own: Any) -> float:
    """Return a bound as a number. "0.5x" is half of ``own``, the default of the environment.

    Raises:
        APIUsageError: ``given`` is not a number, or a multiple of a default that is not a number or 0.
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


def _draws_integers(where: str, setting: str, distribution: str, hint: Any) -> bool:
    """Return True if ``distribution`` draws whole numbers for a setting of type ``hint``.

    Raises:
        APIUsageError: The setting is not a number, or the distribution does not fit its type.
    """
    kinds = {int, float} if hint is None else set(typing.get_args(hint) or (hint,))
    if not kinds & {int, float}:
        raise APIUsageError(f"{where}: {setting} is no number: distribution must be choice, got {distribution}")
    needs_integers = distribution in ("int", "pow2")
    if (distribution == "logit" and float not in kinds) or (needs_integers and int not in kinds):
        takes = "any number" if needs_integers else "whole numbers"
        raise APIUsageError(
            f"{where}: {setting} takes {takes}: distribution must be uniform or log, got {distribution}"
        )
    return needs_integers or float not in kinds


def _nest(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"train.gamma.min": 0.9}`` as nested tables."""
    nested: dict[str, Any] = {}
    for key, value in dotted.items():
        *parents, last = key.split(".")
        table = nested
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise APIUsageError(f"sweep.{key}: {parent} is a value already")
        table[last] = value
    return nested


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _is_power_of_two(value: float) -> bool:
    return value >= 1 and math.log2(value).is_integer()
