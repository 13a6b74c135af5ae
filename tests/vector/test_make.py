"""Arguments of ``vector.make``: forms of calls, values chosen by "auto", and errors."""

import contextlib
import functools
import inspect
import pickle
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.buffers import allocate
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.vector import factory
from pufferlib.vector.arguments import Cores
from pufferlib.vector.env_runner import EnvRunner
from pufferlib.vector.specs import VectorSpec
from tests.envs import ScriptedPufferEnv

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest


class Env(ScriptedPufferEnv):
    """Environment with one agent by default, which observes its number of steps."""

    def __init__(self, num_envs=1, size=1, buf=None):
        super().__init__(num_envs, size, num_actions=3, buf=buf)


@pytest.fixture
def vector_spec(monkeypatch):
    """Function that returns the ``VectorSpec`` made by ``vector.make`` for Multiprocessing on four cores."""

    class Planned(Exception):  # noqa: N818 - not an error
        pass

    class Recorder(pufferlib.vector.Multiprocessing):
        _cores = Cores(lambda: 4, "usable cores")

        def _start(self, plan):
            raise Planned(plan)

    monkeypatch.setitem(factory.BACKENDS, "Recorder", Recorder)

    def call(**kwargs) -> VectorSpec:
        with pytest.raises(Planned) as caught:
            pufferlib.vector.make(Env, backend="Recorder", **kwargs)
        return caught.value.args[0]

    return call


@pytest.mark.parametrize(
    ("kwargs", "workers", "batch"),
    [
        ({"num_envs": 8}, 4, 8),
        ({"num_envs": 6}, 3, 6),
        ({"num_envs": 7}, 1, 7),
        ({"num_envs": 1}, 1, 1),
        ({"num_envs": 8, "num_workers": 2}, 2, 8),
        ({"num_envs": 8, "num_workers": "auto", "batch_size": "auto"}, 4, 4),
        ({"num_envs": 8, "num_workers": 2, "batch_size": "auto"}, 2, 4),
        ({"num_envs": 8, "num_workers": 1, "batch_size": "auto"}, 1, 8),
        ({"num_envs": 6, "batch_size": "auto"}, 3, 2),
        ({"num_envs": 6, "batch_size": "auto", "zero_copy": False}, 3, 2),
        ({"num_envs": 1, "batch_size": "auto"}, 1, 1),
        ({"num_envs": 6, "batch_size": 3}, 2, 3),
        ({"num_envs": 6, "batch_size": 4, "zero_copy": False}, 3, 4),
        ({"num_envs": 16, "num_workers": 16, "overwork": True, "batch_size": 4}, 16, 4),
        ({"num_envs": np.int64(4), "num_workers": np.int64(2)}, 2, 4),
        ({"num_envs": 400, "num_workers": np.uint8(2), "batch_size": np.uint8(200)}, 2, 200),
    ],
)
def test_num_workers_and_batch_size_are_chosen(vector_spec, kwargs, workers, batch):
    plan = vector_spec(**kwargs)
    assert (plan.num_workers, plan.batch_size, len(plan.envs)) == (workers, batch, kwargs["num_envs"])


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"num_envs": -3}, "num_envs must be at least 1, got -3"),
        ({"num_envs": 2.0}, "num_envs must be an int, got 2.0"),
        ({"num_envs": True}, "num_envs must be an int, got True"),
        ({"seed": "7"}, "seed must be an int, got '7'"),
        ({"record": 3}, "record must be the path of a folder, or None, got 3"),
        ({"num_workers": 0}, "num_workers must be at least 1, got 0"),
        ({"num_workers": 1.5}, 'num_workers must be an int or "auto", got 1.5'),
        ({"batch_size": "half"}, "batch_size must be an int or \"auto\", got 'half'"),
        ({"num_envs": 4, "batch_size": 8}, "batch_size must be at most num_envs, got batch_size=8, num_envs=4"),
        ({"num_envs": 4, "batch_size": 3}, "must be a multiple of .*; try batch_size=2 or 4"),
        ({"zero_copy": 1}, "zero_copy must be True or False, got 1"),
        ({"overwork": "yes"}, "overwork must be True or False, got 'yes'"),
        ({"timeout_s": 0}, "timeout_s must be a number of seconds above 0, or None, got 0"),
        ({"timeout_s": True}, "timeout_s must be a number of seconds above 0, or None, got True"),
        ({"timeout_s": float("inf")}, "timeout_s must be a number of seconds above 0, or None, got inf"),
        ({"on_crash": "resart"}, "unknown on_crash 'resart'; did you mean 'restart'"),
        ({"autoreset": "nextstep"}, "unknown autoreset 'nextstep'; did you mean 'next_step'"),
        ({"num_worker": 2}, "unexpected keyword argument 'num_worker'; did you mean 'num_workers'"),
        ({"num_env": 2}, "unexpected keyword argument 'num_env'; did you mean 'num_envs'"),
        ({"env_args": 3}, r"env_args must be a list or tuple, got 3 for environment 0; try \[3\]"),
        ({"env_kwargs": [1]}, r"env_kwargs must be a dict, got \[1\] for environment 0; .*give lists of creators"),
        ({"env_args": [1, 1, None]}, "env_args must end before buf, got 3 arguments for environment 0, of which"),
        ({"env_kwargs": {"buf": None}}, "env_kwargs must not contain buf"),
        ({"autoreset": "next_step"}, "autoreset must be 'same_step', which Env does by itself, got 'next_step'"),
    ],
)
def test_wrong_arguments_are_named(backend, kwargs, message):
    with pytest.raises(APIUsageError, match=message):
        pufferlib.vector.make(Env, backend=backend, **{"num_envs": 2, "overwork": True, **kwargs})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"num_envs": 10, "num_workers": 4},
            "num_envs must be a multiple of num_workers, got num_envs=10, num_workers=4; "
            "try num_workers=2, or num_envs=8 or 12.",
        ),
        ({"num_envs": 2, "num_workers": 3}, "got num_envs=2, num_workers=3; try num_workers=2, or num_envs=3."),
        (
            {"num_envs": 8, "num_workers": 4, "batch_size": 3},
            "batch_size must be a multiple of num_envs/num_workers=2, "
            "got batch_size=3, num_envs=8, num_workers=4; try batch_size=2 or 4.",
        ),
        (
            {"num_envs": 6, "num_workers": 6, "batch_size": 4},
            "num_envs must be a multiple of batch_size for contiguous batches, got num_envs=6, batch_size=4; "
            "try batch_size=3 or 6, or zero_copy=False.",
        ),
    ],
)
def test_sizes_that_do_not_divide_suggest_others(kwargs, message):
    with pytest.raises(APIUsageError) as caught:
        pufferlib.vector.make(Env, backend="Multiprocessing", overwork=True, **kwargs)
    assert str(caught.value).endswith(message)


def test_more_workers_than_cores_need_overwork():
    cores = pufferlib.vector.usable_cpus()
    with pytest.raises(
        APIUsageError, match=rf"at most the {cores} usable cores, got num_workers={cores + 1}; .*overwork"
    ):
        pufferlib.vector.make(Env, num_envs=cores + 1, num_workers=cores + 1, backend="Multiprocessing")


@pytest.mark.parametrize(
    ("num_envs", "num_workers", "advice"),
    [
        (4, 3, "num_workers=2."),
        (3, 3, "num_workers=1, or overwork=True if you know that it helps"),
        (3, 2, "num_workers=1, or num_envs=2 or 4."),
    ],
)
def test_suggested_workers_fit_the_environments_and_the_cores(monkeypatch, num_envs, num_workers, advice):
    monkeypatch.setattr(pufferlib.vector.Multiprocessing, "_cores", Cores(lambda: 2, "usable cores"))
    with pytest.raises(APIUsageError) as caught:
        pufferlib.vector.make(Env, num_envs=num_envs, num_workers=num_workers, backend="Multiprocessing")
    assert str(caught.value).endswith(f"; try {advice}")


@pytest.mark.parametrize(
    ("creators", "kwargs", "message"),
    [
        ([Env, Env], {"num_envs": 3}, "env_creators must have one entry per environment, got 2 entries and num_envs=3"),
        ([Env, Env], {"num_envs": 2, "env_args": [[1]]}, "env_args must have one entry per environment, got 1 entries"),
        ([Env, Env], {"num_envs": 2, "env_kwargs": {"size": 1}}, "env_kwargs must be a list with one entry per"),
        ([Env, 3], {"num_envs": 2}, "an env_creator must be a class or function, got 3 for environment 1"),
        ([], {"num_envs": 1}, "env_creators must have one entry per environment, got 0 entries"),
        ("pong", {}, r"must be a class or function, got 'pong' .*; pass pufferlib.env_creator\('pong'\)"),
        (Env(), {}, "an env_creator must be a class or function, .*; pass the class itself, not an instance"),
    ],
)
def test_wrong_creators_are_refused(creators, kwargs, message):
    with pytest.raises(APIUsageError, match=message):
        pufferlib.vector.make(creators, backend="Serial", **kwargs)


@pytest.mark.parametrize("backend", ["Serail", "Native", int, None, 3, Env])
def test_unknown_backend_suggests_known_ones(backend):
    with pytest.raises(UnknownNameError, match=r"vector.make: unknown backend .*(did you mean|known: Multiprocessing)"):
        pufferlib.vector.make(Env, backend=backend)


def test_native_refuses_several_environments_with_advice():
    with pytest.raises(
        APIUsageError, match=r'num_envs must be 1 .* got num_envs=4; give .*env_kwargs=\{"num_envs": 4\}, or choose'
    ):
        pufferlib.vector.make(Env, num_envs=4)
    for creator in (
        env_that_ignores_buf,
        lambda **kwargs: Env(**kwargs),
        functools.partial(pufferlib.emulation.GymnasiumPufferEnv, env_creator=Env),
    ):
        with pytest.raises(APIUsageError, match=r'got num_envs=4; choose backend="Serial" or "Multiprocessing"$'):
            pufferlib.vector.make(creator, num_envs=4)


def test_signatures_of_make_and_backends_agree():
    make_parameters = inspect.signature(pufferlib.vector.make).parameters
    for backend in (pufferlib.vector.Serial, pufferlib.vector.Multiprocessing, pufferlib.vector.Ray):
        own = inspect.signature(backend).parameters
        assert [*own][:4] == ["env_creators", "env_args", "env_kwargs", "num_envs"]
        assert own["env_creators"].annotation == make_parameters["env_creator_or_creators"].annotation
        for name in [*own][1:]:
            assert (own[name].default, own[name].annotation) == (
                make_parameters[name].default,
                make_parameters[name].annotation,
            )
        assert make_parameters.keys() - own.keys() == {"env_creator_or_creators", "backend", "record", "unknown"}


def test_backend_class_can_be_called_directly():
    with pufferlib.vector.Serial([Env, Env], [[1], [1]], [{}, {}], 2, batch_size=1) as envs:
        assert envs.agents_per_batch == 1
        assert envs.reset()[0].tolist() == [[0]]
    with pytest.raises(APIUsageError, match="num_envs must be at least 1, got 0"):
        pufferlib.vector.Multiprocessing(Env, num_envs=0)


@pytest.mark.parametrize("option", ["num_workers", "batch_size"])
def test_native_refuses_num_workers_and_batch_size(option):
    for value in (None, 1, "auto"):
        assert pufferlib.vector.make(Env, **{option: value}).num_agents == 1
    with pytest.raises(APIUsageError, match=f"{option} must be left out with the native backend, .* got {option}=2; "):
        pufferlib.vector.make(Env, **{option: 2})


def test_native_refuses_on_crash_restart():
    with pytest.raises(APIUsageError, match=r"on_crash must be 'raise' with the native backend, .* got 'restart'"):
        pufferlib.vector.make(Env, on_crash="restart")


@pytest.mark.parametrize("mode", gymnasium.vector.AutoresetMode)
@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_make_accepts_autoreset_modes_of_gymnasium(backend, mode):
    creator = pufferlib.env_creator("CartPole-v1")
    with contextlib.closing(pufferlib.vector.make(creator, backend=backend, num_envs=1, autoreset=mode)) as vecenv:
        assert vecenv.autoreset is pufferlib.vector.AutoresetMode[mode.name]
        assert pufferlib.vector.to_gymnasium(vecenv).metadata["autoreset_mode"] == mode


def test_native_refuses_other_autoreset_modes():
    assert pufferlib.vector.make(Env, autoreset="same_step").autoreset == "same_step"
    with pytest.raises(APIUsageError, match="autoreset must be 'same_step', which Env does by itself, got 'disabled'"):
        pufferlib.vector.make(Env, autoreset="disabled")


def test_native_accepts_a_creator_without_buf():
    assert pufferlib.vector.make(lambda: Env(5)).num_agents == 5


def test_native_needs_a_puffer_env():
    wrapped = functools.partial(
        pufferlib.emulation.GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"]
    )
    with pytest.raises(APIUsageError, match=r"native backend needs a PufferEnv .*, got GymnasiumPufferEnv; choose"):
        pufferlib.vector.make(wrapped)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
@pytest.mark.parametrize(
    ("creator", "what"),
    [
        (lambda: gymnasium.make("CartPole-v1"), "must be a PufferEnv, got TimeLimit"),
        (functools.partial(gymnasium.make, "CartPole-v1"), "must take buf"),
    ],
)
def test_unwrapped_gymnasium_environment_raises_with_advice(backend, creator, what):
    with pytest.raises(
        APIUsageError, match=rf"{what}.*pufferlib\.make\(.* or wrap a Gymnasium environment as .*PufferEnv"
    ):
        pufferlib.vector.make(creator, backend=backend)


def emulated_cartpole():
    return pufferlib.emulation.GymnasiumPufferEnv(env_creator=gymnasium.make, env_args=["CartPole-v1"])


def outcomes(creator, backend):
    """Return the bytes of a reset and seven steps of two environments, with the same actions at each call."""
    seen = []
    with pufferlib.vector.make(creator, num_envs=2, num_workers=1, backend=backend, seed=3) as envs:
        seen.append(envs.reset()[0].tobytes())
        for action in range(7):
            arrays = envs.step(np.full(envs.num_agents, action % 2))[:4]
            seen.append([array.tobytes() for array in arrays])
    return seen


@pytest.mark.parametrize(
    ("without_buf", "with_buf"),
    [
        (lambda: pufferlib.ocean.Squared(num_envs=3), lambda buf: pufferlib.ocean.Squared(num_envs=3, buf=buf)),
        (lambda: Env(2), lambda buf: Env(2, buf=buf)),
        (
            emulated_cartpole,
            functools.partial(
                pufferlib.emulation.GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"]
            ),
        ),
    ],
    ids=["C", "native", "emulated"],
)
@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_creator_without_buf_writes_into_the_batch(without_buf, with_buf, backend):
    expected = outcomes(with_buf, backend)
    assert len({str(step) for step in expected}) > 2
    assert outcomes(without_buf, backend) == expected


def test_creator_without_buf_that_makes_several_environments_raises():
    def make_two():
        Env(size=2)
        return Env(size=2)

    with pytest.raises(APIUsageError, match=r"makes several, of which Env took the arrays .*take buf=None and hand it"):
        pufferlib.vector.make(make_two, backend="Serial")
    made, closed = Env(), []
    made.close = lambda: closed.append(made)
    with pytest.raises(APIUsageError, match=r"environment 0 \(Env\) ignores the arrays it is given"):
        pufferlib.vector.make(lambda: made, backend="Serial")
    assert closed == [made]


def gymnasium_env_that_takes_buf(buf):
    return gymnasium.make("CartPole-v1")


def env_that_ignores_buf(buf):
    return Env()


def emulated_env_that_ignores_buf(buf):
    return pufferlib.emulation.GymnasiumPufferEnv(gymnasium.make("CartPole-v1"))


def env_of_other_size(buf, size):
    return Env(size=size, buf=buf)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
@pytest.mark.parametrize(
    ("creators", "env_args", "message"),
    [
        ([gymnasium_env_that_takes_buf], None, "environment 0 must be a PufferEnv, got TimeLimit; call"),
        (
            [env_that_ignores_buf],
            None,
            r"environment 0 \(Env\) ignores the arrays it is given; .*super\(\).__init__\(buf\)",
        ),
        (
            [emulated_env_that_ignores_buf],
            None,
            r"let the function that makes it take buf=None and seed=0, and return GymnasiumPufferEnv\(\.\.\., buf=buf",
        ),
    ],
)
def test_creators_that_return_no_puffer_env_or_ignore_buf_raise(backend, creators, env_args, message):
    with pytest.raises(APIUsageError, match=message):
        pufferlib.vector.make(creators, env_args, num_envs=len(creators), backend=backend)


@pytest.mark.parametrize("options", [{"backend": "Serial"}, {"backend": "Multiprocessing", "num_workers": 2}])
def test_environments_with_different_spaces_or_agents_raise(options):
    kwargs = [{"size": 1}, {"size": 2}]
    with pytest.raises(APIUsageError, match=r"must have the observation_space of environment 0, Box.*in environment 1"):
        pufferlib.vector.make([env_of_other_size] * 2, env_kwargs=kwargs, num_envs=2, overwork=True, **options)
    with pytest.raises(APIUsageError, match="must have the num_agents of environment 0, 1, got 3 in environment 1"):
        pufferlib.vector.make([Env] * 2, [[1], [3]], num_envs=2, overwork=True, **options)


def test_messages_about_large_spaces_are_short(vector_spec):
    def memory(spec, index):
        assert len(pickle.dumps(spec)) < 4000
        return allocate(spec.observation_space, spec.action_space, spec.num_agents)

    plan = vector_spec(env_kwargs={"size": 1 << 18})
    description = EnvRunner(plan.envs, None, memory).describe()
    assert len(pickle.dumps(description)) < 4000
    assert description.single_observation_space == Env(size=1 << 18).single_observation_space


def test_seed_is_passed_to_creators_that_name_it():
    def without(buf=None):
        return Env(buf=buf)

    def with_seed(seed, buf=None):
        env = Env(buf=buf)
        env.given = seed
        return env

    pufferlib.vector.make(without, backend="Serial").close()
    env = pufferlib.vector.make(with_seed, backend="Serial", seed=3).envs[0]
    assert env.given == pufferlib.seeding.env_seed(3, 0)
    env = pufferlib.vector.make(with_seed, backend="Serial", seed=3, env_kwargs={"seed": 11}).envs[0]
    assert env.given == 11
    env = pufferlib.vector.make(with_seed, backend="Serial", seed=3, env_args=[7]).envs[0]
    assert env.given == 7
