"""Steps and resets of environments in one process: autoreset, infos, and errors of environments."""

import functools

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from tests.envs import FunctionEnv, SamplePufferEnv, ScriptedPufferEnv, counting_env

counter = functools.partial(counting_env, action_space=gymnasium.spaces.Discrete(4, start=-1), dtype=np.int32)


class OwnStep(GymnasiumPufferEnv):
    """Emulated environment with a ``step`` of its own, which counts its calls."""

    calls = 0

    def step(self, action):
        self.calls += 1
        return super().step(action)


def counters(autoreset=None, general=False, **kwargs):
    """Make two counting environments. With ``general`` their class overrides ``step``, which disables a fast path."""
    kind = OwnStep if general else GymnasiumPufferEnv
    creator = functools.partial(kind, env_creator=counter, env_kwargs=kwargs)
    return pufferlib.vector.make(creator, backend="Serial", num_envs=2, autoreset=autoreset)


def rollout(vecenv, steps):
    """Return observation, reward, terminal and truncation of the first environment at each step."""
    vecenv.reset()
    outcomes = (vecenv.step([0, 0]) for _ in range(steps))
    return [(int(o[0, 0]), float(r[0]), bool(d[0]), bool(t[0])) for o, r, d, t, _ in outcomes]


@pytest.mark.parametrize("general", [False, True])
def test_next_step_autoreset_resets_in_a_step_of_its_own(general):
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
def test_same_step_autoreset_keeps_final_observations(truncates, general):
    vecenv = counters("same_step", general, truncates=truncates)
    assert rollout(vecenv, 3) == [
        (1, 1.0, False, False),
        (2, 1.0, False, False),
        (0, 1.0, not truncates, truncates),
    ]
    assert vecenv.final_observations.tolist() == [[3], [3]]
    assert vecenv.masks.all()
    assert int(vecenv.step([0, 0])[0][0, 0]) == 1


def test_overridden_step_is_called():
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
def test_overridden_step_must_return_values_of_its_rows(place):
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
def test_environment_can_close_its_batch(call):
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


def test_step_after_close_during_step_raises():
    vecenv = counters()
    vecenv.reset()
    first = vecenv.envs[0].env
    step = first.step
    first.step = lambda action: (vecenv.close(), step(action))[1]
    for _ in range(2):
        with pytest.raises(APIUsageError, match="the environments are closed; make new ones"):
            vecenv.step([0, 0])


def infos_of_three_steps(creator, **kwargs):
    vecenv = pufferlib.vector.make(creator, env_kwargs=kwargs, backend="Serial")
    vecenv.reset()
    return [vecenv.step(vecenv.action_space.sample())[4] for _ in range(3)]


def test_empty_infos_are_skipped():
    assert infos_of_three_steps(ScriptedPufferEnv, on_step=lambda: [{}, {"a": 1}, {}]) == [[{"a": 1}]] * 3
    gym = functools.partial(counter, info=lambda env: {"a": 1} if env.count == 2 else {})
    assert infos_of_three_steps(GymnasiumPufferEnv, env_creator=gym) == [[], [{"a": 1}], []]


def test_info_that_is_no_dict_raises():
    gym = functools.partial(FunctionEnv, info=lambda env: ["won"])
    with pytest.raises(APIUsageError, match=r"the info must be a dict, got \['won'\] from .*; return {}"):
        infos_of_three_steps(GymnasiumPufferEnv, env_creator=gym)


def make_careless(**methods):
    """Make a batch of one ``SamplePufferEnv`` whose class has other ``methods``, such as a wrong ``step``."""
    vecenv = pufferlib.vector.make(type("Careless", (SamplePufferEnv,), methods), backend="Serial")
    vecenv.reset()
    return vecenv


def outcome(env, **changes):
    """Return what ``step`` of ``env`` must return, except for ``changes``."""
    names = ("observations", "rewards", "terminals", "truncations")
    return tuple(({name: getattr(env, name) for name in names} | {"infos": []} | changes).values())


def step_with_three_arrays(env, actions):
    return env.observations, env.rewards, env.terminals, []


def step_without_return(env, actions):
    pass


def step_with_dict_as_infos(env, actions):
    return outcome(env, infos={"a": 1})


def step_with_copied_rewards(env, actions):
    return outcome(env, rewards=env.rewards.copy())


def step_with_copied_terminals(env, actions):
    return outcome(env, terminals=env.terminals.copy())


def step_with_copied_truncations(env, actions):
    return outcome(env, truncations=env.truncations.copy())


def step_with_new_observations(env, actions):
    env.observations = np.zeros((2, 1), np.float32)
    return outcome(env)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (step_with_three_arrays, "step must return observations, .* got 4 values; return exactly"),
        (step_without_return, "step must return observations, .* got None; return exactly"),
        (step_with_dict_as_infos, "infos must be a list of dicts, got dict"),
        (step_with_copied_rewards, r"rewards must be written in place, self.rewards\[:\]"),
        (step_with_copied_terminals, r"terminals must be written in place, self.terminals\[:\]"),
        (step_with_copied_truncations, r"truncations must be written in place, self.truncations\[:\]"),
        (step_with_new_observations, r"observations must be written in place, self.observations\[:\]"),
    ],
)
def test_wrong_return_values_of_step_are_named(step, message):
    with pytest.raises(APIUsageError, match=f"Careless: {message}"):
        make_careless(step=step).step([0, 0])


def test_reset_without_infos_raises():
    vecenv = make_careless()
    vecenv.driver_env.reset = lambda seed=None: vecenv.driver_env.observations
    with pytest.raises(APIUsageError, match="Careless: reset must return observations and infos, got ndarray; return"):
        vecenv.reset()


def test_return_values_of_later_steps_are_checked():
    def step(env, actions):
        env.foo += 1
        return outcome(env, rewards=env.rewards.copy() if env.foo == 3 else env.rewards[:])

    vecenv = make_careless(step=step)
    for _ in range(2):
        vecenv.step([0, 0])
    with pytest.raises(APIUsageError, match="Careless: rewards must be written in place"):
        vecenv.step([0, 0])


@pytest.mark.parametrize("general", [False, True])
def test_disabled_autoreset_masks_finished_environments(general):
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


@pytest.mark.parametrize("name", ["masks", "final_observations"])
@pytest.mark.parametrize("call", ["reset", "step"])
def test_replaced_masks_and_final_observations_raise(name, call):
    def replace_and_call(env, *args, **kwargs):
        setattr(env, name, getattr(env, name).copy())
        return getattr(SamplePufferEnv, call)(env, *args, **kwargs)

    with pytest.raises(APIUsageError, match=rf"Careless: {name} must be written in place, self.{name}\[:\]"):
        make_careless(**{call: replace_and_call}).step([0, 0])


def test_observations_may_have_no_elements():
    kwargs = {"num_agents": 2, "size": 0}
    vecenv = pufferlib.vector.make(ScriptedPufferEnv, env_kwargs=kwargs, num_envs=2, backend="Serial")
    assert vecenv.reset()[0].shape == vecenv.step([0] * 4)[0].shape == (4, 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "call", "size"),
    [  # long observations are checked in reset only
        *(("observations", call, size) for call, size in (("reset", 1), ("reset", 3000), ("step", 1))),
        *(("rewards", "step", size) for size in (1, 3000)),
    ],
)
def test_nan_of_a_native_environment_raises(name, call, size, dtype):
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
