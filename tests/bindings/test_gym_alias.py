"""``gym_is_gymnasium``: gives old packages gymnasium instead of gym while they are imported."""

import importlib
import sys
import types

import gymnasium
import pytest

from pufferlib.bindings._shared.gym_alias import gym_is_gymnasium

OLD_MODULE = """
import gym
import gym.envs.classic_control.cartpole as cartpole
from gym import spaces
from gym.envs.registration import register
from gym.utils import seeding
"""


def gym_modules() -> set[str]:
    return {name for name in sys.modules if name.partition(".")[0] == "gym"}


def test_gym_is_gymnasium_only_inside_the_block() -> None:
    before, old = gym_modules(), types.ModuleType("old")
    spec = gymnasium.spaces.__spec__
    with gym_is_gymnasium():
        exec(OLD_MODULE, vars(old))
    assert vars(old)["gym"] is gymnasium
    assert vars(old)["spaces"] is gymnasium.spaces
    assert vars(old)["register"] is gymnasium.envs.registration.register
    assert vars(old)["cartpole"] is importlib.import_module("gymnasium.envs.classic_control.cartpole")
    assert gym_modules() == before
    assert gymnasium.spaces.__spec__ is spec


def test_installed_gym_is_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = types.ModuleType("gym")
    monkeypatch.setitem(sys.modules, "gym", real)
    finders = [*sys.meta_path]
    with pytest.raises(ModuleNotFoundError, match=r"gymnasium\.nothing"), gym_is_gymnasium():
        import gym.nothing  # noqa: F401
    assert sys.modules["gym"] is real
    assert sys.meta_path == finders
