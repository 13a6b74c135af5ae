"""MiniGrid and BabyAI, under their own ids."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.tasks import PoolTask

__all__ = ["tasks"]

FAMILY = "minigrid"

#: Bytes of a mission, by the beginning of an id.
MISSION_BYTES = {"MiniGrid": 96, "BabyAI": 512}
INFOS = {"agent_pos": Box(0, 2**15, (2,), np.int32)}


def tasks() -> list[PoolTask]:
    """Return a task for each world and level; without ``max_episode_steps`` its own limit holds."""
    from pufferlib.envpool.workers import WorkerBackend
    from pufferlib.registry import names

    return [
        PoolTask(
            name,
            FAMILY,
            WorkerBackend(f"minigrid/{name}", _settings, INFOS, declared_only=True),
            keywords={"mission_bytes": MISSION_BYTES[name.partition("-")[0]]},
            any_keyword=True,
            extra="minigrid",
        )
        for name in names("minigrid")
    ]


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    from pufferlib.envpool.workers.backend import own_keywords

    limit = {"max_steps": config["max_episode_steps"]} if config["max_episode_steps"] else {}
    return {**limit, **own_keywords(config)}
