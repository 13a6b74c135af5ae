"""Serial and the native backend, and the examples of the vectorization page that use them."""

import functools

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.seeding import env_seed
from tests.envs import FunctionEnv, SamplePufferEnv, counting_env


def test_example_serial_backend():
    serial_vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=2, backend=pufferlib.vector.Serial)
    observations, infos = serial_vecenv.reset()
    actions = serial_vecenv.action_space.sample()
    o, r, d, t, i = serial_vecenv.step(actions)
    assert observations.shape == o.shape == (4, 1)
    assert r.dtype == np.float32
    assert d.dtype == t.dtype == bool
    assert infos == []
    assert len(i) == 2
    serial_vecenv.close()


def test_example_same_arguments():
    vecenv = pufferlib.vector.make(
        SamplePufferEnv,
        num_envs=2,
        backend=pufferlib.vector.Serial,
        env_args=[3],
        env_kwargs={"bar": 4},
    )
    assert [(env.foo, env.bar, env.seed) for env in vecenv.envs] == [(3, 4, env_seed(0, 0)), (3, 4, env_seed(0, 1))]


def test_example_arguments_per_environment():
    vecenv = pufferlib.vector.make(
        [SamplePufferEnv, SamplePufferEnv],
        num_envs=2,
        backend=pufferlib.vector.Serial,
        env_args=[[3], [4]],
        env_kwargs=[{"bar": 4}, {"bar": 5}],
    )
    assert [(env.foo, env.bar) for env in vecenv.envs] == [(3, 4), (4, 5)]


@pytest.mark.parametrize("backend", [pufferlib.PufferEnv, "native", "PufferEnv"])
def test_native_returns_the_environment_itself(backend):
    env = pufferlib.vector.make(SamplePufferEnv, [3], {"bar": 4}, backend=backend, seed=5)
    assert isinstance(env, SamplePufferEnv)
    assert (env.foo, env.bar, env.seed) == (3, 4, env_seed(5, 0))
    env.async_reset()
    assert len(env.recv()) == 7


def test_attributes():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=6, backend="Serial", batch_size=2)
    assert (vecenv.num_envs, vecenv.num_agents, vecenv.agents_per_batch) == (6, 12, 4)
    assert vecenv.driver_env is vecenv.envs[0]
    assert vecenv.observation_space.shape == (4, 1)
    assert vecenv.action_space.shape == (4,)
    assert vecenv.single_observation_space.shape == (1,)
    assert vecenv.single_action_space.n == 2
    assert vecenv.emulated is False
    assert vecenv.autoreset == "same_step"


def test_environments_write_into_one_set_of_arrays():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=3, backend="Serial")
    vecenv.reset()
    for index, env in enumerate(vecenv.envs):
        env.observations[:] = index
    np.testing.assert_array_equal(vecenv.observations[:, 0], [0, 0, 1, 1, 2, 2])


def test_smaller_batches_take_turns():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=4, backend="Serial", batch_size=2)
    vecenv.async_reset()
    seen = []
    for _ in range(3):
        *_, agent_ids, masks = vecenv.recv()
        assert agent_ids.dtype == np.int64
        assert masks.all()
        seen.append(agent_ids.tolist())
        vecenv.send(vecenv.action_space.sample())
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]


counter = functools.partial(counting_env, action_space=gymnasium.spaces.Discrete(4, start=-1), dtype=np.int32)


class OwnStep(GymnasiumPufferEnv):
    """Counts its own calls."""

    calls = 0

    def step(self, action):
        self.calls += 1
        return super().step(action)


def counters(autoreset=None, general=False, **kwargs):
    """Two of them; ``general`` takes the way of classes that have a ``step`` of their own."""
    kind = OwnStep if general else GymnasiumPufferEnv
    creator = functools.partial(kind, env_creator=counter, env_kwargs=kwargs)
    return pufferlib.vector.make(creator, backend="Serial", num_envs=2, autoreset=autoreset)


def rollout(vecenv, steps):
    """Observation, reward, terminal and truncation of the first environment in every step."""
    vecenv.reset()
    outcomes = (vecenv.step([0, 0]) for _ in range(steps))
    return [(int(o[0, 0]), float(r[0]), bool(d[0]), bool(t[0])) for o, r, d, t, _ in outcomes]


@pytest.mark.parametrize("general", [False, True])
def test_next_step_autoreset_spends_a_step_on_the_reset(general):
    vecenv = counters(general=general)
    assert vecenv.autoreset == "next_step"
    assert rollout(vecenv, 5) == [
        (1, 1.0, False, False),
        (2, 1.0, False, False),
        (3, 1.0, True, False),
        (0, 0.0, False, False),
        (1, 1.0, False, False),
    ]


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("truncates", [False, True])
def test_same_step_autoreset_keeps_the_last_observation(truncates, general):
    vecenv = counters("same_step", general, truncates=truncates)
    assert rollout(vecenv, 3) == [
        (1, 1.0, False, False),
        (2, 1.0, False, False),
        (0, 1.0, not truncates, truncates),
    ]
    assert vecenv.final_observations.tolist() == [[3], [3]]
    assert vecenv.masks.all()
    assert int(vecenv.step([0, 0])[0][0, 0]) == 1


def test_a_step_of_the_users_own_is_called():
    vecenv = counters(general=True)
    vecenv.reset()
    vecenv.step([0, 0])
    assert [env.calls for env in vecenv.envs] == [1, 1]
    vecenv = counters()
    vecenv.reset()
    seen, env = [], vecenv.envs[1]
    step = env.step
    env.step = lambda action: (seen.append(action), step(action))[1]  # in the middle of an episode
    vecenv.step([0, 2])
    assert seen == [2]
    assert vecenv.observations.tolist() == [[1], [1]]


@pytest.mark.parametrize("place", range(4))
def test_a_step_of_the_users_own_that_returns_what_the_batch_does_not_see_is_told(place):
    def step(env, action):
        outcome = list(OwnStep.step(env, action))
        outcome[place] = outcome[place] + 1.0 if place < 2 else not outcome[place]
        return tuple(outcome)

    def step_in_rows(env, action):
        outcome = list(OwnStep.step(env, action))
        env.rewards *= 2
        outcome[1] *= 2
        return tuple(outcome)

    def make(step):
        kind = type("Shaped", (OwnStep,), {"step": step})
        return pufferlib.vector.make(kind, env_kwargs={"env_creator": counter}, backend="Serial")

    vecenv = make(step)
    vecenv.reset()
    with pytest.raises(APIUsageError, match=r"Shaped: step must return what stands in its rows, .* where self.\w+ has"):
        vecenv.step([0])
    vecenv = make(step_in_rows)
    vecenv.reset()
    assert vecenv.step([0])[1].tolist() == [2.0]


@pytest.mark.parametrize("call", ["reset", "step"])
def test_an_environment_may_close_the_batch_that_it_is_in(call):
    vecenv = counters()
    vecenv.reset()
    first = vecenv.envs[0].env
    method = getattr(first, call)
    setattr(first, call, lambda *args, **kwargs: (vecenv.close(), method(*args, **kwargs))[1])
    act = vecenv.async_reset if call == "reset" else functools.partial(vecenv.send, [0, 0])
    act()
    assert vecenv.observations.tolist() == ([[0], [0]] if call == "reset" else [[1], [1]])
    for next_call in (vecenv.recv, act):
        with pytest.raises(APIUsageError, match="the environments are closed; make new ones"):
            next_call()
    vecenv.close()


def test_a_step_that_closes_its_batch_says_so():
    vecenv = counters()
    vecenv.reset()
    first = vecenv.envs[0].env
    step = first.step
    first.step = lambda action: (vecenv.close(), step(action))[1]
    for _ in range(2):
        with pytest.raises(APIUsageError, match="the environments are closed; make new ones"):
            vecenv.step([0, 0])


@pytest.mark.parametrize("kind", ["native", "emulated"])
def test_infos_without_content_are_skipped(kind):
    class Native(SamplePufferEnv):
        def step(self, action):
            return *super().step(action)[:4], [{}, {"a": 1}, {}]

    gym = functools.partial(counter, info=lambda env: {"a": 1} if env.count == 2 else {})
    creator = {"native": Native, "emulated": functools.partial(GymnasiumPufferEnv, env_creator=gym)}[kind]
    vecenv = pufferlib.vector.make(creator, backend="Serial")
    vecenv.reset()
    seen = [vecenv.step(vecenv.action_space.sample())[4] for _ in range(3)]
    assert seen == ([[{"a": 1}]] * 3 if kind == "native" else [[], [{"a": 1}], []])


def test_an_environment_that_returns_too_little_is_told():
    class Careless(SamplePufferEnv):
        def step(self, actions):
            return self.observations, self.rewards, self.terminals, []

    vecenv = pufferlib.vector.make(Careless, backend="Serial")
    vecenv.reset()
    with pytest.raises(
        APIUsageError, match=r"Careless: step must return observations, .* got 4 values; return exactly"
    ):
        vecenv.step([0, 0])


def test_a_step_and_a_reset_that_forget_to_return_are_told():
    class Forgetful(SamplePufferEnv):
        def step(self, actions):
            pass

    vecenv = pufferlib.vector.make(Forgetful, backend="Serial")
    vecenv.reset()
    with pytest.raises(APIUsageError, match=r"Forgetful: step must return observations, .* got None; return exactly"):
        vecenv.step([0, 0])
    vecenv.driver_env.reset = lambda seed=None: vecenv.driver_env.observations
    with pytest.raises(APIUsageError, match="Forgetful: reset must return observations and infos, got ndarray; return"):
        vecenv.reset()


def test_an_info_that_is_no_dict_is_told():
    gym = functools.partial(FunctionEnv, info=lambda env: ["won"])
    vecenv = pufferlib.vector.make(functools.partial(GymnasiumPufferEnv, env_creator=gym), backend="Serial")
    vecenv.reset()
    with pytest.raises(APIUsageError, match=r"the info must be a dict, got \['won'\] from .*; return {}"):
        vecenv.step([0])


def test_arrays_returned_later_are_checked_too():
    class Careless(SamplePufferEnv):
        def step(self, actions):
            self.foo += 1
            rewards = self.rewards.copy() if self.foo == 3 else self.rewards[:]
            return self.observations, rewards, self.terminals, self.truncations, []

    vecenv = pufferlib.vector.make(Careless, backend="Serial")
    vecenv.reset()
    for _ in range(2):
        vecenv.step([0, 0])
    with pytest.raises(APIUsageError, match="Careless: rewards must be written in place"):
        vecenv.step([0, 0])


@pytest.mark.parametrize("general", [False, True])
def test_disabled_autoreset_lets_a_finished_game_stand_still(general):
    vecenv = counters("disabled", general=general)
    for _ in range(2):
        assert rollout(vecenv, 5) == [
            (1, 1.0, False, False),
            (2, 1.0, False, False),
            (3, 1.0, True, False),
            *[(3, 0.0, False, False)] * 2,  # the last observation stays
        ]
        assert not vecenv.masks.any()
    vecenv.reset()
    assert vecenv.masks.all()
    for env in vecenv.envs:
        assert env.env.count == 0


@pytest.mark.parametrize("options", [{"backend": "Serial"}, {"backend": "Multiprocessing", "num_workers": 1}])
def test_calls_out_of_order(options):
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=2, **options)
    name = options["backend"]
    for call in (vecenv.recv, lambda: vecenv.send([0] * 4), lambda: vecenv.step([0] * 4)):
        with pytest.raises(
            APIUsageError, match=rf"{name}.(recv|send): the next call must be async_reset, got (recv|send); "
        ):
            call()
    for attribute in ("observations", "agent_ids"):
        with pytest.raises(APIUsageError, match=rf"{name}.{attribute}: there is no batch yet"):
            getattr(vecenv, attribute)
    vecenv.async_reset()
    with pytest.raises(APIUsageError, match=rf"{name}.send: the next call must be recv, got send"):
        vecenv.send([0] * 4)
    vecenv.recv()
    with pytest.raises(APIUsageError, match=rf"{name}.recv: the next call must be send, got recv"):
        vecenv.recv()
    vecenv.send([0] * 4)
    vecenv.close()
    for call in (vecenv.recv, vecenv.reset, lambda: vecenv.send([0] * 4)):
        with pytest.raises(APIUsageError, match=rf"{name}\..*: the environments are closed; make new ones"):
            call()


@pytest.mark.parametrize("seed", [1.5, "3", True, [1, 2]])
def test_wrong_seeds(seed):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial")
    with pytest.raises(APIUsageError, match=r"Serial.async_reset: seed must be an int or None, got "):
        vecenv.reset(seed=seed)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0] * 3, r"actions must have shape \(4,\), one row per agent of the batch, got shape \(3,\)"),
        (0, r"got shape \(\)"),
        ([[0]] * 4, r"got shape \(4, 1\)"),
        ([0, [0], 0, 0], r"actions must be an array, or a list of rows of one length, got \[0, \[0\], 0, 0\]"),
        ([0.0] * 4, "actions must be numbers that fit int32, got dtype float64"),
        (["a"] * 4, "got dtype <U1"),
        ([0, 1, 2, 1], r"actions must be in the action space Discrete\(2\), got 2 in row 2"),
        ([0, -1, 0, 0], "got -1 in row 1"),
    ],
)
def test_wrong_actions(actions, message):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial", num_envs=2)
    vecenv.reset()
    with pytest.raises(APIUsageError, match=rf"Serial.send: .*{message}"):
        vecenv.step(actions)
    vecenv.step([0, 1, 1, 0])  # a refused call changes nothing


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_any_integer_type_is_taken(dtype):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial")
    vecenv.reset()
    vecenv.step(np.array([0, 1], dtype))
    assert vecenv.actions.dtype == np.int32
    assert vecenv.actions.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64, list])
@pytest.mark.parametrize("wrong", [2, -1, 2**32, 2**32 + 1, 2**63])
def test_integers_out_of_range_are_refused_on_every_call(dtype, wrong):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial")
    vecenv.reset()
    for actions in ([0, 1], [0, wrong], [1, 0]):
        try:
            array = actions if dtype is list else np.array(actions, dtype)
        except OverflowError:  # the type cannot say it
            continue
        if wrong in actions:
            with pytest.raises(APIUsageError, match=r"Serial.send: actions must be .*, got "):
                vecenv.step(array)
        else:
            vecenv.step(array)
            assert vecenv.actions.tolist() == actions


def test_each_part_of_an_action_has_its_own_range():
    class Many(SamplePufferEnv):
        def __init__(self, buf=None):
            self.single_observation_space = gymnasium.spaces.Box(low=-1, high=1, shape=(1,))
            self.single_action_space = gymnasium.spaces.MultiDiscrete([2, 5], start=[0, -1])
            self.num_agents = 2
            pufferlib.PufferEnv.__init__(self, buf)

    vecenv = pufferlib.vector.make(Many, backend="Serial")
    vecenv.reset()
    for good in ([[1, 3], [0, -1]], np.array([[1, 3], [0, -1]]), np.array([[1, 0], [3, -1]], np.int32).T):
        vecenv.step(good)
        assert vecenv.actions.tolist() == [[1, 3], [0, -1]]
    for bad in ([2, 0], [0, 4], [0, -2]):
        for dtype in (np.int32, np.int64):
            with pytest.raises(APIUsageError, match=rf"got \[{bad[0]}, {bad[1]}\] in row 1"):
                vecenv.step(np.array([[0, 0], bad], dtype))


class Continuous(SamplePufferEnv):
    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(low=-1, high=1, shape=(1,))
        self.single_action_space = gymnasium.spaces.Box(low=-1, high=1, shape=(2,))
        self.num_agents = 2
        pufferlib.PufferEnv.__init__(self, buf)


def test_box_actions():
    vecenv = pufferlib.vector.make(Continuous, backend="Serial")
    vecenv.reset()
    with pytest.raises(APIUsageError, match=r"actions must be in the action space .*, got \[0.0, nan\] in row 1"):
        vecenv.step([[0.0, 1.0], [0.0, float("nan")]])
    vecenv.step([[0.5, 1], [0, -1]])
    assert vecenv.actions.dtype == np.float32
    assert vecenv.actions.tolist() == [[0.5, 1.0], [0.0, -1.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_reals_are_checked_on_every_call(dtype):
    vecenv = pufferlib.vector.make(Continuous, backend="Serial")
    vecenv.reset()
    for bad in (2, -2, np.inf, np.nan):
        with pytest.raises(APIUsageError, match=rf"must be in the action space .*, got \[0.0, {float(bad)}\] in row 1"):
            vecenv.step(np.array([[0, 0], [0, bad]], dtype))
        vecenv.step(np.array([[0, 0], [0, 1]], dtype))
    assert vecenv.actions.tolist() == [[0, 0], [0, 1]]


def test_a_bound_that_float32_cannot_write_exactly():
    class Narrow(Continuous):
        def __init__(self, buf=None):
            super().__init__(buf)
            self.single_action_space = gymnasium.spaces.Box(low=-0.7, high=0.7, shape=(2,))

    vecenv = pufferlib.vector.make(Narrow, backend="Serial")
    vecenv.reset()
    vecenv.step([[0.7, -0.7]] * 2)
    assert vecenv.actions.tolist() == [np.float32([0.7, -0.7]).tolist()] * 2


@pytest.mark.parametrize("name", ["rewards", "terminals", "truncations"])
def test_an_environment_that_returns_other_arrays_is_told(name):
    class Careless(SamplePufferEnv):
        def step(self, actions):
            own = {key: getattr(self, key) for key in ("observations", "rewards", "terminals", "truncations")}
            own[name] = own[name].copy()
            return *own.values(), []

    vecenv = pufferlib.vector.make(Careless, backend="Serial")
    vecenv.reset()
    with pytest.raises(APIUsageError, match=rf"Careless: {name} must be written in place, self.{name}\[:\]"):
        vecenv.step([0, 0])


def test_an_environment_that_replaces_its_arrays_is_told():
    class Careless(SamplePufferEnv):
        def step(self, actions):
            self.observations = np.zeros((2, 1), np.float32)
            return self.observations, self.rewards, self.terminals, self.truncations, []

    vecenv = pufferlib.vector.make(Careless, backend="Serial")
    vecenv.reset()
    with pytest.raises(APIUsageError, match=r"Careless: observations must be written in place, self.observations\[:\]"):
        vecenv.step([0, 0])


@pytest.mark.parametrize("name", ["masks", "final_observations"])
@pytest.mark.parametrize("call", ["reset", "step"])
def test_an_environment_that_replaces_what_it_does_not_return_is_told(name, call):
    class Careless(SamplePufferEnv):
        def reset(self, seed=None):
            if call == "reset":
                setattr(self, name, getattr(self, name).copy())
            return super().reset(seed)

        def step(self, actions):
            setattr(self, name, getattr(self, name).copy())
            return super().step(actions)

    vecenv = pufferlib.vector.make(Careless, backend="Serial")
    act = vecenv.reset
    if call == "step":
        vecenv.reset()
        act = functools.partial(vecenv.step, [0, 0])
    with pytest.raises(APIUsageError, match=rf"Careless: {name} must be written in place, self.{name}\[:\]"):
        act()


def test_nothing_may_be_seen():
    class Blind(pufferlib.PufferEnv):
        def __init__(self, buf=None):
            self.single_observation_space = gymnasium.spaces.Box(-1, 1, (0,))
            self.single_action_space = gymnasium.spaces.Discrete(2)
            self.num_agents = 2
            super().__init__(buf)

        def reset(self, seed=None):
            return self.observations, []

        def step(self, actions):
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self):
            pass

    vecenv = pufferlib.vector.make(Blind, num_envs=2, backend="Serial")
    assert vecenv.reset()[0].shape == vecenv.step([0] * 4)[0].shape == (4, 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "call", "size"),
    [  # observations of 3000 numbers are searched in reset only
        *(("observations", call, size) for call, size in (("reset", 1), ("reset", 3000), ("step", 1))),
        *(("rewards", "step", size) for size in (1, 3000)),
    ],
)
def test_nan_in_a_native_environment_is_told(name, call, size, dtype):
    class Divider(pufferlib.PufferEnv):
        def __init__(self, buf=None):
            self.single_observation_space = gymnasium.spaces.Box(-1, 1, (size,), dtype)
            self.single_action_space = gymnasium.spaces.Discrete(2)
            self.num_agents = 2
            super().__init__(buf)

        def reset(self, seed=None):
            self.observations[1, -1] = np.nan if call == "reset" else 0
            return self.observations, []

        def step(self, actions):
            getattr(self, name)[1] = np.nan if actions[1] else 0
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self):
            pass

    def play(*steps):
        with pufferlib.vector.make(Divider, backend="Serial") as vecenv:
            vecenv.reset()
            for actions in steps:
                vecenv.step(actions)

    if call == "step":
        play([0, 0], [1, 0])
    with pytest.raises(APIUsageError, match=rf"Divider: {name} must be numbers, got nan in row 1"):
        play([0, 0], [0, 1])


def test_an_environment_whose_infos_are_no_list_is_told():
    class Careless(SamplePufferEnv):
        def step(self, actions):
            return self.observations, self.rewards, self.terminals, self.truncations, {"a": 1}

    vecenv = pufferlib.vector.make(Careless, backend="Serial")
    vecenv.reset()
    with pytest.raises(APIUsageError, match="Careless: infos must be a list of dicts, got dict"):
        vecenv.step([0, 0])


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_one_environment_in_several_places_is_refused(backend):
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(
        APIUsageError, match=r"must be one of its own, got <CartPoleEnv.*> in two of them; give a class"
    ):
        pufferlib.vector.make(GymnasiumPufferEnv, env_kwargs={"env": env}, num_envs=2, backend=backend, num_workers=1)


def test_an_error_in_serial_says_where():
    class Broken(SamplePufferEnv):
        def step(self, actions):
            if self.foo == 1:
                raise ValueError("boom")
            return super().step(actions)

    vecenv = pufferlib.vector.make([Broken] * 2, [[0], [1]], num_envs=2, backend="Serial")
    vecenv.reset()
    with pytest.raises(ValueError, match="boom") as caught:
        vecenv.step([0, 1, 1, 0])
    assert caught.value.__notes__ == ["while stepping environment 1 with actions [1, 0]"]
    with pytest.raises(APIUsageError, match="the next call must be async_reset"):
        vecenv.recv()
    vecenv.close()


def test_any_int_is_a_seed():
    with pufferlib.vector.make(SamplePufferEnv, backend="Serial", seed=2**64 + 1) as vecenv:
        vecenv.reset(seed=-1)


def test_first_reset_uses_the_seed_of_make():
    class Seeded(SamplePufferEnv):
        def reset(self, seed=None):
            self.observations[:] = -1 if seed is None else seed
            return self.observations, []

    vecenv = pufferlib.vector.make(Seeded, backend="Serial", num_envs=2, seed=4)
    as_float = [[np.float32(env_seed(4, index))] for index in (0, 0, 1, 1)]
    np.testing.assert_array_equal(vecenv.reset()[0], as_float)
    assert (vecenv.reset()[0] == -1).all()
    assert (vecenv.reset(seed=4)[0] == as_float).all()
