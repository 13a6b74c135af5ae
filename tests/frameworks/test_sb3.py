"""``to_sb3``: vector environments as VecEnv, compared with Stable-Baselines3's DummyVecEnv."""

import contextlib
import functools
import sys
import threading
import warnings

import cloudpickle
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.sb3 import image_policy_kwargs, to_sb3
from pufferlib.machine import cpus
from pufferlib.machine.cpus import has_bfloat16
from tests.envs import MIXED, NESTED, FunctionEnv, MaskedEnv
from tests.tiers import once
from tests.vector_envs import RandomWalk

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest


def make_envs(creator=RandomWalk, backend="Serial", num_envs=4, **options):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=creator)
    options = {"autoreset": "same_step", "overwork": True, **options}
    return to_sb3(pufferlib.vector.make(creator, num_envs=num_envs, backend=backend, **options), monitor=False)


def assert_same(mine, theirs):
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key in theirs:
            assert_same(mine[key], theirs[key])
    elif isinstance(theirs, list):
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_to_sb3_matches_dummy_vec_env(backend):
    mine = make_envs(backend=backend, num_workers=2 if backend != "Serial" else None)
    theirs = DummyVecEnv([RandomWalk] * 4)
    assert (mine.observation_space, mine.action_space) == (theirs.observation_space, theirs.action_space)
    for env in (mine, theirs):
        env.seed(5)
        env.set_options({"a": 1})
    assert_same(mine.reset(), theirs.reset())
    assert_same(mine.reset_infos, theirs.reset_infos)
    rng, ends = np.random.default_rng(0), 0
    for _ in range(40):
        actions = rng.integers(3, size=4)
        outcome, expected = mine.step(actions), theirs.step(actions)
        for one, other in zip(outcome, expected, strict=True):
            assert_same(one, other)
        assert_same(mine.reset_infos, theirs.reset_infos)
        ends += expected[2].sum()
    assert ends > 5
    for env in (mine, theirs):
        env.set_attr("speed", 2, indices=[1, 3])
    assert mine.get_attr("speed", 3) == theirs.get_attr("speed", 3) == [2]
    for env in (mine, theirs):
        env.set_attr("map", [1, 2, 3, 4])  # one value, although it has the length of a list for all environments
        env.set_attr("map", (5,), indices=[1, 3])
    assert mine.get_attr("map") == theirs.get_attr("map") == [[1, 2, 3, 4], (5,), [1, 2, 3, 4], (5,)]
    assert mine.env_method("describe", 7, flag=True) == theirs.env_method("describe", 7, flag=True)
    assert not mine.has_attr("wings")
    assert_same(list(mine.get_images()), list(theirs.get_images()))
    assert mine.render_mode == theirs.render_mode
    mine.close()
    theirs.close()


@pytest.mark.parametrize("wrapper", [VecMonitor, VecNormalize, lambda env: env])
def test_ppo_trains_on_wrapped_env(wrapper):
    env = wrapper(make_envs(functools.partial(gymnasium.make, "CartPole-v1"), num_envs=2))
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu").learn(128)
    assert model.num_timesteps == 128
    env.close()


@pytest.mark.all
def test_ppo_solves_cartpole():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    env = to_sb3(pufferlib.vector.make(creator, num_envs=8, backend="Serial", autoreset="same_step"))
    settings = {"n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8}
    model = PPO("MlpPolicy", env, learning_rate=1e-3, device="cpu", seed=0, **settings).learn(50_000)
    assert evaluate_policy(model, env, 20)[0] >= 475
    env.close()


@pytest.mark.skipif(torch.cuda.is_available(), reason="no warning if a GPU is available")
def test_image_policy_kwargs_warn_about_slow_bfloat16(monkeypatch):
    monkeypatch.setattr(cpus, "has_bfloat16", lambda: False)
    with pytest.warns(UserWarning, match="image_policy_kwargs: precision: this CPU has no instructions for bfloat16"):
        image_policy_kwargs(precision="bfloat16")
    with warnings.catch_warnings():
        image_policy_kwargs()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ppo_learns_atari_breakout():
    """The score of whole games was 1.0 before training and 3.4 after it (one seed)."""
    pytest.importorskip("ale_py")
    envs, games = (
        to_sb3(
            pufferlib.vector.make(
                pufferlib.env_creator("atari/breakout"),
                num_envs=8,
                num_workers="auto",
                backend="Multiprocessing",
                autoreset="same_step",
                env_kwargs={"fire_reset": True, **options},
            )
        )
        for options in ({"episodic_life": True, "reward_clip": True}, {})
    )
    settings = {"n_steps": 128, "batch_size": 256, "n_epochs": 4, "learning_rate": 2.5e-4, "clip_range": 0.1}
    kwargs = image_policy_kwargs(precision="bfloat16" if has_bfloat16() else "float32")
    model = PPO("CnnPolicy", envs, ent_coef=0.01, device="cpu", seed=1, policy_kwargs=kwargs, **settings)
    model.learn(300_000)
    assert evaluate_policy(model, games, 32, deterministic=False)[0] >= 2.0
    envs.close()
    games.close()


def test_infos_have_returns_and_lengths_of_episodes():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=FunctionEnv, env_kwargs={"length": 3})
    env = to_sb3(pufferlib.vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step"))
    env.reset()
    infos = [env.step(np.zeros(2, int))[3] for _ in range(6)]
    episodes = [
        (step, info["episode"]["r"], info["episode"]["l"])
        for step in range(6)
        for info in infos[step]
        if "episode" in info
    ]
    assert episodes == [(2, 3.0, 3)] * 2 + [(5, 3.0, 3)] * 2
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, device="cpu")
    assert evaluate_policy(model, env, 2, return_episode_rewards=True) == ([3.0, 3.0], [3, 3])  # without a warning
    env.close()


def test_has_attr_finds_attributes_that_cannot_be_pickled():
    env = make_envs(functools.partial(_with_lock, RandomWalk), "Multiprocessing", num_envs=2, num_workers=1)
    assert env.has_attr("lock")
    assert not env.has_attr("key")
    env.close()


def _with_lock(creator):
    env = creator()
    env.lock = threading.Lock()
    return env


def test_native_environments_are_rows_with_action_masks():
    env = to_sb3(pufferlib.make("tripletriad", num_envs=8))
    observations = env.reset()
    assert len(observations) == env.num_envs == 8
    masks = np.stack(env.env_method("action_masks"))
    assert env.has_attr("action_masks")
    assert masks.shape == (8, env.action_space.n)
    assert masks.any(1).all()
    _, rewards, ends, infos = env.step(masks.argmax(1))
    assert (rewards.shape, ends.shape, len(infos)) == ((8,), (8,), 8)
    env.close()


def test_unsupported_environments_and_modes_are_refused():
    with pytest.raises(APIUsageError, match="autoreset must be \"same_step\", which SB3 expects, got 'next_step'"):
        make_envs(autoreset="next_step")
    with pytest.raises(APIUsageError, match=r"one Dict of them, got Tuple\(.* as hero"):
        make_envs(functools.partial(FunctionEnv, NESTED))
    with pytest.raises(
        APIUsageError, match=r"has integer actions or float actions, got both in MixedBox.*use to_torchrl"
    ):
        make_envs(functools.partial(FunctionEnv, None, MIXED))
    with pytest.raises(
        APIUsageError, match=r"to_sb3: must be a vector environment of .*, got RandomWalk; call pufferlib\.make"
    ):
        to_sb3(RandomWalk())


FIRST, LAST = (3, 40, 40), (40, 40, 3)  # axis of channels


@pytest.mark.parametrize(
    ("shape", "precision"),
    once(
        [(shape, precision) for shape in (FIRST, LAST) for precision in ("float32", "bfloat16")],
        [(FIRST, "bfloat16"), (LAST, "float32")],
    ),
)
def test_ppo_trains_image_policy(shape, precision):
    space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
    env = make_envs(functools.partial(FunctionEnv, space))
    kwargs = image_policy_kwargs(precision=precision)
    model = PPO("CnnPolicy", env, n_steps=8, batch_size=32, n_epochs=1, device="cpu", seed=0, policy_kwargs=kwargs)
    features = model.policy.features_extractor
    before = {name: values.clone() for name, values in features.state_dict().items()}
    model.learn(32)
    assert all(not torch.equal(values, before[name]) for name, values in features.state_dict().items())
    images = torch.from_numpy(env.reset())
    kept = features.network.encode_observations(images)
    assert torch.allclose(model.policy.extract_features(images), kept, atol=1e-5 if precision == "float32" else 0.05)
    env.close()


def test_image_network_matches_nature_cnn_of_sb3():
    space = gymnasium.spaces.Box(0, 255, (3, 40, 40), np.uint8)
    env = make_envs(functools.partial(FunctionEnv, space))
    theirs, mine = (PPO("CnnPolicy", env, device="cpu", policy_kwargs=kw).policy for kw in ({}, image_policy_kwargs()))
    weights = theirs.features_extractor.state_dict().values()
    names = mine.features_extractor.state_dict()
    mine.features_extractor.load_state_dict(dict(zip(names, weights, strict=True)))
    images = torch.from_numpy(env.reset())
    assert torch.allclose(mine.extract_features(images), theirs.extract_features(images), atol=1e-5)
    env.close()


def test_unknown_networks_and_precisions_are_refused():
    with pytest.raises(APIUsageError, match="network must be 'NatureCNN' or 'ResNet', got 'Nature'"):
        image_policy_kwargs("Nature")
    with pytest.raises(APIUsageError, match="precision must be 'float32' or 'bfloat16', got 'float16'"):
        image_policy_kwargs(precision="float16")
    with pytest.raises(APIUsageError, match="NatureCNN: observations must be uint8 images"):
        PPO("MlpPolicy", make_envs(lambda: gymnasium.make("CartPole-v1")), policy_kwargs=image_policy_kwargs())


@pytest.mark.parametrize(
    ("space", "shown", "actions", "sent"),
    [
        (Discrete(3, start=-1), Discrete(3), [0, 2], [-1, 1]),
        (MultiDiscrete([2, 11], start=[0, 25]), MultiDiscrete([2, 11]), [[1, 3], [0, 10]], [[1, 28], [0, 35]]),
        (MultiDiscrete([[2, 3], [4, 5]]), MultiDiscrete([2, 3, 4, 5]), [[1, 2, 3, 4]] * 2, [[[1, 2], [3, 4]]] * 2),
        (Box(-1, 9, (1,), np.int8), Box(-1, 9, (1,), np.float32), [[1.6], [99.0]], [[2], [9]]),
        (Dict({"side": Discrete(2, start=1)}), MultiDiscrete([2]), [[0], [1]], [{"side": 1}, {"side": 2}]),
    ],
)
def test_actions_are_converted_to_the_action_space(space, shown, actions, sent):
    env = make_envs(functools.partial(FunctionEnv, None, space), num_envs=2)
    assert env.action_space == shown
    env.reset()
    env.step(np.array(actions))
    for taken, expected in zip(env.get_attr("actions"), sent, strict=True):
        np.testing.assert_equal(taken[-1], expected)
    PPO("MlpPolicy", env, n_steps=8, batch_size=16, n_epochs=1, device="cpu", seed=0).learn(16)
    env.close()


def test_nan_actions_are_refused():
    env = make_envs(functools.partial(FunctionEnv, None, Box(0, 9, (1,), np.int8)), num_envs=2)
    env.reset()
    with pytest.raises(APIUsageError, match="to_sb3: actions must be numbers, got NaN in row 1; look at the policy"):
        env.step(np.array([[1.0], [np.nan]]))
    env.close()


def test_integer_observations_start_at_zero():
    space = Dict({"side": Discrete(3, start=4), "grid": MultiDiscrete([[2, 3], [4, 5]])})
    env = make_envs(functools.partial(FunctionEnv, space, length=2), num_envs=2)
    assert env.observation_space == Dict({"side": Discrete(3), "grid": MultiDiscrete([2, 3, 4, 5])})
    shown = env.reset()
    seen = [observations[-1] for observations in env.get_attr("observations")]
    assert shown["side"].tolist() == [one["side"] - 4 for one in seen]
    assert shown["grid"].tolist() == [one["grid"].ravel().tolist() for one in seen]
    env.step(np.zeros(2, int))
    infos = env.step(np.zeros(2, int))[3]
    assert all(info["terminal_observation"] in env.observation_space for info in infos)
    PPO("MultiInputPolicy", env, n_steps=8, batch_size=16, n_epochs=1, device="cpu", seed=0).learn(16)
    env.close()


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_maskable_ppo_gets_the_mask_of_the_observation(backend):
    env = make_envs(MaskedEnv, backend, num_envs=2, num_workers=1 if backend != "Serial" else None)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu", seed=0)
    model.learn(64)
    env.reset()
    for row, callback in enumerate(env.get_attr("action_masks")):
        assert callback().tolist() == [True] * 3
        env.step(np.array([row, row]))
    env.step(np.array([0, 1]))
    assert np.array(env.env_method("action_masks", indices=[0, -1])).tolist() == [
        [False, True, True],
        [True, False, True],
    ]
    env.close()


def test_action_masks_method_has_priority_over_the_observation():
    class EnvWithMaskMethod(MaskedEnv):
        def action_masks(self):
            return np.array([False, True, False])

    env = make_envs(EnvWithMaskMethod, num_envs=2)
    env.reset()
    assert np.array(env.env_method("action_masks")).tolist() == [[False, True, False]] * 2
    env.close()


@pytest.mark.parametrize("backend", once(["Serial", "Multiprocessing"], ["Serial"]))
def test_env_is_wrapped_finds_wrappers(backend):
    mine = make_envs(_monitored, backend, num_envs=2, num_workers=1 if backend != "Serial" else None)
    theirs = DummyVecEnv([_monitored] * 2)
    for wrapper in (Monitor, gymnasium.wrappers.TimeLimit, gymnasium.ObservationWrapper, gymnasium.wrappers.ClipAction):
        assert mine.env_is_wrapped(wrapper, [0, -1]) == theirs.env_is_wrapped(wrapper, [0, -1])
    mine.close()


def _monitored():
    return Monitor(gymnasium.wrappers.FlattenObservation(gymnasium.make("CartPole-v1")))


def test_negative_indices_count_from_the_end():
    env = make_envs(num_envs=3)
    env.set_attr("speed", 5, indices=-1)
    assert env.get_attr("speed") == [1, 1, 5]
    assert env.get_attr("speed", [-3, -1]) == [1, 5]
    with pytest.raises(APIUsageError, match=r"to_sb3: indices must be from -3 to 2, got \[3\]"):
        env.get_attr("speed", 3)
    env.close()


def test_native_environments_render_every_row_and_refuse_options():
    for name, num_envs in (("cartpole", 3), ("rware", 1)):
        env = to_sb3(pufferlib.make(name, num_envs=num_envs, render_mode="rgb_array"))
        env.reset()
        frames = env.get_images()
        assert len(frames) == env.num_envs > 1
        assert any((frame != frames[0]).any() for frame in frames[1:])
        with pytest.raises(APIUsageError, match="to_sb3: a native environment has keywords instead of options"):
            env.set_options({"a": 1})
        env.close()


def test_get_images_needs_a_render_mode():
    env = to_sb3(pufferlib.make("cartpole", num_envs=2))
    env.reset()
    with pytest.warns(UserWarning, match="render_mode must be 'rgb_array', got None"):
        assert env.get_images() == [None, None]
    env.close()


def test_infos_can_be_modified():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=FunctionEnv)
    with contextlib.closing(
        to_sb3(pufferlib.vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step"))
    ) as envs:
        envs.reset()
        first = envs.step(np.zeros(2, int))[3]
        first[0]["mine"] = 1
        assert envs.step(np.zeros(2, int))[3] == [{"TimeLimit.truncated": False}] * 2


@pytest.mark.parametrize("truncates", [False, True])
def test_truncated_key_of_infos_is_overwritten_by_the_step(truncates):
    make = functools.partial(FunctionEnv, length=2, truncates=truncates, info=lambda _: {"TimeLimit.truncated": True})
    mine, theirs = make_envs(make, num_envs=1), DummyVecEnv([make])
    for env in (mine, theirs):
        env.reset()
        assert [env.step(np.zeros(1, int))[3][0]["TimeLimit.truncated"] for _ in range(2)] == [False, truncates]
    mine.close()
