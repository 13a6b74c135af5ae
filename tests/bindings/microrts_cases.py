"""MicroRTS: Java, illegal actions, ends of episodes, opponents, images, options."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import microrts
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("microrts"):
    pytest.skip(reason, allow_module_level=True)

import jpype

from pufferlib.bindings.microrts import env as microrts_env, java

MAP = "microrts/basesWorkers8x8"


def has_java() -> bool:
    try:
        jpype.getDefaultJVMPath()
    except jpype.JVMNotFoundException:
        return False
    return True


needs_java = pytest.mark.skipif(not has_java(), reason="no Java runtime")


@pytest.fixture
def envs() -> Iterator[Any]:
    env = pufferlib.make(MAP, num_games=2, opponents=["passiveAI", "randomBiasedAI"], max_steps=6)
    env.reset(seed=0)
    yield env
    env.close()


def test_names_match_the_maps_of_the_package() -> None:
    files = [file for file in (java.FOLDER / "maps").rglob("*.xml") if file.parent.name != "BroodWar"]
    assert list(microrts.names()) == sorted(file.stem for file in files)


@needs_java
def test_max_steps_truncates_and_keeps_final_observations(envs: Any) -> None:
    nothing = np.zeros(envs.actions.shape, np.int32)
    for _ in range(5):
        _, _, _, truncations, infos = envs.step(nothing)
        assert not truncations.any()
        assert infos == []
    shown = envs.observations.copy()
    _, _, terminals, truncations, infos = envs.step(nothing)
    assert truncations.all()
    assert not terminals.any()
    assert [(info["score"], info["episode_length"]) for info in infos] == [(0, 6), (0, 6)]
    assert (envs.final_observations[0] == shown[0]).all()  # no unit moved in this environment
    assert envs.step(nothing)[3].sum() == 0


@needs_java
def test_illegal_actions_are_replaced_by_the_first_legal_one(envs: Any) -> None:
    free = np.argwhere(envs._java_masks[..., 0] == 1)
    assert len(free) > 0
    wild = np.broadcast_to(np.array(action_parts()) - 1, envs._java_actions.shape)
    replaced = envs._allowed(wild)
    for game, cell in free:
        for start, choice in zip(np.cumsum((0, *action_parts()[:-1])), replaced[game, cell], strict=True):
            allowed = envs._java_masks[game, cell, start:].any()
            assert envs._java_masks[game, cell, start + choice] == 1 or not allowed or choice == 0


def action_parts() -> tuple[int, ...]:
    from pufferlib.bindings.microrts.env import PARTS

    return PARTS


@needs_java
def test_gathering_earns_rewards() -> None:
    env = pufferlib.make(MAP, num_games=1, opponents=["passiveAI"], reward_weights=[0, 1, 0, 0, 0, 0])
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    earned = 0.0
    for _ in range(300):
        earned += float(env.step(rng.integers(env.single_action_space.nvec))[1][0])
    assert earned > 0
    env.close()


@needs_java
def test_environments_have_different_random_opponents() -> None:
    env = pufferlib.make(MAP, num_games=2, opponents=["randomBiasedAI"])
    env.reset(seed=5)
    for _ in range(30):
        env.step(np.zeros(env.actions.shape, np.int32))
    assert (env.observations[0] != env.observations[1]).any()
    env.close()


@needs_java
def test_render_returns_an_image_of_both_sides() -> None:
    env = pufferlib.make(MAP, num_games=1, render_mode="rgb_array")
    env.reset(seed=0)
    image = env.render()
    assert image.shape == (8 * 16, 8 * 16, 3)
    for colour in ((70, 190, 90), (70, 130, 240), (230, 70, 70)):
        assert (image == colour).all(-1).any()
    env.close()
    env.close()


@needs_java
def test_policy_samples_only_legal_actions(envs: Any) -> None:
    torch = pytest.importorskip("torch")
    from pufferlib.bindings.microrts import policy as policies
    from pufferlib.models import make_policy

    policy = make_policy(envs, "GridNet", hidden_size=8, more=policies)
    params, values = policy.forward_eval(torch.from_numpy(envs.observations))
    assert values.shape == (2,)
    actions = policy.distribution.sample(params, torch.Generator().manual_seed(0)).numpy()
    cell_actions = actions.reshape(envs._java_actions.shape)
    parts = np.split(envs._java_masks, microrts_env.STARTS[1:], -1)
    has_choice = np.stack([part.any(-1) for part in parts], -1)  # without legal actions, any action may be drawn
    assert has_choice.any()
    assert (cell_actions == envs._allowed(cell_actions))[has_choice].all()


def test_missing_java_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise jpype.JVMNotFoundException("No JVM")

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "startJVM", fail)
    with pytest.raises(BindingMissing, match="sudo apt-get install openjdk-17-jre-headless"):
        pufferlib.make(MAP)


def test_java_started_by_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpype, "isJVMStarted", lambda: True)
    monkeypatch.setattr(java, "_started_in", None)
    with pytest.raises(APIUsageError, match="Java was started in this process without MicroRTS"):
        pufferlib.make(MAP)


def test_fork_of_a_process_with_java_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpype, "isJVMStarted", lambda: True)
    monkeypatch.setattr(java, "_started_in", os.getpid() + 1)
    with pytest.raises(APIUsageError, match="make the first environment after the fork"):
        pufferlib.make(MAP)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"opponents": ["coac"]}, UnknownNameError, "did you mean 'coacAI'"),
        ({"opponents": "coacAI"}, APIUsageError, "opponents must be a list of names, got 'coacAI'"),
        ({"num_games": 0}, APIUsageError, "num_games must be an int >= 1, got 0"),
        ({"partial_obs": 1}, APIUsageError, "partial_obs must be True or False, got 1"),
        ({"reward_weights": [1.0]}, APIUsageError, "reward_weights must be 6 numbers"),
        ({"render_mode": "human"}, APIUsageError, "render_mode must be None or 'rgb_array'"),
        ({"games": 2}, UnknownNameError, "did you mean 'num_games'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pufferlib.make(MAP, **options)
