"""dm_env interface of pools."""

import numpy as np
import pytest
from gymnasium.spaces import Box

import pufferlib.envpool as envpool
from pufferlib.envpool.spec import dm_spec
from pufferlib.errors import APIUsageError
from tests.envpool.counting import CUT, END, register_counting

dm_env = pytest.importorskip("dm_env", reason="dm_env is not installed; puffer install dm")

SOLO, TWO = register_counting(), register_counting(players=2)


def make(task=SOLO, num_envs=2, **keywords):
    return envpool.make_dm(task, num_envs=num_envs, seed=0, **keywords)


def test_make_dm_returns_a_dm_env_environment():
    with make() as env:
        assert isinstance(env, dm_env.Environment)
        assert len(env) == 2
        assert env.reward_spec().name == "reward"
        assert repr(env).startswith("DMPoolEnv('Counting")


def test_reset_and_step_return_time_steps():
    env = make()
    first = env.reset()
    assert type(first) is dm_env.TimeStep
    assert first.step_type.tolist() == [dm_env.StepType.FIRST] * 2
    assert first.observation.obs.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]
    assert first.observation._fields == ("env_id", "players", "obs", "count")
    assert first.observation.players._fields == ("env_id", "action")
    assert first.observation.env_id.tolist() == first.observation.players.env_id.tolist() == [0, 1]
    assert (first.step_type.dtype, first.reward.dtype, first.discount.dtype) == (np.int32, np.float32, np.float32)
    second = env.step(np.array([1, 2]))
    assert second.step_type.tolist() == [dm_env.StepType.MID] * 2
    assert second.observation.players.action.tolist() == [1, 2]
    assert second.reward.tolist() == np.float32([1.1, 1.2]).tolist()
    assert second.discount.tolist() == [1, 1]


def test_last_step_has_discount_zero_and_first_follows():
    env = make(num_envs=3)
    env.reset()
    last = env.step(np.array([END, CUT, 1]))
    assert last.step_type.tolist() == [2, 2, 1]
    assert last.discount.tolist() == [0, 0, 1]
    assert env.step(np.ones(3)).step_type.tolist() == [0, 0, 1]


def test_discount_info_becomes_discount_of_the_time_step():
    env = make(register_counting(discounts=True), num_envs=2)
    assert env.observation_spec()._fields == ("env_id", "players", "obs", "count")
    assert "info:discount" not in env.spec.state_array_spec
    assert env.reset().discount.tolist() == [1, 1]
    assert env.step(np.array([1, END])).discount.tolist() == [0.5, 0]


def test_max_episode_steps_follows_the_documented_table():
    env = make(num_envs=1, max_episode_steps=3)
    steps = [env.step(np.array([1])) for _ in range(5)]
    assert [step.step_type[0] for step in steps] == [0, 1, 1, 2, 0]
    assert [step.discount[0] for step in steps] == [1, 1, 1, 0, 1]


def test_env_id_selects_environments():
    env = make(num_envs=4)
    env.reset()
    assert env.step(np.ones(2), np.array([3, 1])).observation.env_id.tolist() == [3, 1]
    assert env.reset(np.array([2])).observation.env_id.tolist() == [2]
    env.send(np.ones(1), env_id=np.array([0]))
    assert env.recv().observation.env_id.tolist() == [0]


def test_async_batch_contains_the_first_that_finish():
    env = make(num_envs=4, batch_size=2)
    env.async_reset()
    for _ in range(5):
        state = env.recv().observation
        assert state.obs[:, 0].tolist() == state.env_id.tolist()
        env.send(np.ones(2), state.env_id)


def test_players_have_one_row_each():
    env = make(TWO)
    step = env.reset()
    assert step.step_type.shape == (2,)
    assert step.reward.shape == step.discount.shape == (4,)
    assert step.observation.players.env_id.tolist() == [0, 0, 1, 1]


def test_observation_and_action_specs():
    env = make()
    spec = env.observation_spec()
    assert spec._fields == ("env_id", "players", "obs", "count")
    spec.obs.validate(np.zeros(4, np.float32))
    assert spec.count.num_values == 10**6
    assert spec.players._fields == ("env_id", "action")
    action = env.action_spec()
    assert (action.num_values, action.dtype, action.name) == (5, np.int32, "action")
    assert envpool.make_spec(SOLO).action_spec() == action
    assert envpool.make_spec(SOLO).observation_spec().obs == spec.obs


def test_dm_spec_of_small_ints_is_discrete_and_of_flags_is_bool():
    counts = [dm_spec(Box(low, high, (), np.int32), "n") for low, high in ((0, 1), (-1, 1), (0, 2**31 - 1))]
    assert [isinstance(spec, dm_env.specs.DiscreteArray) for spec in counts] == [True, False, False]
    flag = dm_spec(Box(np.array(False), np.array(True), dtype=np.bool_), "flag")
    assert flag.validate(np.array(True)) == flag.maximum
    assert flag.dtype == np.bool_


def test_dict_observation_has_a_field_per_key():
    env = make(register_counting(parts=True))
    assert env.observation_spec()._fields == ("env_id", "players", "facts", "last", "count")
    assert env.observation_spec().last.num_values == 5
    assert env.reset().observation.facts.shape == (2, 4)


def test_from_pixels_observation_is_the_field_pixels():
    env = make(from_pixels=True)
    assert env.observation_spec().pixels.shape == (3, 84, 84)
    assert env.reset().observation.pixels.shape == (2, 3, 84, 84)


def test_reset_with_seed_and_close():
    env = make()
    assert env.reset(seed=5).observation.obs[:, 0].tolist() == [5, 6]
    env.close()
    with pytest.raises(APIUsageError, match="closed"):
        env.reset()


def test_same_step_autoreset_raises():
    with pytest.raises(APIUsageError, match='autoreset must be "next_step" or "disabled" with env_type "dm"'):
        make(autoreset="same_step")
