"""Neural MMO: noise, worlds compared with the package, observations, deaths, options and the policy."""

import gc
import hashlib
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("nmmo"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.nmmo import env as binding  # isort: skip - nmmo needs the vec_noise that this module provides
import nmmo

from pufferlib.bindings.nmmo.simplex import snoise2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class CheckedNmmo(binding._Nmmo):  # type: ignore[misc]
    """Environment with nmmo's own check of actions."""

    _validate_actions = nmmo.Env._validate_actions


def trajectory(env: Any, steps: int = 25) -> list[Any]:
    """Return observations of agent 3, and rewards and ends of all agents, for random actions."""
    observations, _ = env.reset(seed=11)
    space = env._atn_space
    space.seed(5)
    seen = []
    for _ in range(steps):
        seen.append({field: np.copy(observations[3][field]) for field in ("Tile", "Entity", "Inventory", "Market")})
        observations, rewards, *ends, _ = env.step({agent: space.sample() for agent in env.agents})
        seen.append((dict(rewards), *ends))
    return seen


def test_noise_matches_vec_noise_bit_for_bit() -> None:
    x, y = np.meshgrid(np.arange(64), np.arange(64))
    values = snoise2([0.3, -7.25, 1000.125], [1.7, 2.5, -3.0])
    assert values.tolist() == [0.5646170377731323, -0.1757999062538147, 0.16763776540756226]
    digest = hashlib.sha256(snoise2(160 + x / 8, y / 5 - 40).tobytes()).hexdigest()
    assert digest == "7d88a88d829fa6e55ab40f2e6a465877b51f029b93e770fa29fac969aef861ab"  # of vec-noise 1.1.4, compiled


def test_vec_noise_is_replaced_only_during_import() -> None:
    assert "vec_noise" not in sys.modules


def test_trajectory_matches_nmmo(folder: Path) -> None:
    config = type(binding.make_env("small").env.config)()
    config.set("PATH_CWD", str(folder))
    own = nmmo.Env(config)
    assert (folder / "maps/small/map1/fractal.npy").exists()
    np.testing.assert_equal(trajectory(binding.make_env("small").env), trajectory(own))


def test_actions_are_checked_like_in_nmmo() -> None:
    env = binding.make_env("small").env
    np.testing.assert_equal(trajectory(env), trajectory(CheckedNmmo(binding.make_env("small").env.config)))


def test_seed_chooses_among_maps() -> None:
    world = binding.make_env("small", num_maps=3)
    maps = []
    for seed in range(12):
        world.reset(seed=seed)
        maps.append((world.env.tile_map[20:44, 20:44, 2] == 2).tobytes())  # grass, where resources are scattered
    assert len(set(maps)) > 3
    heights = {world.env._load_map_file(index)["fractal"].tobytes() for index in (1, 2, 3)}
    assert len(heights) == 3


def test_reset_clears_the_pathfinding_cache() -> None:
    world = binding.make_env("small")
    world.reset(seed=1)
    paths = world.env.realm.map.pathfinding_cache
    paths[(20, 20), (30, 30)] = (0, 1)
    world.reset(seed=1)
    assert world.env.realm.map.pathfinding_cache is paths
    assert not paths


def test_observe_selects_the_observation() -> None:
    default = binding.make_env("small")
    assert set(default.observation_space(1)) == set(binding.PLAIN)
    assert "Task" in set(binding.make_env("small", observe="all").observation_space(1))
    env = pufferlib.make("nmmo/small", observe=["Tile", "ActionTargets"])
    assert env.obs_dtype.names == ("ActionTargets", "Tile")


def test_dead_agents_are_terminal_once_and_then_masked() -> None:
    env = pufferlib.make("nmmo/small", seed=2, config={"RESOURCE_DEPLETION_RATE": 50})
    env.reset()
    env.action_space(1).seed(0)
    ended = np.zeros(env.num_agents, bool)
    lengths = []
    while not env.done:
        *_, infos = env.step(np.stack([env.action_space(1).sample() for _ in env.possible_agents]))
        assert not (env.masks & ended).any()
        assert not env.observations[ended].any()
        ended |= env.terminals | env.truncations
        lengths += [info["episode_length"] for info in infos.values() if info]
    assert ended.all()
    assert len(lengths) == env.num_agents


def test_image_shows_players_and_npcs() -> None:
    world = binding.make_env("small", render_mode="rgb_array")
    world.reset(seed=1)
    image = world.render()
    assert image.shape == (64 * binding.TILE_PX, 64 * binding.TILE_PX, 3)
    for colour in (binding.PLAYER, binding.NPC):
        assert (image == colour).all(-1).any()
    assert binding.make_env("small").render() is None


def test_unused_environment_is_freed() -> None:
    env = pufferlib.make("nmmo/small", seed=1)
    env.reset()
    reference = weakref.ref(env.unwrapped.env)
    del env
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"observe": ["Tiles"]}, UnknownNameError, "did you mean 'Tile'"),
        ({"observe": "Tile"}, APIUsageError, "observe must be 'all' or a list"),
        ({"config": {"HORIZONS": 3}}, UnknownNameError, "HORIZON"),
        ({"config": {"PATH_MAPS": "x"}}, UnknownNameError, "unknown key of config"),
        ({"num_maps": 0}, APIUsageError, "num_maps must be an int >= 1, got 0"),
        ({"curriculum": "nowhere.pkl"}, APIUsageError, "curriculum must be a file"),
        ({"render_mode": "human"}, APIUsageError, "render_mode must be None or 'rgb_array'"),
        ({"maps": 1}, UnknownNameError, "unexpected keyword argument 'maps'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pufferlib.make("nmmo/small", **options)


def test_policy_samples_only_legal_actions() -> None:
    torch = pytest.importorskip("torch")
    from pufferlib.bindings.nmmo import policy as policies
    from pufferlib.models import make_policy

    env = pufferlib.make("nmmo/small", seed=4)
    env.reset()
    policy = make_policy(env, "NeuralMMO", hidden_size=32, more=policies)
    params, values = policy.forward_eval(torch.from_numpy(env.observations))
    assert values.shape == (64,)
    assert torch.isfinite(params).all()
    actions = policy.distribution.sample(params, torch.Generator().manual_seed(0)).numpy()
    whole = env.observations.view(env.obs_dtype).reshape(-1)["ActionTargets"]
    parts = [whole[kind][part] for kind in whole.dtype.names for part in whole[kind].dtype.names]
    assert [mask.shape[1] for mask in parts] == env.single_action_space.nvec.tolist()
    for mask, chosen in zip(parts, actions.T, strict=True):
        assert mask[np.arange(64), chosen].all()
    with pytest.raises(APIUsageError, match="NeuralMMO: the environment must observe Tile, Entity and AgentId"):
        make_policy(pufferlib.make("nmmo/small", observe=["Tile"]), "NeuralMMO", more=policies)
