import dataclasses
import math
import os
import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.settings.config import Config, TrainConfig, load_config


def test_default_toml_matches_dataclasses():
    text = (resources.files("pufferlib.settings") / "default.toml").read_text()
    defaults = dataclasses.asdict(Config("x"))
    for section, values in tomllib.loads(text).items():
        for key, value in values.items():
            assert defaults[section][key] == value, f"{section}.{key}"


def test_load_returns_what_save_wrote(tmp_path):
    config = load_config(
        "breakout", {"train.learning_rate": 1e-05, "env.words": ['say "hi"\n', "ü"], "env.deep": {"a": 1.5}}
    )
    config.save(tmp_path / "config.toml")
    assert Config.load(tmp_path / "config.toml") == config


def test_load_returns_network_options(tmp_path):
    config = load_config("breakout", {"policy.hidden_sizes": [256, 64], "policy.networks": "separate"})
    config.save(tmp_path / "config.toml")
    assert "hidden_sizes = [256, 64]" in (tmp_path / "config.toml").read_text()
    assert Config.load(tmp_path / "config.toml") == config


def test_load_returns_special_characters_and_infinity(tmp_path):
    env = {"env.word": "\x7f \U0001f421 é", "env.a key": 1, "env.list": [{"b": [-math.inf]}]}
    overrides = {"train.max_grad_norm": math.inf, **env}
    config = load_config("breakout", overrides)
    config.save(tmp_path / "config.toml")
    assert Config.load(tmp_path / "config.toml") == config


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("train.horizon", -1, "at least 0"),
        ("train.minibatch_size", -64, "at least 0"),
        ("train.update_epochs", -1, "at least 0"),
        ("train.num_threads", 0, "at least 1"),
        ("train.learning_rate", -0.1, "from 0 to 1000"),
        ("train.learning_rate", math.nan, "from 0 to 1000"),
        ("train.learning_rate", math.inf, "from 0 to 1000"),
        ("train.gamma", 1.5, "from 0 to 1"),
        ("train.adam_beta1", 1.0, "from 0 to 0.999999"),
        ("train.seed", 2**70, "from 0 to 9223372036854775807"),
        ("train.reward_scale", math.nan, "a number"),
        ("policy.num_layers", 0, "at least 1"),
        ("policy.hidden_sizes", [64, 0], "at least 1, got 0"),
        ("policy.critic_hidden_sizes", [-64], "at least 1, got -64"),
        ("policy.log_std_init", math.nan, "from -5 to 2, got nan"),
        ("policy.log_std_init", -6, "from -5 to 2, got -6"),
        ("eval.episodes", 0, "at least 1"),
        ("train.horizon", 10**20, "from 0 to 2147483647"),
        ("train.total_timesteps", 0, "at least 1"),
        ("train.total_timesteps", 10**20, "from 1 to 9223372036854775807"),
    ],
)
def test_number_out_of_range_raises(name, value, allowed):
    with pytest.raises(APIUsageError, match=re.escape(f"{name} must be {allowed}")):
        load_config("breakout", {name: value})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env_name = ", "is not valid TOML"),
        ("[train]\nseed = 1\n", "env_name must be a string, got None"),
        ('env_name = "a"\ntrain = 3\n', "train must be a table of settings, got 3"),
        ('env_name = "é"\n', r"config\.toml: is not valid TOML: 'utf-8' codec can't decode .*; save it as UTF-8"),
    ],
)
def test_load_of_invalid_file_raises(tmp_path, text, message):
    (tmp_path / "config.toml").write_text(text, "latin-1")
    with pytest.raises(APIUsageError, match=message):
        Config.load(tmp_path / "config.toml")


def test_save_of_a_path_that_is_not_utf8_raises(tmp_path):
    name = os.fsdecode(b"/sp\xe4ces/my_env.py")
    with pytest.raises(APIUsageError, match=r"env_name must be text that UTF-8 can hold, got '/sp.udce4ces/my_env.py'"):
        Config(name).save(tmp_path / "config.toml")


def test_load_of_renamed_setting_names_new_one(tmp_path):
    (tmp_path / "config.toml").write_text('env_name = "breakout"\n[train]\nanneal_lr = true\n')
    expected = 'config.toml, [train]: anneal_lr has become lr_schedule; write lr_schedule = "linear" in place of'
    with pytest.raises(UnknownNameError, match=re.escape(expected)):
        Config.load(tmp_path / "config.toml")


def test_load_warns_about_settings_of_another_version(tmp_path):
    text = (
        'env_name = "breakout"\n[later]\nx = 1\n[train]\nseed = 7\ngone = 1\n[track.wandb]\nmode = "offline"\nnew = 2\n'
    )
    (tmp_path / "config.toml").write_text(text)
    with pytest.warns(UserWarning, match=r"config\.toml: later and train\.gone and track\.wandb\.new left out, since"):
        config = Config.load(tmp_path / "config.toml")
    assert (config.train.seed, config.track.wandb.mode) == (7, "offline")


def test_load_of_missing_file_raises(tmp_path):
    with pytest.raises(APIUsageError, match=r"nowhere\.toml: cannot be read"):
        Config.load(tmp_path / "nowhere.toml")


def test_total_timesteps_may_exceed_32_bits():
    assert load_config("breakout", {"train.total_timesteps": 10**10}).train.total_timesteps == 10**10


def test_range_of_tensor_is_not_read() -> None:
    class Coefficient:
        """Number on a GPU: to compare it waits for the GPU, and breaks the recording of a CUDA graph."""

        def __le__(self, other: object) -> bool:
            raise AssertionError

        __ge__ = __le__

    coefficient: Any = Coefficient()
    assert dataclasses.replace(TrainConfig(), clip_coef=coefficient).clip_coef is coefficient


def test_derived_settings_are_a_copy_that_is_not_checked() -> None:
    config = TrainConfig(seed=3)
    derived = config.derived(learning_rate=5000.0)
    assert (type(derived), derived.learning_rate, derived.seed) == (TrainConfig, 5000.0, 3)
    assert config == TrainConfig(seed=3)


def test_text_in_place_of_a_number_is_refused() -> None:
    with pytest.raises(APIUsageError, match=r"train\.gamma must be from 0 to 1, got '0\.9'"):
        TrainConfig(gamma="0.9")  # type: ignore[arg-type]
