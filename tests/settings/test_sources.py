import numpy as np
import pytest

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.settings import sources
from pufferlib.settings.config import Config, EvalConfig, TrainConfig, load_config


def test_environment_file_overrides_defaults_and_overrides_win():
    config = load_config("breakout", {"train.total_timesteps": 5, "env.num_envs": 3})
    assert config.env_name == "breakout"
    assert config.env["num_envs"] == 3
    assert config.train.total_timesteps == 5
    assert load_config("breakout").env["num_envs"] == 512
    assert load_config("puffer_breakout") == load_config("breakout")


def test_binding_has_one_file_for_all_envs():
    config = load_config("atari/pong")
    assert config.env_name == "atari/pong"
    assert config.policy.name == "NatureCNN"
    assert load_config("atari/breakout").policy == config.policy


def test_environment_without_a_file_has_the_defaults():
    config = load_config("nothing/known")
    assert config.train == TrainConfig()
    assert config.eval == EvalConfig()


def test_int_is_accepted_for_float_and_none_unsets():
    config = load_config("breakout", {"train.learning_rate": 1, "vec.num_workers": None})
    assert isinstance(config.train.learning_rate, float)
    assert config.vec.num_workers is None


def test_numpy_numbers_and_whole_floats_are_converted(tmp_path):
    given = {"train.seed": np.int64(3), "train.learning_rate": np.float32(0.5), "train.total_timesteps": 1e6}
    config = load_config("breakout", given)
    config.save(tmp_path / "config.toml")
    assert Config.load(tmp_path / "config.toml") == config
    assert (config.train.seed, config.train.learning_rate, config.train.total_timesteps) == (3, 0.5, 1_000_000)
    assert type(config.train.total_timesteps) is int


@pytest.mark.parametrize("given", [[64, 32], (64, 32.0), "64,32", "64, 32", np.array([64, 32]).tolist()])
def test_list_of_ints_is_a_list_or_text_with_commas(given):
    assert load_config("breakout", {"policy.hidden_sizes": given}).policy.hidden_sizes == (64, 32)


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
        (
            {"policy.activation": "softplus"},
            APIUsageError,
            "'relu' or 'tanh' or 'silu' or 'elu' or 'gelu', got 'softplus'",
        ),
        ({"policy.networks": "two"}, APIUsageError, "networks must be 'shared' or 'separate', got 'two'"),
        ({"policy.hidden_sizes": 64}, APIUsageError, r"hidden_sizes must be a list of ints, got 64 \(int\)"),
        ({"policy.hidden_sizes": [64.5]}, APIUsageError, r"hidden_sizes must be int, got 64\.5 \(float\)"),
        ({"policy.hidden_sizes": "64,x"}, APIUsageError, r"hidden_sizes must be int, got 'x' \(str\)"),
        ({"policy.net_arch": [64]}, UnknownNameError, r"did you mean 'hidden_sizes'"),
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
            "lr_schedule must be 'constant' or 'linear' or 'cosine' or 'adaptive', got 'step'",
        ),
        ({"train.optimizer": True}, APIUsageError, "optimizer must be 'adam' or 'muon', got True"),
        (
            {"train.anneal_lr": False},
            UnknownNameError,
            'anneal_lr has become lr_schedule; write lr_schedule = "constant"',
        ),
        ({"seed": 1}, APIUsageError, "a key must be section.name, got 'seed'; for example train.seed"),
        ({"lr": 1}, APIUsageError, "a key must be section.name, got 'lr'; for example train.learning_rate"),
        ({"train": {"gamma": 1}}, APIUsageError, "a key must be section.name, got 'train'; for example train.gamma"),
        (1000, APIUsageError, 'overrides: must be a dict, as {"train.seed": 1}, got 1000'),
    ],
)
def test_unknown_key_or_wrong_type_raises(overrides, error, message):
    with pytest.raises(error, match=message):
        load_config("breakout", overrides)


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
def test_overrides_win_over_settings_for_a_gpu(monkeypatch, gpu, overrides, expected):
    monkeypatch.setattr(sources, "has_gpu", lambda: gpu)
    found = load_config("breakout", overrides)
    assert (found.env["num_envs"], found.train.minibatch_size) == expected


@pytest.mark.parametrize(
    ("env", "overrides", "expected"),
    [
        ("CartPole-v1", {}, ("separate", "tanh")),
        ("CartPole-v1", {"policy.activation": "elu"}, ("separate", "elu")),
        ("CartPole-v1", {"policy.name": "NatureCNN"}, ("shared", "relu")),
        ("squared", {}, ("shared", "relu")),
    ],
)
def test_perceptron_of_python_environments_outside_has_separate_networks(env, overrides, expected):
    found = load_config(env, overrides).policy
    assert (found.networks, found.activation) == expected


def test_file_with_settings_for_the_perceptron(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[perceptron.policy]\nlayer_norm = true\n["breakout".perceptron.policy]\nactivation = "silu"\n')
    assert load_config("squared", {}, file).policy.layer_norm
    assert load_config("breakout", {}, file).policy.activation == "silu"
    assert not load_config("squared", {"policy.name": "NatureCNN"}, file).policy.layer_norm


def test_file_with_settings_for_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "has_gpu", lambda: True)
    file = tmp_path / "mine.toml"
    file.write_text("[train]\nhorizon = 16\nseed = 1\n[cuda.train]\nhorizon = 64\n")
    assert load_config("breakout", {"train.seed": 2}, file).train.horizon == 64
    assert load_config("breakout", {"train.device": "cpu"}, file).train.horizon == 16
    file.write_text("[cuda.train]\nhorizont = 64\n")
    with pytest.raises(UnknownNameError, match=r"mine.toml, \[cuda\], \[train\]"):
        load_config("breakout", {}, file)
