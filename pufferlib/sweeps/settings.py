"""Settings of a search: ``[sweep]`` of the settings files, and the spaces in its tables, ``[sweep.train.gamma]``."""

import dataclasses
import functools
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from pufferlib import registry
from pufferlib.errors import APIUsageError, PufferError, UnknownNameError, UsageError
from pufferlib.sweeps.space import BOUNDS, FIXED, Space, check_table, read_bound
from pufferlib.training.config import Config, Count, Natural, Range, Share, limits_of, setting_names
from pufferlib.training.settings import convert
from pufferlib.training.suggestions import suggest
from pufferlib.training.toml import parse_toml

__all__ = ["Search", "SweepConfig", "load_search", "with_settings"]

Source = tuple[str, dict[str, Any]]
SECTIONS = ("env", "vec", "policy", "train")
LENGTH = "train.total_timesteps"
#: Searched too where the cost is an objective: the cheapest way to a score is often a shorter run.
OF_COST = {"train": {"total_timesteps": {"distribution": "log", "min": "0.1x", "max": "1x"}}}


@dataclass(frozen=True)
class SweepConfig:
    """Search for settings."""

    trials: Count = 20
    """Number of trials of the sweep, including pruned ones, failed ones and those of earlier commands."""
    workers: Count = 1
    """Number of trials at a time. Each has its own process and share of the cores."""
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
    """Stop a trial that is worse than this share of finished ones at the same step. 0 or score,cost turns this off."""
    prune_after: Share = 0.25
    """Share of its steps before which no trial is pruned."""
    only: str = ""
    """Settings to search, separated by commas, such as train.gamma,train.ent_coef. Empty means all spaces."""
    seed: Natural = 42
    """Seed of the search. The seed of each training run is train.seed."""
    storage: str = ""
    """Database for several machines, such as postgresql://..., or a shared file NAME.log. Empty means SQLite."""

    def __post_init__(self) -> None:
        for key, limits in limits_of(SweepConfig).items():
            limits.check(f"sweep.{key}", getattr(self, key))


@dataclass(frozen=True)
class Search:
    """All that decides a search.

    Attributes:
        sweep: Its settings.
        base: The settings of the trials, but for those that are searched.
        spaces: What is searched, by the dotted key of the setting.
        fixed: Dotted keys that the caller set to values of their own.
    """

    sweep: SweepConfig
    base: Config
    spaces: dict[str, Space]
    fixed: dict[str, Any]

    @property
    def is_pareto(self) -> bool:
        """True where the cost is an objective too."""
        return self.sweep.objective == "score,cost"

    @property
    def longest(self) -> int:
        """Agent-steps of the longest trial that it may come to."""
        space = self.spaces.get(LENGTH)
        if space is None:
            return self.base.train.total_timesteps
        return int(max(space.choices) if space.choices else space.high)

    def own_value(self, setting: str) -> Any:
        """The value that the environment's settings have for one that is searched; None where they have none."""
        return own_value(self.base, setting)


def load_search(
    base: Config, fixed: Mapping[str, Any], sources: Sequence[Source], overrides: Mapping[str, Any]
) -> Search:
    """Check a search before anything is trained.

    Args:
        base: The settings of the environment, with ``fixed`` laid over them.
        fixed: Dotted keys of settings that keep these values, whatever spaces the files have for them.
        sources: Settings of files, each with its name in messages, later ones over earlier ones.
        overrides: Dotted keys without ``sweep.``: ``{"trials": 20, "train.gamma.min": 0.9}``, over the files.

    Raises:
        UnknownNameError: A key, a setting or a distribution that does not exist; the nearest are suggested.
        APIUsageError: A value that does not fit.
    """
    given = [_split(where, data["sweep"]) for where, data in sources if "sweep" in data]
    called = _split("overrides", _nested(overrides))
    sweep = _sweep_config([*given, called])
    own = parse_toml("default.toml", (resources.files("pufferlib.sweeps") / "default.toml").read_text("utf-8"))
    defaults = [_split("default.toml", own["sweep"])]
    if sweep.objective == "score,cost":
        defaults.append(_split("default.toml", OF_COST))
    if both := [key for key in called.spaces if key in fixed]:
        raise UsageError(
            f"sweep.{both[0]}: is given a space, and {both[0]} a value of its own ({fixed[both[0]]!r}); leave one out"
        )
    spaces = _bound([*defaults, *given, called], sweep, base, fixed)
    if not spaces:
        raise APIUsageError("sweep: nothing is left to search; give at least one setting a space, or fix fewer")
    _check_cost(sweep, spaces)
    return Search(sweep, base, spaces, dict(fixed))


def own_value(config: Config, setting: str) -> Any:
    """Return the value of a dotted key in ``config``, or the environment's default of a keyword; None without one."""
    section, _, key = setting.partition(".")
    if section != "env":
        return functools.reduce(getattr, setting.split("."), config)
    return config.env[key] if key in config.env else _keyword_defaults(config.env_name).get(key)


def _keyword_defaults(env_name: str) -> dict[str, Any]:
    try:
        return {} if registry.is_inside(env_name) else registry.own_keywords(env_name)
    except PufferError:  # no such environment, which is reported where it is made
        return {}


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """``config`` with dotted keys laid over it.

    Raises:
        APIUsageError: A number is out of its range.
    """
    sections: dict[str, dict[str, Any]] = {}
    for setting, value in settings.items():
        section, _, key = setting.partition(".")
        sections.setdefault(section, {})[key] = value
    env = {**config.env, **sections.pop("env", {})}
    parts = {name: dataclasses.replace(getattr(config, name), **values) for name, values in sections.items()}
    return dataclasses.replace(config, env=env, **parts)


@dataclass(frozen=True)
class _Given:
    """One source: settings of the search, and tables of spaces by the dotted key of their setting."""

    where: str
    values: dict[str, Any]
    spaces: dict[str, dict[str, Any]]


def _split(where: str, data: Any) -> _Given:
    if not isinstance(data, dict):
        raise APIUsageError(f"{where}: sweep must be a table of settings, got {data!r}")
    names = [field.name for field in dataclasses.fields(SweepConfig)]
    values: dict[str, Any] = {}
    spaces: dict[str, dict[str, Any]] = {}
    for key, value in data.items():
        if key in SECTIONS:
            spaces |= _tables(where, key, value)
        elif key in names:
            values[key] = convert(f"{where}: sweep.{key}", typing.get_type_hints(SweepConfig)[key], value)
        else:
            raise UnknownNameError.of(f"{where}, [sweep]", "key", key, (*names, *SECTIONS), _meant(key))
    return _Given(where, values, spaces)


def _tables(where: str, section: str, tables: Any) -> dict[str, dict[str, Any]]:
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


def _meant(key: str) -> list[str]:
    """Spaces that somebody meant who named a setting without its section."""
    return [setting for setting in setting_names() if setting.partition(".")[2] == key]


def _sweep_config(given: Sequence[_Given]) -> SweepConfig:
    values: dict[str, Any] = {}
    for source in given:
        values |= source.values
    return SweepConfig(**values)


def _bound(given: Sequence[_Given], sweep: SweepConfig, base: Config, fixed: Mapping[str, Any]) -> dict[str, Space]:
    """The spaces of all sources, later ones over earlier ones, but for what is fixed."""
    tables: dict[str, tuple[str, dict[str, Any]]] = {}
    for source in given:
        for setting, table in source.spaces.items():
            if "choices" in table:
                table = {"distribution": "choice", **table}
            merged = tables.get(setting, ("", {}))[1] | table
            if "distribution" in table:  # of what was before, only what it takes stays
                left_out = BOUNDS if table["distribution"] == "choice" else ("choices",)
                merged = {key: value for key, value in merged.items() if key in table or key not in left_out}
            tables[setting] = source.where, merged
    for setting, (where, table) in tables.items():
        check_table(f"{where}: sweep.{setting}", table)
    kept = {key: each for key, each in tables.items() if key not in fixed and each[1]["distribution"] != FIXED}
    if sweep.only:
        kept = {key: kept[key] for key in _only(sweep.only, tables, kept)}
    return {
        setting: _space(f"{where}: sweep.{setting}", setting, table, base) for setting, (where, table) in kept.items()
    }


def _only(only: str, tables: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    chosen = [name.strip().replace("-", "_") for name in only.split(",") if name.strip()]
    for name in chosen:
        if name not in tables:
            close = suggest(name, tables)
            raise UnknownNameError.of("sweep.only", "space", name, tables, close)
        if name not in kept:
            raise APIUsageError(f"sweep.only: {name} must have a space, got a value; leave the value or the name out")
    return list(dict.fromkeys(chosen))


def _space(where: str, setting: str, table: Mapping[str, Any], base: Config) -> Space:
    section, _, key = setting.partition(".")
    kind, own = table["distribution"], own_value(base, setting)
    if section == "env":  # which checks its own values
        hint, limits = type(own) if own is not None else None, Range(-math.inf, math.inf)
    else:
        hint = typing.get_type_hints(type(getattr(base, section)))[key]
        limits = limits_of(type(getattr(base, section))).get(key, Range(-math.inf, math.inf))
    if kind == "choice":
        choices = tuple(
            convert(f"{where}: choices", hint, each) if section != "env" else each for each in table["choices"]
        )
        for choice in choices:
            if isinstance(choice, int | float):
                limits.check(f"{where}: choices", choice)
        return Space(setting, kind, choices=choices)
    low, high = (read_bound(where, name, table[name], own) for name in BOUNDS)
    is_whole = _is_whole(where, setting, kind, hint)
    if is_whole:  # multiples of the environment's own value are rounded
        low, high = (
            round(each) if isinstance(table[name], str) else each
            for name, each in zip(BOUNDS, (low, high), strict=True)
        )
        if low != int(low) or high != int(high):
            raise APIUsageError(f"{where}: min and max must be whole numbers, got {low} and {high}")
    for name, number in zip(BOUNDS, (low, high), strict=True):
        limits.check(f"{where}: {name}", number)
    return Space(setting, kind, low, high, is_whole=is_whole)


def _is_whole(where: str, setting: str, distribution: str, hint: Any) -> bool:
    """True if a setting of that type takes whole numbers, by that distribution.

    Raises:
        APIUsageError: It takes no numbers, or the distribution draws others than it takes.
    """
    kinds = {int, float} if hint is None else set(typing.get_args(hint) or (hint,))
    if not kinds & {int, float}:
        raise APIUsageError(f"{where}: {setting} is no number: distribution must be choice, got {distribution}")
    draws_whole = distribution in ("int", "pow2")
    if (distribution == "logit" and float not in kinds) or (draws_whole and int not in kinds):
        takes = "any number" if draws_whole else "whole numbers"
        raise APIUsageError(
            f"{where}: {setting} takes {takes}: distribution must be uniform or log, got {distribution}"
        )
    return draws_whole or float not in kinds


def _check_cost(sweep: SweepConfig, spaces: Mapping[str, Space]) -> None:
    if sweep.objective == "score,cost" and sweep.cost == "steps" and LENGTH not in spaces:
        raise APIUsageError(
            f"sweep.cost: all trials have the same steps unless {LENGTH} is searched, got cost steps and no such "
            "space; give it one, or take cost seconds"
        )


def _nested(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """``{"train.gamma.min": 0.9}`` as nested tables."""
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
