"""Box2D: Gymnasium's games, under its ids."""

from pufferlib.envpool.tasks import PoolTask

__all__ = ["tasks"]

FAMILY = "box2d"

#: Steps after which an episode is cut off, and the return from which it counts as solved.
GAMES = {
    "BipedalWalker-v3": (1600, 300.0),
    "BipedalWalkerHardcore-v3": (2000, 300.0),
    "CarRacing-v3": (1000, 900.0),
    "LunarLander-v3": (1000, 200.0),
    "LunarLanderContinuous-v3": (1000, 200.0),
}

#: Ids of older versions, which are played as the newest: Gymnasium has mended the games since.
OLDER = {
    "CarRacing-v2": "CarRacing-v3",
    "LunarLander-v2": "LunarLander-v3",
    "LunarLanderContinuous-v2": "LunarLanderContinuous-v3",
}


def tasks() -> list[PoolTask]:
    """Return a task for each id."""
    from pufferlib.envpool.workers import WorkerBackend

    return [
        PoolTask(
            task_id,
            FAMILY,
            WorkerBackend(f"box2d/{game}", is_limited=True, declared_only=True),
            *GAMES[game],
            any_keyword=True,
            extra="box2d",
        )
        for task_id, game in {**{game: game for game in GAMES}, **OLDER}.items()
    ]
