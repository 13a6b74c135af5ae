"""ViZDoom: its scenarios, under EnvPool's ids, and any other of a user's own files as "VizdoomCustom-v1"."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.tasks import PoolTask

__all__ = ["tasks"]

FAMILY = "vizdoom"
STEPS = 525

#: Names of the settings of each scenario, which ViZDoom brings.
SCENARIOS = {
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

#: Variables of the game that are infos.
INFOS = (
    *(f"AMMO{weapon}" for weapon in range(2, 8)),
    *("ARMOR", "DAMAGECOUNT", "DEATHCOUNT", "FRAGCOUNT", "HEALTH", "HITCOUNT", "KILLCOUNT", "SELECTED_WEAPON"),
    *("SELECTED_WEAPON_AMMO", "USER2"),
)

KEYWORDS: Mapping[str, Any] = {
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


def tasks() -> list[PoolTask]:
    """Return a task for each scenario, and one for any other."""
    named = [_task(task_id, f"{name}.cfg") for task_id, name in SCENARIOS.items()]
    return [*named, _task("VizdoomCustom-v1", "")]


def _task(task_id: str, cfg_path: str) -> PoolTask:
    from pufferlib.envpool.workers import WorkerBackend

    infos = dict.fromkeys(INFOS, Box(-np.inf, np.inf, (), np.float64))
    backend = WorkerBackend("vizdoom/scenario", _settings, infos, declared_only=True)
    return PoolTask(task_id, FAMILY, backend, STEPS, keywords={"cfg_path": cfg_path, **KEYWORDS}, extra="vizdoom")


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    from pufferlib.envpool.workers.backend import own_keywords

    return {**own_keywords(config), "infos": INFOS}
