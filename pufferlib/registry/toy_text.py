"""Gymnasium's toy text, which Ocean also has in C."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.spaces import Discrete, Tuple

from pufferlib.registry.games import UnlikeOriginalError, warn_of_python
from pufferlib.registry.in_c import OceanTwin, box_in_c

__all__ = ["TOY_TEXT", "has_toy_text", "toy_text_twin"]


class ToyText(NamedTuple):
    """Environment in C of a class of Gymnasium.

    Attributes:
        name: Name in Ocean.
        keywords: Keyword arguments of the class that exist in C.
        infos: Names of the infos of its steps.
    """

    name: str
    keywords: frozenset[str]
    infos: tuple[str, ...]


LARGEST = 1e6  # parameters of C are smaller

#: By entry point, because an id may be registered again for another environment.
TOY_TEXT: Mapping[str, ToyText] = {
    f"gymnasium.envs.toy_text.{place}": ToyText(name, frozenset(keywords.split()), infos)
    for place, name, keywords, infos in (
        ("blackjack:BlackjackEnv", "blackjack", "natural sab", ()),
        ("cliffwalking:CliffWalkingEnv", "cliff_walking", "is_slippery", ("prob",)),
        (
            "frozen_lake:FrozenLakeEnv",
            "frozen_lake",
            "desc map_name is_slippery success_rate reward_schedule",
            ("prob", "episode_return"),
        ),
        (
            "taxi:TaxiEnv",
            "taxi",
            "is_rainy fickle_passenger rainy_probability fickle_probability",
            ("prob", "action_mask"),
        ),
    )
}


def has_toy_text(spec: EnvSpec) -> bool:
    """Return True if a Gymnasium spec is of an environment that also exists in C."""
    return spec.entry_point in TOY_TEXT and not spec.additional_wrappers


def toy_text_twin(env_id: str, keywords: Mapping[str, Any], max_episode_steps: int | None) -> OceanTwin | None:
    """Return the environment in C for an id of Gymnasium's toy text, or None.

    Values that only Gymnasium accepts, and wrong ones, have no environment in C. Gymnasium explains what is wrong. If
    the installed Gymnasium is too old to have the same results, a warning says so.

    Args:
        env_id: Id, such as "FrozenLake-v1".
        keywords: Keyword arguments of the environment's class.
        max_episode_steps: Number of steps after which an episode is truncated, or None for no limit.
    """
    spec = gymnasium.spec(env_id)
    assert isinstance(spec.entry_point, str), env_id
    name, known, infos = TOY_TEXT[spec.entry_point]
    params = {**spec.kwargs, **keywords}
    is_limited = max_episode_steps is not None
    if params.keys() - known or (is_limited and (name == "blackjack" or max_episode_steps == 0)):
        return None
    if name == "frozen_lake" and not _translate_lake(params):
        return None
    if not all(_is_exact(value) for key, value in params.items() if key.endswith("_probability")):
        return None
    try:
        _check_keywords(spec.entry_point, known)
    except UnlikeOriginalError as error:
        warn_of_python(env_id, f"Gymnasium {gymnasium.__version__}", error)
        return None
    if name != "blackjack":
        params["max_steps"] = max_episode_steps if is_limited else 0
    box = box_in_c(name, params)
    if box is None:
        return None
    if name == "blackjack":
        return OceanTwin(name, params, Tuple([Discrete(32), Discrete(11), Discrete(2)]))
    return OceanTwin(name, params, Discrete(int(box.high.item()) + 1), infos)


def _translate_lake(params: dict[str, Any]) -> bool:
    """Replace Gymnasium's keyword arguments of FrozenLake by those in C. Return False if C does not have them."""
    desc = params.pop("desc", None)
    map_name = params.pop("map_name", "4x4")
    if desc is not None:
        # Gymnasium reads a row of one letter as a number of rows, and "/" as a letter.
        if not isinstance(desc, tuple | list) or not all(isinstance(row, str) and len(row) > 1 for row in desc):
            return False
        if not desc or "/" in "".join(desc):
            return False
        params["desc"] = "/".join(desc)
    elif map_name in ("4x4", "8x8"):
        params["size"] = int(map_name[0])
    else:  # None makes a random map
        return False
    if "reward_schedule" in params:
        rewards = params.pop("reward_schedule")
        if not isinstance(rewards, tuple | list) or len(rewards) != 3 or not all(map(_is_exact, rewards)):
            return False
        params["goal_reward"], params["hole_reward"], params["frozen_reward"] = rewards
    rate = params.get("success_rate", 1 / 3)
    return rate == 1 / 3 or _is_exact(rate)


def _is_exact(number: Any) -> bool:
    """Return True if C, which keeps six decimals of a float32, computes with this number as Python does."""
    if not isinstance(number, float | int) or not abs(number) < LARGEST:
        return False
    return round(float(np.float32(number)), 6) == number


def _check_keywords(entry_point: str, expected: frozenset[str]) -> None:
    """Raise UnlikeOriginalError unless a class of Gymnasium has all keyword arguments that C has.

    The classes of Gymnasium 1.2.0 lack some, and have other results.
    """
    found = inspect.signature(load_env_creator(entry_point)).parameters
    if missing := " and ".join(sorted(expected - found.keys())):
        kind = entry_point.rpartition(":")[2]
        raise UnlikeOriginalError(
            f"expected {kind} with {missing}, as in Gymnasium 1.3.0, found that of {gymnasium.__version__}"
        )
