"""Search spaces and the settings of a search: defaults, files and flags, and invalid values."""

import numpy as np
import pytest

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.settings.config import load_config
from pufferlib.sweeps.spaces import Space, check_table, load_search, parse_bound, setting_value, with_settings


def load(fixed=None, file=None, **overrides):
    """Load a search of ``squared``. Dots in the names of overrides are written as two underscores."""
    base = load_config("squared", fixed)
    sources = [("mine.toml", {"sweep": file})] if file else []
    return load_search(base, fixed or {}, sources, {key.replace("__", "."): value for key, value in overrides.items()})


def test_default_spaces_depend_on_environment_defaults():
    space = load().spaces["train.learning_rate"]
    own = load_config("squared").train.learning_rate
    assert (space.distribution, space.low, space.high) == ("log", own / 10, own * 10)
    assert {"train.gamma", "train.ent_coef", "train.minibatch_size"} <= set(load().spaces)
    assert "train.total_timesteps" not in load().spaces
    assert load(objective="score,cost").spaces["train.total_timesteps"].high == 5_000_000


def test_later_sources_override_single_keys():
    file = {"trials": 7, "workers": 2, "train": {"gamma": {"min": 0.9}}}
    found = load(file=file, trials=9, train__gamma__max=0.99)
    assert (found.sweep.trials, found.sweep.workers) == (9, 2)
    gamma = found.spaces["train.gamma"]
    assert (gamma.distribution, gamma.low, gamma.high) == ("logit", 0.9, 0.99)


def test_new_distribution_drops_unused_keys():
    file = {"train": {"gamma": {"distribution": "choice", "choices": [0.9, 0.99]}}}
    assert load(file=file).spaces["train.gamma"].choices == (0.9, 0.99)
    uniform = load(train__gamma__distribution="uniform").spaces["train.gamma"]
    assert (uniform.distribution, uniform.low, uniform.high) == ("uniform", 0.8, 0.9999)


@pytest.mark.parametrize("setting", ["optimizer", "gamma"])  # without a default space, and with bounds
def test_choices_imply_distribution(setting):
    values = {"optimizer": ["adam", "muon"], "gamma": [0.9, 0.95]}[setting]
    space = load(**{f"train__{setting}__choices": values}).spaces[f"train.{setting}"]
    assert (space.distribution, space.choices) == ("choice", tuple(values))


@pytest.mark.filterwarnings("error")
def test_choices_of_lists_are_stored_as_text():
    space = load(policy__hidden_sizes__choices=[[64, 64], "256"]).spaces["policy.hidden_sizes"]
    assert space.choices == ("64,64", "256")
    assert space.to_optuna().choices == space.choices
    assert space.encode((256,)) == "256"
    config = with_settings(load_config("squared"), {"policy.hidden_sizes": space.decode("64,64")})
    assert config.policy.hidden_sizes == (64, 64)


def test_fixed_settings_are_not_searched():
    assert "train.gamma" not in load({"train.gamma": 0.5}).spaces
    assert "train.gamma" not in load(train__gamma__distribution="fixed").spaces
    with pytest.raises(APIUsageError, match=r"sweep.train.gamma: is given a space, and train.gamma a value .*\(0.5\)"):
        load({"train.gamma": 0.5}, train__gamma__min=0.1)


def test_only_selects_spaces():
    assert list(load(only="train.ent-coef, train.gamma").spaces) == ["train.ent_coef", "train.gamma"]
    with pytest.raises(APIUsageError, match=r"sweep.only: unknown space 'train.gama'; did you mean 'train.gamma'"):
        load(only="train.gama")
    with pytest.raises(APIUsageError, match=r"sweep.only: train.gamma must have a space, got a value"):
        load({"train.gamma": 0.5}, only="train.gamma")


def test_env_and_policy_settings_can_be_searched():
    size = {"size": {"distribution": "int", "min": 3, "max": 9}}
    file = {"env": size, "policy": {"hidden_size": {"distribution": "pow2", "min": 16, "max": 64}}}
    found = load(file=file, train__optimizer__distribution="choice", train__optimizer__choices=["adam", "muon"])
    assert found.spaces["env.size"].is_integer
    assert found.spaces["policy.hidden_size"].is_integer
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
def test_invalid_settings_raise(overrides, message):
    with pytest.raises(APIUsageError, match=message):
        load(**overrides)


def test_empty_search_raises():
    with pytest.raises(APIUsageError, match="nothing is left to search"):
        load(**{f"{key.replace('.', '__')}__distribution": "fixed" for key in load().spaces})


def test_load_config_ignores_sweep_table(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[train]\nseed = 7\n[sweep.train.gamma]\ndistribution = 'fixed'\n")
    assert load_config("squared", file=file).train.seed == 7


def test_with_settings_replaces_values():
    config = with_settings(load_config("squared"), {"env.size": 5, "train.gamma": 0.5, "policy.hidden_size": 8})
    assert [setting_value(config, key) for key in ("env.size", "train.gamma", "policy.hidden_size")] == [5, 0.5, 8]
    with pytest.raises(APIUsageError, match=r"train.gamma must be from 0 to 1, got 2"):
        with_settings(config, {"train.gamma": 2})


def test_bounds_are_multiples_of_signature_defaults(tmp_path):
    (tmp_path / "my_env.py").write_text(
        "import gymnasium\nclass Forage(gymnasium.Env):\n    def __init__(self, length: int = 8): pass\n"
    )
    base = load_config(f"{tmp_path}/my_env.py:Forage")
    space = {"env.length.distribution": "int", "env.length.min": "0.5x", "env.length.max": "2x"}
    found = load_search(base, {}, [], space)
    length = found.spaces["env.length"]
    assert (setting_value(base, "env.length"), length.low, length.high) == (8, 4, 16)


def draws(space, count=2000):
    distribution = space.to_optuna()
    rng = np.random.default_rng(0)
    if distribution.log:
        drawn = np.exp(rng.uniform(np.log(distribution.low), np.log(distribution.high), count))
    else:
        drawn = rng.uniform(distribution.low, distribution.high, count)
    return np.array([space.decode(round(each) if space.is_integer else each) for each in drawn])


@pytest.mark.parametrize(
    ("space", "low", "middle", "high"),
    [
        (Space("train.clip_coef", "uniform", 0.1, 0.3), 0.1, 0.2, 0.3),
        (Space("train.learning_rate", "log", 1e-4, 1e-2), 1e-4, 1e-3, 1e-2),
        (Space("train.gamma", "logit", 0.01, 0.99), 0.01, 0.5, 0.99),
        (Space("train.horizon", "pow2", 16, 256, is_integer=True), 16, 64, 256),
        (Space("train.update_epochs", "int", 1, 9, is_integer=True), 1, 5, 9),
        (Space("train.total_timesteps", "log", 100, 10_000, is_integer=True), 100, 1000, 10_000),
    ],
    ids=lambda value: value.distribution if isinstance(value, Space) else "",
)
def test_median_draw_is_middle_of_scale(space, low, middle, high):
    values = draws(space)
    assert values.min() >= low
    assert values.max() <= high
    assert np.median(values) == pytest.approx(middle, rel=0.15)
    assert all(space.contains(value) for value in values)
    assert all(isinstance(value.item(), int) for value in values) == space.is_integer


def test_decode_inverts_encode():
    for value in (0.9, 0.99, 0.9987, 0.5):
        space = Space("train.gamma", "logit", 0.5, 0.9999)
        assert space.decode(space.encode(value)) == pytest.approx(value, rel=1e-12)
    space = Space("train.optimizer", "choice", choices=("adam", "muon"))
    assert space.decode(space.encode("muon")) == "muon"


def test_encode_clips_to_bounds():
    space = Space("train.ent_coef", "log", 1e-5, 0.2)
    assert space.decode(space.encode(0.0)) == 1e-5
    assert not space.contains(0.0)
    assert Space("train.horizon", "pow2", 8, 64, is_integer=True).encode(100) == 6


def test_param_name_contains_scale():
    assert Space("train.gamma", "logit", 0.5, 0.9).param_name == "logit(train.gamma)"
    assert Space("train.horizon", "pow2", 8, 64).param_name == "log2(train.horizon)"
    assert Space("train.ent_coef", "log", 0.1, 1).param_name == "train.ent_coef"


@pytest.mark.parametrize(
    ("distribution", "low", "high", "message"),
    [
        ("uniform", 2, 1, "min must be less than max, got min 2 and max 1"),
        ("log", 0, 1, "min must be above 0 for log, got 0 to 1"),
        ("logit", 0.5, 1.0, "between 0 and 1, and neither, for logit, got 0.5 to 1.0"),
        ("pow2", 10, 100, "powers of two for pow2, got 10 to 100; try 8 and 128"),
        ("uniform", 0, float("inf"), "min must be less than max"),
    ],
)
def test_invalid_bounds_raise(distribution, low, high, message):
    with pytest.raises(APIUsageError, match=message):
        Space("train.ent_coef", distribution, low, high)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"distribution": "log", "min": 1, "maximum": 2}, "unknown key 'maximum'; did you mean"),
        ({"distribution": "logg", "min": 1, "max": 2}, "unknown distribution 'logg'; did you mean 'log'"),
        ({"min": 1, "max": 2}, "must have a distribution: uniform, log, .*; got none"),
        ({"distribution": "log", "min": 1}, "log needs max, got distribution = 'log', min = 1"),
        ({"distribution": "choice", "choices": []}, "choices must be a list of at least one value"),
    ],
)
def test_invalid_tables_raise(table, message):
    with pytest.raises((APIUsageError, UnknownNameError), match=f"mine.toml: sweep.train.gamma: {message}"):
        check_table("mine.toml: sweep.train.gamma", table)


def test_bound_is_multiple_of_default():
    assert parse_bound("here", "min", "0.1x", 0.02) == pytest.approx(0.002)
    with pytest.raises(APIUsageError, match=r"min '0.1x' is a multiple of the environment's own value, which is 0"):
        parse_bound("here", "min", "0.1x", 0)
    with pytest.raises(APIUsageError, match=r"here: min must be a number, or a multiple .*, got 'ax'"):
        parse_bound("here", "min", "ax", 1.0)
