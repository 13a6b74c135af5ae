"""OpenSpiel's games: one agent against random players, or all players of a match."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict, Discrete
from pettingzoo import ParallelEnv

from pufferlib.errors import APIUsageError

from .._shared.options import check_render_mode
from .match import Match

__all__ = ["OpenSpielEnv", "OpenSpielParallelEnv", "make_env"]

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
) -> "OpenSpielEnv | OpenSpielParallelEnv":
    """Make the game ``name``. See the module ``pufferlib.bindings.openspiel`` for the options.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        UnknownNameError: The game has no such setting.
    """
    where = f"openspiel/{name}"
    if players not in ("random", "self"):
        raise APIUsageError(f"{where}: players must be 'random' or 'self', got {players!r}")
    check_render_mode(where, render_mode, "ansi")
    match = Match(where, name, settings or {}, observe)
    if seat is not None and (isinstance(seat, bool) or not isinstance(seat, int) or not 0 <= seat < match.num_players):
        raise APIUsageError(f"{where}: seat must be None or 0 to {match.num_players - 1}, got {seat!r}")
    if players == "self":
        if seat is not None:
            raise APIUsageError(f"{where}: seat must be None with players='self', got {seat}; all seats are played")
        return OpenSpielParallelEnv(match, render_mode)
    return OpenSpielEnv(match, seat, render_mode)


class OpenSpielEnv(gymnasium.Env[Observation, np.int64]):
    """A game with one agent. The other players act at random.

    Args:
        match: Game in progress.
        seat: Player number of the agent, or None to choose one at random for each game.
        render_mode: None, "ansi" or "rgb_array".
    """

    def __init__(self, match: Match, seat: int | None, render_mode: str | None) -> None:
        self.metadata = {"render_modes": ["ansi", "rgb_array"]}
        self.render_mode = render_mode
        self.observation_space: Any = match.observation_space
        self.action_space = match.action_space
        self._match = match
        self._fixed_seat = seat
        self._seat = seat or 0
        self._won = 0.0  # so far

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a game, and run it until it is the agent's turn."""
        super().reset(seed=seed)
        match = self._match
        if seed is not None:
            match.reseed(seed)
        if self._fixed_seat is None:
            self._seat = int(match.chance.integers(match.num_players))
        while True:
            match.start()
            self._let_others_play()
            if not match.is_over:  # some games can end before every player had a turn
                break
        self._won = match.returns()[self._seat]
        return match.view(self._seat), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act, and let the others play until it is the agent's turn again."""
        match = self._match
        self._act(int(action))
        self._let_others_play()
        returns = match.returns()
        reward = returns[self._seat] - self._won
        self._won = returns[self._seat]
        info = {"won": _won(returns, self._seat)} if match.is_over and match.num_players > 1 else {}
        return match.view(self._seat), reward, match.is_over, False, info

    def _let_others_play(self) -> None:
        while not self._match.is_over and self._seat not in self._match.acting():
            self._act()

    def _act(self, own: int = 0) -> None:
        """Make one move for each player whose turn it is: ``own`` for the agent, random ones for the others."""
        match = self._match
        match.play({seat: own if seat == self._seat else match.any_action(seat) for seat in match.acting()})

    def render(self) -> Any:
        """Return the state as text or as an image, or None without a ``render_mode``."""
        return self._match.shown(self.render_mode)


class OpenSpielParallelEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """A game with all its players. In each step, the players whose turn it is act.

    Args:
        match: Game in progress.
        render_mode: None, "ansi" or "rgb_array".
    """

    def __init__(self, match: Match, render_mode: str | None) -> None:
        self.metadata = {"name": "openspiel", "render_modes": ["ansi", "rgb_array"], "is_parallelizable": True}
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(match.num_players)]
        self.agents: list[str] = []
        self._match = match
        self._won: Sequence[float] = [0.0] * match.num_players  # so far

    def observation_space(self, agent: str) -> Dict:
        """Return the observation space of every player."""
        return self._match.observation_space

    def action_space(self, agent: str) -> Discrete:
        """Return the action space of every player."""
        return self._match.action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a game."""
        if seed is not None:
            self._match.reseed(seed)
        self._match.start()
        self._won = self._match.returns()
        self.agents = list(self.possible_agents)
        return self._views(), {agent: {} for agent in self.agents}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Apply the actions of the players whose turn it is. Other actions are ignored."""
        match, everyone = self._match, self.possible_agents
        match.play({seat: int(actions[everyone[seat]]) for seat in match.acting()})
        returns = match.returns()
        rewards = {agent: now - before for agent, now, before in zip(everyone, returns, self._won, strict=True)}
        self._won = returns
        is_over = match.is_over
        infos = {agent: {"won": _won(returns, seat)} if is_over else {} for seat, agent in enumerate(everyone)}
        if is_over:
            self.agents = []
        return self._views(), rewards, dict.fromkeys(everyone, is_over), dict.fromkeys(everyone, False), infos

    def _views(self) -> PerAgent:
        return {agent: self._match.view(seat) for seat, agent in enumerate(self.possible_agents)}

    def render(self) -> Any:
        """Return the state as text or as an image, or None without a ``render_mode``."""
        return self._match.shown(self.render_mode)

    def close(self) -> None:
        """Do nothing, since there is nothing to release."""


def _won(returns: Sequence[float], seat: int) -> float:
    """Return 1 if this player's return is higher than every other's, else 0."""
    return float(all(returns[seat] > other for index, other in enumerate(returns) if index != seat))
