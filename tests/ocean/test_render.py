"""The render modes: a picture, text, a window."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import way_to_install
from pufferlib.render import window as windows
from pufferlib.render.motion import Motion
from pufferlib.render.pace import Pace
from pufferlib.render.terminal import HALF_BLOCK, to_text
from pufferlib.render.window import Window

every_env = pytest.mark.parametrize("name", ocean.names())
in_python = pytest.mark.parametrize("name", ["spaces", "pymultiagent"])


@pytest.fixture
def display(monkeypatch):
    """A display that nobody sees, and what pygame drew on it last."""
    pygame = pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield pygame
    for window in list(windows._windows):
        window.close()
    pygame.display.quit()


@pytest.fixture
def clock(monkeypatch):
    """A clock that only sleeping moves on; nobody waits."""

    class Clock:
        now = 100.0
        monotonic = classmethod(lambda cls: cls.now)

        @classmethod
        def sleep(cls, seconds):
            cls.now += seconds

    monkeypatch.setattr("pufferlib.render.pace.time", Clock)
    return Clock


def on_screen(window):
    """The pixels of a window, ``(height, width, 3)``."""
    import pygame

    return pygame.surfarray.array3d(window._window.get_surface()).swapaxes(0, 1)


# ---- Drawing --------------------------------------------------------------------------------------------


def test_games_and_pictures_use_no_function_that_c_libraries_round_differently():
    """So that both are the same bytes everywhere."""
    uses = re.compile(
        r"\b(a?(sin|cos|tan)h?|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma)[fl]?\("
    )
    sources = list(Path(ocean.__file__).parent.rglob("*.[ch]"))
    assert len(sources) > 30
    assert [f"{path.name}: {found[0]}" for path in sources for found in uses.finditer(path.read_text())] == []


@pytest.mark.parametrize("name", ["moba", "multiagent", "nmmo3", "rware", "snake", "trash_pickup"])
def test_a_picture_for_an_agent_shows_which_one_it_is(name):
    with contextlib.closing(pufferlib.make(name, num_envs=1)) as env:
        env.reset(seed=0)
        first, second, nobodys = (env.render(agent=agent).tobytes() for agent in (0, 1, None))
        assert first != second
        assert env.render().tobytes() == nobodys


@pytest.mark.parametrize("agent", [-1, 8, 1.5, "first"])
def test_a_picture_is_for_an_agent_of_the_game(agent):
    with contextlib.closing(pufferlib.make("nmmo3", num_envs=2, num_players=8)) as env:
        env.reset(seed=0)
        with pytest.raises(APIUsageError, match=rf"Nmmo3.render: agent must be .* from 0 to 7, got {agent!r}"):
            env.render(agent=agent)


# ---- Text ---------------------------------------------------------------------------------------------


@every_env
def test_ansi_returns_the_picture_as_text(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "21")
    env, twin = (ocean.OceanEnv(name, num_envs=3, seed=1, render_mode=mode) for mode in ("ansi", "rgb_array"))
    env.reset()
    twin.reset()
    for index in (0, 2):
        text = env.render(index)
        assert text == to_text(twin.render(index))
        assert text.count("\n") < 20
        assert max(line.count(HALF_BLOCK) for line in text.split("\n")) <= 60


@in_python
def test_ansi_and_rgb_array_are_for_environments_in_python_too(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "21")
    env, twin = (pufferlib.make(name, seed=1, render_mode=mode) for mode in ("ansi", "rgb_array"))
    env.reset()
    twin.reset()
    assert env.render() == to_text(twin.render())
    assert {"human", "ansi", "rgb_array"} <= set(env.metadata["render_modes"])
    with pytest.raises(pufferlib.UnknownNameError, match="unknown render_mode 'anis'; did you mean 'ansi'"):
        pufferlib.make(name, render_mode="anis")


# ---- The window -----------------------------------------------------------------------------------------


@every_env
@pytest.mark.usefixtures("display")
def test_human_shows_the_game_after_every_reset_and_step(name, clock):
    env, twin = (ocean.OceanEnv(name, num_envs=2, seed=1, render_mode=mode) for mode in ("human", "rgb_array"))
    assert env._view.window is None, "it opens with the first picture"
    env.action_space.seed(0)
    env.reset()
    twin.reset()
    for _ in range(3):
        actions = env.action_space.sample()
        for ours, theirs in zip(env.step(actions)[:4], twin.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    shown = on_screen(env._view.window)
    expected = twin.render(0)
    factor = shown.shape[0] // expected.shape[0]
    if expected.shape[0] * factor == shown.shape[0]:  # neither shrunk nor bordered
        np.testing.assert_array_equal(shown, expected.repeat(factor, 0).repeat(factor, 1))
    assert env.render() is None
    assert clock.now == pytest.approx(100 + 2 / env.metadata["render_fps"]), "steps are pictures of a film"
    env.close()
    assert windows._windows == []


@in_python
def test_human_shows_environments_in_python_and_closing_the_window_ends_the_program(name, display, clock):
    env, twin = (pufferlib.make(name, seed=1, render_mode=mode) for mode in ("human", "rgb_array"))
    view = env.unwrapped._view
    actions = {1: 0, 2: 0} if name == "pymultiagent" else np.array([0, 0])
    env.reset()
    twin.reset()
    first = on_screen(view.window).copy()
    env.step(actions)
    twin.step(actions)
    expected = twin.render()
    shown = on_screen(view.window)
    factor = shown.shape[0] // expected.shape[0]
    np.testing.assert_array_equal(shown, expected.repeat(factor, 0).repeat(factor, 1))
    assert not np.array_equal(shown, first)
    env.reset()
    env.step(actions)
    assert clock.now == pytest.approx(100 + 1 / env.metadata["render_fps"])
    display.event.post(display.event.Event(display.WINDOWCLOSE, window=view.window._window))
    with pytest.raises(SystemExit):
        env.reset()
    env.reset()
    assert env.render() is None
    env.close()
    assert windows._windows == []


@pytest.mark.usefixtures("display", "clock")
def test_the_window_shows_the_game_that_was_asked_for_last():
    env = ocean.Squared(num_envs=3, seed=1, render_mode="human")
    env.reset()
    env.render(2)
    for _ in range(2):
        env.step([1, 2, 3])
    expected = ocean.Squared(num_envs=3, seed=1)
    expected.reset()
    for _ in range(2):
        expected.step([1, 2, 3])
    picture = expected.render(2)
    assert not np.array_equal(picture, expected.render(0))
    shown = on_screen(env._view.window)
    factor = shown.shape[0] // picture.shape[0]
    np.testing.assert_array_equal(shown, picture.repeat(factor, 0).repeat(factor, 1))


@pytest.mark.usefixtures("clock")
def test_closing_the_window_ends_the_program_politely(display):
    env = ocean.Squared(render_mode="human")
    env.reset()
    env.step([0])
    display.event.post(display.event.Event(display.WINDOWCLOSE, window=env._view.window._window))
    with pytest.raises(SystemExit) as ended:
        env.step([0])
    assert ended.value.code == 0
    env.step([0])  # who catches it goes on without a window
    env.reset()
    assert env.render() is None
    assert windows._windows == []
    env.close()


@pytest.mark.usefixtures("clock")
def test_windows_are_apart(display):
    first, second = (ocean.Squared(render_mode="human") for _ in range(2))
    first.reset()
    second.reset()
    display.event.post(display.event.Event(display.WINDOWCLOSE, window=first._view.window._window))
    second.step([0])
    with pytest.raises(SystemExit):
        first.step([0])
    second.step([0])
    second.close()


def test_keys_are_known_by_their_names(display):
    window = Window("keys")
    window.show(np.zeros((10, 10, 3), np.uint8))
    for kind, keys in ((display.KEYDOWN, "K_LEFT K_SPACE K_RETURN K_a K_1 K_BACKSPACE"), (display.KEYUP, "K_LEFT K_a")):
        for key in keys.split():
            display.event.post(display.event.Event(kind, key=getattr(display, key), window=window._window))
    assert window.pressed() == ["left", "space", "enter", "a", "1", "backspace"]
    assert window.held == {"space", "enter", "1", "backspace"}
    assert window.pressed() == []
    display.event.post(display.event.Event(display.WINDOWFOCUSLOST, window=window._window))
    window.pump()
    assert not window.held
    window.close()
    window.close()


@pytest.mark.usefixtures("display")
def test_lines_of_text_stand_below_the_picture():
    window = Window("lines")
    window.show(np.full((100, 100, 3), 50, np.uint8), ["a first line", "and a second"])
    shown = on_screen(window)
    assert (shown[:500, :500] == 50).all()
    assert len(np.unique(shown[500:].reshape(-1, 3), axis=0)) == 3  # black, white, grey
    window.close()


def test_a_window_that_was_resized_or_uncovered_is_drawn_again(display):
    window = Window("resized")
    window.show(np.full((100, 100, 3), 50, np.uint8))
    window._window.size = (300, 200)
    window._window.get_surface().fill((9, 9, 9))
    for kind in (display.WINDOWSIZECHANGED, display.WINDOWEXPOSED):
        display.event.post(display.event.Event(kind, window=window._window))
        window.pump()
        assert (on_screen(window)[:, 50:250] == 50).all()
        assert (on_screen(window)[:, [0, 49, 250, 299]] == 0).all()
        window._window.get_surface().fill((9, 9, 9))
    window.close()


def test_no_picture_comes_faster_to_make_up_for_a_late_one(clock):
    pace = Pace(10)
    times = []
    for late in (0, 0, 0.35, 0, 0):
        clock.now += late
        pace.wait()
        times.append(round(clock.now - 100, 3))
    assert times == [0, 0.1, 0.45, 0.55, 0.65]


# ---- What is missing -------------------------------------------------------------------------------------


def test_without_a_display_it_says_what_to_do(monkeypatch):
    pytest.importorskip("pygame", reason="the render extra is not installed")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    env = ocean.Squared(render_mode="human")
    with pytest.raises(pufferlib.PufferError, match=r"no display: .* take render_mode='ansi'"):
        env.reset()
    env.close()


def test_a_display_that_does_not_answer_is_told(monkeypatch):
    pygame = pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "qqq")
    pygame.display.quit()
    with pytest.raises(pufferlib.PufferError, match=r"cannot open one here: .* take render_mode='ansi'"):
        Window("none").show(np.zeros((10, 10, 3), np.uint8))


def test_a_display_that_is_not_there_is_told():
    """SDL would draw into the void instead."""
    pytest.importorskip("pygame", reason="the render extra is not installed")
    code = (
        "import numpy as np; from pufferlib.render.window import Window\n"
        "try: Window('none', 'do this').show(np.zeros((10, 10, 3), np.uint8))\n"
        "except Exception as error: print(error)"
    )
    kept = {key: value for key, value in os.environ.items() if key not in ("WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    environment = {**kept, "DISPLAY": ":4242"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "cannot open one here" in done.stdout
    assert done.stdout.endswith("; do this\n")


def test_without_pygame_it_names_the_command():
    code = (
        "import sys; sys.modules['pygame'] = None\n"
        "from pufferlib import ocean\n"
        "env = ocean.Squared(render_mode='human')\n"
        "try: env.reset()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"windows need pygame; {way_to_install('render')}, or take render_mode='ansi'" in done.stdout


def test_nothing_but_a_window_loads_pygame():
    code = (
        "import sys; from pufferlib import ocean\n"
        "env = ocean.Squared(render_mode='human', pixels=(8, 8)); ansi = ocean.Squared(render_mode='ansi')\n"
        "ansi.reset(); ansi.render(); sys.exit('pygame' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- Between two steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["breakout", "enduro"])  # a point ends a step of pong
def test_the_frames_that_a_step_skips_are_drawn_and_leave_the_game_as_it_is(name):
    env, alone, slow = (pufferlib.make(name, num_envs=2, frameskip=skip) for skip in (4, 4, 1))
    for game in (env, alone, slow):
        game.reset(seed=3)
        game.action_space.seed(3)
    moved = 0
    for _ in range(40):
        actions = env.action_space.sample()
        pictures = [picture.copy() for picture in env.frames(actions, env_index=1)]
        assert len(pictures) == 3
        for picture in pictures:
            slow.step(actions)
            np.testing.assert_array_equal(picture, slow.render(1))
        slow.step(actions)
        outcome = env.step(actions)
        for got, expected in zip(outcome, alone.step(actions), strict=True):
            np.testing.assert_array_equal(got, expected)
        moved += (pictures[0] != pictures[2]).any()
    assert moved > 20
    assert list(slow.frames(actions)) == []
    for game in (env, alone, slow):
        game.close()


def test_frames_are_those_of_an_episode_with_the_agents_actions():
    env = pufferlib.make("pong", num_envs=2, frameskip=2)
    with pytest.raises(APIUsageError, match="no episode has begun; call reset first"):
        next(env.frames([0, 0]))
    env.reset()
    for wrong in ([0], [[0], [0]], [0.5, 0.5]):
        with pytest.raises(APIUsageError, match="actions must be integers of shape"):
            next(env.frames(wrong, env_index=1))
    with pytest.raises(APIUsageError, match="an index below 2, got"):
        next(env.frames([0, 0], env_index=2))
    env.close()
    with pytest.raises(APIUsageError, match="the environment is closed"):
        next(env.frames([0, 0]))


def test_a_step_that_ends_early_shows_its_last_frame():
    env = pufferlib.make("pong", frameskip=1000)
    env.reset(seed=0)
    pictures = list(env.frames([0], every=100))
    assert len(pictures) == 9
    _, rewards, *_ = env.step([0])
    assert rewards[0], "a point ends the step"
    np.testing.assert_array_equal(pictures[-1], env.render())
    env.close()


def test_a_film_shows_as_many_frames_as_flow():
    for name, frameskip, per_step, fps in (("pong", 8, 4, 30), ("pong", 3, 3, 60), ("breakout", 1, 1, 60)):
        env = pufferlib.make(name, frameskip=frameskip)
        env.reset(seed=0)
        motion = Motion(env)
        assert (motion.pictures_per_step, motion.fps) == (per_step, pytest.approx(fps))
        assert len(list(motion.between([1]))) == per_step - 1
        env.close()
    assert Motion(object()).fps == 30
