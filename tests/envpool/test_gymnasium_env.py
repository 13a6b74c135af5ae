"""Gymnasium interface of pools."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

import pufferlib.envpool as envpool
from pufferlib.errors import APIUsageError
from tests.envpool.counting import CUT, register_counting

SOLO, TWO = register_counting(), register_counting(players=2)


def make(task=SOLO, num_envs=2, **keywords):
    return envpool.make_gymnasium(task, num_envs=num_envs, seed=0, **keywords)


def test_make_gymnasium_returns_a_vector_env():
    env = make()
    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert env.is_vector_env
    assert env.observation_space is env.single_observation_space
    assert env.action_space is env.single_action_space
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert make(autoreset="same_step").metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert make(autoreset="disabled").metadata["autoreset_mode"] == AutoresetMode.DISABLED
    assert env.render_mode is None


def test_reset_and_step_return_values():
    env = make()
    observations, info = env.reset()
    assert observations.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]
    assert info.keys() == {"env_id", "players", "elapsed_step", "count"}
    observations, rewards, terminated, truncated, info = env.step(np.array([1, 2]))
    assert observations.tolist() == [[0, 0, 1, 1], [1, 0, 1, 2]]
    assert rewards.tolist() == np.float32([1.1, 1.2]).tolist()
    assert terminated.tolist() == truncated.tolist() == [False, False]
    assert info["env_id"].tolist() == info["players"]["env_id"].tolist() == [0, 1]
    assert info["elapsed_step"].tolist() == info["count"].tolist() == [1, 1]
    assert info["players"]["action"].tolist() == [1, 2]
    assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float32, bool, bool)
    assert info["env_id"].dtype == info["players"]["env_id"].dtype == info["elapsed_step"].dtype == np.int32


def test_first_action_is_used_after_an_explicit_reset():
    env = make(num_envs=1, max_episode_steps=3)
    env.reset()
    assert [env.step(np.array([1]))[4]["elapsed_step"][0] for _ in range(5)] == [1, 2, 3, 0, 1]


def test_disabled_autoreset_requires_reset_after_an_episode():
    env = make(autoreset="disabled")
    env.reset()
    assert env.step([CUT, 1])[3].tolist() == [True, False]
    with pytest.raises(APIUsageError):
        env.step([1, 1])
    assert env.reset(options={"reset_mask": np.array([True, False])})[0][:, 1].tolist() == [1, 0]
    assert env.step([1, 1])[0][:, 2].tolist() == [1, 2]


@pytest.mark.parametrize(
    "actions",
    [
        np.ones(2),
        np.ones(2, np.float32),
        np.ones(2, np.int8),
        np.ones(2, np.uint64),
        np.ones(2, bool),
        np.ones((2, 2))[:, 0],
        [1, 1],
        (1.0, 1),
        {"action": np.ones(2, np.int32)},
        {"action": np.ones(2), "env_id": np.arange(2, dtype=np.int32)},
        {"action": [1, 1], "env_id": [0, 1], "players.env_id": [0, 1]},
        {"action": [1, 1], "env_id": [0, 1], "players": {"env_id": [0, 1]}},
    ],
    ids=repr,
)
def test_actions_are_accepted_in_many_forms(actions):
    env = make()
    env.reset()
    assert env.step(actions)[0][:, 3].tolist() == [1, 1]


def test_env_id_is_accepted_by_position_and_by_name():
    env = make(num_envs=4)
    env.reset()
    assert env.step(np.array([1, 2]), np.array([3, 0]))[4]["env_id"].tolist() == [3, 0]
    assert env.step(np.array([1, 2]), env_id=[1, 0])[4]["elapsed_step"].tolist() == [1, 2]
    assert env.step({"action": [1], "env_id": np.array([2])})[0].tolist() == [[2, 0, 1, 1]]


def test_reset_of_some_environments():
    env = make(num_envs=4)
    env.reset()
    env.step([1, 1, 1, 1])
    observations, info = env.reset(np.array([2, 0]))
    assert info["env_id"].tolist() == [2, 0]
    assert observations[:, 1].tolist() == [1, 1]
    assert env.reset(env_id=[1])[1]["env_id"].tolist() == [1]
    mask = np.array([False, False, True, True])
    assert env.reset(options={"reset_mask": mask})[0][:, 2].tolist() == [0, 0, 0, 0]
    assert env.step([1, 1, 1, 1])[4]["elapsed_step"].tolist() == [1, 1, 1, 1]


def test_reset_mask_after_send_returns_infos_of_each_environment():
    env = make(num_envs=3, autoreset="same_step")
    env.reset()
    env.step([1, 1, 1])
    env.send(np.array([0]), np.array([2]))
    _, info = env.reset(options={"reset_mask": np.array([True, False, False])})
    assert info["elapsed_step"].tolist() == [0, 0, 2]
    assert info["env_id"].tolist() == [0, 1, 2]
    assert not {"final_obs", "_final_obs", "final_info", "_final_info"} & info.keys(), "no episode ended"


@pytest.mark.parametrize(
    "options",
    [
        {"other": 1},
        {"reset_mask": np.zeros(2, bool)},
        {"reset_mask": np.ones(3, bool)},
        {"reset_mask": np.ones(2, int)},
        {"reset_mask": [True, True]},
        {"reset_mask": np.ones(2, bool), "other": 1},
    ],
    ids=repr,
)
def test_unknown_reset_options_raise(options):
    with pytest.raises(APIUsageError, match="reset_mask"):
        make().reset(options=options)


def test_reset_mask_with_env_id_raises():
    with pytest.raises(APIUsageError, match="without env_id"):
        make().reset([0], options={"reset_mask": np.ones(2, bool)})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({}, 'must have the key "action"'),
        ({"actions": [1, 1]}, "unknown key of an action 'actions'; did you mean 'action'"),
        ({"action": [1, 1], "players": 3}, '"players" must be'),
        ({"action": [1, 1], "players": {"id": 3}}, '"players" must be'),
        ({"action": [1, 1], "players.env_id": [0, 0]}, r"players\.env_id must name each environment 1 times"),
        ({"action": [1, 1], "players.env_id": [0.5, 1]}, r"players\.env_id must be a row of integers"),
        ({"action": [1, 1], "players.env_id": [[0], [0, 1]]}, r"players\.env_id must be a row of integers"),
        (
            {"action": [1], "env_id": [0], "players.env_id": [1]},
            r"players\.env_id must name the environments of env_id",
        ),
        ({"action": [1], "env_id": 0, "players.env_id": [0]}, "env_id must be a row of integers"),
        ({"action": [1, 1, 1], "players.env_id": [0, 1]}, r"actions must have a row for each of players\.env_id, 2"),
        ({"action": 1, "players.env_id": [0, 1]}, r"actions must have a row for each of players\.env_id, 2"),
    ],
    ids=repr,
)
def test_invalid_action_dicts_raise(actions, message):
    env = make()
    env.reset()
    for call in (env.step, env.send):
        with pytest.raises(APIUsageError, match=message):
            call(actions)
    assert env.step([1, 1])[4]["elapsed_step"].tolist() == [1, 1]


def test_env_id_given_twice_raises():
    with pytest.raises(APIUsageError, match="env_id must be given once"):
        make().step({"action": [1], "env_id": [0]}, [0])


def test_recv_raises_if_nothing_is_in_flight():
    env = make()
    env.reset()
    with pytest.raises(APIUsageError, match="wait for ever"):
        env.recv()
    with pytest.raises(APIUsageError, match="return_info must be True"):
        env.recv(return_info=False)


def test_async_batch_contains_the_first_that_finish():
    env = make(num_envs=4, batch_size=3)
    env.async_reset()
    seen = []
    for _ in range(20):
        observations, *_, info = env.recv()
        assert observations[:, 0].tolist() == info["env_id"].tolist()
        assert len(observations) == 3
        env.send(np.ones(3, int), info["env_id"])
        seen += info["env_id"].tolist()
    assert {*seen} == {0, 1, 2, 3}


def test_send_without_env_id_goes_to_the_last_batch():
    env = make(num_envs=4, batch_size=2)
    env.send(np.ones(2))  # before the first batch, as in the documentation
    assert sorted(env.recv()[4]["env_id"].tolist()) == [0, 1]
    env.async_reset()
    for _ in range(10):
        ids = env.recv()[4]["env_id"]
        env.send(np.ones(2))
        assert not {*ids.tolist()} & {*np.setdiff1d(range(4), ids).tolist()}
    with pytest.raises(APIUsageError):
        env.send(np.ones(3))


def test_reset_of_too_few_for_a_batch_raises():
    env = make(num_envs=4, batch_size=3)
    env.send(np.ones(1), [3])
    with pytest.raises(APIUsageError, match="a batch must have 3 environments, got 1 as env_id and 1 in flight"):
        env.reset([0])
    assert sorted(env.reset([0, 1])[1]["env_id"].tolist()) == [0, 1, 3]


def test_players_have_one_row_each():
    env = make(TWO, num_envs=3)
    observations, info = env.reset()
    assert observations[:, 0].tolist() == info["players"]["env_id"].tolist() == [0, 0, 1, 1, 2, 2]
    assert info["env_id"].tolist() == [0, 1, 2]
    observations, rewards, terminated, truncated, info = env.step(np.array([0, 1, 2, 0, 1, 2]))
    assert observations[:, 3].tolist() == info["players"]["action"].tolist() == [0, 1, 2, 0, 1, 2]
    assert (len(rewards), len(terminated), len(truncated)) == (6, 3, 3)
    observations, *_, info = env.step(np.array([1, 2, 0, 1]), np.array([2, 0]))
    assert info["players"]["env_id"].tolist() == [2, 2, 0, 0]
    assert observations[:, 3].tolist() == [1, 2, 0, 1]


def test_players_env_id_allows_any_row_order():
    env = make(TWO, num_envs=3)
    env.reset()
    observations, *_, info = env.step({"action": [0, 1, 2, 1], "players.env_id": [2, 0, 2, 0]})
    assert info["env_id"].tolist() == [2, 0]
    assert observations[:, 3].tolist() == [0, 2, 1, 1]
    action = {"action": [0, 1, 2, 1], "players": {"env_id": [2, 0, 2, 0]}, "env_id": [0, 2]}
    observations, *_, info = env.step(action)
    assert info["env_id"].tolist() == [0, 2]
    assert observations[:, 3].tolist() == [1, 1, 0, 2]
    with pytest.raises(APIUsageError, match=r"players\.env_id must name each environment 2 times"):
        env.step({"action": [0, 1, 2], "players.env_id": [2, 0, 2]})


def test_reset_with_seed_equals_make_with_seed():
    env = make(num_envs=2)
    env.step([1, 1])
    assert env.reset(seed=7)[0].tolist() == [[7, 0, 0, 0], [8, 0, 0, 0]]
    assert env.step([1, 1])[0].tolist() == [[7, 0, 1, 1], [8, 0, 1, 1]]
    assert env.reset()[0][:, :2].tolist() == [[7, 1], [8, 1]]  # the generators continue
    assert env.reset(seed=[3, 3])[0][:, 0].tolist() == [3, 3]
    assert env.reset(seed=[3, 3])[0][:, 1].tolist() == [0, 0]
    with pytest.raises(APIUsageError, match="a seed is of all environments"):
        env.reset([0], seed=1)
    with pytest.raises(APIUsageError, match="seed must be one int, or a sequence of num_envs"):
        env.reset(seed=[1])


def test_reset_of_new_environment_with_its_own_seed_keeps_the_pool():
    env = make(num_envs=2)
    pool = env.pool
    env.reset(seed=0)
    assert env.pool is pool


def test_dict_observations():
    env = make(register_counting(parts=True))
    assert env.reset()[0]["facts"].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]
    assert env.step([1, 2])[0]["last"].tolist() == [1, 2]


# Gymnasium wrappers


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_record_episode_statistics_wrapper(autoreset):
    env = wrappers.RecordEpisodeStatistics(make(max_episode_steps=2, autoreset=autoreset))
    env.reset()
    for _ in range(2):
        *_, truncated, info = env.step(np.array([0, 0]))
    assert truncated.all()
    assert info["episode"]["r"].tolist() == [3, 3]
    assert info["episode"]["l"].tolist() == [2, 2]


def test_normalize_observation_wrapper():
    env = wrappers.NormalizeObservation(make(num_envs=8))
    env.reset()
    for _ in range(20):
        observations, *_ = env.step(np.ones(8, int))
    assert np.abs(observations[:, 0].mean()) < 0.1
    assert env.single_observation_space.shape == (4,)


def test_reward_wrappers():
    env = wrappers.TransformReward(make(), lambda rewards: rewards * 2)
    env.reset()
    assert env.step([0, 0])[1].tolist() == [2, 2]
    normal = wrappers.NormalizeReward(make())
    normal.reset()
    assert normal.step([0, 0])[1].shape == (2,)


def test_dict_info_to_list_wrapper():
    env = wrappers.DictInfoToList(make())
    _, infos = env.reset()
    assert [info["env_id"] for info in infos] == [0, 1]
    infos = env.step([1, 2])[4]
    assert [info["players"]["action"] for info in infos] == [1, 2]


def test_dtype_observation_wrapper():
    env = wrappers.DtypeObservation(make(), np.float64)
    assert env.reset()[0].dtype == np.float64


def test_single_environment_wrapper_accepts_the_pool():
    class Doubled(gymnasium.Wrapper):
        def step(self, action):
            observations, rewards, *rest = self.env.step(action)
            return observations, 2 * rewards, *rest

    env = Doubled(envpool.make("CartPole-v1", env_type="gym", num_envs=3))
    env.reset()
    assert env.step(np.zeros(3, int))[1].tolist() == [2, 2, 2]
    env.close()


class Door(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,), np.float32), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros(1, np.float32), {"success": False, "door": 0, "elapsed_step": "mine"}

    def step(self, action):
        self.time += 1
        over = self.time == 3
        info = {"success": over, "door": self.time, "elapsed_step": "mine"}
        return np.full(1, self.time, np.float32), 1.0, over, False, info


def test_same_step_autoreset_returns_final_infos_and_reset_infos():
    envpool.register("FinalDoor-v0", Door, replace=True)
    env = envpool.make("FinalDoor-v0", env_type="gymnasium", num_envs=2, autoreset="same_step")
    env.reset()
    infos = [env.step(np.zeros(2, int))[4] for _ in range(3)]
    env.close()
    assert not infos[1]["_final_info"].any()
    last, final = infos[2], infos[2]["final_info"]
    assert last["_final_info"].tolist() == final["_door"].tolist() == [True, True]
    assert (final["success"].tolist(), final["door"].tolist()) == ([True, True], [3, 3])
    assert (last["success"].tolist(), last["door"].tolist()) == ([False, False], [0, 0])
    assert (final["elapsed_step"].tolist(), last["elapsed_step"].tolist()) == ([3, 3], [0, 0])
    assert final["env.elapsed_step"].tolist() == ["mine", "mine"]


@pytest.mark.parametrize("batch_size", [0, 1])
def test_native_pool_reports_episode_length_in_final_info(batch_size):
    env = envpool.make(
        "CartPole-v1",
        env_type="gymnasium",
        num_envs=2,
        batch_size=batch_size,
        autoreset="same_step",
        max_episode_steps=3,
    )
    env.async_reset()
    lengths = []
    for _ in range(12):
        *_, info = env.recv()
        lengths += info["final_info"]["elapsed_step"][info["_final_info"]].tolist()
        env.send(np.zeros(len(info["env_id"]), int), info["env_id"])
    assert set(lengths) == {3}
