"""Neural MMO as a PettingZoo environment with selectable observations, which writes no files."""

import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict
from pettingzoo import ParallelEnv

from pufferlib.errors import APIUsageError, UnknownNameError

from .._shared.options import check_counts, check_render_mode
from .simplex import as_vec_noise

_had_vec_noise = "vec_noise" in sys.modules
sys.modules.setdefault("vec_noise", as_vec_noise())  # see simplex.py, only needed while nmmo is imported
try:
    import nmmo
    from nmmo.core.terrain import MapGenerator, Terrain
finally:
    if not _had_vec_noise:
        del sys.modules["vec_noise"]

__all__ = ["NmmoParallelEnv", "make_env"]

PerAgent = dict[int, Any]
Pixels = npt.NDArray[np.uint8]

PLAIN = ("CurrentTick", "AgentId", "Tile", "Entity", "Inventory", "Communication", "ActionTargets")
MANAGED = ("MAP_N", "MAP_GENERATOR", "MAP_FORCE_GENERATION", "MAP_RESET_FROM_FRACTAL", "CURRICULUM_FILE_PATH")
TILE_PX = 4  # size of a tile in the image
PLAYER = (255, 40, 40)  # colors of players and NPCs
NPC = (255, 220, 0)


class _Large(nmmo.config.Large, nmmo.config.AllGameSystems):  # type: ignore[misc]  # nmmo has no types
    """1,024 agents, all game systems."""


class _Small(nmmo.config.Small, nmmo.config.AllGameSystems):  # type: ignore[misc]
    """64 agents, all game systems."""


_SIZES: dict[str, type[Any]] = {"default": nmmo.config.Default, "large": _Large, "small": _Small}


def make_env(
    name: str,
    *,
    observe: Sequence[str] | str | None = None,
    num_maps: int = 1,
    curriculum: str | None = None,
    config: Mapping[str, Any] | None = None,
    render_mode: str | None = None,
) -> "NmmoParallelEnv":
    """Make the world of size ``name``. See the module ``pufferlib.bindings.nmmo`` for the options.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        UnknownNameError: A name in ``observe`` or ``config`` does not exist.
    """
    where = f"nmmo/{name}"
    check_counts(where, num_maps=num_maps)
    check_render_mode(where, render_mode)
    if curriculum is not None and not Path(curriculum).is_file():
        raise APIUsageError(f"{where}: curriculum must be a file of task specifications, got {curriculum!r}")
    settings = _SIZES[name]()
    _configure(where, settings, config or {})
    for key, value in {"MAP_N": num_maps, "MAP_GENERATOR": _Textures, "CURRICULUM_FILE_PATH": curriculum}.items():
        settings.set(key, value)
    if curriculum is not None:
        settings.set("GAME_PACKS", [(nmmo.core.game_api.AgentTraining, 1)])
    env = _Nmmo(settings)
    return NmmoParallelEnv(env, _observed(where, env, observe, curriculum is not None), render_mode)


def _configure(where: str, settings: Any, changes: Mapping[str, Any]) -> None:
    known = {key for key in dir(settings) if key.isupper() and not key.startswith("PATH_")} - set(MANAGED)
    for key, value in changes.items():
        if key not in known or isinstance(getattr(type(settings), key), property):
            raise UnknownNameError.of(where, "key of config", key, known)
        settings.set(key, value)


def _observed(where: str, env: Any, observe: Sequence[str] | str | None, has_tasks: bool) -> list[str]:
    """Return the observed fields in the order of the space."""
    fields = list(env.observed_space)
    if observe is None:
        return [field for field in fields if field in PLAIN or has_tasks]
    if observe == "all":
        return fields
    if isinstance(observe, str) or not observe:
        raise APIUsageError(f"{where}: observe must be 'all' or a list of fields, got {observe!r}; fields: {fields}")
    for field in observe:
        if field not in fields:
            raise UnknownNameError.of(where, "field to observe", field, fields)
    return [field for field in fields if field in observe]


class NmmoParallelEnv(ParallelEnv[int, Any, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """One world. Agents are named 1, 2, 3, ...

    Args:
        env: Environment of nmmo.
        observed: Observed fields.
        render_mode: None or "rgb_array".
    """

    def __init__(self, env: "_Nmmo", observed: list[str], render_mode: str | None) -> None:
        self.metadata = {"name": "nmmo", "render_modes": ["rgb_array"], "render_fps": 2}
        self.render_mode = render_mode
        self.env = env
        self.possible_agents: list[int] = env.possible_agents
        self._observed = observed
        self._space = Dict({field: env.observed_space[field] for field in observed})
        self._action_space = env.acted_space

    @property
    def agents(self) -> list[int]:
        """Agents that are alive."""
        agents: list[int] = self.env.agents
        return agents

    def observation_space(self, agent: int) -> Dict:
        """Return the observation space of every agent."""
        return self._space

    def action_space(self, agent: int) -> Dict:
        """Return the action space of every agent."""
        return self._action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a game. The next step overwrites the arrays."""
        observations, _ = self.env.reset(seed=None if seed is None else int(seed))
        return self._shown(observations), {agent: {} for agent in observations}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Step with every living agent. The next step overwrites the arrays."""
        observations, rewards, terminations, truncations, _ = self.env.step(actions)
        # Agents without a task may be missing in the rewards. The infos name each agent's task in every step,
        # which adds nothing to the reward.
        rewards = {agent: rewards.get(agent, 0.0) for agent in observations}
        return self._shown(observations), rewards, terminations, truncations, dict.fromkeys(observations, _NO_INFO)

    def _shown(self, observations: PerAgent) -> PerAgent:
        fields = self._observed
        return {agent: {field: whole[field] for field in fields} for agent, whole in observations.items()}

    def render(self) -> Pixels | None:
        """Return the whole map with players (red) and other entities (yellow), or None without a ``render_mode``."""
        return self.env.picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Do nothing, since there is nothing to release."""


_NO_INFO: dict[str, Any] = {}


class _Textures(MapGenerator):  # type: ignore[misc]
    """Loads the textures of tiles, without generating maps."""

    def generate_all_maps(self, seed: int | None = None) -> None:
        """Do nothing. nmmo would write files to the working folder."""


class _Nmmo(nmmo.Env):  # type: ignore[misc]
    """nmmo's environment with its maps in memory."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        # The methods for spaces have a cache that keeps every environment alive forever.
        self.observed_space: Dict = self._obs_space
        self.acted_space: Dict = self._atn_space
        self._kinds = [
            (kind, self._str_atn_map[kind], [(part, self._str_atn_map[part]) for part in parts])
            for kind, parts in self.acted_space.items()
        ]

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Reset like nmmo, and clear the path cache of the last map, which NPCs would otherwise use on the new one."""
        self.realm.map.pathfinding_cache.clear()
        return super().reset(*args, **kwargs)

    def _validate_actions(self, actions: PerAgent) -> PerAgent:
        """Validate like nmmo, in half the time. This runs for every agent and every kind of action."""
        if self.scripted_agents:  # their actions may have a different structure
            validated: PerAgent = super()._validate_actions(actions)
            return validated
        enabled = [kind for kind in self._kinds if kind[1].enabled(self.config)]
        players = self.realm.players.entities
        return {
            agent: self._valid(players[agent], self.obs[agent], chosen, enabled)
            for agent, chosen in actions.items()
            if agent in players and players[agent].alive
        }

    def _valid(self, player: Any, seen: Any, chosen: Any, enabled: list[Any]) -> dict[Any, Any]:
        """Return the actions of one agent whose arguments are all valid."""
        valid = {}
        for kind, action, parts in enabled:
            given, arguments = chosen[kind], {}
            for part, argument in parts:
                meaning = argument.deserialize(self.realm, player, given[part], seen)
                if meaning is None:
                    break
                arguments[argument] = meaning
            else:
                valid[action] = arguments
        return valid

    def _load_map_file(self, map_id: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the requested map, or a random one. A map depends only on its number."""
        index = int(map_id or self._np_random.integers(self.config.MAP_N) + 1) - 1
        keys = [key for key in dir(self.config) if key.startswith(("MAP_", "TERRAIN_"))]
        settings = tuple((key, getattr(self.config, key)) for key in keys if key != "MAP_GENERATOR")
        # Only the fractal is used, from which each game places its resources. "map" only needs the right shape.
        return {"map": np.zeros((self.config.MAP_SIZE,) * 2, int), "fractal": _fractal(index, settings)}

    def picture(self) -> Pixels:
        """Return the map as uint8 ``(height, width, 3)``."""
        colours = _colours(self.config)
        image: Pixels = colours[self.tile_map[:, :, 2]]
        for walkers, colour in ((self.realm.npcs, NPC), (self.realm.players, PLAYER)):
            for walker in walkers.values():
                image[walker.pos] = colour
        return image.repeat(TILE_PX, 0).repeat(TILE_PX, 1)


@functools.lru_cache(maxsize=256)
def _fractal(index: int, settings: tuple[tuple[str, Any], ...]) -> npt.NDArray[np.float64]:
    """Return the heights of map ``index``, shared by all environments of this process."""
    heights, _, _ = Terrain.generate_terrain(SimpleNamespace(**dict(settings)), index, None)
    kept: npt.NDArray[np.float64] = heights.astype(np.float16).astype(float)  # as precise as in nmmo's files
    kept.setflags(write=False)
    return kept


def _colours(config: Any) -> Pixels:
    """Return the mean color of each material by its index."""
    textures: dict[int, Pixels] = _Textures(config).textures
    colours = np.zeros((max(textures) + 1, 3), np.uint8)
    for index, texture in textures.items():
        colours[index] = texture.mean((0, 1))
    return colours
