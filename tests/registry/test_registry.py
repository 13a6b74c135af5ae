"""Tests of make, env_creator and list_envs."""

import contextlib
import importlib
import pickle
import subprocess
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

import pufferlib
from pufferlib import registry
from pufferlib.bindings import atari
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.registry import creators, inside
from pufferlib.registry.facts import all_facts
from pufferlib.vector import Multiprocessing, Serial
from tests.envs import FunctionEnv


def test_list_envs_lists_ocean_before_bindings() -> None:
    names = pufferlib.list_envs()
    assert {"breakout", "pong", "squared", "atari/pong", "atari/space_invaders"} <= set(names)
    plain = [name for name in names if "/" not in name]
    bound = [name for name in names if "/" in name]
    assert names == sorted(plain) + sorted(bound), "no installed package registers more"
    assert len(names) == len(set(names))


@pytest.mark.parametrize("backend", [None, "native"])
def test_make_returns_ocean_env(backend: Any) -> None:
    env = pufferlib.make("squared", num_envs=3, seed=1, backend=backend)
    assert isinstance(env, pufferlib.PufferEnv)
    assert env.num_agents == 3
    env.close()


class Own(Serial):
    """Custom backend."""


@pytest.mark.parametrize(
    ("name", "keywords", "kind", "agents"),
    [
        ("CartPole-v1", {"num_envs": 3}, Serial, 3),
        ("CartPole-v1", {"num_envs": 1, "seed": 5, "sutton_barto_reward": True}, Serial, 1),
        ("CartPole-v1", {"num_envs": 4, "backend": "Multiprocessing", "num_workers": 1}, Multiprocessing, 4),
        ("CartPole-v1", {"num_envs": 2, "backend": Own}, Own, 2),
        ("pymultiagent", {"num_envs": 3}, Serial, 6),
        (FunctionEnv, {"num_envs": 3}, Serial, 3),
        (lambda **kwargs: FunctionEnv(**kwargs), {"num_envs": 2, "length": 3}, Serial, 2),
        ("squared", {"num_envs": 3}, pufferlib.PufferEnv, 3),
        ("squared", {"num_envs": 3, "backend": "Serial"}, Serial, 3),
    ],
)
def test_make_with_num_envs_returns_batch(name: Any, keywords: dict[str, Any], kind: type[Any], agents: int) -> None:
    with contextlib.closing(pufferlib.make(name, **keywords)) as envs:
        assert isinstance(envs, kind)
        observations, _ = envs.reset(seed=1)
        assert len(observations) == envs.num_agents == agents


def takes_num_envs(num_envs: int = 1) -> FunctionEnv:
    return FunctionEnv(length=num_envs)


def test_num_envs_is_passed_to_env_that_accepts_it() -> None:
    name = f"{Path(__file__)}:takes_num_envs"
    with contextlib.closing(pufferlib.make(name, num_envs=2)) as env:
        assert isinstance(env, GymnasiumPufferEnv)
    with contextlib.closing(pufferlib.make(name, num_envs=2, backend="Serial")) as envs:
        assert isinstance(envs, Serial)


@pytest.mark.parametrize("binding", sorted(all_facts()))
def test_documented_num_envs_is_accepted_by_binding(binding: str) -> None:
    module = importlib.import_module(f"pufferlib.bindings.{binding}")
    takes_num_envs = "``num_envs``" in module.__doc__
    assert takes_num_envs == getattr(module, "TAKES_NUM_ENVS", False)
    single = creators.single_game(module.env_creator(module.names()[0]), {"num_envs": 32})
    assert single == {"num_envs": 1 if takes_num_envs else 32}


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"num_envs": 0}, pufferlib.APIUsageError, "num_envs must be"),
        ({"num_envs": 2, "backend": "Serail"}, pufferlib.UnknownNameError, "did you mean 'Serial'"),
        ({"num_envs": 2, "sutton": 1}, pufferlib.UnknownNameError, "CartPole-v1: unexpected keyword argument 'sutton'"),
        (
            {"num_workers": 2},
            pufferlib.UnknownNameError,
            "unexpected keyword argument 'num_workers'.*; pufferlib.make itself takes 'num_workers', together with",
        ),
        (
            {"num_envs": 2, "batchsize": 2},
            pufferlib.UnknownNameError,
            "unexpected keyword argument 'batchsize'.*; pufferlib.make itself takes 'batch_size'$",
        ),
        (
            {"numenvs": 2},
            pufferlib.UnknownNameError,
            "unexpected keyword argument 'numenvs'.*; pufferlib.make itself takes 'num_envs'$",
        ),
    ],
)
def test_invalid_batch_raises(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pufferlib.make("CartPole-v1", **keywords)


def test_make_returns_env_of_binding() -> None:
    env = pufferlib.make("atari/pong", stack=2)
    assert env.single_observation_space.shape == (2, 84, 84)
    env.close()


@pytest.mark.parametrize("name", ["squared", "puffer_squared"])
def test_ocean_name_accepts_puffer_prefix(name: str) -> None:
    env = pufferlib.env_creator(name)(num_envs=2)
    assert env.num_agents == 2
    env.close()


@pytest.mark.parametrize("name", ["squared", "atari/breakout"])
def test_creators_can_be_pickled(name: str) -> None:
    creator = pufferlib.env_creator(name)
    env, copy = creator(), pickle.loads(pickle.dumps(creator))()
    assert type(copy) is type(env)
    assert copy.single_observation_space == env.single_observation_space
    env.close()
    copy.close()


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("breakou", "breakout"),
        ("Pong", "pong"),
        ("puffer_squard", "squared"),
        ("atari/spaceinvaders", "atari/space_invaders"),
        ("atary/pong", "atari/pong"),
        ("ALE/SpaceInvaders-v9", "atari/space_invaders"),
        ("BreakoutNoFrameskip-v9", "atari/breakout"),
        ("HalfCheetah-v9", "mujoco/HalfCheetah-v5"),
        ("CartPole-v9", "classic/CartPole-v1"),
        ("procgen:bigfish", "procgen/bigfish"),
    ],
)
def test_unknown_name_suggests_nearest(name: str, suggestion: str) -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=f"unknown environment '{name}'.*'{suggestion}'"):
        pufferlib.make(name)


@pytest.mark.parametrize("name", ["", "/", "atari/", "atari", "qqqqqq", "qqqqqq/pong", "puffer_puffer_pong"])
def test_unknown_name_raises(name: str) -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=r"pufferlib\.env_creator: unknown environment"):
        pufferlib.env_creator(name)


def test_unknown_name_raises_without_advice_on_correct_options() -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=r"'absent/Absent-v1'.*pufferlib\.register$"):
        pufferlib.make("absent/Absent-v1", num_envs=2, seed=3)


def test_name_that_is_not_str_raises() -> None:
    with pytest.raises(
        pufferlib.APIUsageError, match="name must be a str, as in 'breakout', got 3; pass a class or function"
    ):
        pufferlib.env_creator(3)  # type: ignore[arg-type]
    with pytest.raises(pufferlib.APIUsageError, match="a class or a function, got 3"):
        pufferlib.make(3)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nethack/qqqqqq", r"; known: nethack/\S+, nethack/[^/]+, nethack/"),
        ("nethack", "nethack has 9 environments, for example nethack/NetHackScore-v0; puffer list nethack lists them"),
        ("atari/", "atari has 104 environments, for example atari/breakout"),
    ],
)
def test_binding_name_alone_lists_its_envs(name: str, message: str) -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=message):
        pufferlib.make(name)


def test_message_without_suggestion_is_short() -> None:
    with pytest.raises(pufferlib.UnknownNameError) as error:
        pufferlib.make("qqqqqq")
    assert len(str(error.value)) < 300


def test_ocean_name_loads_no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(registry, "binding_module", loaded.append)
    assert callable(pufferlib.env_creator("squared"))
    assert loaded == []


def test_list_envs_imports_no_package_of_bindings() -> None:
    code = "import sys, pufferlib; pufferlib.list_envs(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    behind = {module for facts in all_facts().values() for module in facts.modules} - {"gymnasium", "pettingzoo"}
    assert {"torch", "pygame", "cv2", *behind} & {*done.stdout.split()} == set()


def test_every_module_in_bindings_is_a_binding() -> None:
    files = {path.stem for path in Path(atari.__file__).parent.parent.iterdir() if not path.stem.startswith("_")}
    assert set(inside.bindings()) == files


@pytest.mark.parametrize("binding", inside.bindings())
def test_binding_has_names_and_creators(binding: str) -> None:
    module = inside.binding_module(binding)
    assert binding in all_facts(), "every binding has a binding.toml"
    names = module.names()
    assert isinstance(names, tuple)
    assert list(names) == sorted(set(names))
    assert callable(module.env_creator(names[0]))
    facts = all_facts()[binding]
    assert {facts.example, *facts.conformance} <= set(names)
    with pytest.raises(pufferlib.UnknownNameError):
        module.env_creator("qqqqqq")
    assert module.__doc__


def test_policy_of_binding_overrides_library_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.models import Default, make_policy

    class Wide(Default):
        pass

    module = types.ModuleType("pufferlib.bindings.atari.policy")
    vars(module).update(__all__=["Default", "Wide"], Default=Wide, Wide=Wide)
    module.__spec__ = ModuleSpec(module.__name__, None)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found = registry.policies("atari/pong")
    assert found is module
    env = pufferlib.make("squared")
    for name in found.__all__:
        policy = make_policy(env, name, hidden_size=32, more=found)
        assert type(policy) is Wide
        assert policy.hidden_size == 32
        assert isinstance(policy, torch.nn.Module)
    env.close()


@pytest.mark.parametrize("name", ["squared", "atari/pong", "qqqqqq/pong"])
def test_policies_is_none_without_policy_of_binding(name: str) -> None:
    assert registry.policies(name) is None
