"""Classic control: CartPole and its kin in C, under the ids and with the step limits that Gymnasium gives them."""

from typing import NamedTuple

from pufferlib.envpool.tasks import PoolTask

__all__ = ["GAMES", "tasks"]

FAMILY = "classic_control"


class ClassicGame(NamedTuple):
    """A task and the environment behind it.

    Attributes:
        task_id: As ``make`` takes it.
        name: Of the environment in Ocean.
        max_episode_steps: Steps after which an episode is cut off.
        reward_threshold: Return from which it counts as solved; None where nobody has named one.
    """

    task_id: str
    name: str
    max_episode_steps: int
    reward_threshold: float | None


GAMES = (
    ClassicGame("Acrobot-v1", "acrobot", 500, -100.0),
    ClassicGame("CartPole-v0", "cartpole", 200, 195.0),
    ClassicGame("CartPole-v1", "cartpole", 500, 475.0),
    ClassicGame("MountainCar-v0", "mountain_car", 200, -110.0),
    ClassicGame("MountainCarContinuous-v0", "mountain_car_continuous", 999, 90.0),
    ClassicGame("Pendulum-v0", "pendulum", 200, None),
    ClassicGame("Pendulum-v1", "pendulum", 200, None),
    ClassicGame("phys2d/CartPole-v0", "cartpole", 200, 195.0),
    ClassicGame("phys2d/CartPole-v1", "cartpole", 500, 475.0),
    ClassicGame("phys2d/Pendulum-v0", "pendulum", 200, None),
)


def tasks() -> list[PoolTask]:
    """Return a task for each id."""
    from pufferlib.envpool.families.ocean import game_task
    from pufferlib.ocean.types import env_types

    kinds = env_types()
    return [
        game_task(game.task_id, FAMILY, kinds[game.name], game.max_episode_steps, game.reward_threshold)
        for game in GAMES
    ]
