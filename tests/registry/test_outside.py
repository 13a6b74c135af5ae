"""Tests of names for environments outside this repository: files, modules, Gymnasium ids and registrations."""

import enum
import functools
import importlib
import importlib.metadata
import re
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib import registry, vector
from pufferlib.emulation import DMEnvToGymnasium, GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.registry import creators, outside
from pufferlib.training import load_config
from tests.emulation.test_dm_env import SeededScript
from tests.envs import FunctionEnv

FORAGE = """
import gymnasium
import numpy as np
import {beside}


class Forage(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 3):
        self.length = length

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.np_random.random(2, dtype=np.float32), {{}}

    def step(self, action):
        self.time += 1
        return np.zeros(2, np.float32), {beside}.REWARD, self.time >= self.length, False, {{}}


def make_forage(length=2, **others):
    return Forage(length, **others)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a module of environments and one that it imports, with unique names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    beside = f"beside_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{beside}.py").write_text("REWARD = 2.0\n")
    package = tmp_path / f"pkg_{beside}"
    package.mkdir()
    for file in (tmp_path / "my_env.py", package / "envs.py"):
        file.write_text(FORAGE.format(beside=beside))
    return tmp_path


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without registrations, and remove new ones after the test."""
    monkeypatch.setattr(outside, "REGISTERED", {})
    outside.load_packages.cache_clear()


def episode(env: GymnasiumPufferEnv) -> dict[str, float]:
    """Play one episode. Return its last info."""
    env.reset(seed=0)
    while True:
        *_, terminated, truncated, info = env.step(0)
        if terminated or truncated:
            return info


def test_make_accepts_file_with_or_without_class(folder: Path) -> None:
    for name in ("my_env.py", "./my_env.py:Forage", str(folder / "my_env.py:Forage")):
        env = pufferlib.make(name, length=4)
        assert isinstance(env, GymnasiumPufferEnv)
        assert episode(env) == {"score": 8.0, "episode_return": 8.0, "episode_length": 4}


@pytest.mark.parametrize("name", ["my_env.py", "my_env.py:Forage"])
def test_folder_of_env_file_may_contain_colon(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noon = folder / "runs 12:00"
    noon.mkdir()
    for file in folder.glob("*.py"):
        file.rename(noon / file.name)
    (noon / "my_env.toml").write_text('["my_env.py:Forage".train]\ngamma = 0.5\n')
    monkeypatch.chdir(noon)
    full = registry.full_name(name)
    assert episode(pufferlib.make(full))["episode_length"] == 3
    assert registry.split_name(full) == (str(noon / "my_env.py"), "Forage" if name.endswith("Forage") else "")
    assert load_config("my_env.py:Forage").train.gamma == 0.5


def test_make_finds_module_in_current_folder(folder: Path) -> None:
    (package,) = folder.glob("pkg_*")
    env = pufferlib.make(f"{package.name}.envs:make_forage")
    assert episode(env)["episode_length"] == 2


def test_edited_file_is_reloaded(folder: Path) -> None:
    file = folder / "my_env.py"
    assert episode(pufferlib.make("my_env.py"))["episode_length"] == 3
    file.write_text(file.read_text().replace("length: int = 3", "length: int = 10"))
    assert episode(pufferlib.make("my_env.py"))["episode_length"] == 10


@pytest.mark.parametrize("name", ["my_env.py:Forage", "my_env.py:make_forage", "Acrobot-v1"])
def test_workers_make_custom_envs(name: str, folder: Path) -> None:
    creator = pufferlib.env_creator(name)
    rows = []
    for backend in ("Serial", "Multiprocessing"):
        with vector.make(creator, num_envs=2, num_workers=1, backend=backend, seed=3) as envs:
            rows.append(np.array(envs.reset()[0]))
    assert (rows[0] == rows[1]).all()
    assert (rows[0][0] != rows[0][1]).any()


def test_gymnasium_id_accepts_env_keywords() -> None:
    env = pufferlib.make("CartPole-v1", sutton_barto_reward=True, max_episode_steps=7, render_mode="rgb_array")
    assert env.render_mode == "rgb_array"
    assert episode(env)["episode_length"] <= 7
    assert isinstance(pufferlib.make("gymnasium:Acrobot-v1"), GymnasiumPufferEnv)


def test_gymnasium_id_of_missing_package_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gymnasium.envs.registration.EnvSpec("Absent-v0", entry_point="absent_package.envs:Absent")
    monkeypatch.setitem(gymnasium.registry, "Absent-v0", spec)
    assert registry.own_keywords("Absent-v0") == {}
    with pytest.raises(pufferlib.BindingMissing, match="Absent-v0: Gymnasium cannot make it: No module named 'absent"):
        pufferlib.make("Absent-v0")


def test_ale_id_works_without_importing_ale_py() -> None:
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    creator = pufferlib.env_creator("ALE/Pong-v5")
    assert creator(frameskip=1).single_observation_space.shape == (210, 160, 3)


def test_missing_ale_py_suggests_atari_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    registered = {env_id: spec for env_id, spec in gymnasium.registry.items() if "ale_py" not in str(spec.entry_point)}
    monkeypatch.setattr(gymnasium, "registry", registered)
    for name in ("ALE/SpaceInvaders-v5", "SpaceInvadersNoFrameskip-v4", "SpaceInvaders-ramDeterministic-v4"):
        with pytest.raises(pufferlib.UnknownNameError, match=f"environment '{name}'; did you mean 'atari/space_invade"):
            pufferlib.make(name)


def test_adapter_follows_type_of_env(folder: Path) -> None:
    assert isinstance(pufferlib.make("pettingzoo.classic.rps.rps:raw_env"), PettingZooPufferEnv)
    assert isinstance(pufferlib.make("pettingzoo.classic.rps.rps:parallel_env"), PettingZooPufferEnv)
    env = pufferlib.make("pufferlib.ocean:Squared", num_envs=3)
    assert env.num_agents == 3
    assert registry.batches_itself("pufferlib.ocean:Squared")
    assert not registry.batches_itself("my_env.py")


def test_vector_env_is_refused_with_advice(fresh: None) -> None:
    pufferlib.register("mine/batch", lambda: gymnasium.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(pufferlib.APIUsageError, match=r"got CartPoleVectorEnv\(.*; it is a vector environment; make a"):
        pufferlib.make("mine/batch")


def test_dm_env_is_adapted(fresh: None) -> None:
    pufferlib.register("mine/script", SeededScript)
    env = pufferlib.make("mine/script")
    env.reset(seed=0)
    assert isinstance(env.unwrapped, DMEnvToGymnasium)
    assert [env.step(0)[4].get("episode_length") for _ in range(3)] == [None, None, 3]


def test_batches_itself_accepts_partial(fresh: None) -> None:
    pufferlib.register("mine/squared", functools.partial(pufferlib.ocean.Squared, num_envs=3))
    assert registry.batches_itself("mine/squared")
    assert pufferlib.make("mine/squared").num_agents == 3
    pufferlib.register("mine/pole", functools.partial(gymnasium.make, "CartPole-v1"))
    assert not registry.batches_itself("mine/pole")


def test_render_mode_is_dropped_if_not_accepted(folder: Path) -> None:
    no_init = (
        "import gymnasium\nclass A(gymnasium.Env):\n observation_space = action_space = gymnasium.spaces.Discrete(2)"
    )
    (folder / "no_init.py").write_text(no_init)
    for name in ("my_env.py:Forage", "my_env.py:make_forage", "no_init.py"):
        assert pufferlib.make(name, render_mode="rgb_array").render_mode is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_env.py:Forag", r"my_env\.py: unknown attribute 'Forag'; did you mean 'Forage'\?"),
        ("my_emv.py", r"there is no file \S+/my_emv\.py; if it was moved, .*; \S+/my_env\.py is there"),
        ("other.py", r"there is no file \S+/other\.py; if it was moved, give its new path"),
        ("me.py", r"there is no file [^;]*; if it was moved, [^;]*$"),
        ("my_env", r"unknown environment 'my_env'; did you mean 'my_env\.py'\?"),
        ("my_env.Forage", r"unknown environment 'my_env\.Forage'; did you mean 'my_env:Forage'\?"),
        ("my_env/Forage-v0", r"unknown environment 'my_env/Forage-v0'; did you mean 'my_env:my_env/Forage-v0'\?"),
        ("json.decoder", r"unknown environment 'json\.decoder'; did you mean 'json\.decoder:JSONDecodeError' or "),
        ("json:Forage-v0", r"json: unknown Gymnasium id 'Forage-v0'"),
        ("absent:Forage-v0", r"there is no module 'absent', neither installed nor in \S+; install its package"),
        ("Taxi-v3", r"unknown environment 'Taxi-v3'; did you mean '.*'Taxi-v4'"),
        ("Blackjak", r"unknown environment 'Blackjak'; did you mean '.*Blackjack-v1'"),
        ("absent.envs:Forage", r"environment 'absent\.envs:Forage'.*; there is no module absent\.envs"),
        ("my_env.py:np", r"must be a class or a function that makes an environment, got <module 'numpy'"),
        ("builtins:list", r"builtins:list: must make an environment, got <class 'list'> of Python's standard library"),
        ("os:system", r"os:system: must make an environment, got <built-in function system> of Python's standard"),
        ("numpy.random:rand", r"numpy.random:rand: must make an environment of Gymnasium or PettingZoo, .* got 0\."),
        ("none.py", r"none\.py must define a class of Env .*, got none$"),
        ("creator.py", r"must define a class of Env .*, got none; if one of make makes it, .*: \S+creator\.py:make$"),
        ("wrapper.py", r"must define a class of Env .*, got none; if one of make makes it, .*: \S+wrapper\.py:make$"),
        ("two.py", r"two\.py must define exactly one class of Env .*, got 2; choose one: \S+two\.py:A, for a run in"),
        ("broken.py", r"broken\.py cannot be imported: ZeroDivisionError: division by zero \(\S+broken\.py, line 2\)"),
        ("wrong.py:A", r"wrong\.py cannot be imported: SyntaxError: .* \(\S+wrong\.py, line 1\)"),
        ("ends.py:A", r"ends\.py cannot be imported: SystemExit: no data here \(\S+ends\.py, line 2\)"),
        ("parses.py:A", r"parses\.py cannot be imported: SystemExit: 2 \(\S+parses\.py, line 2\)"),
        ("old.py:A", r"old\.py cannot be imported: .*import from pufferlib\.training \(\S+old\.py, line 2\)"),
        ("needs.py", r"needs\.py: missing a required argument: 'size'; pass it as --env\.NAME VALUE"),
    ],
)
def test_invalid_name_raises(name: str, message: str, folder: Path) -> None:
    (folder / "two.py").write_text("import gymnasium\nclass A(gymnasium.Env): ...\nclass B(gymnasium.Env): ...\n")
    (folder / "none.py").write_text("x = 1\n")
    (folder / "creator.py").write_text("def make():\n    return gymnasium.make('CartPole-v1')\n")
    (folder / "wrapper.py").write_text(
        "import gymnasium\nclass A(gymnasium.Wrapper): ...\ndef make():\n    return A(gymnasium.make('CartPole-v1'))\n"
    )
    (folder / "broken.py").write_text("x = 1\ny = x / 0\n")
    (folder / "wrong.py").write_text("def f(:\n")
    (folder / "ends.py").write_text("import sys\nsys.exit('no data here')\n")
    (folder / "old.py").write_text("import gymnasium\nfrom pufferlib.pufferl import PuffeRL\n")
    (folder / "parses.py").write_text("import argparse\nargparse.ArgumentParser().parse_args(['--x'])\n")
    (folder / "needs.py").write_text("import gymnasium\nclass A(gymnasium.Env):\n    def __init__(self, size): ...\n")
    with pytest.raises(pufferlib.APIUsageError, match=message):
        pufferlib.make(name)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class B(gymnasium.ObservationWrapper): ...", "A"),
        ("class B(gymnasium.Wrapper):\n    def __init__(self, size=3): ...\ndel A", "B"),
        ("from pettingzoo.utils import BaseWrapper\nclass B(BaseWrapper): ...", "A"),
        ("from pettingzoo.utils import BaseParallelWrapper\nclass B(BaseParallelWrapper): ...", "A"),
    ],
)
def test_wrapper_that_needs_env_is_not_env_of_file(code: str, expected: str, folder: Path) -> None:
    (folder / "wrapped.py").write_text(f"import gymnasium\nclass A(gymnasium.Env): ...\n{code}\n")
    assert outside.name_in_file("wrapped.py") == expected


def test_classes_and_functions_of_executed_code_are_accepted() -> None:
    # Without __name__, such a class belongs to the module "builtins", and such a function to None.
    names: dict[str, Any] = {"FunctionEnv": FunctionEnv}
    exec("class Own(FunctionEnv): ...\ndef make(): return Own()", names)
    for maker in (names["Own"], names["make"]):
        with pufferlib.make(maker, num_envs=2) as envs:
            assert envs.num_envs == 2


@pytest.mark.parametrize(
    ("name", "keyword", "near"), [("my_env.py", "lenght", "length"), ("CartPole-v1", "max_episode_step", "max_episode")]
)
def test_unknown_keyword_suggests_nearest(name: str, keyword: str, near: str, folder: Path) -> None:
    message = f"{name}: unexpected keyword argument '{keyword}'; did you mean '{near}"
    with pytest.raises(pufferlib.UnknownNameError, match=message):
        pufferlib.make(name, **{keyword: 3})


@pytest.mark.parametrize("keywords", [{"desc": "SF/FG"}, {"desc": ["SF", "FFG"]}, {"map_name": "9x9"}], ids=str)
def test_value_that_gymnasium_rejects_is_named(keywords: dict[str, Any]) -> None:
    message = re.escape(f"FrozenLake-v1: cannot be made with {keywords}: ")
    for num_envs in (None, 2):
        with pytest.raises(pufferlib.APIUsageError, match=message):
            pufferlib.make("FrozenLake-v1", num_envs=num_envs, **keywords)


def test_random_map_is_made_by_gymnasium() -> None:
    with pufferlib.make("FrozenLake-v1", num_envs=2, backend="Serial", map_name=None) as batch:
        assert batch.driver_env.env.observation_space == gymnasium.spaces.Discrete(64), "8 x 8, not 4 x 4"


def test_keyword_of_wrong_type_raises(fresh: None) -> None:
    class Typed(gymnasium.Env[int, int]):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def __init__(  # type: ignore[no-untyped-def]
            self,
            size: "int | None" = None,
            speed=1,
            is_wet: bool = True,
            title="x",
            any_kind: object = 1,
            sizes: list[int] | None = None,
            shape: tuple[int, ...] | None = None,
            frame=(84, 84),
        ):
            self.given = (size, speed, is_wet, title, any_kind, sizes, shape, frame)

    pufferlib.register("typed", Typed)
    for keywords, sentence in (
        ({"size": "abc"}, "typed: size must be int, got 'abc'; its default is None"),
        ({"size": 2.5}, r"typed: size must be int, got 2\.5; its default is None"),
        ({"speed": [1]}, r"typed: speed must be int, got \[1\]; its default is 1"),
        ({"is_wet": "abc"}, "typed: is_wet must be bool, got 'abc'; its default is True"),
        ({"sizes": "3,4"}, "typed: sizes must be list, got '3,4'; its default is None"),
    ):
        with pytest.raises(pufferlib.APIUsageError, match=sentence):
            pufferlib.make("typed", **keywords)
    fine = {"size": np.int64(3), "speed": 1.5, "is_wet": 1, "title": 4, "any_kind": "x", "sizes": [3, 4]}
    fine |= {"shape": [5, 6], "frame": [7, 8]}
    assert pufferlib.make("typed", **fine).env.unwrapped.given == (3, 1.5, 1, 4, "x", [3, 4], (5, 6), (7, 8))
    with pytest.raises(pufferlib.APIUsageError, match="CartPole-v1: max_episode_steps must be int, got 'abc'"):
        pufferlib.make("CartPole-v1", max_episode_steps="abc")


class Weather(enum.Enum):
    SUN = "sunny"
    RAIN = "rainy"


class Weathered(gymnasium.Env[int, int]):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(
        self, weather: Weather = Weather.SUN, side: Literal["left", "right"] | None = None, name: str | Weather = "x"
    ) -> None:
        self.given = weather, side, name


@pytest.mark.parametrize("weather", ["rainy", "RAIN", Weather.RAIN])
def test_keyword_of_enum_accepts_value_and_name(weather: object, fresh: None) -> None:
    pufferlib.register("weathered", Weathered)
    env = pufferlib.make("weathered", weather=weather, side="left", name="rainy")
    assert env.env.unwrapped.given == (Weather.RAIN, "left", "rainy")


def test_keyword_outside_of_literal_or_enum_raises(fresh: None) -> None:
    pufferlib.register("weathered", Weathered)
    with pytest.raises(pufferlib.APIUsageError, match="weathered: side must be one of 'left', 'right', got 'up'"):
        pufferlib.make("weathered", side="up")
    with pytest.raises(pufferlib.APIUsageError, match="weathered: weather must be one of 'rainy', 'sunny', got 'fog'"):
        pufferlib.make("weathered", weather="fog")


POSTPONED = """
from __future__ import annotations
from enum import Enum
from gymnasium import Env
from gymnasium.spaces import Discrete

class Mode(Enum):
    EASY, HARD = "easy", "hard"

class Moded(Env):
    observation_space = action_space = Discrete(2)

    def __init__(self, mode: "Mode" = Mode.EASY, size: Missing = 3, text: "any text" = 2):
        self.given = mode.name, size, text
"""


def test_keywords_are_checked_beside_annotations_that_cannot_be_evaluated(folder: Path) -> None:
    Path("late.py").write_text(POSTPONED)
    env = pufferlib.make("late.py:Moded", mode="hard", size="a", text="b")
    assert env.env.unwrapped.given == ("HARD", "a", "b")
    with pytest.raises(pufferlib.APIUsageError, match="mode must be one of 'easy', 'hard', got 'z'"):
        pufferlib.make("late.py:Moded", mode="z")


def test_kwargs_are_passed_to_class(fresh: None) -> None:
    class Sized(gymnasium.Env[int, int]):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, **kwargs: int) -> None:
            self.size = kwargs.get("size", 1)

    pufferlib.register("mine/sized", Sized)
    assert pufferlib.make("mine/sized", size=7).unwrapped.size == 7


def test_registered_name_is_listed_and_made(folder: Path, fresh: None) -> None:
    pufferlib.register("mine/forage", "./my_env.py:Forage", about="Forages.")
    pufferlib.register("mine/pole", lambda: gymnasium.make("CartPole-v1"))
    pufferlib.register("again", "mine/pole")
    assert pufferlib.list_envs()[-3:] == ["again", "mine/forage", "mine/pole"]
    assert episode(pufferlib.make("mine/forage", length=1))["score"] == 2.0
    assert pufferlib.make("mine/pole").single_observation_space.shape == (4,)
    assert pufferlib.make("again").single_observation_space.shape == (4,)
    with pytest.raises(pufferlib.UnknownNameError, match="mine has 2 environments, for example mine/forage"):
        pufferlib.make("mine")
    pufferlib.register("circle", "mine/circle")
    pufferlib.register("mine/circle", "circle")
    with pytest.raises(pufferlib.APIUsageError, match="itself, got circle as mine/circle as circle"):
        pufferlib.make("circle")
    with pytest.raises(pufferlib.UnknownNameError, match="did you mean 'mine/forage'"):
        pufferlib.make("mine/foragge")


@pytest.mark.parametrize(
    ("name", "creator", "message"),
    [
        ("a b", "CartPole-v1", "name must be letters, digits, _, . and -, as in 'mypkg/forage', got 'a b'"),
        ("a.py", "CartPole-v1", "name must be"),
        ("breakout", "CartPole-v1", "'breakout' is an environment of this repository; choose another name"),
        ("atari/mine", "CartPole-v1", "'atari/mine' is an environment of this repository"),
        ("mine", 3, "creator must be a class or function, or its name as in 'mypkg.envs:Forage', got 3"),
    ],
)
def test_invalid_registration_raises(name: str, creator: object, message: str, fresh: None) -> None:
    with pytest.raises(pufferlib.APIUsageError, match=message):
        pufferlib.register(name, creator)  # type: ignore[arg-type]


def test_entry_points_register_envs_and_failing_one_warns(
    folder: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "installed_pkg.py").write_text(
        textwrap.dedent("""
            import pufferlib
            def register_envs():
                pufferlib.register("installed/forage", "gymnasium:Acrobot-v1", about="Forages.")
        """)
    )
    points = [
        importlib.metadata.EntryPoint("good", "installed_pkg:register_envs", outside.GROUP),
        importlib.metadata.EntryPoint("bad", "absent_pkg", outside.GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == outside.GROUP else [])
    monkeypatch.syspath_prepend(folder)
    with pytest.warns(RuntimeWarning, match="entry point bad = 'absent_pkg' of group pufferlib.envs failed"):
        assert "installed/forage" in pufferlib.list_envs()
    assert pufferlib.make("installed/forage").single_observation_space.shape == (6,)


def test_full_name_is_absolute_and_short_name_relative(folder: Path) -> None:
    assert registry.full_name("my_env.py:Forage") == f"{folder}/my_env.py:Forage"
    assert registry.full_name("a/../corridor.c") == f"{folder}/corridor.c"
    assert registry.short_name(f"{folder}/my_env.py:Forage") == "my_env.py:Forage"
    for name in ("breakout", "atari/pong", "ALE/Pong-v5", "mypkg.envs:Forage"):
        assert registry.full_name(name) == registry.short_name(name) == name


def test_failing_gymnasium_id_names_same_game_of_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.same_game("HalfCheetah-v5") == ["mujoco/HalfCheetah-v5"]
    assert registry.same_game("classic/CartPole-v1") == registry.same_game("my_env.py:Pong") == []

    def cannot(*args: object, **keywords: object) -> None:
        raise gymnasium.error.DependencyNotInstalled("MuJoCo is not installed")

    monkeypatch.setattr(gymnasium, "make", cannot)
    with pytest.raises(
        pufferlib.BindingMissing, match=r"MuJoCo is not installed.*; mujoco/HalfCheetah-v5 is the same game"
    ):
        pufferlib.make("HalfCheetah-v5")


def test_local_functions_get_distinct_names(fresh: None) -> None:
    def maker(env_id: str):
        return lambda: gymnasium.make(env_id)

    first, second = maker("CartPole-v1"), maker("MountainCar-v0")
    names = [outside.name_of(each, "here") for each in (first, second, first)]
    assert names == ["lambda", "lambda-2", "lambda"]
    assert [pufferlib.make(name).env.spec.id for name in names] == ["CartPole-v1", "MountainCar-v0", "CartPole-v1"]


def test_redefined_notebook_class_replaces_older_one(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    def run_cell() -> type:
        namespace: dict[str, type] = {"__name__": "__main__"}
        exec(FORAGE.format(beside="beside"), namespace)
        made = namespace["Forage"]
        monkeypatch.setattr(sys.modules["__main__"], "Forage", made, raising=False)
        return made

    monkeypatch.setitem(sys.modules, "beside", SimpleNamespace(REWARD=1.0))
    assert outside.name_of(run_cell(), "here") == "Forage"
    latest = run_cell()
    assert type(pufferlib.make("Forage").env.unwrapped) is latest


def test_training_of_a_class_keeps_registrations(fresh: None) -> None:
    kind = type("Forage", (gymnasium.Env,), {"__module__": "__main__"})
    pufferlib.register("Forage", "CartPole-v1", {"train": {"gamma": 0.5}})
    assert [outside.name_of(kind, "here") for _ in range(2)] == ["Forage-2", "Forage-2"]
    assert outside.REGISTERED["Forage"].creator == "CartPole-v1"
    pufferlib.register("Forage", kind, {"train": {"gamma": 0.5}}, "Find the food.")
    assert outside.name_of(kind, "here") == "Forage"
    assert outside.REGISTERED["Forage"].settings == {"train": {"gamma": 0.5}}
    assert outside.REGISTERED["Forage"].about == "Find the food."


def test_moved_file_is_found_by_longest_path_suffix(tmp_path: Path) -> None:
    run = tmp_path / "home/project/runs/one"
    run.mkdir(parents=True)
    for place in ("home/project/envs/mine.py", "home/project/mine.py", "home/mine.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).touch()
    project = tmp_path / "home/project"
    found = {
        "/gone/project/envs/mine.py:Env": f"{project}/envs/mine.py:Env",
        "/gone/envs/mine.py": f"{project}/envs/mine.py",
        "/gone/mine.py": f"{project}/mine.py",
        "/gone/other.py": "/gone/other.py",
        f"{tmp_path}/home/mine.py": f"{tmp_path}/home/mine.py",
        "mypkg.envs:Env": "mypkg.envs:Env",
        "breakout": "breakout",
    }
    assert {name: registry.moved_name(name, [run]) for name in found} == found


@pytest.mark.parametrize(
    ("name", "old", "expected"),
    [
        ("new/my_env.py:Forage", "old/my_env.py:Forage", True),
        ("new/my_env.py:Forage", "old/my_env.py", True),
        ("new/forage.py:Forage", "old/my_env.py:Forage", True),
        ("new/my_env.py:Hunt", "old/my_env.py:Forage", False),
        ("new/my_env.py", "old/my_env.py:Forage", False),
        (f"new/forage.py:{Path(__file__).stem}", __file__, False),
        ("new/corridor.c", "old/my_env.py", False),
        ("breakout", "squared", False),
        ("mypkg.envs:Forage", "mypkg.old:Forage", False),
    ],
)
def test_new_names_of_files(name: str, old: str, expected: bool) -> None:
    assert registry.is_new_name(name, old) == expected


def test_edit_of_imported_module_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edited_envs.py"
    file.write_text("import gymnasium\nclass One(gymnasium.Env): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.env_creator("edited_envs:One")
    file.write_text(file.read_text() + "class Two(gymnasium.Env): pass\n")
    with pytest.warns(UserWarning, match="edited_envs.py was edited after it was imported, and this process keeps"):
        registry.env_creator("edited_envs:One")
    registry.env_creator("edited_envs:One")  # warns once per edit
    importlib.reload(sys.modules["edited_envs"])
    registry.env_creator("edited_envs:Two")


def test_imported_file_gets_no_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ours := ["puffer", "check", "args.py"])
    (file := tmp_path / "args.py").write_text("import sys\nseen = sys.argv\n")
    assert registry.load_object("test", f"{file}:seen") == [str(file)]
    assert sys.argv is ours


def test_script_that_names_itself_is_not_rerun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise RuntimeError('run again')")
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(script), Own=Path))
    assert registry.load_object("test", f"{script}:Own") is Path


def test_same_file_name_in_other_folder_is_another_module(tmp_path: Path) -> None:
    modules = []
    for name, number in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twin_env.py").write_text("import gymnasium\nclass Twin(gymnasium.Env): pass\n")
        modules.append(registry.load_object("test", f"{tmp_path}/{name}/twin_env.py:Twin").__module__)
        assert number == len(set(modules))


@pytest.mark.parametrize("is_imported", [False, True])
def test_file_warns_if_module_beside_it_has_name_of_another(
    is_imported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = [f"{each}_{tmp_path.name.replace('-', '_')}" for each in ("shared", "unused")]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.py").write_text("")
        statement = "" if is_imported else "def later(): "
        (tmp_path / folder / "env.py").write_text(
            f"import {names[1] if folder == 'a' else 'sys'}\n{statement}import {names[0]}\n"
        )
    registry.load_object("test", f"{tmp_path}/a/env.py:__name__")
    a, b = (re.escape(f"{tmp_path}/{folder}/{names[0]}.py") for folder in "ab")
    with pytest.warns(UserWarning, match=f"import {names[0]} finds {a}, not {b}; rename one of them, or write: from"):
        registry.load_object("test", f"{tmp_path}/b/env.py:__name__")


def test_file_in_package_can_import_relatively(tmp_path, monkeypatch):
    folder = tmp_path / "relative_pkg" / "envs"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in {
        "__init__.py": "",
        "physics.py": "G = 9.81\n",
        "envs/__init__.py": "from .drone import Drone\n",
        "envs/drone.py": "import gymnasium\nfrom ..physics import G\n\nclass Drone(gymnasium.Env):\n    g = G\n"
        "    observation_space = action_space = gymnasium.spaces.Discrete(2)\n"
        "    def reset(self, seed=None, options=None): return 0, {}\n"
        "    def step(self, action): return 0, self.g, False, False, {}\n",
    }.items():
        (tmp_path / "relative_pkg" / name).write_text(text)
    creator = pufferlib.env_creator(f"{folder / 'drone.py'}:Drone")
    with pufferlib.vector.make(creator, backend="Multiprocessing", num_workers=1) as vecenv:
        vecenv.reset()
        assert vecenv.step([0])[1][0] == np.float32(9.81)


@pytest.mark.parametrize("keyword", ["name", "maker", "spec", "num_envs", "num_threads", "autoreset", "id"])
def test_env_keywords_may_share_names_with_pufferlib(keyword):
    kind = type("Named", (gymnasium.Env,), {})
    namespace: dict = {}
    exec(f"def __init__(self, {keyword}='unset'): self.given = {keyword}", namespace)
    kind.__init__ = namespace["__init__"]
    kind.observation_space = kind.action_space = gymnasium.spaces.Discrete(2)
    gymnasium.register("Named-v0", kind)
    pufferlib.register("named", kind)
    try:
        for name in ("named", "Named-v0"):
            assert pufferlib.make(name, **{keyword: "mine"}).unwrapped.given == "mine"
            creator = pufferlib.env_creator(name)
            assert creators.single_game(creator, {keyword: "mine"}) == {keyword: "mine"}
    finally:
        del gymnasium.registry["Named-v0"]


def test_make_of_class_keeps_registration_of_its_name():
    kind = type("Named", (FunctionEnv,), {"__module__": "__main__"})
    pufferlib.register("Named", lambda: kind(length=7))
    assert pufferlib.make(kind).unwrapped.length != 7
    assert pufferlib.make("Named").unwrapped.length == 7


def test_registered_function_needs_no_render_mode():
    gymnasium.register("Function-v0", lambda: gymnasium.make("CartPole-v1"))
    try:
        with pufferlib.make("Function-v0") as env:
            assert env.reset()[0].shape == (4,)
    finally:
        del gymnasium.registry["Function-v0"]
