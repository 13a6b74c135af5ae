"""Tasks of the bindings dm_control, MiniGrid, Procgen and ViZDoom."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.config import own_keywords
from pufferlib.envpool.native import NativeBackend, TwinBackend
from pufferlib.envpool.pool import PoolTask
from pufferlib.envpool.stepped import SteppedBackend, stepped_backend
from pufferlib.envpool.workers import WorkerBackend
from pufferlib.errors import APIUsageError
from pufferlib.registry import names
from pufferlib.registry.twins import twin_of

__all__ = ["tasks"]


def tasks() -> list[PoolTask]:
    """Return the tasks of the families ``dm_control``, ``minigrid``, ``procgen`` and ``vizdoom``."""
    return _dm_control_tasks() + _minigrid_tasks() + _procgen_tasks() + _vizdoom_tasks()


# dm_control, under EnvPool's ids: "WalkerWalk-v1" is the task "walk" of the domain "walker".

DM_CONTROL_STEPS = 1000
DM_CONTROL_PX = 480
ACRONYMS = ("CMU",)  # words that EnvPool writes in capital letters


def dm_control_id(name: str) -> str:
    """Return the task id for a name of the binding: "BallInCupCatch-v1" for "ball_in_cup-catch"."""
    words = name.replace("-", "_").split("_")
    return "".join(word if word in ACRONYMS else word[:1].upper() + word[1:] for word in words) + "-v1"


def _dm_control_tasks() -> list[PoolTask]:
    return [
        PoolTask(
            dm_control_id(name),
            "dm_control",
            TwinBackend(
                functools.partial(_native_dm_control, name),
                WorkerBackend(f"dmcontrol/{name}", _dm_control_settings, draw=draw_dm_control, declared_only=True),
                draws=False,
            ),
            DM_CONTROL_STEPS,
            keywords={"native": True},
            extra="dmcontrol",
        )
        for name in names("dmcontrol")
    ]


def _native_dm_control(name: str, keywords: dict[str, Any]) -> SteppedBackend | None:
    return stepped_backend(f"dmcontrol/{name}", {}, _dm_control_settings(keywords))


def _dm_control_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"flat": False, "time_limit": False}


def draw_dm_control(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Render a dm_control task with one of its cameras. Camera -1 is the first camera.

    Raises:
        APIUsageError: There is no such camera.
    """
    task = env.env.unwrapped
    cameras = task.dm_env.physics.model.ncam
    if camera_id >= cameras:
        raise APIUsageError(f"envpool.render: camera_id must be from -1 to {cameras - 1}, got {camera_id}")
    return task.picture(height or DM_CONTROL_PX, width or DM_CONTROL_PX, max(camera_id, 0))


# MiniGrid and BabyAI, under their own ids.

MISSION_BYTES = {"MiniGrid": 96, "BabyAI": 512}  # length of a mission, by the first word of an id
MINIGRID_INFOS = {"agent_pos": Box(0, 2**15, (2,), np.int32)}


def _minigrid_tasks() -> list[PoolTask]:
    return [
        PoolTask(
            name,
            "minigrid",
            TwinBackend(functools.partial(_native_minigrid, name), python),
            keywords={"mission_bytes": MISSION_BYTES[name.partition("-")[0]], "native": True},
            any_keyword=True,
            extra="minigrid",
        )
        for name in names("minigrid")
        for python in [WorkerBackend(f"minigrid/{name}", _minigrid_settings, MINIGRID_INFOS, declared_only=True)]
    ]


def _native_minigrid(name: str, keywords: dict[str, Any]) -> NativeBackend | None:
    """Return the backend in C, or None if it does not have this world with these keyword arguments."""
    twin = twin_of(f"minigrid/{name}", keywords)
    return None if twin is None else NativeBackend(twin.name, twin.observation_space, **twin.params)


def _minigrid_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments. Without ``max_episode_steps`` the environment's own limit applies."""
    limit = {"max_steps": config["max_episode_steps"]} if config["max_episode_steps"] else {}
    return {**limit, **own_keywords(config)}


# Procgen: 16 games in up to five modes, under EnvPool's ids, for example "BigfishEasy-v0".

PROCGEN_MODES = {0: "easy", 1: "hard", 2: "extreme", 10: "memory", 20: "exploration"}  # by EnvPool's number

#: Games of the modes that not every game has.
PROCGEN_GAMES = {
    "extreme": "chaser dodgeball leaper starpilot",
    "memory": "caveflyer dodgeball heist jumper maze miner",
    "exploration": "caveflyer climber coinrun heist jumper leaper maze ninja",
}


def _procgen_tasks() -> list[PoolTask]:
    return [
        PoolTask(
            f"{game.capitalize()}{mode.capitalize()}-v0",
            "procgen",
            WorkerBackend(f"procgen/{game}", _procgen_settings, channels_first_by="channel_first", declared_only=True),
            keywords={"channel_first": True, "distribution_mode": mode},
            any_keyword=True,
            extra="procgen",
        )
        for game in names("procgen")
        for mode in PROCGEN_MODES.values()
        if game in PROCGEN_GAMES.get(mode, game).split()
    ]


def _procgen_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    own = own_keywords(config)
    del own["channel_first"]
    mode = own["distribution_mode"]
    if mode not in [*PROCGEN_MODES, *PROCGEN_MODES.values()]:
        raise APIUsageError(f"envpool.make: distribution_mode must be one of {[*PROCGEN_MODES]}, got {mode!r}")
    return {**own, "distribution_mode": PROCGEN_MODES.get(mode, mode)}


# ViZDoom, under EnvPool's ids. "VizdoomCustom-v1" runs a scenario from the user's own files.

VIZDOOM_STEPS = 525

#: Names of the scenario files that ViZDoom ships.
VIZDOOM_SCENARIOS = {
    "Basic-v1": "basic",
    "BasicAudio-v1": "basic_audio",
    "BasicNotifications-v1": "basic_notifications",
    "Cig-v1": "cig",
    "DeadlyCorridor-v1": "deadly_corridor",
    "Deathmatch-v1": "deathmatch",
    "DefendTheCenter-v1": "defend_the_center",
    "DefendTheLine-v1": "defend_the_line",
    "HealthGathering-v1": "health_gathering",
    "HealthGatheringSupreme-v1": "health_gathering_supreme",
    "MultiDuel-v1": "multi_duel",
    "MyWayHome-v1": "my_way_home",
    "PredictPosition-v1": "predict_position",
    "RocketBasic-v1": "rocket_basic",
    "SimplerBasic-v1": "simpler_basic",
    "TakeCover-v1": "take_cover",
}

#: Game variables that are reported as infos.
VIZDOOM_INFOS = (
    *(f"AMMO{weapon}" for weapon in range(2, 8)),
    *("ARMOR", "DAMAGECOUNT", "DEATHCOUNT", "FRAGCOUNT", "HEALTH", "HITCOUNT", "KILLCOUNT", "SELECTED_WEAPON"),
    *("SELECTED_WEAPON_AMMO", "USER2"),
)

VIZDOOM_KEYWORDS: Mapping[str, Any] = {
    "wad_path": "",
    "iwad_path": "",
    "map_id": "map01",
    "game_args": "",
    "img_height": 84,
    "img_width": 84,
    "stack_num": 4,
    "frame_skip": 4,
    "use_inter_area_resize": True,
    "lmp_save_dir": "",
    "episodic_life": False,
    "use_combined_action": False,
    "force_speed": False,
    "weapon_duration": 5,
    "reward_config": None,
    "reward_metric": None,
    "selected_weapon_reward_config": None,
    "delta_button_config": None,
}


def _vizdoom_tasks() -> list[PoolTask]:
    files = {**{task_id: f"{name}.cfg" for task_id, name in VIZDOOM_SCENARIOS.items()}, "VizdoomCustom-v1": ""}
    infos = dict.fromkeys(VIZDOOM_INFOS, Box(-np.inf, np.inf, (), np.float64))
    return [
        PoolTask(
            task_id,
            "vizdoom",
            WorkerBackend("vizdoom/scenario", _vizdoom_settings, infos, declared_only=True),
            VIZDOOM_STEPS,
            keywords={"cfg_path": cfg_path, **VIZDOOM_KEYWORDS},
            extra="vizdoom",
        )
        for task_id, cfg_path in files.items()
    ]


def _vizdoom_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**own_keywords(config), "infos": VIZDOOM_INFOS}
