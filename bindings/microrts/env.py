"""MicroRTS games on one map as one vector environment."""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import jpype
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, MultiDiscrete

from pufferlib.buffers import Array, BufferSource
from pufferlib.env import Infos, PufferEnv, Stepped
from pufferlib.errors import APIUsageError, UnknownNameError

from .._shared.options import check_counts, check_numbers, check_render_mode, check_switches
from .java import FOLDER, OPPONENTS, common_chance, opponent, own_chance, shared_integers, start

__all__ = ["MicrortsGames"]

REWARDS = ("WinLoss", "ResourceGather", "ProduceWorker", "ProduceBuilding", "Attack", "ProduceCombatUnit")
WEIGHTS = (10.0, 1.0, 1.0, 0.2, 1.0, 4.0)  # from Huang et al. 2021
PARTS = (6, 4, 4, 4, 4, 7, 49)  # number of values of each component of a cell's action
STARTS = np.cumsum((0, *PARTS[:-1]))  # start of each component in a cell's mask
MASK_PLANES = sum(PARTS)
NEVER = 2**31 - 1  # Java's own step limit, disabled because it would lose the last observation
CELL_PX = 16
Pixels = npt.NDArray[np.uint8]


class MicrortsGames(PufferEnv):
    """Games on one map. See the module ``pufferlib.bindings.microrts`` for the options.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        UnknownNameError: An opponent does not exist.
        BindingMissing: Java is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        buf: BufferSource = None,
        seed: int = 0,
        num_games: int = 8,
        opponents: Sequence[str] = ("coacAI", "lightRushAI", "workerRushAI", "randomBiasedAI"),
        max_steps: int = 2000,
        partial_obs: bool = False,
        reward_weights: Sequence[float] = WEIGHTS,
        render_mode: str | None = None,
    ) -> None:
        where = f"microrts/{name}"
        check_counts(where, num_games=num_games, max_steps=max_steps)
        check_switches(where, partial_obs=partial_obs)
        check_render_mode(where, render_mode)
        _check_lists(where, opponents, reward_weights)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 15}
        self.render_mode = render_mode
        self.num_agents = int(num_games)
        self._max_steps = max_steps
        self._weights = np.array(reward_weights, np.float64)
        self._first_seed: int | None = seed
        start(where)
        path = next(FOLDER.glob(f"maps/**/{name}.xml"))
        world = ElementTree.parse(path).getroot()
        self._height, self._width = int(world.attrib["height"]), int(world.attrib["width"])
        self._open(
            str(path.relative_to(FOLDER)), [opponents[i % len(opponents)] for i in range(num_games)], bool(partial_obs)
        )
        planes = self._java_observations.shape[-1]
        cells = self._height * self._width
        self.single_observation_space = Box(0, 1, (self._height, self._width, planes + MASK_PLANES), np.uint8)
        self.single_action_space = MultiDiscrete(np.tile(PARTS, cells))
        super().__init__(buf)
        self._returns = np.zeros(num_games)
        self._lengths = np.zeros(num_games, np.int64)

    def _open(self, path: str, opponents: Sequence[str], partial_obs: bool) -> None:
        """Create the Java side, and the arrays that it shares with Python."""
        n, height, width = self.num_agents, self._height, self._width
        units = jpype.JClass("rts.units.UnitTypeTable")()
        planes = int(jpype.JClass("rts.GameState").numFeaturePlanes)
        seen, self._java_observations = shared_integers((n, height, width, planes))
        masks, self._java_masks = shared_integers((n, height * width, MASK_PLANES))
        acts, self._java_actions = shared_integers((n, height * width, len(PARTS)))
        rewards = jpype.JArray(jpype.JClass("ai.rewardfunction.RewardFunctionInterface"))(
            [jpype.JClass(f"ai.rewardfunction.{name}RewardFunction")() for name in REWARDS]
        )
        players = [opponent(name, units) for name in opponents]
        self._client = jpype.JClass("tests.JNIGridnetSharedMemVecClient")(
            *(0, n, NEVER, rewards, str(FOLDER), path, jpype.JArray(jpype.JClass("ai.core.AI"))(players)),
            *(units, partial_obs, seen, masks, acts, 0),
        )
        self._players = [0] * n  # which side we are
        self._common_chance = common_chance()

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Restart all games."""
        if self._first_seed is not None:
            seed = self._first_seed if seed is None else seed
            self._first_seed = None
        if seed is not None:
            self._chance = np.random.default_rng(seed)
        self._reseed(self._common_chance)
        self._client.reset(self._players)
        for game in range(self.num_agents):
            self._begin(game)
        self.masks[:] = True
        self._observe()
        return self.observations, []

    def _begin(self, game: int) -> None:
        """Reset the counters, and seed the opponent, which Java creates again for every game."""
        self._returns[game], self._lengths[game] = 0, 0
        self._reseed(own_chance(self._client.clients[game].ai2))

    def _reseed(self, generators: list[Any]) -> None:
        for generator in generators:
            generator.setSeed(int(self._chance.integers(2**31)))

    def step(self, actions: Any) -> Stepped:
        """Step all games."""
        np.copyto(self._java_actions, self._allowed(np.asarray(actions).reshape(self._java_actions.shape)))
        self._reseed(self._common_chance)  # generators shared with other environments in this process
        response = self._client.gameStep(self._players)
        parts = np.array(response.reward)
        self.rewards[:] = parts @ self._weights
        self.terminals[:] = np.array(response.done)[:, 0]
        self._returns += self.rewards
        self._lengths += 1
        self.truncations[:] = ~self.terminals & (self._lengths >= self._max_steps)
        self._observe()
        if self.truncations.any():
            self.final_observations[self.truncations] = self.observations[self.truncations]
            for game in np.flatnonzero(self.truncations).tolist():
                self._client.clients[game].reset(0)
            self._observe()
        return self.observations, self.rewards, self.terminals, self.truncations, self._endings(parts[:, 0])

    def _endings(self, results: npt.NDArray[np.float64]) -> Infos:
        """Return the infos of the episodes that ended, and start the next ones."""
        infos: Infos = []
        for game in np.flatnonzero(self.terminals | self.truncations).tolist():
            score = float(results[game])
            summary = {"episode_return": float(self._returns[game]), "episode_length": int(self._lengths[game])}
            infos.append({"score": score, "won": float(score > 0), **summary})
            self._begin(game)
        return infos

    def _allowed(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``actions`` with illegal ones replaced by the first legal one."""
        wrong = np.take_along_axis(self._java_masks, STARTS + actions, -1) == 0
        if not wrong.any():
            return actions
        parts = np.split(self._java_masks, STARTS[1:], -1)
        first = np.stack([part.argmax(-1) for part in parts], -1)
        return np.where(wrong, first, actions)

    def _observe(self) -> None:
        """Copy observations and masks from Java."""
        self._client.getMasks(0)
        planes = self._java_observations.shape[-1]
        self.observations[..., :planes] = self._java_observations
        self.observations[..., planes:] = self._java_masks.reshape(*self.observations.shape[:-1], MASK_PLANES)

    def render(self) -> Pixels | None:
        """Return an image of the first game, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        cells = self.observations[0]
        owner, unit = cells[..., 10:13].argmax(-1), cells[..., 13:21].argmax(-1)
        picture = np.full((self._height, self._width, CELL_PX, CELL_PX, 3), 24, np.uint8)
        picture[:, :, 1:, 1:] = 48  # a grid
        colours = np.array([(70, 190, 90), (70, 130, 240), (230, 70, 70)], np.uint8)
        for row, column in zip(*np.nonzero(unit), strict=True):
            margin = 2 if unit[row, column] <= 3 else 4  # resources and buildings are larger
            inner = picture[row, column, margin : CELL_PX - margin + 1, margin : CELL_PX - margin + 1]
            inner[:] = colours[owner[row, column]]
            inner[3:-3, 3:-3] = 32 * unit[row, column] - 1  # a distinct mark for each kind of unit
        return picture.swapaxes(1, 2).reshape(self._height * CELL_PX, self._width * CELL_PX, 3)

    def close(self) -> None:
        """Close the games. Java keeps running until the process exits, since it cannot be started twice."""
        if self._client is not None:
            self._client.close()
        self._client = None


def _check_lists(where: str, opponents: object, weights: object) -> None:
    if not isinstance(opponents, list | tuple) or not opponents:
        raise APIUsageError(f"{where}: opponents must be a list of names, got {opponents!r}")
    for name in opponents:
        if name not in OPPONENTS:
            raise UnknownNameError.of(where, "opponent", name, OPPONENTS)
    if not isinstance(weights, list | tuple) or len(weights) != len(REWARDS):
        raise APIUsageError(f"{where}: reward_weights must be {len(REWARDS)} numbers, one for each of {REWARDS}")
    check_numbers(where, **{f"reward_weights[{place}]": weight for place, weight in enumerate(weights)})
