"""Steps and resets of environments in one process: autoreset, infos, and a sentence for each mistake."""

import functools

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from tests.envs import FunctionEnv, SamplePufferEnv, counting_env

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
    with pytest.raises(APIUsageError, match=r"Shaped: step must return the values in its rows, .* where self.\w+ has"):
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
