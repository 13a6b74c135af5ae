"""Procgen: 16 games in up to five modes, under EnvPool's ids: "BigfishEasy-v0"."""

from collections.abc import Mapping
from typing import Any

from pufferlib.envpool.tasks import PoolTask
from pufferlib.errors import APIUsageError

__all__ = ["tasks"]

FAMILY = "procgen"

#: Modes by the number that EnvPool has for them.
MODES = {0: "easy", 1: "hard", 2: "extreme", 10: "memory", 20: "exploration"}

#: Modes that only some games have.
GAMES_OF = {
    "extreme": "chaser dodgeball leaper starpilot",
    "memory": "caveflyer dodgeball heist jumper maze miner",
    "exploration": "caveflyer climber coinrun heist jumper leaper maze ninja",
}


def tasks() -> list[PoolTask]:
    """Return a task for each game and mode."""
    from pufferlib.envpool.workers import WorkerBackend
    from pufferlib.registry import names

    return [
        PoolTask(
            f"{game.capitalize()}{mode.capitalize()}-v0",
            FAMILY,
            WorkerBackend(f"procgen/{game}", _settings, channels_first_by="channel_first", declared_only=True),
            keywords={"channel_first": True, "distribution_mode": mode},
            any_keyword=True,
            extra="procgen",
        )
        for game in names("procgen")
        for mode in MODES.values()
        if game in GAMES_OF.get(mode, game).split()
    ]


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of the games."""
    from pufferlib.envpool.workers.backend import own_keywords

    own = own_keywords(config)
    del own["channel_first"]
    mode = own["distribution_mode"]
    if mode not in MODES and mode not in MODES.values():
        raise APIUsageError(f"envpool.make: distribution_mode must be one of {[*MODES]}, got {mode!r}")
    return {**own, "distribution_mode": MODES.get(mode, mode)}
