"""Python environments that Ocean also has in C, with the same results for the same seeds and actions.

Toy text of Gymnasium is listed here. A binding lists its own in a function ``twin(name, keywords)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gymnasium.spaces import Box, Discrete, Tuple

from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import OceanBatch
from pufferlib.ocean.env import type_of
from pufferlib.ocean.types import spaces_of
from pufferlib.registry.inside import binding_facts, binding_module, bindings
from pufferlib.registry.objects import has_module
from pufferlib.spaces import Space

__all__ = ["TOY_TEXT", "Twin", "box_in_c", "has_original", "toy_text_twin", "twin_of"]


@dataclass(frozen=True)
class Twin:
    """Environment in C with the results of a Python environment.

    Attributes:
        name: Name in Ocean.
        params: Its keyword arguments.
        observation_space: Observation space of the Python environment. The rows in C are those of emulation.
    """

    name: str
    params: Mapping[str, Any]
    observation_space: Space


class ToyText(NamedTuple):
    """Environment in C of an id of Gymnasium.

    Attributes:
        name: Name in Ocean.
        params: Its keyword arguments.
        max_episode_steps: Number of steps after which Gymnasium truncates an episode, or 0 for no limit.
    """

    name: str
    params: Mapping[str, Any] = {}
    max_episode_steps: int = 0


TOY_TEXT: Mapping[str, ToyText] = {
    "Blackjack-v1": ToyText("blackjack"),
    "CliffWalking-v1": ToyText("cliff_walking"),
    "CliffWalkingSlippery-v1": ToyText("cliff_walking", {"is_slippery": True}),
    "FrozenLake-v1": ToyText("frozen_lake", {"size": 4}, 100),
    "FrozenLake8x8-v1": ToyText("frozen_lake", {"size": 8}, 200),
    "Taxi-v4": ToyText("taxi", {}, 200),
}


def twin_of(env_name: str, keywords: Mapping[str, Any]) -> Twin | None:
    """Return the environment in C that equals an environment, or None if there is none with these keyword arguments.

    Args:
        env_name: Full name of the environment, such as "minigrid/MiniGrid-Empty-5x5-v0", or a Gymnasium id.
        keywords: Its keyword arguments. With ``native=False`` the result is None.

    Raises:
        APIUsageError: There is one, and ``native`` is not a bool.
    """
    binding, _, game = env_name.partition("/")
    own = {key: value for key, value in keywords.items() if key != "native"}
    found: Twin | None = None
    if env_name in TOY_TEXT:
        found = toy_text_twin(env_name, own)
    elif game and binding in bindings() and hasattr(module := binding_module(binding), "twin"):
        found = module.twin(game, own)
    if found is None:
        return None
    is_native = keywords.get("native", True)
    if not isinstance(is_native, bool):
        raise APIUsageError(f"{env_name}: native must be True or False, got {is_native!r:.80}")
    return found if is_native else None


def has_original(env_name: str) -> bool:
    """Return True if the package of an environment is installed. Toy text always is."""
    facts = binding_facts().get(env_name.partition("/")[0])
    return facts is None or all(has_module(module) for module in facts.modules)


def toy_text_twin(env_id: str, keywords: Mapping[str, Any]) -> Twin | None:
    """Return the environment in C for an id of ``TOY_TEXT`` and keyword arguments of ``gymnasium.make``, or None.

    Values that only Gymnasium accepts, and wrong ones, have no environment in C. Gymnasium explains what is wrong.
    """
    toy = TOY_TEXT[env_id]
    params = {**toy.params, **keywords}
    limit = params.pop("max_episode_steps", None)
    if toy.name != "blackjack":
        params["max_steps"] = toy.max_episode_steps if limit is None else limit
    elif limit:
        return None
    if toy.name == "frozen_lake" and not _translate_lake(params):
        return None
    box = box_in_c(toy.name, params)
    if box is None:
        return None
    if toy.name == "blackjack":
        return Twin(toy.name, params, Tuple([Discrete(32), Discrete(11), Discrete(2)]))
    return Twin(toy.name, params, Discrete(int(box.high.item()) + 1))


def box_in_c(name: str, params: Mapping[str, Any]) -> Box | None:
    """Return the observation space of an environment in C, or None if it rejects its keyword arguments."""
    kind = type_of(name)
    try:
        box, *_ = spaces_of(OceanBatch(kind.index, 1, kind.in_c(dict(params)), 1).spec)
    except APIUsageError:
        return None
    return box


def _translate_lake(params: dict[str, Any]) -> bool:
    """Replace Gymnasium's keyword arguments of FrozenLake by those in C. Return False if C does not have them."""
    desc = params.pop("desc", None)
    map_name = params.pop("map_name", None)
    if desc is not None:
        if not isinstance(desc, tuple | list) or not all(isinstance(row, str) for row in desc):
            return False
        params["desc"] = "/".join(desc)
    elif map_name is not None:
        size = {"4x4": 4, "8x8": 8}.get(map_name)
        if size is None:
            return False
        params["size"] = size
    if "reward_schedule" in params:
        rewards = params.pop("reward_schedule")
        if not isinstance(rewards, tuple | list) or len(rewards) != 3:
            return False
        params["goal_reward"], params["hole_reward"], params["frozen_reward"] = rewards
    rate = params.get("success_rate", 1 / 3)
    return rate == 1 / 3 or (isinstance(rate, float | int) and round(rate, 6) == rate)
