"""The tasks that Gymnasium has for Box2D, as far as they exist in C."""

from collections.abc import Mapping

from gymnasium.envs.registration import EnvSpec

__all__ = ["CHANNELS_FIRST", "FRESH_WORLD", "MEANINGS", "TASKS", "has_box2d"]

#: Task in ``box2d.h``, by entry point, because an id may be registered again for another environment.
TASKS: Mapping[str, str] = {
    "gymnasium.envs.box2d.bipedal_walker:BipedalWalker": "BipedalWalker",
    "gymnasium.envs.box2d.car_racing:CarRacing": "CarRacing",
    "gymnasium.envs.box2d.lunar_lander:LunarLander": "LunarLander",
}

#: Names of discrete actions, by task.
MEANINGS: Mapping[str, tuple[str, ...]] = {
    "LunarLander": ("noop", "left engine", "main engine", "right engine"),
    "CarRacing": ("noop", "steer right", "steer left", "gas", "brake"),
}

#: Wrappers of the binding: one gives each episode a new world, the other transposes pictures.
FRESH_WORLD = "pufferlib.bindings.box2d.env:FreshWorld"
CHANNELS_FIRST = "pufferlib.bindings._shared.gymnasium:ChannelsFirst"


def has_box2d(spec: EnvSpec) -> bool:
    """Return True if a Gymnasium spec is of a Box2D task that is also stepped in C."""
    return spec.entry_point in TASKS and not spec.additional_wrappers
