"""Atari with EnvPool's rules: every option compared with a simple reference, and the tasks of ``make``."""

from typing import Any

import numpy as np
import pytest

from pufferlib import APIUsageError, UnknownNameError, envpool
from tests.needs import missing_binding

if reason := missing_binding("atari"):
    pytest.skip(reason, allow_module_level=True)

import ale_py
import cv2

from pufferlib.bindings import atari
from pufferlib.bindings.atari.env import make_env
from pufferlib.bindings.atari.pooled import PooledGame
from tests.tiers import as_all

GREY = {"stack": 4, "frame_skip": 4, "size": (84, 84), "grey": True, "area_resize": True}


class Reference:
    """Reference implementation of EnvPool's rules for one game, frame by frame.

    A reset without no-ops plays one frame without an action.
    """

    def __init__(self, game: str, **options: Any) -> None:
        self.options = {**GREY, "fire_reset": False, "episodic_life": False, "max_steps": 27_000, **options}
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(ale_py.roms.get_rom_path(game))
        for name, choose in (("mode", self.ale.setMode), ("difficulty", self.ale.setDifficulty)):
            if name in self.options:
                choose(self.options[name])
        whole = self.options.get("full_action_space")
        self.actions = self.ale.getLegalActionSet() if whole else self.ale.getMinimalActionSet()
        self.frames: list[Any] = []
        self.steps, self.continues = 0, False

    def screen(self) -> Any:
        return self.ale.getScreenGrayscale() if self.options["grey"] else self.ale.getScreenRGB()

    def small(self, screen: Any) -> Any:
        how = cv2.INTER_AREA if self.options["area_resize"] else cv2.INTER_LINEAR
        small = cv2.resize(screen, self.options["size"][::-1], interpolation=how)
        return small[None] if self.options["grey"] else small.transpose(2, 0, 1)

    def observation(self) -> Any:
        return np.concatenate(self.frames[-self.options["stack"] :])

    def reset(self) -> Any:
        is_new = not self.continues
        if is_new:
            self.ale.reset_game()
            self.steps = 0
        fires = self.options["fire_reset"] and ale_py.Action.FIRE in self.actions
        self.ale.act(ale_py.Action.FIRE if fires else ale_py.Action.NOOP)
        self.frames += [self.small(self.screen())] * (self.options["stack"] if is_new else 1)
        self.lives, self.continues = self.ale.lives(), False
        return self.observation()

    def step(self, action: int) -> tuple[Any, ...]:
        screens, points = [], 0
        for _ in range(self.options["frame_skip"]):
            points += self.ale.act(self.actions[action])
            screens.append(self.screen())
            if self.ale.game_over():
                break
        is_whole = len(screens) == self.options["frame_skip"]
        self.frames.append(self.small(np.max(screens[-2:], 0) if is_whole else screens[-1]))
        self.steps += 1
        lost = self.options["episodic_life"] and 0 < self.ale.lives() < self.lives
        self.lives = self.ale.lives()
        truncated = self.steps >= self.options["max_steps"]
        self.continues = lost and not self.ale.game_over() and not truncated
        return self.observation(), points, self.ale.game_over() or lost, truncated


@pytest.mark.parametrize(
    ("game", "options"),
    [
        as_all(("breakout", {"fire_reset": True})),
        as_all(("breakout", {"fire_reset": True, "episodic_life": True})),
        ("breakout", {"fire_reset": True, "episodic_life": True, "max_steps": 60}),
        as_all(("seaquest", {"episodic_life": True})),
        as_all(("pong", {"full_action_space": True, "max_steps": 30})),
        ("ms_pacman", {"grey": False, "stack": 2}),
        ("qbert", {"area_resize": False, "size": (64, 96)}),
        as_all(("freeway", {"size": (83, 61)})),
        as_all(("asteroids", {"frame_skip": 1})),
        ("asteroids", {"frame_skip": 2, "stack": 1}),
        as_all(("space_invaders", {"mode": 4, "difficulty": 1})),
    ],
    ids=str,
)
def test_game_matches_reference(game: str, options: dict[str, Any]) -> None:
    reference = Reference(game, **options)
    env = PooledGame(game, noop_max=1, repeat_action_probability=0.0, **options)
    rng = np.random.default_rng(0)
    assert np.array_equal(env.reset(seed=0)[0], reference.reset())
    ends = 0
    for _ in range(100):
        action = rng.integers(env.action_space.n)
        observation, reward, terminated, truncated, infos = env.step(action)
        expected, points, is_over, is_cut = reference.step(int(action))
        assert np.array_equal(observation, expected)
        assert (reward, terminated, truncated) == (points, is_over, is_cut)
        assert (infos["lives"], infos["terminated"]) == (reference.ale.lives(), reference.ale.game_over())
        assert np.array_equal(infos["ram"], reference.ale.getRAM())
        if terminated or truncated:
            ends += 1
            assert np.array_equal(env.reset()[0], reference.reset())
    assert ends or "episodic_life" not in options


def test_reward_clip_leaves_info_rewards_unclipped() -> None:
    env = PooledGame("assault", noop_max=1, repeat_action_probability=0.0, reward_clip=True)
    env.reset(seed=0)
    steps = [env.step(np.int64(2)) for _ in range(20)]
    assert {(reward, infos["reward"]) for _, reward, _, _, infos in steps} == {(0.0, 0.0), (1.0, 21.0)}


@pytest.mark.parametrize(
    ("noop_max", "fire_reset", "lengths"), [(0, False, {0}), (3, False, {1, 2, 3}), (3, True, {1, 2, 3})]
)
def test_reset_plays_one_to_noop_max_frames(
    noop_max: int, fire_reset: bool, lengths: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    class Emulator(ale_py.ALEInterface):
        def act(self, action: ale_py.Action) -> int:
            given.append(action)
            return super().act(action)

    monkeypatch.setattr(ale_py, "ALEInterface", Emulator)
    env = PooledGame("breakout", noop_max=noop_max, fire_reset=fire_reset)
    seen = set()
    for seed in range(20):
        given.clear()
        env.reset(seed=seed)
        seen.add(len(given))
        assert [action for action in given if action != ale_py.Action.NOOP] == [ale_py.Action.FIRE] * fire_reset
        assert not fire_reset or given[-1] == ale_py.Action.FIRE
    assert seen == lengths


def test_discount_is_zero_when_a_life_is_lost() -> None:
    env = PooledGame("breakout", fire_reset=True, zero_discount_on_life_loss=True, repeat_action_probability=0.0)
    lives = env.reset(seed=0)[1]["lives"]
    discounts = []
    for _ in range(100):
        infos = env.step(np.int64(0))[4]
        discounts.append((infos["discount"], infos["lives"] == lives))
        lives = infos["lives"]
    assert set(discounts) == {(1.0, True), (0.0, False)}


def test_restored_game_continues_identically() -> None:
    env = PooledGame("breakout", fire_reset=True, episodic_life=True, repeat_action_probability=0.0)
    env.reset(seed=0)
    for _ in range(30):
        env.step(np.int64(2))
    state = env.save_state()
    went_on = [env.step(np.int64(3))[0].copy() for _ in range(5)]
    env.load_state(state)
    assert np.array_equal([env.step(np.int64(3))[0].copy() for _ in range(5)], went_on)


def test_every_game_has_an_id() -> None:
    known = set(envpool.list_all_envs())
    ids = {"".join(word.capitalize() for word in name.split("_")) + "-v5" for name in atari.names()}
    assert ids <= known
    assert {"Pong-v5", "MsPacman-v5", "TicTacToe3d-v5", "Pitfall2-v5"} <= ids


@pytest.fixture(scope="module")
def pong() -> Any:
    env = envpool.make_gymnasium("Pong-v5", num_envs=2, num_threads=1, noop_max=1, seed=3, render_mode="rgb_array")
    yield env
    env.close()


def test_spaces_infos_and_dtypes_match_envpool(pong: Any) -> None:
    assert (pong.observation_space.shape, pong.observation_space.dtype) == ((4, 84, 84), np.uint8)
    assert pong.action_space.n == 6
    assert (pong.config["max_episode_steps"], pong.config["noop_max"]) == (27_000, 1)
    observation, info = pong.reset()
    assert observation.shape == (2, 4, 84, 84)
    dtypes = {name: (array.dtype, array.shape) for name, array in info.items() if name != "players"}
    int32 = (np.dtype(np.int32), (2,))
    reward, ram = (np.dtype(np.float32), (2,)), (np.dtype(np.uint8), (2, 128))
    expected = {
        "env_id": int32,
        "elapsed_step": int32,
        "lives": int32,
        "terminated": int32,
        "reward": reward,
        "ram": ram,
    }
    assert dtypes == expected


def test_pool_matches_reference(pong: Any) -> None:
    reference = Reference("pong", fire_reset=True)
    assert np.array_equal(pong.reset()[0], [reference.reset()] * 2)
    for action in (2, 3, 2, 2, 0, 5, 4, 3):
        observation, rewards, *_ = pong.step(np.array([action, action]))
        expected, points, *_ = reference.step(action)
        assert np.array_equal(observation, [expected] * 2)
        assert rewards.tolist() == [points] * 2


def test_render_returns_the_screen_in_color(pong: Any) -> None:
    pong.reset()
    frames = pong.render(env_ids=[1, 0])
    assert (frames.shape, frames.dtype) == ((2, 210, 160, 3), np.uint8)
    assert frames.any()


def test_dm_env_discount_is_zero_when_a_life_is_lost() -> None:
    pytest.importorskip("dm_env")
    with_zeros = {"zero_discount_on_life_loss": True, "num_threads": 1, "noop_max": 1}
    env = envpool.make_dm("Breakout-v5", num_envs=1, **with_zeros)
    lives = int(env.reset().observation.lives[0])
    seen = set()
    for _ in range(40):
        step = env.step(np.array([0]))
        seen.add((float(step.discount[0]), int(step.observation.lives[0]) == lives))
        lives = int(step.observation.lives[0])
    env.close()
    assert seen == {(1.0, True), (0.0, False)}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("stack_num", 0, "stack_num must be an int from 1 to 1024, got 0"),
        ("frame_skip", 2.5, "frame_skip must be an int from 1 to 1024, got 2.5"),
        ("noop_max", -1, "noop_max must be an int from 0"),
        ("img_height", 0, "img_height must be an int from 1 to 4096, got 0"),
        ("episodic_life", "yes", "episodic_life must be True or False, got 'yes'"),
    ],
)
def test_option_out_of_range_raises(option: str, value: Any, message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        envpool.make_gymnasium("Pong-v5", **{option: value})


def test_unknown_mode_raises_and_lists_the_modes_of_the_game() -> None:
    with pytest.raises(APIUsageError, match=r"atari/pong: mode must be None or one of \[0, 1\], got 9"):
        make_env("pong", mode=9)
    with pytest.raises(APIUsageError, match="rules='gymnasium' has no option max_steps"):
        make_env("pong", max_steps=9)
    with pytest.raises(UnknownNameError, match="rules"):
        make_env("pong", rules="envpol")
