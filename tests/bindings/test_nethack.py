"""NetHack: steps compared with nle, seeds, ends of episodes, options, rendering and the policy."""

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import nethack
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("nethack"):
    pytest.skip(reason, allow_module_level=True)

import gymnasium
import nle.env.tasks
from gymnasium.utils.seeding import np_random

from pufferlib.bindings._shared.nle.env import MAX_SEED
from pufferlib.bindings.nethack.env import make_env

KEYS = ("glyphs", "blstats", "message")
TURNS = 20  # index of the number of turns in blstats


def play(env: Any, steps: int, seed: int | None = None, choices: int = 0) -> list[Any]:
    """Return copies of the results of random steps over several episodes. The actions are the same in each call."""
    rng = np.random.default_rng(choices)
    seen = [to_bytes(env.reset(seed=seed)[0])]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        seen.append((to_bytes(observation), reward, terminated, truncated))
        if terminated or truncated:
            seen.append(to_bytes(env.reset()[0]))
    return seen


def to_bytes(observation: dict[str, Any]) -> dict[str, bytes]:
    return {key: value.tobytes() for key, value in observation.items()}


def raw_play(env: Any, steps: int, seed: int) -> list[Any]:
    """Return the results of nle's environment for the same actions, with seeds drawn like those of the binding."""
    stream, _ = np_random(seed)
    rng = np.random.default_rng(0)
    env.seed(*stream.integers(MAX_SEED, size=2).tolist(), False)
    seen: list[Any] = [to_bytes(env.reset()[0])]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        seen.append((to_bytes(observation), reward, terminated, truncated))
        assert not terminated, "choose a seed with a longer episode"
    return seen


def test_names_match_nle() -> None:
    assert set(nethack.names()) == {id_ for id_ in gymnasium.registry if id_.startswith("NetHack")}


@pytest.mark.parametrize(
    ("short", "task"),
    [("score", "NetHackScore"), ("staircase_pet", "NetHackStaircasePet"), ("NetHackScore", "NetHackScore")],
)
def test_short_names_are_accepted(short: str, task: str) -> None:
    env = pickle.loads(pickle.dumps(nethack.env_creator(short)))()
    assert type(env.unwrapped).__name__ == task
    env.close()


def test_unknown_task_suggests_another() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'NetHackScore-v0'"):
        nethack.env_creator("NetHackScores-v0")


@pytest.mark.parametrize("task", ["NetHackScore", "NetHackEat", "NetHackScout"])
def test_steps_match_nle(task: str) -> None:
    env = make_env(f"{task}-v0")
    raw = getattr(nle.env.tasks, task)(observation_keys=KEYS, render_mode=None, fix_moon_phase=True)
    assert play(env, 200, seed=3) == raw_play(raw, 200, seed=3)
    env.close()
    raw.close()


def test_seed_reproduces_all_following_episodes() -> None:
    first, second = (make_env("NetHackScore-v0", max_episode_steps=30) for _ in range(2))
    trajectory = play(first, 100, seed=7)
    first.reset(seed=1)
    play(second, 40, choices=1)
    assert play(second, 100, seed=7) == trajectory
    assert play(first, 100, seed=7) == trajectory
    assert play(first, 100, seed=8) != trajectory
    games = [entry for entry in trajectory if isinstance(entry, dict)]
    assert len({game["blstats"] for game in games}) == len(games) == 4, "episodes must differ"
    first.close()
    second.close()


def test_time_limit_truncates_and_keeps_the_last_observation() -> None:
    env = make_env("NetHackScore-v0", max_episode_steps=5)
    wait = np.int64(list(env.unwrapped.actions).index(ord(".")))
    env.reset(seed=0)
    for step in range(1, 6):
        observation, _, terminated, truncated, info = env.step(wait)
        assert (terminated, truncated) == (False, step == 5)
    assert observation["blstats"][TURNS] > 1, "the observation must not be that of quitting, which shows no turns"
    assert info["turns"] == observation["blstats"][TURNS]
    assert info["depth"] == 1
    assert not info["ascended"]
    env.close()


def test_death_is_terminal_and_info_has_the_result() -> None:
    env = make_env("NetHackScore-v0", max_episode_steps=20_000)
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    info: dict[str, Any] = {}
    while not info:
        _, _, terminated, truncated, info = env.step(rng.integers(23))
    assert (terminated, truncated) == (True, False)
    assert info["turns"] > 1
    assert info["points"] >= 0
    env.close()


def test_challenge_is_truncated_without_progress() -> None:
    env = make_env("NetHackChallenge-v0", no_progress_timeout=7)
    env.reset(seed=0)
    escape = list(env.unwrapped.actions).index(27)
    ends = [env.step(np.int64(escape))[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]
    env.close()


def test_observation_keys_select_the_observation() -> None:
    env = make_env("NetHack-v0", observation_keys=["chars", "tty_cursor"], render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    assert list(observation) == list(env.observation_space) == ["chars", "tty_cursor"]
    assert env.observation_space.contains(observation)
    env.close()


def test_ansi_returns_the_terminal_as_text() -> None:
    env = make_env("NetHackScore-v0", render_mode="ansi", character="val-dwa-fem-law")
    env.reset(seed=0)
    text = env.render()
    assert isinstance(text, str)
    assert "\033[" in text
    letters = "".join(part.partition("m")[2] for part in text.split("\033["))
    assert "Agent the Stripling" in letters
    env.close()


def test_close_removes_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = make_env("NetHackScore-v0")
    env.reset(seed=0)
    assert list(tmp_path.iterdir())
    env.close()
    env.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("Score", {"observation_keys": ["glyph"]}, "unknown observation key 'glyph'; did you mean 'glyphs'"),
        ("Score", {"observation_keys": "glyphs"}, "observation_keys must be a list"),
        ("Score", {"observation_keys": []}, "observation_keys must be a list"),
        ("Score", {"character": "a,b"}, "character must be '@' or like 'mon-hum-neu-mal', got 'a,b'"),
        ("Score", {"max_episode_steps": 0}, "max_episode_steps must be an int >= 1, got 0"),
        ("Score", {"penalty_mode": "quadratic"}, "unknown penalty_mode 'quadratic'"),
        ("Score", {"penalty_step": float("nan")}, "penalty_step must be a finite number"),
        ("Score", {"spawn_monsters": 1}, "spawn_monsters must be True or False, got 1"),
        ("Score", {"no_progress_timeout": 5}, "only NetHackChallenge-v0 has a no_progress_timeout"),
        ("", {"penalty_step": -0.1}, "has no penalty, got penalty_step=-0.1"),
        ("Score", {"render_mode": "human"}, "render_mode must be None, 'rgb_array' or 'ansi', got 'human'"),
        ("Score", {"wizard": True}, "unexpected keyword argument 'wizard'"),
    ],
)
def test_wrong_options_are_named(task: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        nethack.env_creator(f"NetHack{task}-v0")(**options)


def test_policy_uses_glyphs_position_and_message() -> None:
    torch = pytest.importorskip("torch")
    from pufferlib.bindings.nethack.policy import GlyphNet
    from pufferlib.pytorch import nativize_tensor

    env = pufferlib.make("nethack/NetHackScore-v0")
    observation, _ = env.reset(seed=0)
    policy = GlyphNet(env, hidden_size=32)
    rows = torch.from_numpy(np.repeat(observation[None], 4, axis=0))
    fields = nativize_tensor(rows, policy.structure)
    fields["glyphs"][1, -1, -1] = 7
    fields["blstats"][2, 0] += 3
    fields["message"][3, 0] = 33
    with torch.no_grad():
        hidden = policy.encode_observations(rows)
    assert hidden.shape == (4, 32)
    assert all(not torch.equal(hidden[0], other) for other in hidden[1:])
    params, values = policy.forward_eval(rows)
    assert params.shape == (4, 23)
    assert values.shape == (4,)
    env.close()


def test_policy_needs_glyphs_and_blstats() -> None:
    pytest.importorskip("torch")
    from pufferlib.bindings.nethack.policy import GlyphNet

    env = pufferlib.make("nethack/NetHackScore-v0", observation_keys=["chars", "blstats"])
    with pytest.raises(APIUsageError, match="must have glyphs and blstats, got blstats, chars"):
        GlyphNet(env)
    env.close()
