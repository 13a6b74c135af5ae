"""``make`` and ``make_spec``: every keyword argument, its default and its errors."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import pufferlib.envpool as envpool
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.envpool.counting import CountingBackend, register_counting


@pytest.fixture(scope="module")
def task():
    return register_counting()


def test_gym_and_gymnasium_return_the_same_class(task):
    assert type(envpool.make(task, "gym")) is type(envpool.make(task, env_type="gymnasium"))
    assert type(envpool.make_gym(task)) is type(envpool.make_gymnasium(task))


def test_missing_or_unknown_env_type_raises(task):
    with pytest.raises(TypeError, match="env_type"):
        envpool.make(task)
    with pytest.raises(UnknownNameError, match=r"unknown env_type 'gymnasum'; did you mean 'gymnasium'"):
        envpool.make(task, "gymnasum")


def test_default_config(task):
    env = envpool.make_gymnasium(task)
    assert env.config == {
        "num_envs": 1,
        "batch_size": 1,
        "num_threads": 0,
        "max_num_players": 1,
        "thread_affinity_offset": -1,
        "seed": 42,
        "env_seed": [],
        "gym_reset_return_info": True,
        "max_episode_steps": 0,
        "reward_threshold": None,
        "render_mode": None,
        "render_env_id": 0,
        "render_width": None,
        "render_height": None,
        "render_camera_id": -1,
        "from_pixels": False,
        "frame_stack": 1,
        "autoreset": "next_step",
        "copy": True,
        "bonus": 1.5,
    }
    assert env.spec.config._asdict() == env.config
    assert type(env.spec.config).__name__ == "Config"
    assert repr(env).startswith(f"PoolVectorEnv('{task}', num_envs=1, batch_size=1, num_threads=0")
    assert repr(env.spec).startswith(f"TaskSpec('{task}', num_envs=1, batch_size=1")


def test_num_envs_batch_size_and_num_threads(task):
    env = envpool.make_gymnasium(task, num_envs=np.int64(4), batch_size=3, num_threads=2, thread_affinity_offset=7)
    assert len(env) == env.num_envs == 4
    assert env.is_async
    assert env.all_env_ids.tolist() == [0, 1, 2, 3]
    assert env.all_env_ids.dtype == np.int32
    assert (env.config["batch_size"], env.config["num_threads"], env.config["thread_affinity_offset"]) == (3, 2, 7)
    whole = envpool.make_gymnasium(task, num_envs=4, batch_size=0)
    assert whole.config["batch_size"] == 4
    assert not whole.is_async


def test_config_is_a_copy(task):
    env = envpool.make_gymnasium(task)
    env.config["num_envs"] = 7
    assert env.config["num_envs"] == 1


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_envs": 0}, "num_envs must be an int from 1 to 2147483647, got 0"),
        ({"num_envs": -1}, "num_envs must be .*, got -1"),
        ({"num_envs": "a"}, "num_envs must be .*, got 'a'"),
        ({"num_envs": 2.0}, r"num_envs must be .*, got 2\.0"),
        ({"num_envs": True}, "num_envs must be .*, got True"),
        ({"num_envs": 3, "batch_size": 4}, "batch_size must be from 0 .all. to num_envs, which is 3, got 4"),
        ({"batch_size": 2}, "batch_size must be from 0 .all. to num_envs, which is 1, got 2"),
        ({"batch_size": -1}, "batch_size must be an int from 0"),
        ({"num_threads": -1}, "num_threads must be an int from 0"),
        ({"thread_affinity_offset": -2}, "thread_affinity_offset must be an int from -1"),
        ({"max_num_players": 0}, "max_num_players must be an int from 1"),
        ({"max_episode_steps": -1}, "max_episode_steps must be an int from 0"),
        ({"max_episode_steps": 1.5}, "max_episode_steps must be an int from 0"),
        ({"reward_threshold": "high"}, "reward_threshold must be a number or None, got 'high'"),
        ({"seed": 2**31}, "seed must be an int from -2147483648 to 2147483647, got 2147483648"),
        ({"seed": -(2**31) - 1}, "seed must be an int"),
        ({"num_envs": 2, "seed": 2**31 - 1}, "seed must be an int from -2147483648 to 2147483646"),
        ({"seed": 1.5}, r"seed must be an int .*, got 1\.5"),
        ({"seed": None}, "seed must be an int .*, got None"),
        ({"seed": "7"}, "seed must be an int .*, got '7'"),
        ({"num_envs": 3, "seed": [1, 2]}, r"seed must be one int, or a sequence of num_envs, which is 3, got \[1, 2\]"),
        ({"num_envs": 2, "seed": [1, 2.5]}, r"seed\[1\] must be an int .*, got 2\.5"),
        ({"num_envs": 2, "seed": np.zeros((2, 2), int)}, "seed must be one int, or a sequence of num_envs"),
        ({"num_envs": 2, "seed": [1, [2]]}, r"seed\[1\] must be an int .*, got \[2\]"),
        ({"seed": np.array(3)}, "seed must be one int, or a sequence"),
        ({"gym_reset_return_info": False}, "gym_reset_return_info must be True"),
        ({"gym_reset_return_info": 1}, "gym_reset_return_info must be True or False, got 1"),
        ({"render_mode": "ansi"}, "unknown render_mode 'ansi'; known: human, rgb_array"),
        ({"render_mode": np.zeros(2)}, "unknown render_mode"),
        ({"render_env_id": 1}, "render_env_id must be an int from 0 to 0, got 1"),
        ({"render_width": 0}, "render_width must be an int from 1 to 4096, got 0"),
        ({"render_height": 2.0}, "render_height must be an int from 1"),
        ({"render_camera_id": -2}, "render_camera_id must be an int from -1"),
        ({"from_pixels": "yes"}, "from_pixels must be True or False, got 'yes'"),
        ({"frame_stack": 0}, "frame_stack must be an int from 1 to 1024, got 0"),
        ({"autoreset": "never"}, "unknown autoreset 'never'; known: disabled, next_step, same_step"),
        ({"copy": 0}, "copy must be True or False, got 0"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(f"{key}={one!r:.20}" for key, one in value.items()),
)
def test_invalid_value_raises_and_names_allowed_values(task, keywords, message):
    with pytest.raises(APIUsageError, match=message) as caught:
        envpool.make(task, env_type="gymnasium", **keywords)
    assert str(caught.value).startswith(f"envpool.make({task!r}): ")


def test_unknown_keyword_suggests_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"make\('Breakout-v0'\): unexpected keyword argument 'num_env'; did you mean 'num_envs'"
    ):
        envpool.make("Breakout-v0", env_type="gymnasium", num_env=3)
    with pytest.raises(UnknownNameError, match="unexpected keyword argument 'framskip'; did you mean 'frameskip'"):
        envpool.make_spec("Breakout-v0", framskip=3)


def test_autoreset_modes_of_gymnasium_are_accepted(task):
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    assert envpool.make_spec(task, autoreset=mode).config.autoreset == "same_step"


def test_make_spec_accepts_gym_reset_return_info_false(task):
    assert envpool.make_spec(task, gym_reset_return_info=False).config.gym_reset_return_info is False


@pytest.mark.parametrize("name", ["Cuonting0-v0", "", None, 3, ["a"]])
def test_unknown_task_raises(task, name):
    with pytest.raises(UnknownNameError, match=r"envpool.make_spec: unknown task .* envpool.list_all_envs\(\)"):
        envpool.make_spec(name)


def test_unknown_task_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown task 'Brekout-v0'; did you mean 'Breakout-v0'"):
        envpool.make("Brekout-v0", env_type="gym")


def seeds_of(env):
    return env.reset()[0][:, 0].tolist()


def test_list_of_seeds(task):
    env = envpool.make_gymnasium(task, num_envs=3, seed=[7, 0, 2**31 - 1])
    assert (env.config["seed"], env.config["env_seed"]) == (0, [7, 0, 2**31 - 1])
    assert seeds_of(env) == [7, 0, 2**31]  # observations are float32
    assert seeds_of(envpool.make_gymnasium(task, num_envs=2, seed=np.array([5, 4]))) == [5, 4]
    assert seeds_of(envpool.make_gymnasium(task, num_envs=2, seed=(5, 4))) == [5, 4]


def test_int_seed_is_increased_by_one_per_environment(task):
    assert seeds_of(envpool.make_gymnasium(task, num_envs=3)) == [42, 43, 44]
    assert seeds_of(envpool.make_gymnasium(task, num_envs=3, seed=np.int64(7))) == [7, 8, 9]
    assert seeds_of(envpool.make_gymnasium(task, num_envs=2, seed=-1)) == [2**32, 0]


def test_make_spec_creates_no_pool(task, monkeypatch):
    monkeypatch.delattr(CountingBackend, "make")
    spec = envpool.make_spec(task, num_envs=7, reward_threshold=3)
    assert spec.observation_space == spec.gymnasium_observation_space == Box(-np.inf, np.inf, (4,), np.float32)
    assert spec.action_space == spec.gymnasium_action_space == Discrete(5)
    assert (spec.config.num_envs, spec.reward_threshold) == (7, 3.0)


def test_state_array_spec(task):
    spec = envpool.make_spec(task)
    assert list(spec.state_array_spec) == [
        *("info:env_id", "info:players.env_id", "elapsed_step", "done", "reward", "discount", "step_type", "trunc"),
        *("obs", "info:count", "info:players.action"),
    ]
    state = spec.state_array_spec
    assert (state["obs"].dtype, state["obs"].shape) == (np.float32, [4])
    assert (state["reward"].dtype, state["reward"].shape) == (np.float32, [-1])
    assert state["reward"].minimum == np.finfo(np.float32).min
    assert (state["info:count"].minimum, state["info:count"].maximum, state["info:count"].is_discrete) == (
        0,
        999999,
        True,
    )
    assert state["info:players.action"].shape == [-1]
    action = spec.action_array_spec
    assert list(action) == ["env_id", "players.env_id", "action"]
    assert (action["action"].dtype, action["action"].shape, action["action"].maximum) == (np.int32, [-1], 4)


def test_scalar_infos_have_player_rows_with_a_single_player():
    infos = {"info:count": [-1], "info:players.action": [-1]}
    for players, shapes in ((1, infos), (2, {**infos, "info:count": []})):
        state = envpool.make_spec(register_counting(players=players)).state_array_spec
        assert {name: state[name].shape for name in shapes} == shapes


def test_array_specs_of_players_and_dict_observations():
    state = envpool.make_spec(register_counting(players=2, parts=True)).state_array_spec
    assert state["obs:facts"].shape == [-1, 4]
    assert (state["obs:last"].shape, state["obs:last"].maximum) == ([-1], 4)


def test_max_num_players():
    task = register_counting(players=3)
    assert envpool.make_spec(task).config.max_num_players == 3
    assert envpool.make_spec(task, max_num_players=5).config.max_num_players == 3
    with pytest.raises(APIUsageError, match=r"max_num_players must be at least 3, as many as play .*, got 2"):
        envpool.make_spec(task, max_num_players=2)


def test_frame_stack_requires_a_box():
    spec = envpool.make_spec(register_counting(), frame_stack=3)
    assert spec.observation_space == Box(-np.inf, np.inf, (3, 4), np.float32)
    assert isinstance(envpool.make_spec(register_counting(parts=True)).observation_space, Dict)
    with pytest.raises(APIUsageError, match="frame_stack must be 1 unless observations are one array"):
        envpool.make_spec(register_counting(parts=True), frame_stack=2)


def test_from_pixels_requires_rendering():
    spec = envpool.make_spec(register_counting(), from_pixels=True, frame_stack=3)
    assert spec.observation_space == Box(0, 255, (9, 84, 84), np.uint8)
    assert (spec.config.render_width, spec.config.render_height) == (84, 84)
    with pytest.raises(APIUsageError, match="the environment must draw pictures"):
        envpool.make_spec(register_counting(draws=False), from_pixels=True)
    with pytest.raises(APIUsageError, match='from_pixels must come with autoreset "next_step"'):
        envpool.make_spec(register_counting(), from_pixels=True, autoreset="same_step")


def test_keywords_of_the_task(task):
    assert envpool.make_spec(task, bonus=2.5, other="x").config[-2:] == (2.5, "x")


@pytest.mark.parametrize("seed", [7, [3, 1, 2]])
def test_make_with_config_creates_identical_environments(task, seed):
    env = envpool.make_gymnasium(task, num_envs=3, seed=seed)
    again = envpool.make(task, "gymnasium", **env.config)
    assert again.config == env.config
    assert again.reset()[0].tolist() == env.reset()[0].tolist()


def test_seed_and_env_seed_together_raise(task):
    with pytest.raises(APIUsageError, match="seeds must be given as seed or as env_seed, got both; leave out env_seed"):
        envpool.make_gymnasium(task, num_envs=2, seed=[1, 2], env_seed=[1, 2])
    with pytest.raises(APIUsageError, match="env_seed must be a list with a seed for each environment, got 3"):
        envpool.make_gymnasium(task, env_seed=3)


def test_package_exports_the_names_of_envpool(task):
    assert isinstance(envpool.make_gymnasium(task), envpool.GymnasiumEnvPool)
    assert issubclass(envpool.GymnasiumEnvPool, envpool.EnvPool)
    assert isinstance(envpool.make_spec(task), envpool.EnvSpec)
    assert envpool.__version__ == "1.2.5"
    pytest.importorskip("dm_env")
    assert isinstance(envpool.make_dm(task), envpool.DMEnvPool)
