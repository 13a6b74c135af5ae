"""OpenSpiel's games: one player against chance, or all players at one table."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict, Discrete
from pettingzoo import ParallelEnv

from pufferlib.errors import APIUsageError

from .._shared.options import check_render_mode
from .table import Table

__all__ = ["AllPlayers", "OnePlayer", "make_env"]

Observation = dict[str, npt.NDArray[Any]]
PerAgent = dict[str, Any]


def make_env(
    name: str,
    *,
    players: str = "random",
    seat: int | None = None,
    observe: str | None = None,
    settings: Mapping[str, Any] | None = None,
    render_mode: str | None = None,
) -> "OnePlayer | AllPlayers":
    """The game ``name``; for the options see the page of the binding.

    Raises:
        APIUsageError: An option is of the wrong type or out of its range.
        UnknownNameError: ``settings`` names what the game does not have.
    """
    where = f"openspiel/{name}"
    if players not in ("random", "self"):
        raise APIUsageError(f"{where}: players must be 'random' or 'self', got {players!r}")
    check_render_mode(where, render_mode, "ansi")
    table = Table(where, name, settings or {}, observe)
    if seat is not None and (isinstance(seat, bool) or not isinstance(seat, int) or not 0 <= seat < table.num_players):
        raise APIUsageError(f"{where}: seat must be None or 0 to {table.num_players - 1}, got {seat!r}")
    if players == "self":
        if seat is not None:
            raise APIUsageError(f"{where}: seat must be None with players='self', got {seat}; all seats are played")
        return AllPlayers(table, render_mode)
    return OnePlayer(table, seat, render_mode)


class OnePlayer(gymnasium.Env[Observation, np.int64]):
    """The game as one player sees it; the others play at random.

    Args:
        table: Where it is played.
        seat: Which player to be; None draws one for each game.
        render_mode: None, "ansi" or "rgb_array".
    """

    def __init__(self, table: Table, seat: int | None, render_mode: str | None) -> None:
        self.metadata = {"render_modes": ["ansi", "rgb_array"]}
        self.render_mode = render_mode
        self.observation_space: Any = table.observation_space
        self.action_space = table.action_space
        self._table = table
        self._fixed_seat = seat
        self._seat = seat or 0
        self._won = 0.0  # so far

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a game, and play it until it is this player's turn."""
        super().reset(seed=seed)
        table = self._table
        if seed is not None:
            table.reseed(seed)
        if self._fixed_seat is None:
            self._seat = int(table.chance.integers(table.num_players))
        while True:
            table.start()
            self._let_others_play()
            if not table.is_over:  # some games can end before everybody had a turn
                break
        self._won = table.winnings()[self._seat]
        return table.view(self._seat), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act, and let the others play until it is this player's turn again."""
        table = self._table
        self._act(int(action))
        self._let_others_play()
        winnings = table.winnings()
        reward = winnings[self._seat] - self._won
        self._won = winnings[self._seat]
        info = {"won": _won(winnings, self._seat)} if table.is_over and table.num_players > 1 else {}
        return table.view(self._seat), reward, table.is_over, False, info

    def _let_others_play(self) -> None:
        while not self._table.is_over and self._seat not in self._table.acting():
            self._act()

    def _act(self, own: int = 0) -> None:
        """One move of all who are to move: ``own`` of this player, any of the others."""
        table = self._table
        table.play({seat: own if seat == self._seat else table.any_action(seat) for seat in table.acting()})

    def render(self) -> Any:
        """The state as text or as a picture of it; None without a ``render_mode``."""
        return self._table.shown(self.render_mode)


class AllPlayers(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """The game with all its players, of whom those act whose turn it is.

    Args:
        table: Where it is played.
        render_mode: None, "ansi" or "rgb_array".
    """

    def __init__(self, table: Table, render_mode: str | None) -> None:
        self.metadata = {"name": "openspiel", "render_modes": ["ansi", "rgb_array"], "is_parallelizable": True}
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(table.num_players)]
        self.agents: list[str] = []
        self._table = table
        self._won: Sequence[float] = [0.0] * table.num_players  # so far

    def observation_space(self, agent: str) -> Dict:
        """Observation space of every player."""
        return self._table.observation_space

    def action_space(self, agent: str) -> Discrete:
        """Action space of every player."""
        return self._table.action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a game."""
        if seed is not None:
            self._table.reseed(seed)
        self._table.start()
        self._won = self._table.winnings()
        self.agents = list(self.possible_agents)
        return self._views(), {agent: {} for agent in self.agents}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Let those act whose turn it is; the actions of others mean nothing."""
        table, everyone = self._table, self.possible_agents
        table.play({seat: int(actions[everyone[seat]]) for seat in table.acting()})
        winnings = table.winnings()
        rewards = {agent: now - before for agent, now, before in zip(everyone, winnings, self._won, strict=True)}
        self._won = winnings
        is_over = table.is_over
        infos = {agent: {"won": _won(winnings, seat)} if is_over else {} for seat, agent in enumerate(everyone)}
        if is_over:
            self.agents = []
        return self._views(), rewards, dict.fromkeys(everyone, is_over), dict.fromkeys(everyone, False), infos

    def _views(self) -> PerAgent:
        return {agent: self._table.view(seat) for seat, agent in enumerate(self.possible_agents)}

    def render(self) -> Any:
        """The state as text or as a picture of it; None without a ``render_mode``."""
        return self._table.shown(self.render_mode)

    def close(self) -> None:
        """Nothing is held."""


def _won(winnings: Sequence[float], seat: int) -> float:
    """1 if this player won more than every other."""
    return float(all(winnings[seat] > other for index, other in enumerate(winnings) if index != seat))
