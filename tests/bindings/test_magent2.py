"""MAgent2: names, spaces, deaths and options."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import magent2
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("magent2"):
    pytest.skip(reason, allow_module_level=True)

import magent2 as package


def test_names_match_the_package() -> None:
    folder = Path(package.__file__).parent / "environments"
    assert set(magent2.names()) == {file.stem for file in folder.glob("*_v[0-9].py")}


def test_version_is_optional() -> None:
    env = pufferlib.make("magent2/battle", map_size=16)
    assert env.metadata["name"] == "battle_v4"


@pytest.mark.parametrize("name", magent2.names())
def test_agents_of_an_environment_have_the_same_spaces(name: str) -> None:
    env = pufferlib.make(f"magent2/{name}", max_cycles=5)
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    n = int(env.single_action_space.n)
    for _ in range(5):
        env.step(rng.integers(n, size=env.num_agents))
        assert np.isfinite(env.observations).all()
    assert env.done


def test_dead_agents_are_terminal_once_and_then_masked() -> None:
    env = pufferlib.make("magent2/tiger_deer_v4", seed=3)
    env.reset()
    rng = np.random.default_rng(0)
    ended = np.zeros(env.num_agents, bool)
    for _ in range(150):  # tigers that catch no deer starve
        env.step(rng.integers(5, size=env.num_agents))
        assert not (env.masks & ended).any()
        assert not env.rewards[ended].any()
        ended |= env.terminals
        if env.done:
            break
    assert ended.any()


def test_rewards_can_be_changed_by_name() -> None:
    env = pufferlib.make("magent2/battle_v4", rewards={"step_reward": 1.0})
    assert env.num_agents == 162
    env.reset(seed=0)
    env.step(np.zeros(162, int))
    assert (env.rewards == 1).all()


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("battle_v4", {"rewards": {"dead_penalti": 1}}, UnknownNameError, "did you mean 'dead_penalty'"),
        ("battle_v4", {"rewards": {"dead_penalty": "x"}}, APIUsageError, "must be a finite number, got 'x'"),
        ("battle_v4", {"map_size": 5}, APIUsageError, "map_size must be an int >= 12, got 5"),
        ("battle_v4", {"minimap": True}, UnknownNameError, "did you mean 'minimap_mode'"),
        ("battle_v4", {"minimap_mode": 1}, APIUsageError, "minimap_mode must be True or False, got 1"),
        ("battle_v4", {"render_mode": "human"}, APIUsageError, "render_mode must be None or 'rgb_array'"),
        ("gather_v5", {"map_size": 50}, UnknownNameError, "unexpected keyword argument 'map_size'"),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pufferlib.make(f"magent2/{name}", **options)
