"""Python representation of C environments' declarations: parameters, metrics, keys and spaces."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.errors import APIUsageError, UnknownKeywordError
from pufferlib.ocean._ocean import ocean_types
from pufferlib.spaces import Space

__all__ = ["COMMON_KEYWORDS", "REPORTED", "EnvType", "Key", "Parameter", "env_type_of", "env_types", "spaces_of"]


@dataclass(frozen=True)
class Parameter:
    """A keyword of a C environment: its Python type, default, range and description."""

    name: str
    kind: type[bool] | type[int] | type[float] | type[str]
    default: bool | int | float | str
    low: float
    high: float
    about: str

    def in_c(self, where: str, value: object) -> float | bytes:
        """Return ``value`` as C expects it.

        Raises:
            APIUsageError: The value has the wrong type, is not from ``low`` to ``high``, or is a text that is too long.
        """
        if self.kind is str:
            if not isinstance(value, str) or not value.isascii() or len(value) > self.high or "\0" in value:
                raise APIUsageError(f"{where}: {self.name} must be {self.domain}, got {value!r:.80}")
            return value.encode()
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
        """Description of the allowed values."""
        if self.kind is str:
            return f"a text of at most {self.high:g} ASCII characters"
        if self.kind is bool:
            return "True or False"
        kind = "an int" if self.kind is int else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Key:
    """A keyboard key for human players.

    While the key ``name`` is pressed, component ``component`` of the action is ``value``. The name "up+right" means two
    keys pressed together, and "" defines the value while no key is pressed.
    """

    name: str
    component: int
    value: int
    about: str


@dataclass(frozen=True)
class EnvType:
    """Declarations of one C environment: its index in the extension module, its names, and its tables."""

    index: int
    name: str
    class_name: str
    about: str
    parameters: tuple[Parameter, ...]
    metrics: dict[str, str]
    infos: dict[str, Box]
    keys: tuple[Key, ...]

    def in_c(self, values: dict[str, Any]) -> list[float | bytes]:
        """Return the values of all parameters as C expects them, with defaults for those missing in ``values``.

        Raises:
            UnknownNameError: ``values`` contains a name that is not a parameter.
            APIUsageError: A value has the wrong type or is out of range.
        """
        known = {parameter.name for parameter in self.parameters}
        for name in values:
            if name not in known:
                raise UnknownKeywordError.of(self.class_name, "keyword argument", name, [*COMMON_KEYWORDS, *known])
        return [p.in_c(self.class_name, values.get(p.name, p.default)) for p in self.parameters]

    @property
    def help(self) -> str:
        """Docstring generated from the tables."""
        parameters = "".join(f"\n    {p.name}: {p.about} ({p.domain}; default {p.default})" for p in self.parameters)
        metrics = "".join(f"\n    {name}: {about}" for name, about in self.metrics.items())
        return f"{self.about}\n\nKeywords, besides those of OceanEnv:{parameters}\n\nMetrics:{metrics}\n"


COMMON_KEYWORDS = (
    *("num_envs", "seed", "render_mode", "log_interval", "buf", "num_threads", "autoreset", "pixels"),
    "check_actions",
)
REPORTED = ("episode_return", "episode_length", "n")  # in the report of every environment, besides its metrics

_KINDS: dict[str, type[bool] | type[int] | type[float] | type[str]] = {"?": bool, "i": int, "f": float, "s": str}


@functools.cache
def env_types() -> dict[str, EnvType]:
    """Return every C environment of this build by name."""
    return {entry["name"]: env_type_of(entry) for entry in ocean_types()}


def env_type_of(entry: dict[str, Any]) -> EnvType:
    """Make an ``EnvType`` from a dict that ``ocean_types`` or ``add_type`` returned."""
    parameters = tuple(_parameter(**row) for row in entry["parameters"])
    keys = tuple(Key(**row) for row in entry["keys"])
    infos = {row["name"]: _info_space(**row) for row in entry["infos"]}
    return EnvType(**{**entry, "parameters": parameters, "infos": infos, "keys": keys})


def _parameter(type: str, default: float, **row: Any) -> Parameter:
    kind = _KINDS[type]
    return Parameter(kind=kind, default="" if kind is str else kind(default), **row)


def _info_space(name: str, type: str, count: int, low: float, high: float) -> Box:
    return Box(low, high, (count,) if count > 1 else (), np.dtype(type).type)


def spaces_of(spec: Mapping[str, Any]) -> tuple[Box, Space, slice | None]:
    """Return the observation space, action space and action mask of an agent. The mask is a slice of observations."""
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
