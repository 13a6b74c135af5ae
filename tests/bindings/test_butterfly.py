"""PettingZoo's Butterfly: names, images, options, and environments side by side."""

from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import butterfly
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("butterfly"):
    pytest.skip(reason, allow_module_level=True)

from pettingzoo import parallel_registry


def step(env: Any, action: Any = 0) -> None:
    env.step(dict.fromkeys(env.agents, action))


def test_names_match_pettingzoo() -> None:
    ids = {name.removeprefix("butterfly/") for name in parallel_registry if name.startswith("butterfly/")}
    assert set(butterfly.names()) == {name.replace("-", "_") for name in ids}


def test_version_is_optional() -> None:
    env = pufferlib.make("butterfly/knights_archers_zombies", max_zombies=3)
    assert env.metadata["name"] == "knights_archers_zombies_v11"
    assert pufferlib.make("butterfly/pistonball-v6", n_pistons=5).metadata["name"] == "pistonball_v6"


def test_observations_need_no_render_mode() -> None:
    env = pufferlib.make("butterfly/cooperative_pong_v6", seed=1)
    env.reset()
    for _ in range(4):
        step(env)
    frames = env.observations[0]
    assert frames.shape == (4, 84, 84)
    assert all((frames[index] != frames[index + 1]).any() for index in range(3))
    assert env.render() is None


def test_seed_reproduces_the_zombies() -> None:
    env = pufferlib.make("butterfly/knights_archers_zombies_v11")
    seen: list[list[bytes]] = []
    for _ in range(2):
        env.reset(seed=3)
        seen.append([])
        for _ in range(33):
            step(env)
            seen[-1].append(env.observations.tobytes())
    assert seen[0] == seen[1]


def test_size_none_keeps_the_images_of_the_environment() -> None:
    small = pufferlib.make("butterfly/pistonball_v6", n_pistons=5, size=42, stack=2)
    assert small.num_agents == 5
    assert small.single_observation_space.shape == (2, 42, 42)
    whole = pufferlib.make("butterfly/pistonball_v6", n_pistons=5, size=None, render_mode="rgb_array")
    assert whole.single_observation_space.shape == (457, 120, 3)
    whole.reset()
    assert whole.render().shape == (560, 280, 3)


def test_close_does_not_affect_other_environments() -> None:
    first, second = (pufferlib.make("butterfly/knights_archers_zombies_v11", seed=seed) for seed in (1, 2))
    first.reset()
    second.reset()
    first.close()
    before = second.observations.copy()
    for _ in range(30):
        step(second, 5)
    assert (second.observations != before).any()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_piston": 5}, UnknownNameError, "did you mean 'n_pistons'"),
        ({"size": 0}, APIUsageError, "size must be an int >= 1, got 0"),
        ({"stack": None}, APIUsageError, "stack must be an int >= 1, got None"),
        ({"render_mode": "human"}, APIUsageError, "render_mode must be None or 'rgb_array'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pufferlib.make("butterfly/pistonball_v6", **options)


def test_policy_accepts_images_and_vectors() -> None:
    torch = pytest.importorskip("torch")
    from pufferlib.bindings.butterfly import policy as policies
    from pufferlib.models import make_policy

    for name in ("cooperative_pong_v6", "knights_archers_zombies_v11"):
        env = pufferlib.make(f"butterfly/{name}")
        env.reset()
        policy = make_policy(env, "Butterfly", hidden_size=16, more=policies)
        _, values = policy.forward_eval(torch.from_numpy(env.observations))
        assert np.isfinite(values.detach().numpy()).all()
