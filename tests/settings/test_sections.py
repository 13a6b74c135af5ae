"""Tests of settings for some environments of a file: merge order, names and errors."""

import re
import textwrap

import pytest

import pufferlib
from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.registry.outside import REGISTERED
from pufferlib.settings import sources
from pufferlib.settings.config import Config, load_config, load_sources
from pufferlib.settings.sections import own_names
from pufferlib.sweeps.spaces import load_search

ENV = "mujoco/Hopper-v5"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a settings file and returns its path."""

    def write(text, name="mine.toml"):
        file = tmp_path / name
        file.write_text(textwrap.dedent(text))
        return file

    return write


GAMMA = {
    "general": "[train]\ngamma = 0.1\n",
    "pattern": '["Hop*".train]\ngamma = 0.2\n',
    "later pattern": '["*-v5".train]\ngamma = 0.3\n',
    "name": '["Hopper-v5".train]\ngamma = 0.4\n',
    "other": '["Ant-v5".train]\ngamma = 0.5\n',
}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (["other"], 0.99),
        (["general", "other"], 0.1),
        (["pattern", "general"], 0.2),
        (["pattern", "later pattern"], 0.3),
        (["later pattern", "pattern"], 0.2),
        (["name", "later pattern", "pattern", "general"], 0.4),
    ],
)
@pytest.mark.parametrize("place", ["own", "config"])
def test_general_sections_then_patterns_then_name(write, monkeypatch, tables, expected, place):
    file = write("".join(map(GAMMA.get, tables)))
    if place == "own":
        monkeypatch.setattr("pufferlib.settings.config.own_settings", lambda name: [sources.settings_file(file)])
    assert load_config(ENV, file=file if place == "config" else None).train.gamma == expected


def test_config_file_overrides_every_table_of_own_file_and_overrides_win(write, monkeypatch):
    own = write('["Hopper-v5".train]\ngamma = 0.2\nhorizon = 7\nseed = 1\n', "own.toml")
    monkeypatch.setattr("pufferlib.settings.config.own_settings", lambda name: [sources.settings_file(own)])
    config = load_config(ENV, {"train.seed": 3}, write("[train]\ngamma = 0.1\nseed = 2\n"))
    assert (config.train.gamma, config.train.horizon, config.train.seed) == (0.1, 7, 3)


@pytest.mark.parametrize(
    ("env_name", "table", "applies"),
    [
        ("mujoco/Hopper-v5", "Hopper-v5", True),
        ("mujoco/Hopper-v5", "mujoco/Hopper-v5", True),
        ("mujoco/Hopper-v5", "mujoco/*", True),
        ("mujoco/Hopper", "Hopper-v5", True),
        ("mujoco/Hopper-v4", "Hopper-v4", True),
        ("mujoco/Hopper-v5", "CartPole-v1", False),
        ("mujoco/Hopper-v5", "atari/*", False),
        ("breakout", "breakout", True),
        ("breakout", "mujoco/Hopper-v5", False),
        ("CartPole-v1", "CartPole-*", True),
        ("CartPole-v1", "Pendulum-v1", False),
        ("mypkg.envs:Forage", "Forage", True),
        ("mypkg.envs:Forage", "mypkg.envs:Forage", True),
    ],
)
def test_names_of_environments_in_a_file(write, env_name, table, applies):
    file = write(f'["{table}".train]\nseed = 5\n')
    sources = load_sources(env_name, file=file)
    assert [data for where, data in sources if where == f'{file}, ["{table}"]'] == [{"train": {"seed": 5}}] * applies


@pytest.mark.parametrize(
    ("env_name", "expected"),
    [
        ("/some/my_env.py:Forage", ["my_env.py:Forage", "Forage"]),
        ("/some/my_env.py", ["my_env.py"]),
        ("/some/corridor.c", ["corridor.c"]),
        ("mypkg:mypkg/Forage-v0", ["mypkg:mypkg/Forage-v0", "mypkg/Forage-v0"]),
        ("classic/Pendulum", ["Pendulum-v1", "classic/Pendulum-v1"]),
    ],
)
def test_own_names(env_name, expected):
    assert own_names(env_name) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["Hoper-v5".train]\nseed = 1', "mine.toml: no environment matches 'Hoper-v5'; did you mean 'Hopper-v5'"),
        ('["mujoco/Hoper-v5".train]\nseed = 1', "matches 'mujoco/Hoper-v5'; did you mean 'mujoco/Hopper-v5'"),
        ('["zzz*".train]\nseed = 1', "no environment matches 'zzz*'; puffer list lists the names"),
        ("[trian]\nseed = 1", "mine.toml: unknown section 'trian'; did you mean 'train'"),
        ("[trak.wandb]\nmode = 'offline'", "no environment matches 'trak'; did you mean 'track'"),
        (
            '["Hopper-v5".train]\nsead = 1',
            "mine.toml, [\"Hopper-v5\"], [train]: unknown key 'sead'; did you mean 'seed'",
        ),
        ('["Hopper-v5".trian]\nseed = 1', "mine.toml, [\"Hopper-v5\"]: unknown section 'trian'; did you mean 'train'"),
        ('["Hopper-v5"]\nseed = 1', "mine.toml, [\"Hopper-v5\"]: unknown section 'seed'"),
    ],
)
def test_unknown_names_raise(write, text, message):
    with pytest.raises(UnknownNameError, match=re.escape(message)):
        load_config(ENV, file=write(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["Hop*".train]\ngamma = 2', 'mine.toml, ["Hop*"]: train.gamma must be from 0 to 1, got 2.0'),
        ('["Hop*".train]\ngamma = "x"', 'mine.toml, ["Hop*"]: train.gamma must be float, got \'x\''),
        ("[train]\nhorizon = -1", "mine.toml: train.horizon must be at least 0, got -1"),
        ("\"Hopper-v5\" = 3", "mine.toml: unknown section 'Hopper-v5'"),
    ],
)  # fmt: skip
def test_wrong_value_names_table(write, text, message):
    with pytest.raises(APIUsageError, match=re.escape(message)):
        load_config(ENV, file=write(text))


def test_file_of_a_binding_may_name_only_its_own_environments(write, monkeypatch):
    file = write('["CartPole-v1".train]\nseed = 1')
    load_config(ENV, file=file)
    monkeypatch.setattr("pufferlib.settings.config.own_settings", lambda name: [sources.settings_file(file)])
    with pytest.raises(UnknownNameError, match="no environment matches 'CartPole-v1'"):
        load_config(ENV)


def test_tables_for_a_gpu_override_their_own_table(write, monkeypatch):
    monkeypatch.setattr(sources, "has_gpu", lambda: True)
    file = write("""
        ["Hop*".train]
        horizon = 1
        ["Hop*".cuda.train]
        horizon = 2
        seed = 2
        ["Hopper-v5".train]
        seed = 3
        """)
    train = load_config(ENV, file=file).train
    assert (train.horizon, train.seed) == (2, 3)
    assert load_config(ENV, {"train.device": "cpu"}, file).train.horizon == 1


def test_file_beside_python_file_is_read(write, monkeypatch, tmp_path):
    kind = "import gymnasium\nclass Hunt(gymnasium.Env): pass\nclass Forage(Hunt): pass\n"
    source = write(kind, "my_env.py")
    write('[train]\nseed = 1\n["Forage".train]\nseed = 2\n["my_env.py:Hunt".train]\nseed = 3\n', "my_env.toml")
    assert load_config(f"{source}:Forage").train.seed == 2
    assert load_config(f"{source}:Hunt").train.seed == 3
    monkeypatch.chdir(tmp_path)
    assert load_config("my_env.py:Hunt").train.seed == 3
    write('["Huntt".train]\nseed = 3\n', "my_env.toml")
    with pytest.raises(UnknownNameError, match="no environment matches 'Huntt'; did you mean 'Hunt'"):
        load_config("my_env.py:Forage")


def test_config_file_may_name_environments_of_other_files_and_modules(write, monkeypatch, tmp_path):
    write("import gymnasium\nclass Hunt(gymnasium.Env): pass\n", "hunt.py")
    made = "from functools import partial\nfrom hunt import Hunt\nif True:\n    Short = partial(Hunt)\n"
    write(f"import gymnasium\n{made}class Forage(gymnasium.Env): pass\n", "my_env.py")
    monkeypatch.chdir(tmp_path)
    for name in ("Hunt", "Short", "my_env.py:Short", "hunt.py", "hunt.py:Hunt", "hunt:Hunt", "hunt:mine/Hunt-v0"):
        assert load_config("my_env.py:Forage", file=write(f'["{name}".train]\nseed = 2\n')).train.seed == 42
    for name in ("./my_env.py:Forage", str(tmp_path / "my_env.py:Forage")):
        assert load_config("my_env.py:Forage", file=write(f'["{name}".train]\nseed = 2\n')).train.seed == 2
    for name in ("hunt.py:Hnt", "hnt.py:Hunt", "hnt:Hunt", "hnt:mine/Hunt-v0", "./my_env.py:Forag"):
        with pytest.raises(UnknownNameError, match=f"no environment matches '{name}'"):
            load_config("my_env.py:Forage", file=write(f'["{name}".train]\nseed = 2\n'))


@pytest.mark.parametrize("table", ["Forage", "For*", "my_env.py", "my_env.py:Forage"])
def test_tables_of_the_only_class_apply_to_its_file(write, table):
    source = write("import gymnasium\nclass Forage(gymnasium.Env): pass\n", "my_env.py")
    write(f'["{table}".train]\nseed = 2\n', "my_env.toml")
    assert load_config(str(source)).train.seed == 2


def test_registered_settings_have_tables(monkeypatch):
    for name in ("mine/forage", "mine/hunt"):
        monkeypatch.setitem(REGISTERED, name, None)  # monkeypatch removes the name after the test
        tables = {"train": {"seed": 1}, "mine/hunt": {"train": {"seed": 2}}}
        pufferlib.register(name, "CartPole-v1", tables)
    assert [load_config(name).train.seed for name in ("mine/forage", "mine/hunt")] == [1, 2]


def test_run_stores_merged_settings(write, tmp_path):
    config = load_config(ENV, file=write('["Hopper-v5".train]\nseed = 5\n'))
    config.save(tmp_path / "config.toml")
    assert "Hopper-v5" not in (tmp_path / "config.toml").read_text().replace(ENV, "")
    assert Config.load(tmp_path / "config.toml") == config


def test_search_spaces_of_a_table_apply(write):
    table = 'sweep.train.gamma]\ndistribution = "logit"\nmin = 0.5\nmax = {}\n'
    file = write(f'[{table.format(0.6)}["Cart*".{table.format(0.9)}["Pendulum-v1".{table.format(0.7)}')
    search = load_search(load_config("CartPole-v1"), {}, load_sources("CartPole-v1", file=file), {})
    assert search.spaces["train.gamma"].high == 0.9


def test_shipped_files_name_their_own_environments():
    for binding in registry.binding_facts():
        load_config(f"{binding}/{registry.names(binding)[0]}")
    assert load_config("box2d/CarRacing-v3").policy.name == "NatureCNN"
    assert load_config("box2d/LunarLander-v3").policy.name == "Default"
