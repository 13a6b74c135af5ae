"""One text game as a Gymnasium environment: words are numbers, and actions are the available commands."""

import os
import re
import textwrap
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import textworld
from gymnasium.spaces import Box, Dict, Discrete

from pufferlib.errors import APIUsageError
from pufferlib.render.text import draw_terminal

from .._shared.options import check_counts, check_render_mode, check_switches
from .factory import game_file, quiet_interpreter

__all__ = ["TextGame", "make_env", "useful_first", "write_words"]

VOCABULARY = 2048
COMMAND_WORDS = 8

_PAGE = (24, 80)  # rows and columns of text in an image

Observation = dict[str, npt.NDArray[np.int32]]
Info = dict[str, Any]

_WORD = re.compile(r"[a-z0-9']+")
_LOOKS = ("examine", "inventory", "look")  # commands that change nothing


def make_env(
    name: str, *, path: str | os.PathLike[str] | None = None, game_seed: int = 0, **options: Any
) -> "TextGame":
    """Make the game ``name``. ``path`` is the file of "file", and ``game_seed`` generates the others.

    Raises:
        APIUsageError: ``path`` is missing or not a game, or an option has the wrong type or is out of range.
    """
    where = f"textworld/{name}"
    if (name == "file") != (path is not None):
        raise APIUsageError(f"{where}: path names the game of textworld/file, got path={path!r}")
    check_counts(where, 0, game_seed=game_seed)
    file = game_file(name, int(game_seed)) if path is None else Path(path).expanduser()
    if file.suffix != ".z8" or not file.is_file() or not file.with_suffix(".json").is_file():
        raise APIUsageError(f"{where}: path must be a .z8 made by TextWorld, its .json beside it, got {file}")
    return TextGame(where, file, **options)


class TextGame(gymnasium.Env[Observation, np.int64]):
    """A text game whose words are encoded as numbers.

    Attributes:
        commands: Texts of the available commands, by action.

    Args:
        where: Name for error messages.
        file: Compiled game.
        look_around: Whether to include the room and the inventory after every command, and not only the game's
            response. TextWorld asks the game for both, which takes three times as long.
        max_words: Maximum number of words in an observation. Further words are dropped.
        max_commands: Maximum number of commands to choose from.
        max_steps: Length at which a game is truncated.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
    """

    def __init__(
        self,
        where: str,
        file: Path,
        *,
        look_around: bool = False,
        max_words: int = 192,
        max_commands: int = 24,
        max_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        check_switches(where, look_around=look_around)
        check_counts(where, max_words=max_words, max_commands=max_commands, max_steps=max_steps)
        check_render_mode(where, render_mode)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 2}
        self.render_mode = render_mode
        self._max_steps = max_steps
        shown = textworld.EnvInfos(
            admissible_commands=True,
            description=look_around,
            inventory=look_around,
            max_score=True,
            won=True,
            lost=True,
        )
        with quiet_interpreter():
            self._game = textworld.start(str(file), shown)
        self._game.seed(1)  # otherwise the clock would seed it, although the games use no random numbers
        last = VOCABULARY - 1
        self.observation_space: Dict[Any] = Dict(  # type: ignore[assignment]  # as gymnasium types it
            {
                "text": Box(0, last, (max_words,), np.int32),
                "commands": Box(0, last, (max_commands, COMMAND_WORDS), np.int32),
            }
        )
        self.action_space = Discrete(max_commands)
        self._max_words, self._max_commands = max_words, max_commands
        self.commands: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Restart the game."""
        super().reset(seed=seed)
        self._steps = self._score = 0
        with quiet_interpreter():
            state = self._game.reset()
        return self._observation(state), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Execute the command in row ``action``."""
        command = self.commands[action] if action < len(self.commands) else "look"
        with quiet_interpreter():
            state, score, _ = self._game.step(command)
        reward, self._score = float(score - self._score), score
        self._steps += 1
        terminated = bool(state.won or state.lost)
        truncated = not terminated and self._steps >= self._max_steps
        info = {"won": float(state.won), "perf": score / max(state.max_score, 1)} if terminated or truncated else {}
        return self._observation(state), reward, terminated, truncated, info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return the last output of the game as an image of a terminal, or None without a ``render_mode``."""
        return draw_terminal(_page(self._feedback), np.zeros(_PAGE, np.uint8)) if self.render_mode else None

    def close(self) -> None:
        """Close the game."""
        self._game.close()

    def _observation(self, state: Any) -> Observation:
        self.commands = useful_first(state.admissible_commands, self._max_commands)
        self._feedback = state.feedback or ""
        commands = np.zeros((self._max_commands, COMMAND_WORDS), np.int32)
        for row, command in zip(commands, self.commands, strict=False):
            write_words(row, [command])
        text = np.zeros(self._max_words, np.int32)
        write_words(text, (state.feedback, state.description, state.inventory))
        return {"text": text, "commands": commands}


def useful_first(commands: Iterable[str], limit: int) -> list[str]:
    """Return at most ``limit`` of ``commands``, sorted, with those that only look at something last."""
    return sorted(commands, key=lambda command: (command.startswith(_LOOKS), command))[:limit]


def _page(text: str) -> npt.NDArray[np.uint8]:
    """Return the character codes of the last lines of ``text`` that fit on the page."""
    rows, columns = _PAGE
    page = np.full(_PAGE, ord(" "), np.uint8)
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, columns) or [""]]
    for row, line in zip(page, lines[-rows:], strict=False):
        codes = np.frombuffer(line.encode("ascii", "replace"), np.uint8)
        row[: codes.size] = codes
    return page


def write_words(row: npt.NDArray[np.int32], texts: Iterable[str | None]) -> None:
    """Write the words of ``texts`` as numbers into ``row``, as many as fit."""
    words = [word for text in texts for word in _WORD.findall((text or "").lower())][: row.size]
    row[: len(words)] = [1 + zlib.crc32(word.encode()) % (VOCABULARY - 1) for word in words]
