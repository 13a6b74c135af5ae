"""One OpenSpiel game in progress: turns, observations, random events."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils import seeding

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.render.text import draw_terminal

__all__ = ["Match"]

KINDS = ("information_state", "observation")
SCREEN = (24, 80)  # rows and columns of text in an image of a state


class Match:
    """A game in progress: its state and its random stream.

    Args:
        where: Name for error messages.
        name: Name of the game.
        settings: OpenSpiel's parameters.
        observe: One of ``KINDS``, or None for the first one that the game offers.

    Attributes:
        chance: Random generator for all random events.
        num_players: Number of players.
        observation_space: Observation space of each player.
        action_space: Action space of each player.
    """

    def __init__(self, where: str, name: str, settings: Mapping[str, Any], observe: str | None) -> None:
        self._name = name
        self._settings = dict(settings)
        self._game = _load(where, name, self._settings)
        self.num_players: int = self._game.num_players()
        self._kind = _kind(where, self._game.get_type(), observe)
        self._shape = tuple(getattr(self._game, f"{self._kind}_tensor_shape")())
        self._num_actions: int = self._game.num_distinct_actions()
        self.action_space = Discrete(self._num_actions)
        self.observation_space = Dict(
            {
                "action_mask": Box(0, 1, (self._num_actions,), np.int8),
                "observation": Box(-np.inf, np.inf, self._shape, np.float32),
            }
        )
        self._state = self._game.new_initial_state()
        # Games with internal randomness accept a seed only when they are loaded.
        is_sampled = self._game.get_type().chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
        self._takes_seed = is_sampled and "rng_seed" in self._game.get_type().parameter_specification
        self.reseed(None)

    def reseed(self, seed: int | None) -> None:
        """Seed the random events from the next game on."""
        self.chance, _ = seeding.np_random(seed)
        if self._takes_seed:
            self._game = pyspiel.load_game(
                self._name, {**self._settings, "rng_seed": int(self.chance.integers(2**31 - 1))}
            )

    def start(self) -> None:
        """Start a game, up to the first decision of a player."""
        self._state = self._game.new_initial_state()
        self._play_chance()

    @property
    def is_over(self) -> bool:
        """True once the game has ended."""
        return bool(self._state.is_terminal())

    def acting(self) -> Sequence[int]:
        """Return the players whose turn it is."""
        if self._state.is_simultaneous_node():
            return range(self.num_players)
        return (self._state.current_player(),)

    def play(self, actions: Mapping[int, int]) -> None:
        """Apply the actions of the players whose turn it is, and then any random events."""
        state = self._state
        chosen = [self._legal(player, action) for player, action in actions.items()]
        if state.is_simultaneous_node():
            state.apply_actions(chosen)
        else:
            state.apply_action(chosen[0])
        self._play_chance()

    def _legal(self, player: int, action: int) -> int:
        """Return ``action`` if it is legal, else the next legal one."""
        legal = self._state.legal_actions(player)
        if not legal:  # in a simultaneous move where only others have a choice
            return 0
        return int(legal[bisect_left(legal, action) % len(legal)])

    def any_action(self, player: int) -> int:
        """Return a random legal action."""
        legal = self._state.legal_actions(player)
        return int(legal[self.chance.integers(len(legal))]) if legal else 0

    def _play_chance(self) -> None:
        """Sample random events until it is a player's turn."""
        while self._state.is_chance_node():
            outcomes, weights = zip(*self._state.chance_outcomes(), strict=True)
            drawn = np.searchsorted(np.cumsum(weights), self.chance.random(), side="right")
            self._state.apply_action(outcomes[min(int(drawn), len(outcomes) - 1)])

    def returns(self) -> Sequence[float]:
        """Return each player's return since the start of the game."""
        returns: Sequence[float] = self._state.returns()
        return returns

    def view(self, player: int) -> dict[str, npt.NDArray[Any]]:
        """Return the observation and action mask of ``player``, zeros if the game is over."""
        mask = np.zeros(self._num_actions, np.int8)
        if self.is_over:
            return {"action_mask": mask, "observation": np.zeros(self._shape, np.float32)}
        legal = self._state.legal_actions(player) if player in self.acting() else []
        mask[legal or [0]] = 1
        numbers = getattr(self._state, f"{self._kind}_tensor")(player)
        return {"action_mask": mask, "observation": np.array(numbers, np.float32).reshape(self._shape)}

    def shown(self, render_mode: str | None) -> str | npt.NDArray[np.uint8] | None:
        """Return the state as OpenSpiel prints it, or an image of that text, or None without a ``render_mode``."""
        text = str(self._state)
        if render_mode == "rgb_array":
            return draw_terminal(_screen(text), np.zeros(SCREEN, np.uint8))
        return text if render_mode == "ansi" else None


def _screen(text: str) -> npt.NDArray[np.uint8]:
    """Return the character codes of the last lines of ``text`` that fit on the screen."""
    rows, columns = SCREEN
    screen = np.full(SCREEN, ord(" "), np.uint8)
    for row, line in enumerate(text.splitlines()[-rows:]):
        codes = np.frombuffer(line[:columns].encode("ascii", "replace"), np.uint8)
        screen[row, : len(codes)] = codes
    return screen


def _load(where: str, name: str, settings: Mapping[str, Any]) -> Any:
    specification = next(kind for kind in pyspiel.registered_games() if kind.short_name == name).parameter_specification
    for key in settings:
        if key not in specification:
            raise UnknownNameError.of(where, "setting", key, specification)
    if "rng_seed" in settings:
        raise APIUsageError(
            f"{where}: settings must not contain rng_seed, which follows from the seed; use reset(seed)"
        )
    try:
        return pyspiel.load_game(name, dict(settings))
    except (pyspiel.SpielError, TypeError) as error:
        raise APIUsageError(f"{where}: OpenSpiel rejects the settings {dict(settings)}: {error}") from error


def _kind(where: str, game: Any, observe: str | None) -> str:
    offered = [kind for kind in KINDS if getattr(game, f"provides_{kind}_tensor")]
    if observe is None:
        return offered[0]
    if observe not in offered:
        raise APIUsageError(f"{where}: observe must be one of {offered}, got {observe!r}")
    return observe
