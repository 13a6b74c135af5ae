"""Bindings of packages that no index has: errors without the package, and episodes with a replacement."""

import sys
import types
from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib import registry

PROVIDED = sorted(name for name, facts in registry.binding_facts().items() if facts.unavailable)


class Lab:
    """Replacement of deepmind_lab.Lab, with levels of five steps."""

    def __init__(self, level: str, observations: list[str], config: dict[str, str]) -> None:
        assert level.startswith("contributed/dmlab30/")
        self.shape = int(config["height"]), int(config["width"]), 3

    def reset(self, seed: int) -> None:
        self.random, self.steps = np.random.default_rng(seed), 0

    def observations(self) -> dict[str, Any]:
        assert self.is_running()
        return {"RGB_INTERLEAVED": self.random.integers(256, size=self.shape, dtype=np.uint8)}

    def step(self, action: Any, num_steps: int) -> float:
        assert (action.dtype, action.shape, num_steps) == (np.intc, (7,), 4)
        self.steps += 1
        return 1.0

    def is_running(self) -> bool:
        return self.steps < 5

    def close(self) -> None:
        pass


class StarCraft2Env:
    """Replacement of SMAC's StarCraft2Env: two units, five steps, and action 1 is never legal."""

    def __init__(self, map_name: str, difficulty: str, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def get_env_info(self) -> dict[str, int]:
        return {"n_agents": 2, "n_actions": 3, "obs_shape": 4}

    def reset(self) -> None:
        self.steps = 0

    def get_obs(self) -> list[Any]:
        return [self.random.random(4) for _ in range(2)]

    def get_avail_actions(self) -> list[list[int]]:
        return [[1, 0, 1], [0, 0, 1]]

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        assert all(mask[action] for mask, action in zip(self.get_avail_actions(), actions, strict=True))
        self.steps += 1
        return 2.0, self.steps == 5, {"episode_limit": True} if self.steps == 5 else {}

    def close(self) -> None:
        pass


class Treechop:
    """Replacement of a MineRL task, with gym's API of four values."""

    observation_space = gymnasium.spaces.Dict({"pov": gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)})
    action_space = gymnasium.spaces.Dict({"jump": gymnasium.spaces.Discrete(2)})

    def seed(self, seed: int) -> None:
        self.observation_space.seed(seed)

    def reset(self) -> Any:
        self.steps = 0
        return self.observation_space.sample()

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 5, {}


def module(name: str, **values: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


REPLACEMENTS = {
    "dmlab": [module("deepmind_lab", Lab=Lab)],
    "minerl": [module("minerl"), module("gym", make=lambda name: Treechop())],
    "smac": [module("smac"), module("smac.env", StarCraft2Env=StarCraft2Env)],
}


def test_every_unavailable_package_has_a_replacement() -> None:
    assert sorted(REPLACEMENTS) == PROVIDED


@pytest.mark.parametrize("binding", PROVIDED)
def test_missing_package_names_what_to_provide(binding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = registry.binding_facts()[binding]
    monkeypatch.setitem(sys.modules, facts.modules[0], None)
    monkeypatch.delitem(sys.modules, f"pufferlib.bindings.{binding}.env", raising=False)
    with pytest.raises(pufferlib.BindingMissing) as error:
        pufferlib.make(f"{binding}/{facts.example}")
    assert f"{binding}/{facts.example}: needs the package" in str(error.value)
    assert facts.unavailable in str(error.value)
    assert "pip install 'pufferlib" not in str(error.value)


def test_smac_of_pypi_is_recognized_as_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "smac", module("smac"))
    monkeypatch.delitem(sys.modules, "pufferlib.bindings.smac.env", raising=False)
    with pytest.raises(pufferlib.BindingMissing, match="PyPI's smac is SMAC3"):
        pufferlib.make("smac/3m")


@pytest.mark.parametrize("binding", PROVIDED)
def test_episodes_run_with_the_replacement(binding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for replacement in REPLACEMENTS[binding]:
        monkeypatch.setitem(sys.modules, replacement.__name__, replacement)
    monkeypatch.delitem(sys.modules, f"pufferlib.bindings.{binding}.env", raising=False)
    creator = pufferlib.env_creator(f"{binding}/{registry.binding_facts()[binding].example}")
    infos = []
    with pufferlib.vector.make(creator, num_envs=2, backend="Serial", seed=1, autoreset="same_step") as envs:
        envs.reset()
        for _ in range(10):
            infos += envs.step(envs.action_space.sample())[4]
    monkeypatch.delitem(sys.modules, f"pufferlib.bindings.{binding}.env")
    all_infos = [
        each for info in infos for each in (info, *info.values()) if isinstance(each, dict)
    ]  # infos of agents are nested by name
    ends = [each for each in all_infos if "episode_length" in each]
    assert len(ends) == 2 * envs.num_agents
    assert {info["episode_length"] for info in ends} == {5}


def test_no_extra_requires_smac_of_pypi() -> None:
    assert not any(pin.startswith("smac") for facts in registry.binding_facts().values() for pin in facts.requires)
