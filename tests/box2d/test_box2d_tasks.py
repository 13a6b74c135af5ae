"""Box2D tasks stepped in C, compared byte by byte with Gymnasium's."""

import dataclasses
import sys

import gymnasium
import numpy as np
import pytest
import torch

import pufferlib
from pufferlib.buffers import allocate
from pufferlib.errors import APIUsageError
from pufferlib.registry.twins import twin_of
from pufferlib.settings.config import load_config
from pufferlib.training import evaluate
from pufferlib.training.trainer import Trainer
from pufferlib.vector.twins import TwinEnvs
from tests.needs import missing_binding
from tests.tiers import as_all, once
from tests.twins import both, compare, compare_batches, outcome_of

absent = missing_binding("box2d")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)

TASKS = ("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3")
NAMES = (*TASKS, *(f"box2d/{task}" for task in TASKS))
CARS = ("CarRacing-v3", "box2d/CarRacing-v3")  # a step of Gymnasium's takes 5 ms
VARIED = [
    ("box2d/LunarLander", {"enable_wind": True, "max_episode_steps": 30}),
    ("LunarLander-v3", {"continuous": True, "gravity": -3.7}),
    ("LunarLander-v3", {"enable_wind": True, "wind_power": 20, "turbulence_power": 0.3, "gravity": -11}),
    ("box2d/LunarLanderContinuous-v3", {"enable_wind": True, "clip_action": True, "channels_first": True}),
    ("BipedalWalker-v3", {"hardcore": True, "max_episode_steps": 20}),
    ("box2d/BipedalWalker", {"clip_action": True, "max_episode_steps": 20}),
]


@pytest.mark.parametrize("name", NAMES)
def test_same_seeds_and_actions_give_the_bytes_of_gymnasium(name):
    assert compare(name, copies=2, steps=120, max_episode_steps=110) > 0


@pytest.mark.all
@pytest.mark.parametrize("name", CARS)
def test_same_seeds_and_actions_give_the_pictures_of_gymnasium(name):
    assert compare(name, copies=1, steps=45, max_episode_steps=40) > 0


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        as_all(("CarRacing-v3", {"lap_complete_percent": 0.0, "continuous": False})),  # the first tile finishes the lap
        ("box2d/CarRacing", {"domain_randomize": True, "channels_first": True, "max_episode_steps": 8}),
    ],
    ids=str,
)
def test_keywords_of_cars_have_the_effect_of_gymnasiums(name, keywords):
    assert compare(name, copies=1, steps=10, **keywords) > 0


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", [*NAMES, *CARS])
def test_long_play_gives_the_bytes_of_gymnasium(name):
    assert compare(name, copies=100, steps=1000) > 0


@pytest.mark.parametrize(("name", "keywords"), VARIED, ids=str)
def test_keywords_have_the_effect_of_gymnasiums(name, keywords):
    compare(name, copies=2, steps=60, **keywords)


def landing(original):
    """Return the actions of Gymnasium's own pilot until the lander rests, and the outcome of each."""
    from gymnasium.envs.box2d.lunar_lander import heuristic

    observation, _ = original.reset(seed=1)
    over = False
    while not over:
        action = heuristic(original, observation)
        outcome = original.step(action)
        observation, over = outcome[0], outcome[2] or outcome[3]
        yield action, outcome


def test_landed_lander_falls_asleep_and_gets_its_reward():
    twin = twin_of("LunarLander-v3", {})
    rows = allocate(twin.observation_space, twin.action_space, 1)
    games = twin.games(1, "disabled", 1)
    games.bind(**rows)
    games.reset([1])
    for action, (observation, reward, *_) in landing(pufferlib.make("LunarLander-v3").env.env):
        games.step([action])
        assert rows["observations"][0].tobytes() == observation.tobytes()
        assert games.exact_rewards[0] == reward
    assert (rows["terminals"][0], games.exact_rewards[0]) == (True, 100)
    games.close()


@pytest.mark.all
def test_car_that_leaves_the_field_loses_its_lap():
    twin = twin_of("CarRacing-v3", {})
    rows = allocate(twin.observation_space, twin.action_space, 1)
    games = twin.games(1, "disabled", 1)
    games.bind(**rows)
    games.reset([0])
    original = pufferlib.make("CarRacing-v3").env.env
    original.reset(seed=0)
    while not rows["terminals"][0]:
        games.step(np.float32([[0, 0.2, 0]]))
        observation, reward, terminated, _, infos = original.step(np.float32([0, 0.2, 0]))
        assert rows["observations"][0].tobytes() == observation.tobytes()
        assert (games.exact_rewards[0], rows["terminals"][0]) == (reward, terminated)
    assert games.infos_of(0) == infos == {"lap_finished": False}
    games.close()


@pytest.mark.parametrize("name", ["LunarLander-v3", "BipedalWalker-v3", as_all("CarRacing-v3")])
def test_two_threads_give_the_results_of_one(name):
    one, two = (TwinEnvs(twin_of(name, {"max_episode_steps": 30}), 32, num_threads=threads) for threads in (1, 2))
    one.single_action_space.seed(0)
    assert one.reset()[0].tobytes() == two.reset()[0].tobytes()
    for _ in range(40):
        actions = [one.single_action_space.sample() for _ in range(32)]
        assert outcome_of(one, one.step(actions)) == outcome_of(two, two.step(actions))
    one.close()
    two.close()


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize(
    "name", ["box2d/BipedalWalker", "LunarLander-v3", pytest.param("box2d/CarRacing", marks=pytest.mark.all)]
)
def test_batches_equal_those_of_the_python_environments(name, autoreset):
    compare_batches(name, autoreset=autoreset, max_episode_steps=12, steps=12 if autoreset == "disabled" else 30)


@pytest.mark.parametrize(
    ("name", "autoreset"),
    once(
        [
            (name, autoreset)
            for name in ("LunarLander-v3", *(f"box2d/{task}" for task in TASKS), CARS[1])
            for autoreset in ("next_step", "same_step")
        ],
        [
            ("LunarLander-v3", "same_step"),
            ("box2d/LunarLanderContinuous-v3", "next_step"),
            ("box2d/BipedalWalker-v3", "next_step"),
            ("box2d/BipedalWalkerHardcore-v3", "same_step"),
        ],
    ),
)
def test_saved_states_continue_with_the_same_results(name, autoreset):
    twins, others = (both(name, seed=seed, autoreset=autoreset, max_episode_steps=15)[0] for seed in (1, 2))
    twins.reset()
    others.reset()
    twins.single_action_space.seed(0)
    actions = [[twins.single_action_space.sample() for _ in range(3)] for _ in range(50)]
    for start in (0, 15, 29):  # inside an episode, at its end, and in the second step of another
        for action in actions[start : start + 10]:
            twins.step(action)
        assert others.load_state(twins.save_state()).tobytes() == twins.observations.tobytes()
        for action in actions[start : start + 10]:
            assert outcome_of(twins, twins.step(action)) == outcome_of(others, others.step(action))
    (other, _) = both(name, max_episode_steps=16)
    other.reset()
    with pytest.raises(APIUsageError, match="make the environment with the keywords that it was saved with"):
        other.load_state(twins.save_state())


def test_state_of_a_world_with_a_history_is_refused():
    twins, _ = both("BipedalWalker-v3")
    twins.reset()
    with pytest.raises(APIUsageError, match="depends on earlier episodes and cannot be saved; box2d/BipedalWalker-v3"):
        twins.save_state()
    twins.close()


@pytest.mark.parametrize("name", ["LunarLander-v3", pytest.param("BipedalWalker-v3", marks=pytest.mark.all)])
def test_training_in_c_and_in_python_gives_the_same_weights_and_metrics(tmp_path, name):
    weights, episodes = [], []
    for native in (True, False):
        settings = {"vec.backend": "Serial", "vec.num_envs": 4, "train.total_timesteps": 512, "train.horizon": 64}
        settings |= {"env.native": native, "env.max_episode_steps": 30, "train.device": "cpu", "train.update_epochs": 1}
        trainer = Trainer(load_config(name, settings), tmp_path)
        assert isinstance(trainer.vecenv, TwinEnvs) == native
        metrics = [trainer.step() for _ in range(2)]
        episodes.append([{name: each[name] for name in each if name.startswith("environment/")} for each in metrics])
        weights.append(trainer.policy.state_dict())
        trainer.close()
    assert episodes[0] == episodes[1]
    assert episodes[0][-1].keys() >= {"environment/episode_return", "environment/episode_length"}
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_evaluations_in_c_and_in_python_give_the_same_scores():
    settings = {"vec.num_envs": 4, "env.max_episode_steps": 60}
    configs = [load_config("box2d/BipedalWalker-v3", {**settings, "env.native": native}) for native in (True, False)]
    ours, theirs = (evaluate(config, None, episodes=6, seed=3) for config in configs)
    assert ours.scores == theirs.scores


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("box2d/LunarLander-v3", {"native": False}),
        ("CarRacing-v3", {"verbose": True}),
        ("box2d/CarRacing-v3", {"max_episode_steps": 10_000}),
        ("LunarLander-v3", {"render_mode": "rgb_array"}),
        ("LunarLander-v3", {"gravity": np.float32(-10)}),
        pytest.param(
            "LunarLander-v3", {"wind_power": 1e9}, marks=pytest.mark.filterwarnings("ignore:.*wind_power:UserWarning")
        ),
        ("LunarLander-v3", {"gravity": -20.0}),
        ("box2d/LunarLander-v3", {"no_such_option": 1}),
        ("box2d/NoSuchTask", {}),
    ],
    ids=str,
)
def test_options_that_c_lacks_run_in_python(name, keywords):
    assert twin_of(name, keywords) is None


@pytest.mark.parametrize("name", ["box2d/BipedalWalker-v3", "box2d/CarRacing-v3"])
def test_action_with_a_nan_is_refused_and_changes_nothing(name, monkeypatch):
    monkeypatch.setattr("pufferlib.registry.games.check_equal", lambda *_: None)  # steps of Gymnasium's cars are slow
    twin = twin_of(name, {"max_episode_steps": 9})
    rows = allocate(twin.observation_space, twin.action_space, 2)
    games = twin.games(2, "disabled", 1)
    games.bind(**rows)
    games.reset([0, 1])
    before = rows["observations"][1].tobytes()
    with pytest.raises(APIUsageError, match=r"environment 1 has an .* is NaN .* its action has a NaN"):
        games.step(np.where([[False], [True]], np.nan, np.zeros_like(rows["actions"])))
    assert rows["observations"][1].tobytes() == before
    games.close()


@pytest.fixture
def engine():
    """Return the function that finds Box2D's functions, which forgets them before and after."""
    from pufferlib.box2d.engine import engine

    engine.cache_clear()
    yield engine
    engine.cache_clear()


def test_other_version_runs_in_python_with_a_warning(engine, monkeypatch):
    import Box2D

    monkeypatch.setattr(Box2D, "__version__", "2.4.0")
    with pytest.warns(UserWarning, match=r"C cannot be used: expected Box2D 2\.3\.10, found 2\.4\.0"):
        assert twin_of("LunarLander-v3", {}) is None


def test_library_without_a_function_runs_in_python_with_a_warning(engine, monkeypatch):
    monkeypatch.setattr("pufferlib.box2d.engine.FUNCTIONS", ("_ZN7b2World3FlyEv",))
    with pytest.warns(UserWarning, match=r"expected the functions of Box2D 2\.3\.10 in .*_ZN7b2World3FlyEv"):
        assert twin_of("box2d/LunarLander-v3", {}) is None


def test_other_font_runs_in_python_with_a_warning(monkeypatch):
    monkeypatch.setattr("pufferlib.box2d.twin.TEXT_SHAPE", (40, 104))
    with pytest.warns(UserWarning, match=r"expected text of \(40, 104\) pixels from pygame, found \(46, 9\d\)"):
        assert twin_of("CarRacing-v3", {"max_episode_steps": 7}) is None


def test_environments_without_a_step_limit_need_python(monkeypatch):
    monkeypatch.setattr("pufferlib.registry.games.check_equal", lambda *_: None)  # steps of Gymnasium's cars are slow
    twin = twin_of("CarRacing-v3", {"max_episode_steps": 9})
    with pytest.raises(APIUsageError, match=r"max_episode_steps must be 1 to 9990 in C, got 0; .* native=False"):
        dataclasses.replace(twin, max_steps=0).games(1, "disabled", 1)


def test_missing_package_is_reported_by_the_original(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)  # import fails
    for name in ("box2d/LunarLander-v3", "LunarLander-v3"):
        assert twin_of(name, {}) is None


def test_different_results_run_in_python_with_a_warning(monkeypatch):
    monkeypatch.setattr("pufferlib.box2d.twin.RAY_LENGTH", 1.0)
    with pytest.warns(UserWarning, match=f"expected the observation of Gymnasium {gymnasium.__version__} in step 0"):
        assert twin_of("BipedalWalker-v3", {}) is None


@pytest.mark.parametrize("name", ["LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalkerHardcore-v3"])
def test_render_draws_the_bodies_of_one_copy(name):
    purple = (0x80, 0x66, 0xE6)  # hull
    with TwinEnvs(twin_of(name, {}), num_envs=2) as envs:
        envs.reset(seed=[5, 8])
        pictures = []
        for _ in range(2):
            for _ in range(20):
                envs.step(np.zeros((2, *envs.single_action_space.shape), envs.single_action_space.dtype))
            pictures.append(envs.render(1))
    with pytest.raises(APIUsageError, match=r"TwinEnvs\.render: .*closed"):
        envs.render()
    centers = [np.argwhere((picture == purple).all(axis=2)).mean(axis=0) for picture in pictures]
    assert pictures[0].shape == (400, 600, 3)
    assert centers[1][0] > centers[0][0]  # falls: the rows of an image count downwards


def test_engines_of_the_lander_have_flames():
    orange = (0xE8, 0x8C, 0x30)
    with TwinEnvs(twin_of("LunarLander-v3", {}), num_envs=4) as envs:
        envs.reset(seed=[8, 8, 8, 8])
        for _ in range(20):
            envs.step([0, 0, 0, 0])
        envs.step([0, 1, 2, 3])
        places = [np.argwhere((envs.render(copy) == orange).all(axis=2)) for copy in range(4)]
    assert len(places[0]) == 0
    assert places[1][:, 1].mean() > places[2][:, 1].mean() > places[3][:, 1].mean()  # columns


@pytest.mark.all
def test_render_enlarges_the_observation_of_a_car():
    for keywords in ({}, {"channels_first": True}):
        with TwinEnvs(twin_of("box2d/CarRacing-v3", keywords), num_envs=1) as envs:
            observation = envs.reset(seed=1)[0][0]
            picture = envs.render()
        small = observation.transpose(1, 2, 0) if keywords else observation
        assert picture[::4, ::4].tolist() == small.tolist()
