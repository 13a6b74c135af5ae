"""Play of two entrants in many parallel games, with sides swapped after each game."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pufferlib import registry, vector
from pufferlib.env import AutoresetMode
from pufferlib.legal_actions import LegalActions
from pufferlib.models import Policy, make_policy
from pufferlib.models.players import PolicyPlayer
from pufferlib.render.motion import Motion
from pufferlib.render.picture import picture_of
from pufferlib.render.window import drawn_unseen
from pufferlib.runs.folder import Run
from pufferlib.seeding import env_seed
from pufferlib.selfplay.entrants import RANDOM, SCRIPTED, Entrant, Game
from pufferlib.training.agent import load_policy
from pufferlib.training.evaluation import Record
from pufferlib.training.normalization import with_moments
from pufferlib.training.opponents import GameResults, check_two_sides, games_of

__all__ = ["Arena"]

AT_ONCE = {True: 256, False: 16}  # number of parallel games, for environments that batch themselves and for others
MAX_STEPS = 20_000  # steps after which a game is a draw


class Arena:
    """Arena in which entrants play a game. Each policy is loaded once, and each pair gets a batch of environments.

    Args:
        where: Prefix of error messages.
        game: Game to play.
        greedy: True to take the most likely actions instead of sampling.

    Attributes:
        policies: Loaded policies, by identity of the entrant.
    """

    def __init__(self, where: str, game: Game, greedy: bool = False) -> None:
        self._where, self._game, self._greedy = where, game, greedy
        self.policies: dict[str, Policy] = {}

    def load(self, entrant: Entrant) -> None:
        """Load the policy of ``entrant``, to report problems before the first game.

        Raises:
            APIUsageError: The file is damaged or does not match the environment.
        """
        if entrant.config is not None and entrant.path is not None and entrant.identity not in self.policies:
            self.policies[entrant.identity] = load_policy(entrant.config, Run(entrant.path, entrant.path)).eval()

    def check(self) -> None:
        """Raise APIUsageError unless agents can play both sides of the game."""
        with self._open(1, False, False) as vecenv:
            check_two_sides(self._where, self._game.env_name, vecenv)

    def play(
        self, one: Entrant, other: Entrant, games: int, seed: int, record: Record | None = None
    ) -> npt.NDArray[np.float64]:
        """Play ``games`` games. The sides are swapped after each game.

        The results depend only on the weights of both entrants, the settings and ``seed``, not on the order of the
        entrants.

        Args:
            one: First entrant.
            other: Second entrant. One of the two may be "scripted", which always plays the environment's side.
            games: Number of games.
            seed: Seed of the environments and the actions.
            record: Function that receives every frame of the first game, and the frame rate in 1/s.

        Returns:
            Scores of ``one`` in the order of the games: 1 for a win, 0.5 for a draw, 0 for a loss.
        """
        if one.identity == SCRIPTED or one.identity > other.identity != SCRIPTED:
            return np.asarray(1 - self.play(other, one, games, seed, record))
        scores: list[npt.NDArray[np.float64]] = []
        at_once = min(games, AT_ONCE[registry.batches_itself(self._game.env_name)])
        has_script = other.identity == SCRIPTED
        with self._open(at_once, has_script, record is not None) as vecenv, drawn_unseen():
            if not has_script:
                check_two_sides(self._where, self._game.env_name, vecenv)
            for wave, start in enumerate(range(0, games, at_once)):
                count = min(at_once, games - start)
                scores.append(self._play_at_once(vecenv, (one, other), count, env_seed(seed, wave), start, record))
                record = None
        return np.concatenate(scores)

    def _open(self, games: int, has_script: bool, render: bool) -> Any:
        """Make the batch of environments."""
        keywords = {**self._game.settings, **({} if has_script else self._game.keywords)}
        creator = registry.env_creator(self._game.env_name)
        first = {**keywords, "render_mode": "rgb_array"} if render else keywords
        if registry.batches_itself(self._game.env_name):
            return vector.make(creator, env_kwargs={**first, "num_envs": games}, backend="native")
        return vector.make(
            [creator] * games,
            env_kwargs=[first, *[keywords] * (games - 1)],
            num_envs=games,
            backend="Serial",
            autoreset=AutoresetMode.SAME_STEP,
        )

    def _player(self, entrant: Entrant, vecenv: Any, seed: int) -> "_NormalizedPlayer":
        if entrant.identity == RANDOM and RANDOM not in self.policies:
            self.policies[RANDOM] = _uniform_policy(vecenv)
        self.load(entrant)
        return _NormalizedPlayer(
            self.policies[entrant.identity], vecenv, seed, self._greedy and entrant.identity != RANDOM
        )

    def _play_at_once(
        self, vecenv: Any, pair: tuple[Entrant, Entrant], count: int, seed: int, start: int, record: Record | None
    ) -> npt.NDArray[np.float64]:
        """Play a game in each environment, after ``start`` earlier games, and return the first ``count`` scores."""
        # Assign a player to every agent. The sides are swapped in every second game.
        games = games_of(vecenv)
        agents, sides = vecenv.num_agents // games, 1 if pair[1].identity == SCRIPTED else 2
        players = [self._player(pair[index], vecenv, env_seed(seed, index + 1)) for index in range(sides)]
        is_swapped = (np.arange(start, start + games) % 2 == 1) & (sides == 2)
        sides_of_agents = np.repeat(np.arange(sides), agents // sides)  # the side of each agent in a game
        player_of_agent = (sides_of_agents ^ is_swapped[:, None]).ravel()  # the player that controls each agent
        results, scores = GameResults(games, agents, sides), np.full(games, np.nan)
        playing = np.arange(games) < count
        idle = LegalActions(vecenv, vecenv.num_agents, seed) if vecenv.emulated else None
        motion = Motion(vecenv.driver_env)
        # Step all games until each has ended once. The scores of later episodes do not count.
        observations, _ = vecenv.reset(seed=seed)
        actions = vecenv.actions.copy()
        for _ in range(MAX_STEPS):
            awake = np.repeat(playing, agents)
            if idle is not None and not awake.all():  # games that are over continue, and may refuse illegal actions
                actions[~awake] = idle.sample(observations)[~awake]
            for index, player in enumerate(players):
                rows = np.flatnonzero(awake & (player_of_agent == index))
                if len(rows):
                    actions[rows] = player.act(observations, rows)
            if record is not None and playing[0]:
                record(picture_of(vecenv.driver_env), motion.fps)
            results.see(vecenv.masks)
            present = vecenv.masks.copy()
            observations, rewards, terminals, truncations, _ = vecenv.step(actions)
            for player in players:
                player.begin(terminals | truncations | ~present)
            over, found = results.end(rewards, terminals, truncations)
            scores[over] = np.where(playing[over], found, scores[over])
            playing[over] = False
            if not playing.any():
                break
        scores[np.isnan(scores)] = 0.5
        return np.where(is_swapped, 1 - scores, scores)[:count]


class _NormalizedPlayer:
    """Player with a policy and its observation normalization."""

    def __init__(self, policy: Policy, vecenv: Any, seed: int, greedy: bool) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._player = PolicyPlayer(policy, vecenv.num_agents, generator, greedy)
        seen = with_moments(vecenv, policy)
        self._normalize = None if seen is vecenv else seen.normalize
        self._player.begin()

    def begin(self, rows: npt.NDArray[np.bool_]) -> None:
        """Reset the memory of the agents in ``rows``, a mask."""
        if rows.any():
            self._player.begin(torch.from_numpy(rows))

    def act(self, observations: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> Any:
        """Choose the actions of the agents in ``rows``."""
        return self._player.act(observations if self._normalize is None else self._normalize(observations), rows)


def _uniform_policy(vecenv: Any) -> Policy:
    """Return a policy that gives all legal actions the same probability."""
    policy = make_policy(vecenv.driver_env, "Default", 1, 1, "none")
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
    return policy.requires_grad_(False).eval()
