"""Tests of how values on the command line are converted to the declared types of keywords."""

import enum
from pathlib import Path
from typing import Any, Literal

import pytest

from pufferlib.cli import main
from pufferlib.cli.values import keyword_value, literal
from pufferlib.registry.creators import creator_of, keyword_kinds
from pufferlib.settings.config import Config
from tests.tiny_runs import only_run

pytestmark = pytest.mark.usefixtures("blank_curves")

ENV = """
from tests.envs import FunctionEnv


class Kw(FunctionEnv):
    def __init__(self, value="default", size: int = 3, label: str = "x", limit: int | None = 5):
        super().__init__(length=5)
        print("made with", (value, size, label, limit))
"""


class Colour(enum.Enum):
    RED = 1


def make(
    value="default",
    flag=False,
    size=3,
    scale=0.5,
    count: int = 1,
    ratio: float = 1.0,
    label: str = "x",
    limit: int | None = 5,
    path: str | Path | None = None,
    either: int | str = 1,
    mode: Literal["a", "b", 3] = "a",
    sizes: list[int] = [],  # noqa: B006
    colour: Colour = Colour.RED,
    anything: Any = None,
): ...


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("limit", "None", None),
        ("limit", "null", None),
        ("limit", "7", 7),
        ("count", "1e3", 1000),
        ("count", "-4", -4),
        ("count", "None", "None"),
        ("count", "2.5", 2.5),
        ("size", "1e3", 1000),
        ("size", "None", None),
        ("ratio", "3", 3.0),
        ("scale", "1e-3", 0.001),
        ("label", "007", "007"),
        ("label", "1.10", "1.10"),
        ("label", "nan", "nan"),
        ("label", "true", "true"),
        ("label", "None", "None"),
        ("label", "easy # first", "easy # first"),
        ("label", '{"a": 1}', '{"a": 1}'),
        ("path", "None", None),
        ("path", "12", "12"),
        ("either", "12", 12),
        ("either", "1.10", "1.10"),
        ("mode", "3", 3),
        ("mode", "b", "b"),
        ("flag", "True", True),
        ("flag", "false", False),
        ("sizes", "[1, 2]", [1, 2]),
        ("colour", "RED", "RED"),
        ("value", '{"a": 1, "b": [2, null]}', {"a": 1, "b": [2, None]}),
        ("value", "{'a': None}", {"a": None}),
        ("value", "['a', 'b']", ["a", "b"]),
        ("value", "(1, 2)", (1, 2)),
        ("value", "None", None),
        ("value", "-1e-3", -0.001),
        ("value", "5 # five", "5 # five"),
        ("value", "", ""),
        ("anything", "1979-05-27", "1979-05-27"),
    ],
)
def test_keyword_value_follows_declared_type(key, text, value):
    kinds = keyword_kinds(creator_of("make", make))
    found = keyword_value(text, kinds.get(key, frozenset()))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["1\nb = 2", "{", "[1, ", "a = b", "x" * 1000])
def test_literal_returns_unparsable_text_unchanged(text):
    assert literal(text) == text


def test_env_keywords_reach_env_and_resumed_run(here, capfd):
    (here / "kw.py").write_text(ENV)
    typed = ["--env.limit", "None", "--env.size", "1e3", "--env.label=", "--env.value", '{"a": [1, null]}']
    few = ["--train.total-timesteps=64", "--train.horizon=64", "--eval.episodes=1", "--train.device=cpu"]
    run = ["train", "kw.py", "--vec.backend=Serial", "--vec.num-envs=1", *few]
    made = "made with ({'a': [1, None]}, 1000, '', None)"
    assert main([*run, *typed]) == 0
    assert made in capfd.readouterr().out
    assert main(["train", "--resume", str(only_run(here)), "--train.total-timesteps=128"]) == 0
    assert made in capfd.readouterr().out
    assert main(["check", "kw.py", "--steps", "10", *typed]) in (0, 1)
    assert Config.load(only_run(here) / "config.toml").env["limit"] is None


def test_tilde_is_expanded_in_flags_and_settings(here, monkeypatch):
    home = here / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / "mine.toml").write_text("[train]\nseed = 9\n[vec]\nrecord = '~/bundles'\n")
    tiny = ["--env.num-envs=4", "--train.total-timesteps=64", "--train.horizon=16", "--eval.episodes=1"]
    assert main(["train", "squared", *tiny, "--train.device=cpu", "--runs=~/kept", "--config=~/mine.toml"]) == 0
    (run,) = (home / "kept").iterdir()
    assert Config.load(run / "config.toml").train.seed == 9
    assert list((home / "bundles").iterdir())
    assert main(["eval", f"~/kept/{run.name}", "--video=~/video.mp4"]) == 0
    assert main(["train", f"--resume=~/kept/{run.name}", "--train.total-timesteps=128"]) == 0
    assert main(["train", "squared", *tiny, "--train.device=cpu", f"--init=~/kept/{run.name}", "--runs=~/kept"]) == 0
    assert main(["runs", "--runs=~/kept"]) == 0
    assert (home / "video.mp4").is_file()
    assert not (here / "~").exists()
