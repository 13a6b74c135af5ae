"""Tasks of dm_control stepped in C, compared byte by byte with the package."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from pufferlib.buffers import allocate
from pufferlib.errors import APIUsageError
from pufferlib.registry.twins import twin_of
from pufferlib.settings.config import load_config
from pufferlib.training.trainer import Trainer
from pufferlib.vector.twins import TwinEnvs
from tests.needs import missing_binding
from tests.tiers import once
from tests.twins import compare, compare_batches, outcome_of

if reason := missing_binding("dmcontrol"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.dmcontrol import env as binding  # only with dm_control
from pufferlib.robots import task

TASKS = (
    "ball_in_cup-catch",
    "cartpole-balance",
    "cartpole-swingup",
    "cheetah-run",
    "finger-spin",
    "reacher-easy",
    "reacher-hard",
    "walker-run",
    "walker-stand",
    "walker-walk",
)


@pytest.fixture
def short_episodes(monkeypatch):
    """Truncate episodes after 0.13 simulated seconds, which are 6 to 13 steps."""
    load = binding.suite.load

    def load_short(domain, name, task_kwargs):
        return load(domain, name, {**task_kwargs, "time_limit": 0.13})

    monkeypatch.setattr(binding.suite, "load", load_short)


@pytest.mark.parametrize("name", once(TASKS, {"ball_in_cup-catch", "finger-spin"}))
def test_same_seeds_and_actions_give_the_bytes_of_dm_control(name, short_episodes):
    assert compare(f"dmcontrol/{name}", copies=2, steps=30) > 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TASKS)
def test_long_play_gives_the_bytes_of_dm_control(name):
    assert compare(f"dmcontrol/{name}", copies=100, steps=1000) == 100


def test_threads_that_share_resets_give_the_results_of_one():
    twin = twin_of("dmcontrol/cheetah-run", {})
    one, three = (TwinEnvs(twin, num_envs=7, seed=1, num_threads=threads) for threads in (1, 3))
    for seed in (None, 4):
        assert one.reset(seed)[0].tobytes() == three.reset(seed)[0].tobytes()
    for each in (one, three):
        each.reset(env_ids=[0, 2, 3], seed=[1, 2, 3])
        each.step(np.ones((7, 6), np.float32))
    assert one.observations.tobytes() == three.observations.tobytes()
    one.close()
    three.close()


def test_steps_without_resets_use_no_python_threads(monkeypatch):
    twins = TwinEnvs(twin_of("dmcontrol/cheetah-run", {}), num_envs=4, num_threads=2)
    twins.reset(seed=1)
    monkeypatch.setattr(ThreadPoolExecutor, "map", lambda *_: pytest.fail("a switch of threads costs 0.1 ms"))
    twins.step(np.ones((4, 6), np.float32))
    twins.close()


def test_episodes_without_time_limit_are_not_truncated():
    assert twin_of("dmcontrol/reacher-easy", {}).max_steps == 1000
    assert compare("dmcontrol/reacher-easy", copies=1, steps=1010, time_limit=False) == 0


@pytest.mark.parametrize("autoreset", once(["next_step", "same_step"], ["same_step"]))
@pytest.mark.parametrize(
    ("name", "flat"),
    once([(name, flat) for name in TASKS for flat in (True, False)], [("reacher-easy", True), ("walker-walk", False)]),
)
def test_batches_equal_those_of_the_python_environments(name, flat, autoreset, short_episodes):
    compare_batches(f"dmcontrol/{name}", autoreset=autoreset, flat=flat, steps=20)


@pytest.mark.parametrize("name", once(TASKS, ("reacher-easy", "walker-walk")))
def test_saved_states_continue_with_the_same_results(name, short_episodes):
    twin = twin_of(f"dmcontrol/{name}", {})
    twins, others = (TwinEnvs(twin, num_envs=3, seed=seed) for seed in (1, 2))
    twins.reset()
    others.reset()
    twins.single_action_space.seed(0)
    for steps in (0, 4, 20):  # at a reset, in an episode, after some
        for _ in range(steps):
            action = [twins.single_action_space.sample() for _ in range(3)]
            twins.step(action)
        assert others.load_state(twins.save_state()).tobytes() == twins.observations.tobytes()
        for _ in range(20):
            action = [twins.single_action_space.sample() for _ in range(3)]
            assert outcome_of(twins, twins.step(action)) == outcome_of(others, others.step(action))
    twins.close()
    others.close()


@pytest.mark.all
def test_training_in_c_and_in_python_gives_the_same_weights_and_metrics(tmp_path, short_episodes):
    weights, episodes = [], []
    for native in (True, False):
        settings = {"vec.backend": "Serial", "vec.num_envs": 4, "train.total_timesteps": 512, "train.horizon": 64}
        settings |= {"env.native": native, "train.device": "cpu", "train.update_epochs": 1}
        trainer = Trainer(load_config("dmcontrol/cheetah-run", settings), tmp_path)
        assert isinstance(trainer.vecenv, TwinEnvs) == native
        metrics = [trainer.step() for _ in range(2)]
        episodes.append([{name: each[name] for name in each if name.startswith("environment/")} for each in metrics])
        weights.append(trainer.policy.state_dict())
        trainer.close()
    assert episodes[0] == episodes[1]
    assert episodes[0][-1].keys() >= {"environment/episode_return", "environment/score"}
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("walker-walk", {"native": False}),
        pytest.param("walker-walk", {"pixels": True}, marks=pytest.mark.all),
        pytest.param("walker-walk", {"render_mode": "rgb_array"}, marks=pytest.mark.all),
        ("walker-walk", {"no_such_option": 1}),
        ("cartpole-swingup_sparse", {}),
        ("cartpole-two_poles", {}),
        ("finger-turn_easy", {}),
        ("hopper-hop", {}),
        ("no such task", {}),
    ],
    ids=str,
)
def test_tasks_and_options_that_c_lacks_run_in_python(name, keywords):
    assert twin_of(f"dmcontrol/{name}", keywords) is None


def test_warning_of_mujoco_in_a_step_is_an_error_as_in_dm_control():
    twin = twin_of("dmcontrol/cheetah-run", {})
    rows = allocate(twin.observation_space, twin.action_space, 2)
    games = twin.games(2, "disabled", 2)
    games.bind(**rows)
    games.reset([0, 1])
    games.data[1].qvel[:] = 1e12
    with pytest.raises(APIUsageError, match=r"environment 1 has .* its simulation is unstable"):
        games.step(rows["actions"])
    games.reset([0, 1])
    games.step(rows["actions"])
    assert np.isfinite(rows["observations"]).all()
    games.close()


def test_different_results_run_in_python_with_a_warning(monkeypatch):
    monkeypatch.setattr(task, "BELL_AT_MARGIN", 0.2)
    with pytest.warns(UserWarning, match=r"expected the reward of dm_control [\d.]+ in step 0"):
        assert twin_of("dmcontrol/cartpole-swingup", {}) is None
