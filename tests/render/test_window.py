"""Tests of windows: frames, keys, and errors without a display."""

import os
import subprocess
import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.machine.commands import way_to_install
from pufferlib.machine.signals import RequestedExit
from pufferlib.render.window import Window, drawn_unseen, needed_for_windows
from tests.ocean.helpers import some_envs

in_python = pytest.mark.parametrize("name", ["spaces", "pymultiagent"])


class Display(NamedTuple):
    """Module pygame and its open windows, oldest first."""

    pygame: ModuleType
    windows: list[Any]

    @property
    def shown(self):
        """Pixels of the only window, shape ``(height, width, 3)``."""
        (window,) = self.windows
        return self.pygame.surfarray.array3d(window.get_surface()).swapaxes(0, 1)

    def post(self, kind, **what):
        """Send an event to the oldest window."""
        pygame = self.pygame
        pygame.event.post(pygame.event.Event(getattr(pygame, kind), window=self.windows[0], **what))


@pytest.fixture
def display(monkeypatch):
    """Yield a dummy display. All its windows must be closed at the end of the test."""
    pygame = pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    windows = []

    class Listed(pygame.Window):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            windows.append(self)

        def destroy(self):
            windows.remove(self)
            super().destroy()

    monkeypatch.setattr(pygame, "Window", Listed)
    yield Display(pygame, windows)
    assert windows == [], "a window was left open"
    pygame.display.quit()


@some_envs
def test_human_mode_shows_every_reset_and_step(name, display, clock):
    env, twin = (ocean.OceanEnv(name, num_envs=2, seed=1, render_mode=mode) for mode in ("human", "rgb_array"))
    assert display.windows == [], "the first frame opens the window"
    env.action_space.seed(0)
    env.reset()
    twin.reset()
    for _ in range(3):
        actions = env.action_space.sample()
        for ours, theirs in zip(env.step(actions)[:4], twin.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    shown = display.shown
    expected = twin.render(0)
    factor = shown.shape[0] // expected.shape[0]
    if expected.shape[0] * factor == shown.shape[0]:  # neither shrunk nor bordered
        np.testing.assert_array_equal(shown, expected.repeat(factor, 0).repeat(factor, 1))
    assert env.render() is None
    assert clock.now == pytest.approx(100 + 2 / env.metadata["render_fps"]), "waits for the frame rate"
    env.close()
    assert display.windows == []


@in_python
def test_human_mode_of_python_env_exits_on_close(name, display, clock):
    env, twin = (pufferlib.make(name, seed=1, render_mode=mode) for mode in ("human", "rgb_array"))
    actions = {1: 0, 2: 0} if name == "pymultiagent" else np.array([0, 0])
    env.reset()
    twin.reset()
    first = display.shown.copy()
    env.step(actions)
    twin.step(actions)
    expected = twin.render()
    shown = display.shown
    factor = shown.shape[0] // expected.shape[0]
    np.testing.assert_array_equal(shown, expected.repeat(factor, 0).repeat(factor, 1))
    assert not np.array_equal(shown, first)
    env.reset()
    env.step(actions)
    assert clock.now == pytest.approx(100 + 1 / env.metadata["render_fps"])
    display.post("WINDOWCLOSE")
    with pytest.raises(SystemExit):
        env.reset()
    env.reset()
    assert env.render() is None
    env.close()
    assert display.windows == []


@pytest.mark.usefixtures("clock")
def test_window_shows_last_requested_env(display):
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
    shown = display.shown
    factor = shown.shape[0] // picture.shape[0]
    np.testing.assert_array_equal(shown, picture.repeat(factor, 0).repeat(factor, 1))
    env.close()


@pytest.mark.usefixtures("clock")
def test_closed_window_raises_system_exit_0(display):
    env = ocean.Squared(render_mode="human")
    env.reset()
    env.step([0])
    display.post("WINDOWCLOSE")
    with pytest.raises(RequestedExit) as ended:
        env.step([0])
    assert ended.value.code == 0
    env.step([0])  # continues without a window if the exception is caught
    env.reset()
    assert env.render() is None
    assert display.windows == []
    env.close()


@pytest.mark.usefixtures("clock")
def test_windows_are_independent(display):
    first, second = (ocean.Squared(render_mode="human") for _ in range(2))
    first.reset()
    second.reset()
    display.post("WINDOWCLOSE")
    second.step([0])
    with pytest.raises(SystemExit):
        first.step([0])
    second.step([0])
    second.close()


def test_window_reports_key_names(display):
    window = Window("keys")
    window.show(np.zeros((10, 10, 3), np.uint8))
    for kind, keys in (("KEYDOWN", "K_LEFT K_SPACE K_RETURN K_a K_1 K_BACKSPACE"), ("KEYUP", "K_LEFT K_a")):
        for key in keys.split():
            display.post(kind, key=getattr(display.pygame, key))
    assert window.pressed() == ["left", "space", "enter", "a", "1", "backspace"]
    assert window.held == {"space", "enter", "1", "backspace"}
    assert window.pressed() == []
    display.post("WINDOWFOCUSLOST")
    window.pump()
    assert not window.held
    window.close()
    window.close()


def test_text_is_shown_below_picture(display):
    window = Window("lines")
    window.show(np.full((100, 100, 3), 50, np.uint8), ["a first line", "and a second"])
    shown = display.shown
    assert (shown[:500, :500] == 50).all()
    assert len(np.unique(shown[500:].reshape(-1, 3), axis=0)) == 3  # black, white, grey
    window.close()


def test_resized_or_exposed_window_is_redrawn(display):
    window = Window("resized")
    window.show(np.full((100, 100, 3), 50, np.uint8))
    display.windows[0].size = (300, 200)
    display.windows[0].get_surface().fill((9, 9, 9))
    for kind in ("WINDOWSIZECHANGED", "WINDOWEXPOSED"):
        display.post(kind)
        window.pump()
        assert (display.shown[:, 50:250] == 50).all()
        assert (display.shown[:, [0, 49, 250, 299]] == 0).all()
        display.windows[0].get_surface().fill((9, 9, 9))
    window.close()


def test_missing_display_raises(monkeypatch):
    pytest.importorskip("pygame", reason="the render extra is not installed")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    env = ocean.Squared(render_mode="human")
    with pytest.raises(pufferlib.PufferError, match=r"no display: .* use render_mode='ansi'"):
        env.reset()
    env.close()


def test_unknown_video_driver_raises(monkeypatch):
    pygame = pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "qqq")
    pygame.display.quit()
    with pytest.raises(pufferlib.PufferError, match=r"cannot open a window: .* use render_mode='ansi'"):
        Window("none").show(np.zeros((10, 10, 3), np.uint8))


@pytest.mark.parametrize("chosen", [None, "opengl"])
def test_windows_do_not_use_opengl_unless_it_is_chosen(display, monkeypatch, chosen):
    monkeypatch.delenv("SDL_FRAMEBUFFER_ACCELERATION", raising=False)
    if chosen:
        monkeypatch.setenv("SDL_FRAMEBUFFER_ACCELERATION", chosen)
    window = Window("squared")
    window.show(np.zeros((8, 8, 3), np.uint8))
    assert os.environ["SDL_FRAMEBUFFER_ACCELERATION"] == (chosen or "0")
    window.close()


def test_unreachable_display_raises():
    """Without the check SDL would draw to an invisible window."""
    pytest.importorskip("pygame", reason="the render extra is not installed")
    code = (
        "import numpy as np; from pufferlib.render.window import Window\n"
        "try: Window('none', 'do this').show(np.zeros((10, 10, 3), np.uint8))\n"
        "except Exception as error: print(error)"
    )
    kept = {key: value for key, value in os.environ.items() if key not in ("WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    environment = {**kept, "DISPLAY": ":4242"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "cannot open a window" in done.stdout
    assert done.stdout.endswith("; do this\n")


@pytest.mark.parametrize(("display", "driver"), [("", "dummy"), (":0", None)])
def test_drawn_unseen_selects_dummy_driver_without_display(monkeypatch, display, driver):
    for name in ("WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    with drawn_unseen():
        assert os.environ.get("SDL_VIDEODRIVER") == driver
    assert "SDL_VIDEODRIVER" not in os.environ


def test_missing_pygame_names_install_command():
    code = (
        "import sys; sys.modules['pygame'] = None\n"
        "from pufferlib import ocean\n"
        "env = ocean.Squared(render_mode='human')\n"
        "try: env.reset()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"windows need pygame; {way_to_install('render')}, or use render_mode='ansi'" in done.stdout


def test_only_windows_import_pygame():
    code = (
        "import sys; from pufferlib import ocean\n"
        "env = ocean.Squared(render_mode='human', pixels=(8, 8)); ansi = ocean.Squared(render_mode='ansi')\n"
        "ansi.reset(); ansi.render(); sys.exit('pygame' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_needed_for_windows_names_pygame_only_if_missing(monkeypatch):
    pytest.importorskip("pygame", reason="pygame is not installed")
    assert needed_for_windows() == "DISPLAY or WAYLAND_DISPLAY is set"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert needed_for_windows().endswith(f"is set and pygame is installed ({way_to_install('render')})")
