"""Atari: preprocessing compared with Gymnasium's, seeds, options, scores and errors."""

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import atari
from pufferlib.machine import commands
from tests.needs import missing_binding

if reason := missing_binding("atari"):
    pytest.skip(reason, allow_module_level=True)

import ale_py
import gymnasium

from pufferlib.bindings.atari.env import make_env
from pufferlib.bindings.atari.game import AtariGame

TWO_PLAYERS = {"combat", "joust", "maze_craze", "warlords"}


def play(env: Any, steps: int, seed: int | None = None, choices: int = 0) -> list[Any]:
    """Return copies of the results of ``steps`` random steps, which are the same in each call."""
    rng = np.random.default_rng(choices)
    seen: list[Any] = [env.reset(seed=seed)[0].copy()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        if terminated or truncated:
            observation, _ = env.reset()
        seen.append((observation.tobytes(), float(reward), bool(terminated), bool(truncated)))
    return seen


def equal(first: list[Any], second: list[Any]) -> bool:
    return np.array_equal(first[0], second[0]) and first[1:] == second[1:]


@pytest.fixture
def reference() -> Iterator[Any]:
    """Breakout with Gymnasium's preprocessing, without randomness."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    env = gymnasium.make("ALE/Breakout-v5", frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.AtariPreprocessing(env, noop_max=0)
    env = gymnasium.wrappers.FrameStackObservation(env, 4, padding_type="reset")
    yield env
    env.close()


def test_names_match_the_one_player_games_of_ale_py() -> None:
    assert set(atari.names()) == set(ale_py.roms.get_all_rom_ids()) - TWO_PLAYERS
    assert len(atari.names()) == 104


def test_preprocessing_gives_the_bytes_of_gymnasium(reference: Any) -> None:
    game = AtariGame("breakout", noop_max=0, repeat_action_probability=0.0)
    rng = np.random.default_rng(0)
    assert np.array_equal(game.reset(seed=1)[0], reference.reset(seed=1)[0])
    episodes = 0
    while episodes < 2:
        action = rng.integers(4)
        expected, expected_reward, expected_over, *_ = reference.step(action)
        observation, reward, terminated, *_ = game.step(action)
        assert (reward, terminated) == (expected_reward, expected_over)
        if terminated:  # the last observation of Gymnasium repeats older screens
            episodes += 1
            observation, expected = game.reset()[0], reference.reset()[0]
        assert np.array_equal(observation, expected)


def test_spaces_are_stacked_grey_images_and_discrete() -> None:
    env = pufferlib.make("atari/pong")
    assert env.single_observation_space == gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    assert env.single_action_space == gymnasium.spaces.Discrete(6)
    assert env.num_agents == 1
    observation, _ = env.reset(seed=0)
    assert observation.shape[-3:] == (4, 84, 84)
    assert observation.dtype == np.uint8
    assert np.array_equal(env.observations[0], observation)
    env.close()


def test_newest_frame_is_last() -> None:
    game = AtariGame("pong", noop_max=0)
    first, _ = game.reset(seed=0)
    assert all(np.array_equal(frame, first[-1]) for frame in first)
    before = first.copy()
    after = game.step(np.int64(2))[0]
    assert np.array_equal(after[:3], before[1:])
    assert not np.array_equal(after[3], before[3])


def test_seed_reproduces_the_trajectory() -> None:
    first = AtariGame("breakout")
    trajectory = play(first, 120, seed=7)
    assert equal(trajectory, play(AtariGame("breakout"), 120, seed=7))
    assert equal(trajectory, play(first, 120, seed=7)), "a reset with a seed must not depend on earlier steps"
    assert not equal(trajectory, play(first, 120, seed=8))


@pytest.mark.all
@pytest.mark.parametrize("name", atari.names())
def test_seed_reproduces_every_game(name: str) -> None:
    game = AtariGame(name)
    trajectory = play(game, 60, seed=3)
    assert game.observation_space.contains(trajectory[0])
    play(game, 90, choices=1)
    assert equal(trajectory, play(game, 60, seed=3))


@pytest.fixture
def emulator_actions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Actions passed to the emulator."""
    actions: list[Any] = []

    class Emulator(ale_py.ALEInterface):
        def act(self, action: ale_py.Action) -> int:
            actions.append(action)
            return super().act(action)

    monkeypatch.setattr(ale_py, "ALEInterface", Emulator)
    return actions


def test_sticky_actions_repeat_with_the_given_probability(emulator_actions: list[Any]) -> None:
    game = AtariGame("pong", frame_skip=1, noop_max=0, repeat_action_probability=0.25)
    game.reset(seed=0)
    ignored, meanings = 0, game.get_action_meanings()
    for step in range(2000):
        game.step(np.int64(2 + step % 2))
        ignored += emulator_actions[-1].name != meanings[2 + step % 2]
    # An action is ignored when it sticks on the other one: p(1 - p) + p^3(1 - p) + ... = p / (1 + p).
    assert ignored / 2000 == pytest.approx(0.2, abs=0.03)


def test_reset_takes_a_random_number_of_noops(emulator_actions: list[Any]) -> None:
    game = AtariGame("breakout", repeat_action_probability=0.0)
    starts = set()
    for seed in range(8):
        emulator_actions.clear()
        game.reset(seed=seed)
        starts.add(emulator_actions.count(ale_py.Action.NOOP))
    assert len(starts) > 3
    assert max(starts) - min(starts) <= 30


def test_max_frames_truncates() -> None:
    game = AtariGame("pong", noop_max=0, max_frames=40)
    game.reset(seed=0)
    ends = [game.step(np.int64(0))[2:4] for _ in range(10)]
    assert ends == [(False, False)] * 9 + [(False, True)]


def test_fire_reset_launches_the_ball() -> None:
    def lives_after(game: AtariGame) -> int:
        game.reset(seed=0)
        for _ in range(60):
            game.step(np.int64(0))
        return game.lives

    assert lives_after(AtariGame("breakout")) == 5
    assert lives_after(AtariGame("breakout", fire_reset=True)) < 5
    AtariGame("freeway", fire_reset=True).reset(seed=0)  # a game without FIRE


def test_episodic_life_terminates_the_episode_but_not_the_game() -> None:
    env = make_env("breakout", fire_reset=True, episodic_life=True, repeat_action_probability=0.0)
    env.reset(seed=0)
    game = env.unwrapped
    assert isinstance(game, AtariGame)
    lives, scores = [], []
    for _ in range(400):
        _, _, terminated, _, info = env.step(np.int64(0))
        scores += [info["score"]] if "score" in info else []
        if terminated:
            lives.append(game.lives)
            env.reset()
            assert game.lives == (lives[-1] or 5)
    assert lives[:6] == [4, 3, 2, 1, 0, 4]
    assert len(scores) == lives.count(0), "there must be one score for each whole game"


def test_reset_with_seed_starts_a_new_game() -> None:
    env = make_env("breakout", fire_reset=True, episodic_life=True)
    env.reset(seed=0)
    while not env.step(np.int64(0))[2]:
        pass
    env.reset(seed=0)
    assert env.unwrapped.lives == 5  # type: ignore[attr-defined]


def test_reward_clip_does_not_change_the_score() -> None:
    env = make_env("seaquest", reward_clip=True)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    rewards, info = [], {}
    while "score" not in info:
        _, reward, _, _, info = env.step(rng.integers(18))
        rewards.append(float(reward))
    assert set(rewards) == {0.0, 1.0}
    assert info["score"] == info["episode_return"] == 20 * sum(rewards)
    assert info["episode_length"] == len(rewards)


def test_full_action_space_has_18_actions() -> None:
    assert AtariGame("pong", full_action_space=True).action_space == gymnasium.spaces.Discrete(18)


def test_render_returns_the_screen_in_colour() -> None:
    env = pufferlib.make("atari/pong", render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (210, 160, 3)
    assert frame.dtype == np.uint8
    assert frame.any()
    env.close()


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    AtariGame("pong").reset(seed=0)
    assert capfd.readouterr() == ("", "")


def test_unknown_game_suggests_another() -> None:
    with pytest.raises(pufferlib.UnknownNameError, match="unknown environment 'brekout'; did you mean 'breakout'"):
        atari.env_creator("brekout")


def test_unknown_option_suggests_another() -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=r"atari/pong: unexpected .* 'frameskip'.*'frame_skip'"):
        pufferlib.make("atari/pong", frameskip=4)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("frame_skip", 0, "atari/pong: frame_skip must be an int >= 1, got 0"),
        ("frame_skip", "abc", "frame_skip must be an int >= 1, got 'abc'"),
        ("stack", 2.0, "stack must be an int >= 1, got 2.0"),
        ("size", -84, "size must be an int >= 1, got -84"),
        ("noop_max", -1, "noop_max must be an int >= 0, got -1"),
        ("max_frames", True, "max_frames must be an int >= 1, got True"),
        ("repeat_action_probability", 1.0, r"repeat_action_probability must be in \[0, 1\), got 1.0"),
        ("repeat_action_probability", "often", r"repeat_action_probability must be in \[0, 1\), got 'often'"),
        ("episodic_life", 3, "episodic_life must be True or False, got 3"),
        ("fire_reset", "yes", "fire_reset must be True or False, got 'yes'"),
        ("render_mode", "human", "render_mode must be None or 'rgb_array', got 'human'"),
    ],
)
def test_wrong_options_are_named(option: str, value: Any, message: str) -> None:
    with pytest.raises(pufferlib.APIUsageError, match=message):
        pufferlib.make("atari/pong", **{option: value})


@pytest.mark.parametrize("package", ["ale_py", "cv2"])
def test_missing_package_names_the_install_command(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "in_image", lambda: False)
    monkeypatch.setitem(sys.modules, package, None)
    for module in ("env", "game", "pictures", "pooled"):
        monkeypatch.delitem(sys.modules, f"pufferlib.bindings.atari.{module}")
    with pytest.raises(pufferlib.BindingMissing, match=rf"needs the package {package}.*puffer install atari"):
        pufferlib.make("atari/pong")
    assert "pong" in atari.names()


def test_creator_can_be_pickled() -> None:
    creator = pickle.loads(pickle.dumps(atari.env_creator("pong")))
    env = creator(seed=4, size=42)
    assert env.single_observation_space.shape == (4, 42, 42)
    env.close()
