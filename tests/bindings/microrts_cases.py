"""MicroRTS: Java, actions that mean nothing, ends, opponents, pictures, options."""

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

from pufferlib.bindings.microrts import env as microrts_env
from pufferlib.bindings.microrts import java

MAP = "microrts/basesWorkers8x8"


def has_java() -> bool:
    try:
        jpype.getDefaultJVMPath()
    except jpype.JVMNotFoundException:
        return False
    return True


needs_java = pytest.mark.skipif(not has_java(), reason="no Java runtime")


@pytest.fixture
def games() -> Iterator[Any]:
    env = pufferlib.make(MAP, num_games=2, opponents=["passiveAI", "randomBiasedAI"], max_steps=6)
    env.reset(seed=0)
    yield env
    env.close()


def test_names_are_the_maps_of_the_package() -> None:
    files = [file for file in (java.FOLDER / "maps").rglob("*.xml") if file.parent.name != "BroodWar"]
    assert list(microrts.names()) == sorted(file.stem for file in files)


@needs_java
def test_it_is_cut_off_after_max_steps_and_keeps_the_last_observation(games: Any) -> None:
    nothing = np.zeros(games.actions.shape, np.int32)
    for _ in range(5):
        _, _, _, truncations, infos = games.step(nothing)
        assert not truncations.any()
        assert infos == []
    shown = games.observations.copy()
    _, _, terminals, truncations, infos = games.step(nothing)
    assert truncations.all()
    assert not terminals.any()
    assert [(info["score"], info["episode_length"]) for info in infos] == [(0, 6), (0, 6)]
    assert (games.final_observations[0] == shown[0]).all()  # nobody moved in this game
    assert games.step(nothing)[3].sum() == 0


@needs_java
def test_forbidden_actions_count_as_the_first_that_is_allowed(games: Any) -> None:
    free = np.argwhere(games._java_masks[..., 0] == 1)
    assert len(free) > 0
    wild = np.broadcast_to(np.array(game_parts()) - 1, games._java_actions.shape)
    replaced = games._allowed(wild)
    for game, cell in free:
        for start, choice in zip(np.cumsum((0, *game_parts()[:-1])), replaced[game, cell], strict=True):
            allowed = games._java_masks[game, cell, start:].any()
            assert games._java_masks[game, cell, start + choice] == 1 or not allowed or choice == 0


def game_parts() -> tuple[int, ...]:
    from pufferlib.bindings.microrts.env import PARTS

    return PARTS


@needs_java
def test_a_worker_that_is_told_to_gather_gathers() -> None:
    env = pufferlib.make(MAP, num_games=1, opponents=["passiveAI"], reward_weights=[0, 1, 0, 0, 0, 0])
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    earned = 0.0
    for _ in range(300):
        earned += float(env.step(rng.integers(env.single_action_space.nvec))[1][0])
    assert earned > 0
    env.close()


@needs_java
def test_games_and_opponents_have_their_own_chance() -> None:
    env = pufferlib.make(MAP, num_games=2, opponents=["randomBiasedAI"])
    env.reset(seed=5)
    for _ in range(30):
        env.step(np.zeros(env.actions.shape, np.int32))
    assert (env.observations[0] != env.observations[1]).any()
    env.close()


@needs_java
def test_the_picture_shows_both_sides() -> None:
    env = pufferlib.make(MAP, num_games=1, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (8 * 16, 8 * 16, 3)
    for colour in ((70, 190, 90), (70, 130, 240), (230, 70, 70)):
        assert (picture == colour).all(-1).any()
    env.close()
    env.close()


@needs_java
def test_the_policy_orders_only_what_units_can_do(games: Any) -> None:
    torch = pytest.importorskip("torch")
    from pufferlib.bindings.microrts import policy as policies
    from pufferlib.models import make_policy

    policy = make_policy(games, "GridNet", hidden_size=8, more=policies)
    params, values = policy.forward_eval(torch.from_numpy(games.observations))
    assert values.shape == (2,)
    actions = policy.distribution.sample(params, torch.Generator().manual_seed(0)).numpy()
    orders = actions.reshape(games._java_actions.shape)
    parts = np.split(games._java_masks, microrts_env.STARTS[1:], -1)
    has_choice = np.stack([part.any(-1) for part in parts], -1)  # where nothing is allowed, anything may be drawn
    assert has_choice.any()
    assert (orders == games._allowed(orders))[has_choice].all()


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise jpype.JVMNotFoundException("No JVM")

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "startJVM", fail)
    with pytest.raises(BindingMissing, match="sudo apt-get install openjdk-17-jre-headless"):
        pufferlib.make(MAP)


def test_java_that_somebody_else_started_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpype, "isJVMStarted", lambda: True)
    monkeypatch.setattr(java, "_started_in", None)
    with pytest.raises(APIUsageError, match="Java was started in this process without MicroRTS"):
        pufferlib.make(MAP)


def test_a_fork_of_a_process_with_java_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_wrong_options_say_what_is_right(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pufferlib.make(MAP, **options)
