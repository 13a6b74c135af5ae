"""Tests of environment keywords in config files, including values that TOML does not support."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib.errors import APIUsageError
from pufferlib.settings.config import Config, load_config
from pufferlib.settings.env_values import Missing, check_present
from pufferlib.vector import AutoresetMode
from tests.envs import FunctionEnv

QUICK = {
    "vec.backend": "Serial", "vec.num_envs": 2, "train.total_timesteps": 256, "eval.episodes": 2, "train.device": "cpu",
}  # fmt: skip


def make_env(value=None):
    return FunctionEnv(length=5)


class Frame:
    """Object that must not be compared."""

    def __eq__(self, other):
        raise AssertionError("compared")

    __hash__ = None


@pytest.mark.parametrize(
    "value",
    [
        np.int64(3), np.float32(0.5), np.bool_(True), Path("/tmp/x.csv"), (1, 2), None, {"a": None, "b": {"c": 1}},
        np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros(0), {1, 2}, [1, "a", 0.5, None], {1: "a", (2, 3): "b"},
        {"$path": 1}, np.mean, Frame, lambda x: x, object(),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_env_keyword_is_read_back_from_file(value, tmp_path):
    config = load_config("squared", {"env.value": value})
    config.save(tmp_path / "config.toml")
    of_run, of_file = Config.load(tmp_path / "config.toml"), load_config("squared", {}, tmp_path / "config.toml")
    for found in (of_run.env["value"], of_file.env["value"]):
        if isinstance(value, np.ndarray):
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)
        else:
            assert found == value


@pytest.mark.usefixtures("blank_curves")
def test_object_is_found_in_same_process(tmp_path):
    frame = Frame()
    done = pufferlib.train(make_env, {**QUICK, "env.value": frame}, runs=tmp_path)
    assert done.run.settings().env["value"] is frame
    longer = pufferlib.train(resume=done.run.folder, settings={"train.total_timesteps": 2048})
    assert longer.run.about().agent_steps == 2048


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, gymnasium.vector.AutoresetMode.NEXT_STEP])
def test_member_of_enum_is_stored_by_name(mode, tmp_path):
    config = load_config("squared", {"env.autoreset": mode})
    config.save(tmp_path / "config.toml")
    assert "$object" not in (tmp_path / "config.toml").read_text()
    assert Config.load(tmp_path / "config.toml").env["autoreset"] is mode


def test_object_of_other_process_must_be_passed_again(tmp_path):
    code = (
        "from pathlib import Path; from pufferlib.settings.config import load_config\n"
        f"load_config('squared', {{'env.value': object()}}).save(Path({str(tmp_path / 'config.toml')!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    config = Config.load(tmp_path / "config.toml")
    assert isinstance(config.env["value"], Missing)
    with pytest.raises(APIUsageError, match=r"env.value was <object object at .*settings=\{'env.value': ...\}"):
        check_present(config.env)
    assert dataclasses.replace(config).to_toml() == config.to_toml()
    frame = Frame()
    assert Config.load(tmp_path / "config.toml", {"env.value": frame}).env["value"] is frame
