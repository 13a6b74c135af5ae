"""Table of all settings of a run, with the source of each value, for ``--show-settings``."""

from collections.abc import Iterable, Sequence
from typing import Any

from pufferlib.cli.console import print_table, say
from pufferlib.runs.resume import flat
from pufferlib.settings.config import Config
from pufferlib.settings.sources import Source

__all__ = ["print_settings", "settings_in_flags"]

DEFAULT = "default.toml"


def print_settings(config: Config, sources: Iterable[Source], others: dict[str, str]) -> None:
    """Print each setting with its value and its source.

    Args:
        config: Settings.
        sources: Sources of the settings, in the order in which they apply.
        others: Further sources by dotted name of the setting, such as ``{"train.seed": "flag"}``.
    """
    origins: dict[str, str] = {}
    for where, data in sources:
        names = flat({section: values for section, values in data.items() if section != "sweep"})
        origins |= {name: "default" if where == DEFAULT else _place(where, name) for name in names}
    origins |= others
    values = flat(config.as_dict())
    say(f"Settings of {config.env_name}")
    print_table(
        ("Setting", "Value", "Source"), [(name, _shown(values[name]), origins.get(name, "default")) for name in values]
    )


def settings_in_flags(flags: Sequence[str]) -> list[str]:
    """Return the dotted names of the settings in flags such as ``--train.learning-rate 3e-4``."""
    names = [flag.partition("=")[0].removeprefix("--") for flag in flags if flag.startswith("--") and "." in flag]
    return [name.replace("-", "_") for name in names]


def _place(where: str, name: str) -> str:
    """Return the file and section of a setting: ``mujoco/train.toml, ["Hopper-v5".train]``."""
    section = name.rpartition(".")[0]
    return f"{where[:-1]}.{section}]" if where.endswith("]") else f"{where}, [{section}]"


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    if value in ("", ()):
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
