"""Runs that were made before with the same settings, so that none is made again by a slip."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.training.config import Config
from pufferlib.training.resume import flat, is_free
from pufferlib.training.runs import Run, titled_folders
from pufferlib.training.seeds import SeedGroup, groups_of
from pufferlib.training.status import status_of

__all__ = ["about_earlier", "refuse_repeat"]

# Where 0 stands for a number that follows from the agents, config.toml has that number.
AUTOMATIC = ("train.horizon", "train.minibatch_size", "train.update_epochs")
SEED = "train.seed"


def refuse_repeat(where: str, again: str, config: Config, runs: Path, seeds: tuple[int, ...] = ()) -> None:
    """Raise if a run of this name, environment and settings is there, finished or not.

    Args:
        where: Begins the message.
        again: Way to train it once more, for the message: "--again".
        config: The settings of the run that is to begin.
        runs: Folder of all runs.
        seeds: Seeds of the runs that are to begin, where they are several.

    Raises:
        UsageError: Names that run, and says how to go on with it.
    """
    text = about_earlier(config, runs, seeds)
    if text and config.track.name:
        raise UsageError(f"{where}: {text}; to train it once more: {again}")


def about_earlier(config: Config, runs: Path, seeds: tuple[int, ...] = ()) -> str:
    """Text on the latest run of this name, environment and settings, and how to go on with it; "" if there is none."""
    same = [one for one in _earlier(config, runs, bool(seeds)) if _is_same(config, one, seeds)]
    if not same:
        return ""
    one = max(same, key=lambda each: each.folder.name)
    with_name = "this name and these settings" if config.track.name else "these settings"
    go_on = as_typed(f"puffer train --resume {one.argument}")
    if isinstance(one, SeedGroup) and not {*seeds} <= {*one.seeds}:
        named = ",".join(map(str, sorted({*one.seeds, *seeds})))
        return f"{one.folder} has {with_name} and some of these seeds; to add the others: {go_on} --train.seeds {named}"
    match _state(one):
        case "running":
            return f"{one.folder} has {with_name}, and is running"
        case "finished":
            longer = f"{go_on} --train.total-timesteps {2 * config.train.total_timesteps}"
            return f"{one.folder} has {with_name}, and is finished; to train it longer: {longer}"
    return f"{one.folder} has {with_name}, and was stopped; to go on with it: {go_on}"


def _earlier(config: Config, runs: Path, several: bool) -> Iterator[Run | SeedGroup]:
    if several:
        yield from groups_of(runs, config.env_name, config.track.name)
        return
    for folder in titled_folders(runs, config.env_name, config.track.name):
        if (run := Run.at(folder)).has_checkpoint:
            yield run


def _state(one: Run | SeedGroup) -> str:
    if isinstance(one, Run):
        return status_of(one).state
    states = {status_of(one.run(seed)).state for seed in one.seeds}
    return next((state for state in ("running", "failed", "stopped") if state in states), "finished")


def _is_same(config: Config, one: Run | SeedGroup, seeds: tuple[int, ...]) -> bool:
    try:
        before, now = _decisive(one.settings()), _decisive(config)
    except APIUsageError:  # a file that somebody has edited, or of another version
        return False
    if isinstance(one, SeedGroup):
        del before[SEED], now[SEED]
        if not {*one.seeds} & {*seeds}:
            return False
    for name in AUTOMATIC:
        if not now[name]:
            del before[name], now[name]
    return before == now


def _decisive(config: Config) -> dict[str, Any]:
    """The environment and the settings that make a run another one."""
    settings = flat(config.as_dict()).items()
    decisive = {name: value for name, value in settings if name.startswith("stop.") or not is_free(name)}
    return {"env_name": config.env_name, **decisive}
