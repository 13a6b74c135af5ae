"""Tests of suggestions for unknown settings."""

import pytest

from pufferlib.settings.config import setting_names
from pufferlib.settings.suggestions import ELSEWHERE, MEANT, suggest


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("train.lr", ["train.learning_rate"]),
        ("lr", ["train.learning_rate"]),
        ("train.n_steps", ["train.horizon"]),
        ("num_steps", ["train.horizon"]),
        ("train.total_steps", ["train.total_timesteps"]),
        ("train.total", ["train.total_timesteps"]),
        ("train.lerning_rate", ["train.learning_rate"]),
        ("train.batch_size", ["train.minibatch_size"]),
        ("batch_size", ["vec.batch_size", "train.minibatch_size"]),
        ("train.hidden_size", ["policy.hidden_size"]),
        ("train.n_envs", ["vec.num_envs"]),
        ("use_lstm", ["policy.memory"]),
        ("seed", ["train.seed", "eval.seed"]),
        ("trian.seed", ["train.seed", "eval.seed"]),
        ("evall.seed", ["eval.seed", "train.seed"]),
        ("train.qqqqqq", []),
        ("train._", []),
        ("", []),
    ],
)
def test_suggest_lists_best_match_first(wrong: str, meant: list[str]) -> None:
    assert suggest(wrong, setting_names()) == meant


def test_names_of_other_libraries_map_to_settings() -> None:
    settings = setting_names()
    names = {setting.partition(".")[2] for setting in settings}
    assert ELSEWHERE.keys() <= names
    for name, meant in MEANT.items():
        sections = {setting.partition(".")[0] for setting in settings if setting.endswith(f".{meant}")}
        assert not {f"{section}.{name}" for section in sections} & {*settings}
