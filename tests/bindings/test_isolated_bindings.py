"""Craftax and Kinetix: errors without JAX, options, and names compared with the packages."""

import pickle
import subprocess
from pathlib import Path

import pytest

import pufferlib
from pufferlib.bindings import craftax, kinetix
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from pufferlib.isolated import find_interpreter, stacks
from pufferlib.machine import commands

CRAFTAX = "craftax/Craftax-Classic-Symbolic-v1"
KINETIX = "kinetix/s/h4_thrust_aim"


@pytest.mark.parametrize("name", [CRAFTAX, KINETIX])
def test_missing_stack_names_the_install_command(name, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(stacks, "IMAGE_FOLDER", tmp_path / "none")
    monkeypatch.setattr(commands, "in_image", lambda: False)
    creator = pickle.loads(pickle.dumps(pufferlib.env_creator(name)))
    binding = name.partition("/")[0]
    with pytest.raises(BindingMissing, match=rf"{name}: needs .*{tmp_path}.*puffer install {binding}.*tank-full"):
        creator()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (CRAFTAX, {"num_envs": 0}, "num_envs must be an int >= 1, got 0"),
        (CRAFTAX, {"max_timesteps": 2.5}, "max_timesteps must be an int >= 1, got 2.5"),
        (CRAFTAX, {"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        (KINETIX, {"action": "any"}, "action must be one of multi_discrete, discrete, continuous, got 'any'"),
        (KINETIX, {"dense_reward": -1}, "dense_reward must be a number >= 0, got -1"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(APIUsageError, match=f"{name}: {message}"):
        pufferlib.make(name, **options)


def test_unknown_names_and_options_suggest_others():
    with pytest.raises(UnknownNameError, match="did you mean 's/h4_thrust_aim'"):
        kinetix.env_creator("s/h4_thrust")
    with pytest.raises(UnknownNameError, match="did you mean 'num_envs'"):
        pufferlib.make(CRAFTAX, num_env=4)


@pytest.mark.skipif(find_interpreter("jax") is None, reason="the stack of JAX is not installed")
def test_names_match_the_packages():
    python = find_interpreter("jax")
    code = "import importlib.util; print(importlib.util.find_spec('kinetix').submodule_search_locations[0])"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    levels = Path(done.stdout.strip(), "levels")
    listed = {str(file.relative_to(levels).with_suffix("")) for file in levels.glob("*/*.json")}
    assert listed == {name for name in kinetix.names() if "/" in name}
    assert len(craftax.names()) == 4
