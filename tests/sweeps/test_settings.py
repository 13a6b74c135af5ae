"""Settings of a search: files, flags and defaults over each other, and what is wrong with them before any training."""

import pytest

from pufferlib.errors import APIUsageError
from pufferlib.sweeps.settings import load_search, own_value, with_settings
from pufferlib.training.config import load_config


def search(fixed=None, file=None, **overrides):
    base = load_config("squared", fixed)
    sources = [("mine.toml", {"sweep": file})] if file else []
    return load_search(base, fixed or {}, sources, {key.replace("__", "."): value for key, value in overrides.items()})


def test_every_environment_has_default_spaces_around_its_own_values():
    space = search().spaces["train.learning_rate"]
    own = load_config("squared").train.learning_rate
    assert (space.distribution, space.low, space.high) == ("log", own / 10, own * 10)
    assert {"train.gamma", "train.ent_coef", "train.minibatch_size"} <= set(search().spaces)
    assert "train.total_timesteps" not in search().spaces
    assert search(objective="score,cost").spaces["train.total_timesteps"].high == 5_000_000


def test_later_sources_change_earlier_ones_key_by_key():
    file = {"trials": 7, "workers": 2, "train": {"gamma": {"min": 0.9}}}
    found = search(file=file, trials=9, train__gamma__max=0.99)
    assert (found.sweep.trials, found.sweep.workers) == (9, 2)
    gamma = found.spaces["train.gamma"]
    assert (gamma.distribution, gamma.low, gamma.high) == ("logit", 0.9, 0.99)


def test_another_distribution_keeps_only_what_it_takes():
    file = {"train": {"gamma": {"distribution": "choice", "choices": [0.9, 0.99]}}}
    assert search(file=file).spaces["train.gamma"].choices == (0.9, 0.99)
    uniform = search(train__gamma__distribution="uniform").spaces["train.gamma"]
    assert (uniform.distribution, uniform.low, uniform.high) == ("uniform", 0.8, 0.9999)


@pytest.mark.parametrize("setting", ["optimizer", "gamma"])  # without a space before, and with bounds
def test_choices_need_no_distribution(setting):
    values = {"optimizer": ["adam", "muon"], "gamma": [0.9, 0.95]}[setting]
    space = search(**{f"train__{setting}__choices": values}).spaces[f"train.{setting}"]
    assert (space.distribution, space.choices) == ("choice", tuple(values))


def test_what_has_a_value_is_not_searched():
    assert "train.gamma" not in search({"train.gamma": 0.5}).spaces
    assert "train.gamma" not in search(train__gamma__distribution="fixed").spaces
    with pytest.raises(APIUsageError, match=r"sweep.train.gamma: is given a space, and train.gamma a value .*\(0.5\)"):
        search({"train.gamma": 0.5}, train__gamma__min=0.1)


def test_only_some_may_be_searched():
    assert list(search(only="train.ent-coef, train.gamma").spaces) == ["train.ent_coef", "train.gamma"]
    with pytest.raises(APIUsageError, match=r"sweep.only: unknown space 'train.gama'; did you mean 'train.gamma'"):
        search(only="train.gama")
    with pytest.raises(APIUsageError, match=r"sweep.only: train.gamma must have a space, got a value"):
        search({"train.gamma": 0.5}, only="train.gamma")


def test_keywords_of_the_environment_and_other_sections_can_be_searched():
    size = {"size": {"distribution": "int", "min": 3, "max": 9}}
    file = {"env": size, "policy": {"hidden_size": {"distribution": "pow2", "min": 16, "max": 64}}}
    found = search(file=file, train__optimizer__distribution="choice", train__optimizer__choices=["adam", "muon"])
    assert found.spaces["env.size"].is_whole
    assert found.spaces["policy.hidden_size"].is_whole
    assert found.spaces["train.optimizer"].choices == ("adam", "muon")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"trials": 0}, r"sweep.trials must be at least 1, got 0"),
        ({"workers": 0}, r"sweep.workers must be at least 1, got 0"),
        ({"trails": 5}, r"overrides, \[sweep\]: unknown key 'trails'; did you mean 'trials'"),
        ({"gamma": 5}, r"unknown key 'gamma'; did you mean 'train.gamma'"),
        ({"objective": "speed"}, r"sweep.objective must be 'score' or 'score,cost', got 'speed'"),
        ({"train__gama__min": 0.1}, r"unknown setting 'train.gama'; did you mean 'train.gamma'"),
        ({"train__gamma": 0.1}, r"sweep.train.gamma must be a space, as \{distribution = .*, got 0.1"),
        ({"train__gamma__max": 1.5}, r"train.gamma: max must be from 0 to 1, got 1.5"),
        ({"train__horizon__min": 9}, r"must be powers of two for pow2, got 9.0 to 256.0; try 8 and 256"),
        ({"train__update_epochs__max": 2.5}, r"min and max must be whole numbers, got 1.0 and 2.5"),
        ({"train__update_epochs__distribution": "logit"}, r"update_epochs takes whole numbers: .*, got logit"),
        ({"train__gamma__distribution": "int"}, r"train.gamma takes any number: .*, got int"),
        ({"train__optimizer__distribution": "log", "train__optimizer__min": 1, "train__optimizer__max": 2},
         r"train.optimizer is no number: distribution must be choice, got log"),
        ({"train__optimizer__distribution": "choice", "train__optimizer__choices": ["adm"]},
         r"train.optimizer: choices must be 'adam' or 'muon', got 'adm'"),
        ({"objective": "score,cost", "cost": "steps", "train__total_timesteps__distribution": "fixed"},
         r"all trials have the same steps unless train.total_timesteps is searched"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_is_allowed(overrides, message):
    with pytest.raises(APIUsageError, match=message):
        search(**overrides)


def test_nothing_to_search_is_an_error():
    with pytest.raises(APIUsageError, match="nothing is left to search"):
        search(**{f"{key.replace('.', '__')}__distribution": "fixed" for key in search().spaces})


def test_training_leaves_the_table_of_a_search_aside(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[train]\nseed = 7\n[sweep.train.gamma]\ndistribution = 'fixed'\n")
    assert load_config("squared", file=file).train.seed == 7


def test_settings_are_laid_over_a_config():
    config = with_settings(load_config("squared"), {"env.size": 5, "train.gamma": 0.5, "policy.hidden_size": 8})
    assert [own_value(config, key) for key in ("env.size", "train.gamma", "policy.hidden_size")] == [5, 0.5, 8]
    with pytest.raises(APIUsageError, match=r"train.gamma must be from 0 to 1, got 2"):
        with_settings(config, {"train.gamma": 2})


def test_bounds_may_be_multiples_of_a_default_in_an_own_file(tmp_path):
    (tmp_path / "my_env.py").write_text(
        "import gymnasium\nclass Forage(gymnasium.Env):\n    def __init__(self, length: int = 8): pass\n"
    )
    base = load_config(f"{tmp_path}/my_env.py:Forage")
    space = {"env.length.distribution": "int", "env.length.min": "0.5x", "env.length.max": "2x"}
    found = load_search(base, {}, [], space)
    assert (found.own_value("env.length"), found.spaces["env.length"].low, found.spaces["env.length"].high) == (
        8,
        4,
        16,
    )
