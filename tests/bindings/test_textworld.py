"""TextWorld: commands, words, rewards, the cache of games, and the policy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import textworld
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("textworld"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.textworld import (
    env as binding,
    factory,  # only with textworld
)

NAME = "tw-coin_collector-level2"


@pytest.fixture(scope="module")
def file() -> Path:
    """Path of the game ``NAME``, which takes seconds to make."""
    return factory.game_file(NAME, 0)


@pytest.fixture
def env(file: Path) -> Any:
    env = binding.make_env(NAME)
    env.reset(seed=0)
    yield env
    env.close()


def do(env: Any, command: str) -> Any:
    return env.step(np.int64(env.commands.index(command)))


def walkthrough(env: Any) -> list[str]:
    """Return the commands that lead to the coin."""
    return [command for command in env.commands if command.startswith("go")]


def test_taking_the_coin_wins(env: Any) -> None:
    (way,) = walkthrough(env)
    observation, reward, terminated, truncated, info = do(env, way)
    assert (reward, terminated, truncated, info) == (0, False, False, {})
    assert env.observation_space.contains(observation)
    observation, reward, terminated, truncated, info = do(env, "take coin")
    assert (reward, terminated, truncated) == (1, True, False)
    assert info == {"won": 1, "perf": 1}
    env.reset()
    assert "take coin" not in env.commands


def test_words_are_encoded_as_numbers(env: Any) -> None:
    observation, _ = env.reset()
    rows = observation["commands"]
    assert (rows[:, 0] != 0).sum() == len(env.commands)
    look = np.zeros(8, np.int32)
    binding.write_words(look, ["look"])
    assert any(np.array_equal(row, look) for row in rows)
    assert binding.write_words(np.zeros(2, np.int32), ["More words than fit, and NONE is lost by an error"]) is None
    upper, lower = np.zeros((2, 3), np.int32)
    binding.write_words(upper, ["Go NORTH!"])
    binding.write_words(lower, ["go", "north"])
    assert np.array_equal(upper, lower)
    assert upper[2] == 0


def test_action_without_a_command_changes_nothing(env: Any) -> None:
    before = env.commands
    _, reward, terminated, _, _ = env.step(np.int64(23))
    assert env.commands == before
    assert reward == 0
    assert not terminated


def test_excess_commands_that_only_look_are_dropped() -> None:
    commands = ["examine coin", "go east", "inventory", "look", "take coin"]
    assert binding.useful_first(commands, 2) == ["go east", "take coin"]
    assert binding.useful_first(commands, 9) == ["go east", "take coin", "examine coin", "inventory", "look"]


def test_look_around_adds_the_room_to_every_text(file: Path) -> None:
    counts = []
    for look_around in (False, True):
        env = binding.make_env(NAME, look_around=look_around)
        env.reset()
        observation, *_ = do(env, "inventory")
        counts.append(np.count_nonzero(observation["text"]))
        env.close()
    assert counts[1] > counts[0] + 5


def test_max_steps_truncates(file: Path) -> None:
    env = binding.make_env(NAME, max_steps=2)
    env.reset()
    assert env.step(np.int64(23))[2:4] == (False, False)
    assert env.step(np.int64(23))[2:4] == (False, True)
    env.close()


def test_games_are_cached(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "make_game", lambda *_: pytest.fail("it is in the cache"))
    assert factory.game_file(NAME, 0) == file
    assert {path.suffix for path in file.parent.glob(f"{file.stem}*")} == {".z8", ".json"}


def test_path_loads_a_game_file(file: Path, tmp_path: Path) -> None:
    env: Any = pufferlib.make("textworld/file", path=file)
    env.reset()
    env.close()
    (tmp_path / "alone.z8").write_bytes(file.read_bytes())
    for path in (tmp_path / "alone.z8", tmp_path / "absent.z8", file.with_suffix(".json")):
        with pytest.raises(APIUsageError, match=r"path must be a \.z8 made by TextWorld, its \.json beside it"):
            pufferlib.make("textworld/file", path=path)
    for name, options in (("file", {}), (NAME, {"path": file})):
        with pytest.raises(APIUsageError, match="path names the game of textworld/file"):
            pufferlib.make(f"textworld/{name}", **options)


def test_unknown_games_and_wrong_options_are_named() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tw-coin_collector-level1"):
        textworld.env_creator("tw-coin_collector-level101")
    with pytest.raises(APIUsageError, match="max_steps must be an int >= 1, got 0"):
        pufferlib.make(f"textworld/{NAME}", max_steps=0)
    with pytest.raises(APIUsageError, match="look_around must be True or False, got 1"):
        pufferlib.make(f"textworld/{NAME}", look_around=1)
    with pytest.raises(APIUsageError, match="game_seed must be an int >= 0, got 'x'"):
        pufferlib.make(f"textworld/{NAME}", game_seed="x")


def test_policy_samples_only_available_commands(file: Path) -> None:
    torch = pytest.importorskip("torch", reason="the train extra is not installed")
    models = pytest.importorskip("pufferlib.models")
    from pufferlib import registry

    env: Any = pufferlib.make(f"textworld/{NAME}")
    policy = models.make_policy(env, "TextPolicy", hidden_size=16, more=registry.policies(f"textworld/{NAME}"))
    row = torch.as_tensor(env.reset(seed=0)[0].copy())[None]
    params, values = policy.forward_eval(row)
    count = len(env.env.unwrapped.commands)
    probabilities = params.softmax(-1)[0]
    assert (probabilities[:count] > 0).all()
    assert (probabilities[count:] == 0).all()
    params, values = policy(row[None].expand(3, 1, -1))
    assert values.shape == (3, 1)
    (params[..., :count].sum() + values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())
    env.close()
