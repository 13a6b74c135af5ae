"""MuJoCo: names, logs, rendering without a display, and errors without OpenGL."""

import ctypes
import io
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import mujoco
from tests.needs import missing_binding
from tests.processes import in_fresh_process

absent = missing_binding("mujoco")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a system without OpenGL."""

    def load(name: str, *_: Any, **__: Any) -> None:
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    pufferlib.make("mujoco/Reacher").close()  # loads all libraries that MuJoCo needs
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", load)


def is_there(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


needs_egl = pytest.mark.skipif(
    not is_there("libEGL.so.1"), reason="libEGL.so.1 is not installed; apt-get install libegl1"
)


def test_names_match_version_5_of_gymnasium() -> None:
    known = {env_id for env_id, spec in gymnasium.registry.items() if "mujoco" in str(spec.entry_point)}
    assert set(mujoco.names()) == {env_id for env_id in known if env_id.endswith("-v5")}


def test_warnings_are_logged_and_not_written_to_a_file(tmp_path: Path) -> None:
    # In a new process, because the package that loads MuJoCo first decides where warnings go.
    assert "The simulation is unstable" in in_fresh_process(log_unstable_robot, tmp_path)
    assert list(tmp_path.iterdir()) == []


def log_unstable_robot(folder: Path) -> str:
    os.chdir(folder)
    log = io.StringIO()
    logging.getLogger("pufferlib.bindings.mujoco").addHandler(logging.StreamHandler(log))
    env = pufferlib.make("mujoco/HalfCheetah")
    env.reset(seed=0)
    env.env.unwrapped.data.qvel[:] = 1e9
    env.step(np.zeros(6, np.float32))
    env.close()
    return log.getvalue()


@needs_egl
def test_environments_render_in_turns() -> None:
    first = pufferlib.make("mujoco/Hopper", render_mode="rgb_array", width=64, height=48)
    first.reset(seed=1)
    expected = first.render()
    assert expected.shape == (48, 64, 3)
    assert expected.flags.c_contiguous
    other = pufferlib.make("mujoco/Ant", render_mode="rgb_array", width=64, height=48)
    other.reset(seed=1)
    assert not np.array_equal(other.render(), expected)
    assert np.array_equal(first.render(), expected)
    first.close()
    assert other.render().any()
    other.close()
    other.close()


@needs_egl
def test_exit_without_close_is_silent(tmp_path: Path) -> None:
    code = """if True:
        import pufferlib
        env = pufferlib.make("mujoco/Reacher", render_mode="rgb_array", width=32, height=32)
        env.reset(seed=0)
        env.render()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_libraries")
def test_missing_library_names_its_debian_package() -> None:
    with pytest.raises(
        pufferlib.BindingMissing, match=r"Ant-v5: needs the system library libEGL.*apt-get install libegl1"
    ):
        pufferlib.make("mujoco/Ant", render_mode="rgb_array")
    pufferlib.make("mujoco/Ant").close()  # physics needs no OpenGL


@pytest.mark.usefixtures("no_libraries")
def test_missing_library_of_mujoco_gl_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(pufferlib.BindingMissing, match=r"libOSMesa\.so\.8.*apt-get install libosmesa6"):
        pufferlib.make("mujoco/Ant", render_mode="rgb_array")


def test_unknown_mujoco_gl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(
        pufferlib.APIUsageError, match=r"MUJOCO_GL must be one of \['egl', 'osmesa', 'glfw'\], got vulkan"
    ):
        pufferlib.make("mujoco/Ant", render_mode="rgb_array")


def test_options_of_the_class_and_its_parents_are_accepted() -> None:
    env = pufferlib.make("mujoco/Ant", include_cfrc_ext_in_observation=False, width=32)
    assert env.single_observation_space.shape == (27,)
    env.close()
    with pytest.raises(pufferlib.UnknownNameError, match=r"Ant-v5: unexpected .* 'ctrl_cost'.*'ctrl_cost_weight'"):
        pufferlib.make("mujoco/Ant", ctrl_cost=1.0)


@pytest.mark.skipif(not is_there("libGL.so.1"), reason="libGL.so.1 is not installed; apt-get install libgl1")
def test_glfw_without_a_display_gets_advice() -> None:
    without = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    code = "import pufferlib; pufferlib.make('mujoco/Reacher', render_mode='rgb_array')"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=without | {"MUJOCO_GL": "glfw"})
    assert done.returncode == 1
    assert "BindingMissing: mujoco/Reacher" in done.stderr
    assert "where there is no display unset MUJOCO_GL" in done.stderr


def test_ids_of_gymnasium_are_drawn_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    pictures = []
    for name in ("Hopper-v5", "mujoco/Hopper-v5"):
        try:
            env = pufferlib.make(name, render_mode="rgb_array")
        except pufferlib.BindingMissing as error:
            pytest.skip(str(error))
        env.reset(seed=1)
        pictures.append(env.render())
        env.close()
    assert pictures[0].tobytes() == pictures[1].tobytes()  # and the first does not spoil the second when it closes
    assert pictures[1].any()
