"""Generation and compilation of games, cached in the user's cache folder."""

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import textworld
from textworld.challenges.tw_coin_collector import coin_collector
from textworld.challenges.tw_simple import simple
from textworld.challenges.tw_treasure_hunter import treasure_hunter

__all__ = ["game_file", "make_game", "quiet_interpreter"]


def game_file(name: str, seed: int) -> Path:
    """Return the file of the compiled game ``name`` with ``seed``, and make it if it does not exist."""
    folder = _cache_folder()
    file = folder / f"{name}-seed{seed}-textworld{version('textworld')}.z8"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Several processes may make the same game at the same time.
        with tempfile.TemporaryDirectory(dir=folder) as scratch, quiet_interpreter():
            made = Path(make_game(name, seed, Path(scratch) / file.name))
            os.replace(made.with_suffix(".json"), file.with_suffix(".json"))
            os.replace(made, file)
    return file


@contextlib.contextmanager
def quiet_interpreter() -> Iterator[None]:
    """Suppress the interpreter's warnings about unknown games. TextWorld keeps the missing data beside each game."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Game .* is not fully supported|Unable to find valid actions")
        yield


def make_game(name: str, seed: int, file: Path) -> str:
    """Make the game ``name`` with ``seed``, and return the path that it was written to, at ``file`` or beside it."""
    options = textworld.GameOptions()
    options.seeds = seed
    options.path = str(file)
    challenge, *settings = name.removeprefix("tw-").split("-")
    if challenge == "simple":
        arguments: dict[str, Any] = {"rewards": settings[0], "goal": settings[1], "test": False}
        game = simple.make(arguments, options)
    else:
        make = coin_collector.make if challenge == "coin_collector" else treasure_hunter.make
        game = make({"level": int(settings[0].removeprefix("level"))}, options)
    path: str = textworld.generator.compile_game(game, options)
    return path


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pufferlib" / "textworld"
