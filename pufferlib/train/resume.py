"""Resuming a run: the settings that may change, and the steps that are left."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.train.config import Config
from pufferlib.train.runs import Run
from pufferlib.train.text import flag

__all__ = ["check_changes", "flat", "is_finished", "is_free", "settings_of"]

# Where and how a run is computed, and how it is judged: what may change without making another run of it.
FREE = {
    "train.device", "train.num_threads", "train.act_threads", "train.checkpoint_interval",
    "train.compile", "train.cuda_graphs", "train.cpu_offload",
    "train.keep_checkpoints", "train.save_games",
    "vec.num_workers", "vec.overwork", "vec.timeout_s", "vec.on_crash", "vec.record",
    "env.num_threads", "env.render_mode",
}  # fmt: skip
LENGTH = "train.total_timesteps"


def settings_of(run: Run, overrides: Mapping[str, Any] | None = None) -> Config:
    """Settings with which ``run`` goes on; pickles of its games are loaded only if ``overrides`` ask for it again."""
    settings = run.settings(overrides)
    if settings.train.save_games != "pickle" or "train.save_games" in (overrides or ()):
        return settings
    return dataclasses.replace(settings, train=dataclasses.replace(settings.train, save_games="safe"))


def check_changes(where: str, before: Config, now: Config) -> None:
    """Raise unless a run with the settings ``before`` can go on with those of ``now``.

    It may become longer. What is learned from what may not change, because the curve and the summary of a run, and
    its config.toml, speak of all of its steps.

    Raises:
        UsageError: Names the flags that a new run needs.
    """
    if now.train.total_timesteps < before.train.total_timesteps:
        raise UsageError(
            f"{where}: a run may become longer, not shorter; it was begun with {before.train.total_timesteps} steps, "
            f"got --train.total-timesteps {now.train.total_timesteps}"
        )
    old, new = (flat(dataclasses.asdict(config)) for config in (before, now))
    changed = [name for name, value in new.items() if value != old.get(name) and not is_free(name) and name != LENGTH]
    if changed:
        flags = [flag(name, new[name]) for name in changed]
        got = " and ".join(
            f"{text} ({'begun with ' + str(old[name]) if old.get(name) is not None else 'begun without it'})"
            for text, name in zip(flags, changed, strict=True)
        )
        raise UsageError(
            f"{where}: a run goes on with the settings that it was begun with, got {got}; leave that out, or begin a "
            f"new run: {as_typed('puffer train', now.env_name)} {' '.join(flags)}"
        )


def is_finished(config: Config, run: Run) -> bool:
    """True if all steps are done, and their result is in the run."""
    steps = run.about().agent_steps
    try:
        reported = json.loads(run.summary.read_text("utf-8"))["agent_steps"]
    except (OSError, ValueError, LookupError):
        return False
    return bool(steps == reported and steps >= config.train.total_timesteps)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"train.seed": 42, "track.wandb.mode": "auto"}`` of all sections; a dict of the environment is one value."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and prefix != "env.":
            found |= flat(value, f"{prefix}{name}.")
        elif prefix:
            found[prefix + name] = value
    return found


def is_free(name: str) -> bool:
    """True for a setting that may change without making another run of it."""
    is_told = name.startswith(("eval.", "track.")) and name != "track.name"
    return name in FREE or is_told
