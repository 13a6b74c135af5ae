"""Resuming a run: the settings that may change, and the steps that are left."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs.folder import Run
from pufferlib.text import flag
from pufferlib.training.config import Config
from pufferlib.training.env_values import Missing

__all__ = ["check_changes", "flat", "is_evaluated", "is_finished", "is_free", "settings_of", "stop_reason_of"]


# Where and how a run is computed, and how it is judged: what may change without making another run of it.
FREE = {
    "train.device", "train.num_threads", "train.act_threads", "train.checkpoint_interval",
    "train.compile", "train.cuda_graphs", "train.cpu_offload",
    "train.keep_checkpoints", "train.save_games", "train.processes", "train.processes_timeout",
    "train.launcher", "train.ray_address", "train.ray_cpus",
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
    old, new = (flat(config.as_dict()) for config in (before, now))
    changed = [
        name
        for name, value in new.items()
        if value != old.get(name) and not is_free(name) and name != LENGTH and not _is_given_again(name, before)
    ]
    if changed:
        flags = [flag(name, new[name]) for name in changed]
        got = " and ".join(
            f"{text} ({'begun with ' + str(old[name]) if old.get(name) is not None else 'begun without it'})"
            for text, name in zip(flags, changed, strict=True)
        )
        raise UsageError(
            f"{where}: a run goes on with the settings that it was begun with, got {got}; leave that out, or begin a "
            f"new run: {as_typed('puffer train', now.env_name)} {' '.join(flags)} (--init RUN lets it begin with the "
            "weights of a run)"
        )


def _is_given_again(name: str, before: Config) -> bool:
    """True for a keyword of the environment whose object no file could hold."""
    section, _, key = name.partition(".")
    return section == "env" and isinstance(before.env.get(key), Missing)


def is_finished(config: Config, run: Run) -> bool:
    """True if all steps are done, or it was stopped early, and the result is in the run.

    One that was stopped goes on where ``config`` has other settings to stop it, or more steps.
    """
    steps, summary = run.about().agent_steps, _summary(run)
    if steps != summary.get("agent_steps"):
        return False
    before = run.settings()
    is_same = (config.stop, config.train.total_timesteps) == (before.stop, before.train.total_timesteps)
    return steps >= config.train.total_timesteps or (is_same and bool(summary.get("stop_reason")))


def is_evaluated(config: Config, run: Run) -> bool:
    """True if ``is_finished``, and its result is of an evaluation as ``config`` has it: nothing is left to do."""
    return config.eval == run.settings().eval and is_finished(config, run)


def stop_reason_of(run: Run) -> str | None:
    """Reason for which the run ended before all of its steps; None where it did not, or has not ended."""
    reason: str | None = _summary(run).get("stop_reason")
    return reason


def _summary(run: Run) -> dict[str, Any]:
    """The ``summary.json`` of a run; empty where there is none that is whole."""
    try:
        summary: Any = json.loads(run.summary.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return summary if isinstance(summary, dict) else {}


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
    is_told = name.startswith(("eval.", "stop.", "track.")) and name != "track.name"
    return name in FREE or is_told
