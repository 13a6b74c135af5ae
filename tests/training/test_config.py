import dataclasses
import math
import re
import tomllib
from importlib import resources

import numpy as np
import pytest

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.training import config as config_module
from pufferlib.training.config import Config, EvalConfig, TrainConfig, load_config


def test_own_file_overrides_defaults_and_flags_override_both():
    config = load_config("breakout", {"train.total_timesteps": 5, "env.num_envs": 3})
    assert config.env_name == "breakout"
    assert config.env["num_envs"] == 3
    assert config.train.total_timesteps == 5
    assert load_config("breakout").env["num_envs"] == 512
    assert load_config("puffer_breakout") == load_config("breakout")


def test_a_binding_has_one_file_for_all_its_games():
    config = load_config("atari/pong")
    assert config.env_name == "atari/pong"
    assert config.policy.name == "NatureCNN"
    assert load_config("atari/breakout").policy == config.policy


def test_an_environment_without_a_file_gets_the_defaults():
    config = load_config("nothing/known")
    assert config.train == TrainConfig()
    assert config.eval == EvalConfig()


def test_default_toml_says_what_the_dataclasses_say():
    text = (resources.files("pufferlib.training") / "default.toml").read_text()
    defaults = dataclasses.asdict(Config("x"))
    for section, values in tomllib.loads(text).items():
        for key, value in values.items():
            assert defaults[section][key] == value, f"{section}.{key}"


def test_saved_settings_come_back_equal(tmp_path):
    config = load_config(
        "breakout", {"train.learning_rate": 1e-05, "env.words": ['say "hi"\n', "ü"], "env.deep": {"a": 1.5}}
    )
    config.save(tmp_path / "config.toml")
    assert Config.load(tmp_path / "config.toml") == config


def test_settings_that_json_writes_otherwise_than_toml_come_back_equal(tmp_path):
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
        ("eval.episodes", 0, "at least 1"),
        ("train.horizon", 10**20, "from 0 to 2147483647"),
        ("train.total_timesteps", 0, "at least 1"),
        ("train.total_timesteps", 10**20, "from 1 to 9223372036854775807"),
    ],
)
def test_numbers_out_of_range_are_refused(name, value, allowed):
    with pytest.raises(APIUsageError, match=re.escape(f"{name} must be {allowed}")):
        load_config("breakout", {name: value})


def test_an_int_will_do_for_a_float_and_none_unsets():
    config = load_config("breakout", {"train.learning_rate": 1, "vec.num_workers": None})
    assert isinstance(config.train.learning_rate, float)
    assert config.vec.num_workers is None


def test_numbers_of_numpy_and_whole_floats_are_taken_as_what_they_are(tmp_path):
    given = {"train.seed": np.int64(3), "train.learning_rate": np.float32(0.5), "train.total_timesteps": 1e6}
    config = load_config("breakout", given)
    config.save(tmp_path / "config.toml")
    assert Config.load(tmp_path / "config.toml") == config
    assert (config.train.seed, config.train.learning_rate, config.train.total_timesteps) == (3, 0.5, 1_000_000)
    assert type(config.train.total_timesteps) is int


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"train.lerning_rate": 1.0}, UnknownNameError, "did you mean 'learning_rate'"),
        ({"train.lr": 1.0}, UnknownNameError, r"\[train\]: unknown key 'lr'; did you mean 'learning_rate'"),
        ({"train.hidden_size": 1}, UnknownNameError, "did you mean 'policy.hidden_size'"),
        ({"trian.seed": 1}, UnknownNameError, "did you mean 'train'"),
        ({"train.seed": 1.5}, APIUsageError, r"train\.seed must be int, got 1\.5 \(float\)"),
        ({"train.seed": True}, APIUsageError, r"train\.seed must be int, got True \(bool\)"),
        ({"vec.num_workers": "two"}, APIUsageError, "must be int or unset, got 'two'"),
        ({"policy.memory": "lstm"}, APIUsageError, "'none' or 'LSTM' or 'GRU' or 'MinGRU', got 'lstm'"),
        (
            {"policy.recurrent": True},
            UnknownNameError,
            r'\[policy\]: recurrent has become memory; write memory = "LSTM" in place of recurrent = true',
        ),
        ({"policy.recurrent": False}, UnknownNameError, 'write memory = "none" in place of recurrent = false'),
        (
            {"train.lr_schedule": "step"},
            APIUsageError,
            "lr_schedule must be 'constant' or 'linear' or 'cosine', got 'step'",
        ),
        ({"train.optimizer": True}, APIUsageError, "optimizer must be 'adam' or 'muon', got True"),
        (
            {"train.anneal_lr": False},
            UnknownNameError,
            'anneal_lr has become lr_schedule; write lr_schedule = "constant"',
        ),
        ({"seed": 1}, APIUsageError, "a key must be section.name, got 'seed'; for example train.seed"),
        ({"lr": 1}, APIUsageError, "a key must be section.name, got 'lr'; for example train.learning_rate"),
        ({"train": {"seed": 1}}, APIUsageError, "a key must be section.name, got 'train'; for example train.seed"),
        (1000, APIUsageError, 'overrides: must be a dict, as {"train.seed": 1}, got 1000'),
    ],
)
def test_wrong_keys_and_types_are_refused(overrides, error, message):
    with pytest.raises(error, match=message):
        load_config("breakout", overrides)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env_name = ", "is not valid TOML"),
        ("[train]\nseed = 1\n", "env_name must be a string, got None"),
        ('env_name = "a"\ntrain = 3\n', "train must be a table of settings, got 3"),
        ('env_name = "é"\n', r"config\.toml: is not valid TOML: 'utf-8' codec can't decode .*; save it as UTF-8"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, message):
    (tmp_path / "config.toml").write_text(text, "latin-1")
    with pytest.raises(APIUsageError, match=message):
        Config.load(tmp_path / "config.toml")


def test_a_run_of_before_is_told_the_new_name_of_a_setting(tmp_path):
    (tmp_path / "config.toml").write_text('env_name = "breakout"\n[train]\nanneal_lr = true\n')
    expected = 'config.toml, [train]: anneal_lr has become lr_schedule; write lr_schedule = "linear" in place of'
    with pytest.raises(UnknownNameError, match=re.escape(expected)):
        Config.load(tmp_path / "config.toml")


def test_settings_of_a_run_of_another_version_are_left_out_with_a_warning(tmp_path):
    text = (
        'env_name = "breakout"\n[later]\nx = 1\n[train]\nseed = 7\ngone = 1\n[track.wandb]\nmode = "offline"\nnew = 2\n'
    )
    (tmp_path / "config.toml").write_text(text)
    with pytest.warns(UserWarning, match=r"config\.toml: later and train\.gone and track\.wandb\.new left out, since"):
        config = Config.load(tmp_path / "config.toml")
    assert (config.train.seed, config.track.wandb.mode) == (7, "offline")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(APIUsageError, match=r"nowhere\.toml: cannot be read"):
        Config.load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("gpu", "overrides", "expected"),
    [
        (False, {}, (512, 2048)),
        (True, {}, (4096, 8192)),
        (True, {"train.device": "cpu"}, (512, 2048)),
        (False, {"train.device": "cuda:1"}, (4096, 8192)),
        (True, {"env.num_envs": 64, "train.minibatch_size": 1024}, (64, 1024)),
    ],
)
def test_settings_for_a_gpu_give_way_to_those_that_the_user_gives(monkeypatch, gpu, overrides, expected):
    monkeypatch.setattr(config_module, "has_gpu", lambda: gpu)
    found = load_config("breakout", overrides)
    assert (found.env["num_envs"], found.train.minibatch_size) == expected


def test_a_file_has_settings_for_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(config_module, "has_gpu", lambda: True)
    file = tmp_path / "mine.toml"
    file.write_text("[train]\nhorizon = 16\nseed = 1\n[cuda.train]\nhorizon = 64\n")
    assert load_config("breakout", {"train.seed": 2}, file).train.horizon == 64
    assert load_config("breakout", {"train.device": "cpu"}, file).train.horizon == 16
    file.write_text("[cuda.train]\nhorizont = 64\n")
    with pytest.raises(UnknownNameError, match=r"mine.toml, \[cuda\], \[train\]"):
        load_config("breakout", {}, file)


def test_total_timesteps_may_exceed_32_bits():
    assert load_config("breakout", {"train.total_timesteps": 10**10}).train.total_timesteps == 10**10
