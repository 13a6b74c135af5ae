"""Declarations of the C environments as Python objects: parameters, metrics, help, spaces."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.ocean._ocean import ocean_types
from pufferlib.spaces import Space

__all__ = ["EnvType", "Key", "Parameter", "env_type_of", "env_types", "spaces_of"]


@dataclass(frozen=True)
class Parameter:
    """A keyword of a C environment: its Python type, default, least and greatest value, meaning."""

    name: str
    kind: type[bool] | type[int] | type[float]
    default: bool | int | float
    low: float
    high: float
    about: str

    def number(self, where: str, value: object) -> float:
        """``value`` as C takes it.

        Raises:
            APIUsageError: It is of another type, or outside of ``low`` to ``high``.
        """
        accepted = {
            bool: (bool, np.bool_),
            int: (int, np.integer),
            float: (int, float, np.integer, np.floating),
        }[self.kind]
        is_bool = isinstance(value, bool | np.bool_)
        if not isinstance(value, accepted) or is_bool != (self.kind is bool):
            raise APIUsageError(f"{where}: {self.name} must be {self.domain}, got {value!r}")
        if not self.low <= float(value) <= self.high:  # type: ignore[arg-type]
            raise APIUsageError(f"{where}: {self.name} must be {self.domain}, got {value!r}")
        return float(value)  # type: ignore[arg-type]

    @property
    def domain(self) -> str:
        """The values it may have, in words."""
        if self.kind is bool:
            return "True or False"
        kind = "an int" if self.kind is int else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Key:
    """A key of a person who plays: while ``name`` is down, number ``component`` of the action is ``value``.

    "up+right" is two keys together; "" says what happens while none is down.
    """

    name: str
    component: int
    value: int
    about: str


@dataclass(frozen=True)
class EnvType:
    """One C environment: where the extension has it, its names, and the rows of its tables."""

    index: int
    name: str
    class_name: str
    about: str
    parameters: tuple[Parameter, ...]
    metrics: dict[str, str]
    keys: tuple[Key, ...]

    def numbers(self, values: dict[str, Any]) -> list[float]:
        """All parameters as C takes them, defaults where ``values`` says nothing.

        Raises:
            UnknownNameError: ``values`` has a name that is no parameter.
            APIUsageError: A value is of another type or out of range.
        """
        known = {parameter.name for parameter in self.parameters}
        for name in values:
            if name not in known:
                raise UnknownNameError.of(self.class_name, "keyword", name, [*COMMON_KEYWORDS, *known])
        return [p.number(self.class_name, values.get(p.name, p.default)) for p in self.parameters]

    @property
    def help(self) -> str:
        """A docstring made from the tables."""
        parameters = "".join(f"\n    {p.name}: {p.about} ({p.domain}; default {p.default})" for p in self.parameters)
        metrics = "".join(f"\n    {name}: {about}" for name, about in self.metrics.items())
        return f"{self.about}\n\nKeywords, besides those of OceanEnv:{parameters}\n\nMetrics:{metrics}\n"


COMMON_KEYWORDS = (
    *("num_envs", "seed", "render_mode", "log_interval", "buf", "num_threads", "autoreset", "pixels"),
    "check_actions",
)

_KINDS: dict[str, type[bool] | type[int] | type[float]] = {"?": bool, "i": int, "f": float}


@functools.cache
def env_types() -> dict[str, EnvType]:
    """Every C environment of this build, by name."""
    return {entry["name"]: env_type_of(entry) for entry in ocean_types()}


def env_type_of(entry: dict[str, Any]) -> EnvType:
    """Make an ``EnvType`` of an entry as ``ocean_types`` and ``add_type`` return it."""
    parameters = tuple(_parameter(**row) for row in entry["parameters"])
    return EnvType(**{**entry, "parameters": parameters, "keys": tuple(Key(**row) for row in entry["keys"])})


def _parameter(type: str, default: float, **row: Any) -> Parameter:
    kind = _KINDS[type]
    return Parameter(kind=kind, default=kind(default), **row)


def spaces_of(spec: Mapping[str, Any]) -> tuple[Box, Space, slice | None]:
    """Observation space and action space of one agent, and the elements of an observation that say what is legal."""
    kind, shape, bounds = np.dtype(spec["observation_type"]).type, spec["observation_shape"], spec["observation_bounds"]
    offset, size = spec["action_mask"]
    mask = slice(offset, offset + size) if size else None
    low, high = (np.array(ends, kind) for ends in zip(*bounds, strict=True))
    if len(bounds) == 1:
        return Box(low.item(), high.item(), shape, kind), _action_space(spec), mask
    return Box(low.reshape(shape), high.reshape(shape), dtype=kind), _action_space(spec), mask


def _action_space(spec: Mapping[str, Any]) -> Space:
    sizes = spec["action_sizes"]
    if spec["action_kind"] == "discrete":
        return Discrete(sizes[0])
    if spec["action_kind"] == "multi_discrete":
        return MultiDiscrete(sizes)
    return Box(-spec["action_limit"], spec["action_limit"], (sizes[0],), np.float32)
