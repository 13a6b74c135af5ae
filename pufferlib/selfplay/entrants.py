"""Entrants of a match or league: trained agents, random agents, and the built-in opponent of an environment."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib import ocean, registry
from pufferlib.errors import APIUsageError
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import RUNS
from pufferlib.settings.config import Config

__all__ = ["RANDOM", "SCRIPTED", "Entrant", "Game", "enter", "game_of"]

RANDOM, SCRIPTED = "random", "scripted"
# Keyword arguments for the number of parallel games and their display, which do not change the game itself.
BATCH = {"num_envs", "num_threads", "log_interval", "autoreset", "render_mode", "check_actions"}


@dataclass(frozen=True)
class Game:
    """Game that all entrants of a match play.

    Attributes:
        env_name: Name of the environment.
        settings: Keyword arguments of the environment including defaults, but without ``keywords``.
        keywords: Keyword arguments that let agents play both sides.
    """

    env_name: str
    settings: Mapping[str, Any]
    keywords: Mapping[str, Any]


@dataclass(frozen=True)
class Entrant:
    """Player in a match or league.

    Attributes:
        name: Name in tables.
        identity: SHA-256 of the weights, or "random" or "scripted".
        config: Settings of the run, or None if there is no run.
        path: Checkpoint or policy file, or None if there is none.
    """

    name: str
    identity: str
    config: Config | None = None
    path: Path | None = None


def enter(where: str, targets: Sequence[str], runs: Path | str = RUNS, best: bool = False) -> list[Entrant]:
    """Return the entrants for ``targets``.

    Args:
        where: Prefix of error messages.
        targets: Runs, checkpoints, policy files or environment names, as accepted by ``find_run``, "random" or
            "scripted".
        runs: Folder with runs, to find the latest run of an environment.
        best: True to use the checkpoints with the best scores instead of the latest ones.

    Raises:
        APIUsageError: A target does not exist, or the same agent is given twice.
    """
    found = [_entrant(where, target, Path(runs), best) for target in targets]
    for index, entrant in enumerate(found):
        same = [other.name for other in found[:index] if other.identity == entrant.identity]
        if same:
            raise APIUsageError(
                f"{where}: entrants must have different weights, got the same in {same[0]} and {entrant.name}; "
                "remove one"
            )
    return _with_short_names(found)


def game_of(where: str, entrants: Sequence[Entrant]) -> Game:
    """Return the game of all entrants.

    Raises:
        APIUsageError: The agents were trained in different environments or with different environment settings.
    """
    trained = [(entrant, entrant.config) for entrant in entrants if entrant.config is not None]
    if not trained:
        raise APIUsageError(
            f"{where}: at least one entrant must be a trained agent, which determines the environment, got "
            f"{' and '.join(entrant.name for entrant in entrants)}; name a run"
        )
    (first, config), *others = trained
    game = _game(config)
    for entrant, other in ((entrant, _game(config)) for entrant, config in others):
        difference = _describe_difference(game, other)
        if difference:
            raise APIUsageError(
                f"{where}: all entrants must play the same game, got {first.name} {difference[0]} and {entrant.name} "
                f"{difference[1]}; remove one, or train them with the same environment settings"
            )
    if any(entrant.identity == SCRIPTED for entrant in entrants) and not game.keywords:
        raise APIUsageError(
            f"{where}: 'scripted' is the built-in opponent of an environment, and {game.env_name} has none; remove it"
        )
    return game


def _entrant(where: str, target: str, runs: Path, best: bool) -> Entrant:
    if target in (RANDOM, SCRIPTED):
        return Entrant(target, target)
    run = find_run(where, target, runs, best)
    path = run.checkpoint
    return Entrant(str(path), _hash(path), run.settings({"train.device": "cpu"}), path)


def _hash(path: Path) -> str:
    """Return the SHA-256 of the weights. Other contents of the file do not count."""
    from pufferlib.runs import checkpoint

    digest = hashlib.sha256()
    for name, weights in sorted(checkpoint.read_policy(path).items()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)} ".encode())
        digest.update(np.ascontiguousarray(weights.view(-1).numpy()).tobytes())
    return digest.hexdigest()


def _with_short_names(entrants: Sequence[Entrant]) -> list[Entrant]:
    """Name each entrant after its run, and add the checkpoint if there are several from the same run."""
    runs = [_run_name(entrant) for entrant in entrants]
    names = [
        f"{run}/{entrant.path.name}" if entrant.path is not None and runs.count(run) > 1 else run
        for run, entrant in zip(runs, entrants, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [entrant.name for entrant in entrants]
    return [
        Entrant(name, entrant.identity, entrant.config, entrant.path)
        for name, entrant in zip(names, entrants, strict=True)
    ]


def _run_name(entrant: Entrant) -> str:
    path = entrant.path
    if path is None:
        return entrant.name
    if path == registry.agent_file(entrant.config.env_name if entrant.config else ""):
        return path.parent.name
    if path.is_file():
        return path.stem
    return path.absolute().parents[1].name if path.absolute().parent.name == "checkpoints" else path.name


def _game(config: Config) -> Game:
    keywords = registry.both_sides(config.env_name)
    creator = registry.env_creator(config.env_name)
    made = ocean.type_made_by(creator)
    defaults = {parameter.name: parameter.default for parameter in made.parameters} if made else {}
    settings = {
        name: value for name, value in {**defaults, **config.env}.items() if name not in BATCH and name not in keywords
    }
    return Game(config.env_name, settings, keywords)


def _describe_difference(one: Game, other: Game) -> tuple[str, str] | None:
    """Describe the first difference between two games, or return None if they are the same."""
    if one.env_name != other.env_name:
        return f"of {registry.short_name(one.env_name)}", f"of {registry.short_name(other.env_name)}"
    for name in sorted({*one.settings, *other.settings}):
        values = [game.settings.get(name, "unset") for game in (one, other)]
        if values[0] != values[1]:
            return f"with {name} {values[0]}", f"with {values[1]}"
    return None
