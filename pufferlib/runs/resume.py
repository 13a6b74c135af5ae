"""Resuming a run: which settings may change, and whether steps are left."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config
from pufferlib.settings.env_values import Missing
from pufferlib.text import flag

__all__ = ["FREE", "check_changes", "flat", "is_evaluated", "is_finished", "is_free", "settings_of", "stop_reason_of"]


# Settings that may change when a run is resumed, because they do not affect what is learned.
FREE = {
    "train.device", "train.num_threads", "train.act_threads", "train.checkpoint_interval",
    "train.compile", "train.cuda_graphs", "train.cpu_offload",
    "train.keep_checkpoints", "train.save_games", "train.processes", "train.processes_timeout",
    "train.launcher", "train.ray_address", "train.ray_cpus",
    "vec.num_workers", "vec.overwork", "vec.timeout_s", "vec.on_crash", "vec.record",
    "env.num_threads", "env.render_mode",
}  # fmt: skip
LENGTH = "train.total_timesteps"


class HasSettings(Protocol):
    """Run, or group of runs with the same settings."""

    def settings(self, overrides: Mapping[str, Any] | None = None) -> Config:
        """Return the settings, with ``overrides`` by dotted name."""


def settings_of(run: HasSettings, overrides: Mapping[str, Any] | None = None) -> Config:
    """Return the settings to resume ``run`` with. Pickled episodes are loaded only if ``overrides`` allow it again."""
    settings = run.settings(overrides)
    if settings.train.save_games != "pickle" or "train.save_games" in (overrides or ()):
        return settings
    return dataclasses.replace(settings, train=dataclasses.replace(settings.train, save_games="safe"))


def check_changes(where: str, before: Config, now: Config) -> None:
    """Raise an error unless a run with the settings ``before`` can be resumed with the settings ``now``.

    A run may become longer. Settings that affect what is learned must not change, because the learning curve, the
    summary and the config.toml of a run describe all of its steps.

    Raises:
        UsageError: A setting must not change. The message names the flags for a new run.
    """
    if now.train.total_timesteps < before.train.total_timesteps:
        raise UsageError(
            f"{where}: a run can become longer, not shorter; it has {before.train.total_timesteps} steps, "
            f"got --train.total-timesteps {now.train.total_timesteps}"
        )
    old, new = (flat(config.as_dict()) for config in (before, now))
    changed = [
        name
        for name, value in new.items()
        if value != old.get(name) and not is_free(name) and name != LENGTH and not _is_missing_object(name, before)
    ]
    if changed:
        flags = [flag(name, new[name]) for name in changed]
        got = " and ".join(
            f"{text} (was {old[name] if old.get(name) is not None else 'unset'})"
            for text, name in zip(flags, changed, strict=True)
        )
        raise UsageError(
            f"{where}: a resumed run keeps its settings, got {got}; leave that out, or start a new run: "
            f"{as_typed('puffer train', now.env_name)} {' '.join(flags)} (with --init RUN to start with the weights "
            "of a run)"
        )


def _is_missing_object(name: str, before: Config) -> bool:
    """Return whether ``name`` is an argument of the environment that the settings file could not store."""
    section, _, key = name.partition(".")
    return section == "env" and isinstance(before.env.get(key), Missing)


def is_finished(config: Config, run: Run) -> bool:
    """Return whether all steps are done or the run was stopped early, and its result is written.

    A run that was stopped early is not finished if ``config`` has more steps or other settings for early stopping.
    """
    steps, result = run.about().agent_steps, run.result()
    if steps != result.get("agent_steps"):
        return False
    before = run.settings()
    is_same = (config.stop, config.train.total_timesteps) == (before.stop, before.train.total_timesteps)
    return steps >= config.train.total_timesteps or (is_same and bool(result.get("stop_reason")))


def is_evaluated(config: Config, run: Run) -> bool:
    """Return whether the run is finished, and was evaluated with the settings of ``config``."""
    return config.eval == run.settings().eval and is_finished(config, run)


def stop_reason_of(run: Run) -> str | None:
    """Return why the run was stopped before all of its steps, or None."""
    reason: str | None = run.result().get("stop_reason")
    return reason


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten sections to ``{"train.seed": 42, "track.wandb.mode": "auto"}``. Dicts in ``env`` stay single values."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and prefix != "env.":
            found |= flat(value, f"{prefix}{name}.")
        elif prefix:
            found[prefix + name] = value
    return found


def is_free(name: str) -> bool:
    """Return whether a setting may change when a run is resumed."""
    is_in_free_section = name.startswith(("eval.", "stop.", "track.")) and name != "track.name"
    return name in FREE or is_in_free_section
