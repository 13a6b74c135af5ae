"""Batches of environments in C behind the interface of the Python environments that they equal."""

import contextlib

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.monitor import Monitor

import pufferlib
from pufferlib import vector
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from pufferlib.frameworks.sb3 import to_sb3
from pufferlib.registry.inside import binding_module
from pufferlib.registry.outside import REGISTERED, Registration
from pufferlib.registry.twins import twin_of
from pufferlib.training import Config, evaluate, load_config, load_policy
from pufferlib.training.build import build_policy, make_vecenv
from pufferlib.vector import to_gymnasium
from pufferlib.vector.twins import TwinEnvs
from tests.needs import missing_binding
from tests.tiers import once

TASKS = [
    ("Blackjack-v1", {}),
    ("CliffWalkingSlippery-v1", {"max_episode_steps": 20}),
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"desc": ["SFFS", "FHFG"], "max_episode_steps": 9}),
    ("Taxi-v4", {"is_rainy": True, "max_episode_steps": 30}),
]
absent = missing_binding("minigrid")
MINIGRID = [
    pytest.param(f"minigrid/{name}", keywords, marks=pytest.mark.skipif(bool(absent), reason=absent))
    for name, keywords in (
        ("MiniGrid-DoorKey-5x5-v0", {"max_steps": np.int64(20)}),
        ("Dynamic-Obstacles-Random-5x5", {}),
        ("MiniGrid-PutNear-6x6-N2-v0", {"mission_bytes": 96, "agent_view_size": 3}),
        ("BabyAI-SynthS5R2-v0", {"mission_bytes": 512}),
    )
]


def both(name, num_envs=4, seed=3, **keywords):
    mode = keywords.pop("autoreset", "next_step")
    twins = TwinEnvs(twin_of(name, keywords), num_envs, seed, vector.AutoresetMode(mode))
    creator = pufferlib.env_creator(name)
    return twins, vector.make(
        creator, env_kwargs=keywords, num_envs=num_envs, seed=seed, backend="Serial", autoreset=mode
    )


def outcome_of(vecenv, received):
    observations, rewards, terminals, truncations, infos = received
    ends = terminals | truncations
    rows = [array.tolist() for array in (observations, rewards, terminals, truncations)]
    stats = [
        {name: (type(value), np.asarray(value).dtype.str, np.asarray(value).tolist()) for name, value in info.items()}
        for info in infos
    ]
    finals = vecenv.final_observations[ends].tolist() if vecenv.autoreset == "same_step" else None
    return rows, ends.tolist(), finals, stats, vecenv.info_sources


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize(
    ("name", "keywords"), [*TASKS, ("FrozenLake-v1", {"reward_schedule": (1, -0.1, -0.01)}), *MINIGRID], ids=str
)
def test_batches_equal_those_of_the_python_environments(name, keywords, autoreset):
    twins, originals = both(name, autoreset=autoreset, **keywords)
    for attribute in ("single_observation_space", "single_action_space", "emulated", "num_agents", "autoreset"):
        assert getattr(twins, attribute) == getattr(originals, attribute), attribute
    assert twins.driver_env.obs_dtype == originals.driver_env.obs_dtype
    rng, ends = np.random.default_rng(0), 0
    for seed in (None, 7):  # a second reset continues with another seed
        assert twins.reset(seed)[0].tolist() == originals.reset(seed)[0].tolist()
        for _ in range(60):
            actions = rng.integers(twins.single_action_space.n, size=4)
            ours, theirs = (outcome_of(each, each.step(actions)) for each in (twins, originals))
            assert ours == theirs
            ends += sum(ours[1])
    assert ends > 0
    assert (
        twins.reset(env_ids=[1, 2], seed=[5, 6])[0].tolist() == originals.reset(env_ids=[1, 2], seed=[5, 6])[0].tolist()
    )
    twins.close()
    originals.close()


def test_make_runs_batches_in_c():
    for keywords in ({}, {"native": True, "autoreset": "same_step"}, {"num_threads": 2}):
        with pufferlib.make("FrozenLake-v1", num_envs=3, seed=1, is_slippery=False, **keywords) as envs:
            assert isinstance(envs, TwinEnvs)
            assert envs.reset()[0].shape == (3, 1)
    large = {"desc": ["SG" * 20]}  # too large for C
    for keywords in ({"native": False}, {"backend": "Serial"}, {"batch_size": 3}, {"num_threads": 2, **large}):
        with pufferlib.make("FrozenLake-v1", num_envs=3, **keywords) as envs:
            assert isinstance(envs, vector.Serial)
    for keywords in ({}, large):
        with pytest.raises(APIUsageError, match="num_threads must be an int >= 1"):
            pufferlib.make("FrozenLake-v1", num_envs=3, num_threads=0, **keywords)
    for name, keywords in (("FrozenLake-v1", {"native": False}), ("Acrobot-v1", {})):
        with pytest.raises(UnknownNameError, match="unexpected keyword argument 'num_threads'"):
            pufferlib.make(name, num_envs=3, num_threads=2, **keywords)
    with pufferlib.make("FrozenLake-v1", num_envs=3) as envs:
        envs.reset()
        nobody = np.zeros(3, bool)
        assert envs.reset(env_ids=nobody)[0].shape == (3, 1)
        assert envs.get_attr("metadata", env_ids=nobody) == []
        envs.step([0, 0, 0])
    with pufferlib.make("gymnasium:FrozenLake-v1", num_envs=3) as envs:  # an id with its module
        assert isinstance(envs, TwinEnvs)
    single = pufferlib.make("FrozenLake-v1", native=False)
    assert single.env.spec.id == "FrozenLake-v1"


def made(name, is_native, autoreset, **keywords):
    return pufferlib.make(name, num_envs=3, seed=5, autoreset=autoreset, native=is_native, **keywords)


def played_by_gymnasium(name, is_native, **keywords):
    envs = to_gymnasium(made(name, is_native, "next_step", **keywords))
    spaces = envs.single_observation_space, envs.single_action_space
    observations, _ = envs.reset(seed=[3, 4, 5])
    seen, seeds = [observations], envs.np_random_seed
    for actions in np.random.default_rng(0).integers(envs.single_action_space.n, size=(40, 3)):
        *step, infos = envs.step(actions)
        seen += [step, infos.get("episode_length")]
    envs.close()
    return spaces, seeds, seen


def played_by_sb3(name, is_native, **keywords):
    envs = to_sb3(made(name, is_native, "same_step", **keywords))
    envs.seed(3)
    seen = [envs.observation_space, envs.action_space, envs.env_is_wrapped(Monitor), envs.env_is_wrapped(TimeLimit)[:0]]
    seen += [envs.reset(), envs.has_attr("action_masks"), envs.get_attr("render_mode")]
    for actions in np.random.default_rng(0).integers(envs.action_space.n, size=(40, 3)):
        *step, infos = envs.step(actions)
        seen += [step, [info.get("episode", {}).get("l") for info in infos]]
    envs.close()
    return seen


@pytest.mark.parametrize(("name", "keywords"), [*TASKS, *MINIGRID], ids=str)
def test_adapters_give_the_same_as_with_the_python_environments(name, keywords):
    plays = [played_by_gymnasium, played_by_sb3]
    for play in plays[:1] if name == "Blackjack-v1" else plays:  # SB3 has no Tuple observations
        assert str(play(name, True, **keywords)) == str(play(name, False, **keywords))


@pytest.mark.parametrize("act", once(["at random", "sampled", "greedy"], ["sampled"]))
@pytest.mark.parametrize(("name", "keywords"), [*TASKS[1:], MINIGRID[0]], ids=str)
def test_evaluations_in_c_equal_those_of_the_python_environments(name, keywords, act, monkeypatch):
    results, made_in_python = [], []
    make = vector.make
    monkeypatch.setattr(vector, "make", lambda *args, **options: made_in_python.append(name) or make(*args, **options))
    for native in (True, False):
        settings = {f"env.{key}": value for key, value in {**keywords, "native": native}.items()}
        config = load_config(name, {**settings, "vec.num_envs": 4, "eval.greedy": act == "greedy"})
        with contextlib.closing(make_vecenv(config)) as vecenv:
            policy = None if act == "at random" else build_policy(config, vecenv)
        made_in_python.clear()
        results.append(evaluate(config, policy, episodes=10, seed=3))
        assert bool(made_in_python) is not native
    ours, theirs = results
    assert ours.scores == pytest.approx(theirs.scores, rel=1e-6)  # rewards in C are float32
    assert [report["episode_length"] for report in ours.reports] == [
        report["episode_length"] for report in theirs.reports
    ]


def test_levels_of_minigrid_train_and_play_without_the_package(tmp_path, monkeypatch):
    def creator(**keywords):
        raise BindingMissing("needs the package minigrid")

    monkeypatch.setattr(binding_module("minigrid"), "env_creator", lambda name: creator)
    name = "minigrid/MiniGrid-Empty-5x5-v0"
    with pytest.raises(BindingMissing):
        pufferlib.make(name)
    settings = {"train.total_timesteps": 1024, "train.device": "cpu", "eval.episodes": 4}
    with pytest.warns(UserWarning, match=f"no video of {name}.*needs the package minigrid"):
        trained = pufferlib.train(name, settings, runs=tmp_path, progress=False)
    assert trained.comparison.agent.episodes == 4
    agent = pufferlib.load(trained.run.folder)
    with pufferlib.make(name, num_envs=3) as envs:
        assert envs.single_action_space.contains(agent(envs.reset()[0])[0])


@pytest.mark.skipif(bool(absent), reason=absent)
@pytest.mark.parametrize(
    "keywords",
    [{"view": "full"}, {"direction": False}, {"mission": True}, {"mission_bytes": 200}],
    ids=str,
)
def test_options_of_minigrid_that_c_lacks_run_the_package(keywords):
    assert twin_of("minigrid/MiniGrid-Fetch-5x5-N2-v0", {}) is not None
    with pufferlib.make("minigrid/MiniGrid-Fetch-5x5-N2-v0", num_envs=2, **keywords) as envs:
        assert isinstance(envs, vector.Serial)


@pytest.mark.parametrize("keywords", [{"direction": 1}, {"tile_size": 8.0}, {"mission_bytes": 96.0}], ids=str)
def test_values_of_another_type_are_left_to_the_package(keywords):
    assert twin_of("minigrid/MiniGrid-Fetch-5x5-N2-v0", keywords) is None


class Constant(gymnasium.Env):
    """Environment whose observation is always 7."""

    observation_space, action_space = gymnasium.spaces.Discrete(16), gymnasium.spaces.Discrete(4)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return 7, {}

    def step(self, action):
        return 7, 1.0, False, False, {}


def test_own_environment_under_a_known_id_stays_the_users(monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "FrozenLake-v1", EnvSpec("FrozenLake-v1", entry_point=Constant))
    monkeypatch.setitem(REGISTERED, "Taxi-v4", Registration(Constant, None, ""))
    for name in ("FrozenLake-v1", "Taxi-v4"):
        assert twin_of(name, {}) is None
        with pufferlib.make(name, num_envs=2) as envs:
            assert envs.reset()[0].tolist() == [[7], [7]]


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("FrozenLake-v1", {"desc": []}),
        ("FrozenLake-v1", {"desc": ["S", "G"]}),
        ("FrozenLake-v1", {"desc": ["SF/FG"]}),  # a letter that Gymnasium treats as ice
        ("FrozenLake-v1", {"success_rate": 0.12345678}),
        ("FrozenLake-v1", {"reward_schedule": (1, 0, -0.12345678)}),
        ("Taxi-v4", {"is_rainy": True, "rainy_probability": 0.12345678}),
        ("Taxi-v4", {"fickle_passenger": True, "fickle_probability": np.float32(0.3)}),
    ],
    ids=str,
)
def test_values_that_c_would_change_run_in_gymnasium(name, keywords):
    assert twin_of(name, keywords) is None


def test_older_toy_text_of_gymnasium_runs_in_python_with_a_warning(monkeypatch):
    def older(self, render_mode=None, is_rainy=False, fickle_passenger=False):
        raise AssertionError

    monkeypatch.setattr("gymnasium.envs.toy_text.taxi.TaxiEnv.__init__", older)
    words = "expected TaxiEnv with fickle_probability and rainy_probability, as in Gymnasium 1.3.0, found that of "
    with pytest.warns(UserWarning, match=words + gymnasium.__version__):
        assert twin_of("Taxi-v4", {}) is None


@pytest.mark.parametrize("keyword", ["size", "max_steps", "goal_reward"])
def test_keywords_that_only_c_has_are_unknown(keyword):
    with pytest.raises(UnknownNameError, match=f"unexpected keyword argument '{keyword}'"):
        pufferlib.make("FrozenLake-v1", num_envs=2, **{keyword: 4})


def test_wrong_arguments_are_refused():
    with pytest.raises(APIUsageError, match="FrozenLake-v1: native must be True or False, got 'no'"):
        twin_of("FrozenLake-v1", {"native": "no"})
    with pytest.raises(UnknownNameError, match="unexpected keyword argument 'is_slipery'; did you mean 'is_slippery'"):
        pufferlib.make("FrozenLake-v1", num_envs=2, is_slipery=True)
    twins, _ = both("FrozenLake-v1")
    twins.reset()
    for act in (lambda: twins.call("render"), lambda: twins.get_attr("desc"), lambda: twins.set_attr("desc", "S")):
        with pytest.raises(APIUsageError, match="make the Python environments with native=False"):
            act()
    with pytest.raises(AttributeError, match=r"TwinEnvs\.envs: .*make the Python environments with native=False"):
        list(twins.envs)
    twins.step([0] * 4)  # goes on
    for keywords, words in (
        ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"seed": 0.5}, "seed must be an int, got 0.5"),
        ({"autoreset": "later"}, "autoreset 'later'"),
    ):
        with pytest.raises((APIUsageError, UnknownNameError), match=words):
            pufferlib.make("FrozenLake-v1", **{"num_envs": 2, **keywords})
    with pytest.raises(APIUsageError, match="options must be None for environments in C"):
        twins.reset(options={"level": 1})


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_saved_states_continue_with_the_same_results(autoreset):
    (twins, _), (others, _) = (both("FrozenLake-v1", seed=seed, autoreset=autoreset) for seed in (1, 2))
    twins.reset()
    others.reset()
    rng = np.random.default_rng(0)
    for actions in rng.integers(4, size=(30, 4)):
        twins.step(actions)
    assert others.load_state(twins.save_state()).tolist() == twins.observations.tolist()
    for actions in rng.integers(4, size=(60, 4)):
        assert outcome_of(twins, twins.step(actions)) == outcome_of(others, others.step(actions))
    states = twins.save_state(env_ids=[2])
    assert others.load_state(states, env_ids=[0])[0].tolist() == twins.observations[2].tolist()
    (wrong, _) = both("FrozenLake-v1", is_slippery=False, autoreset=autoreset)
    wrong.reset()
    with pytest.raises(APIUsageError, match="make the environment with the keywords that it was saved with"):
        wrong.load_state(states, env_ids=[0])


@pytest.mark.usefixtures("blank_curves")
def test_training_in_c_and_in_python_gives_the_same_weights(tmp_path):
    weights = []
    for native in (True, False):
        settings = {"vec.backend": "Serial", "vec.num_envs": 4, "train.total_timesteps": 2048, "eval.episodes": 4}
        settings |= {"env.native": native, "env.is_slippery": False, "train.device": "cpu"}
        trained = pufferlib.train("FrozenLake-v1", settings, runs=tmp_path, progress=False)
        config = Config.load(trained.run.folder / "config.toml")
        weights.append(load_policy(config, trained.run).state_dict())
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_render_draws_one_copy():
    with pufferlib.make("FrozenLake-v1", num_envs=3, seed=1) as envs:
        with pytest.raises(APIUsageError, match="no episode has begun; call reset first"):
            envs.render()
        envs.reset()
        envs.load_state(envs.save_state(env_ids=[0]), env_ids=[2])
        first, moved = envs.render(), None
        while moved is None or np.array_equal(first, moved):
            envs.step([2, 2, 2])
            moved = envs.render(2)
        assert first.shape == moved.shape == (384, 384, 3)
        with pytest.raises(APIUsageError, match="env_index must be at least 0 and below 3, got 3"):
            envs.render(3)
        envs.async_reset()
        with pytest.raises(APIUsageError, match="the next call must be recv, got render"):
            envs.render()
