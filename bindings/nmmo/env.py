"""Neural MMO as a PettingZoo environment that writes no files and shows only what is asked for."""

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
sys.modules.setdefault("vec_noise", as_vec_noise())  # see simplex.py; only nmmo's import must find it
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
TILE_PX = 4  # side of a tile in a picture
PLAYER = (255, 40, 40)  # colours of those who walk on it
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
    """The world of size ``name``; for the options see the page of the binding.

    Raises:
        APIUsageError: An option is of the wrong type or out of its range.
        UnknownNameError: ``observe`` or ``config`` names what does not exist.
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
    """The fields that agents see, in the order of the space."""
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
    """One world; agents are called 1, 2, 3, ...

    Args:
        env: Of nmmo.
        observed: The fields of its observations to show.
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
        """Observation space of every agent."""
        return self._space

    def action_space(self, agent: int) -> Dict:
        """Action space of every agent."""
        return self._action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a game. The arrays are overwritten by the next step."""
        observations, _ = self.env.reset(seed=None if seed is None else int(seed))
        return self._shown(observations), {agent: {} for agent in observations}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Act with every living agent. The arrays are overwritten by the next step."""
        observations, rewards, terminations, truncations, _ = self.env.step(actions)
        # Rewards may lack agents without a task; the infos name everybody's task in every step, which
        # tells nothing that the reward does not.
        rewards = {agent: rewards.get(agent, 0.0) for agent in observations}
        return self._shown(observations), rewards, terminations, truncations, dict.fromkeys(observations, _NOTHING)

    def _shown(self, observations: PerAgent) -> PerAgent:
        fields = self._observed
        return {agent: {field: whole[field] for field in fields} for agent, whole in observations.items()}

    def render(self) -> Pixels | None:
        """The whole map with its players (red) and others (yellow); None without a ``render_mode``."""
        return self.env.picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Nothing is held."""


_NOTHING: dict[str, Any] = {}


class _Textures(MapGenerator):  # type: ignore[misc]
    """Loads what tiles look like, and leaves the maps to be made when they are played."""

    def generate_all_maps(self, seed: int | None = None) -> None:
        """Write nothing: nmmo would put files into the working folder."""


class _Nmmo(nmmo.Env):  # type: ignore[misc]
    """nmmo's environment with its maps in memory."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        # nmmo keeps every environment forever whose spaces were asked for by method (a cache of its own).
        self.observed_space: Dict = self._obs_space
        self.acted_space: Dict = self._atn_space
        self._kinds = [
            (kind, self._str_atn_map[kind], [(part, self._str_atn_map[part]) for part in parts])
            for kind, parts in self.acted_space.items()
        ]

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Reset as nmmo does, and forget the paths of the last map, which animals would follow on this one."""
        self.realm.map.pathfinding_cache.clear()
        return super().reset(*args, **kwargs)

    def _validate_actions(self, actions: PerAgent) -> PerAgent:
        """Validate as nmmo does, in half the time: it runs for every agent and every kind of action."""
        if self.scripted_agents:  # their actions may have another form
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
        """The actions of one agent whose arguments all mean something."""
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
        """The map that was asked for, or any, from what its number alone decides."""
        index = int(map_id or self._np_random.integers(self.config.MAP_N) + 1) - 1
        keys = [key for key in dir(self.config) if key.startswith(("MAP_", "TERRAIN_"))]
        settings = tuple((key, getattr(self.config, key)) for key in keys if key != "MAP_GENERATOR")
        # Only the fractal is read, from which each game lays its own resources; the other must have the shape.
        return {"map": np.zeros((self.config.MAP_SIZE,) * 2, int), "fractal": _fractal(index, settings)}

    def picture(self) -> Pixels:
        """uint8 ``(height, width, 3)``."""
        colours = _colours(self.config)
        image: Pixels = colours[self.tile_map[:, :, 2]]
        for walkers, colour in ((self.realm.npcs, NPC), (self.realm.players, PLAYER)):
            for walker in walkers.values():
                image[walker.pos] = colour
        return image.repeat(TILE_PX, 0).repeat(TILE_PX, 1)


@functools.lru_cache(maxsize=256)
def _fractal(index: int, settings: tuple[tuple[str, Any], ...]) -> npt.NDArray[np.float64]:
    """Heights of map ``index``, which all environments of this process share."""
    heights, _, _ = Terrain.generate_terrain(SimpleNamespace(**dict(settings)), index, None)
    kept: npt.NDArray[np.float64] = heights.astype(np.float16).astype(float)  # as precise as in nmmo's files
    kept.setflags(write=False)
    return kept


def _colours(config: Any) -> Pixels:
    """The mean colour of each material, by its index."""
    textures: dict[int, Pixels] = _Textures(config).textures
    colours = np.zeros((max(textures) + 1, 3), np.uint8)
    for index, texture in textures.items():
        colours[index] = texture.mean((0, 1))
    return colours
