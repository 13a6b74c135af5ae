"""Result of a finished search."""

import json

import optuna
import pytest

import pufferlib
from pufferlib.errors import APIUsageError
from pufferlib.settings.config import load_config
from pufferlib.sweeps import load_sweep
from pufferlib.web.board import Board
from pufferlib.web.server import Request
from tests.trials import TINY


def test_study_has_requested_number_of_trials(done):
    assert [trial.number for trial in done.trials] == [0, 1, 2, 3]
    assert {trial.state for trial in done.trials} <= {"finished", "pruned"}
    assert isinstance(done.study, optuna.Study)
    assert len({json.dumps(trial.settings) for trial in done.trials}) == 4


def test_first_trial_has_default_settings(done):
    own = load_config("squared").train
    first = done.trials[0].settings
    assert first == {
        "train.learning_rate": own.learning_rate,
        "train.gamma": own.gamma,
        "train.update_epochs": own.update_epochs,
    }


def test_each_trial_has_complete_run(done):
    for trial in done.trials:
        settings = trial.run.settings()
        assert settings.train.gamma == trial.settings["train.gamma"]
        assert settings.env["num_envs"] == 32
        if trial.state == "finished":
            summary = json.loads(trial.run.summary.read_text())
            assert summary["score"] == trial.score
            assert trial.steps == summary["agent_steps"] == 4096
            assert trial.run.has_checkpoint
            assert trial.run.curve.exists()
    assert callable(pufferlib.load(done.best.run.folder))


def test_best_settings_are_saved(done):
    best = load_config("squared", file=done.save_best())
    assert best.train.gamma == done.best.settings["train.gamma"]
    assert best.train.total_timesteps == 4096
    assert f"--train.gamma {done.best.settings['train.gamma']}" in done.flags(done.best)
    assert done.best.score == max(trial.score for trial in done.trials if trial.state == "finished")


def test_importances_are_shares_of_the_searched_settings(done):
    importances = done.importances
    assert set(importances) in ({*done.about["spaces"]}, set())  # none if a trial was pruned
    assert list(importances.values()) == sorted(importances.values(), reverse=True)


def test_board_shows_trials(done):
    board = Board(done.folder)
    sweep = json.loads(board(Request("/data/sweep/0.json", {}, {})).body)
    assert [trial["number"] for trial in sweep["trials"]] == [0, 1, 2, 3]
    assert sweep["best"] == done.best.number
    assert sweep["command"] == f"puffer train squared {done.flags(done.best)}"
    assert {space["setting"] for space in sweep["spaces"]} == set(done.about["spaces"])
    assert {trial["run"] for trial in sweep["trials"]} == {f"trial-{number:04}" for number in range(4)}


@pytest.mark.all
def test_best_settings_include_those_of_config_file(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(
        "[env]\nnum_envs = 32\n[train]\ntotal_timesteps = 2048\nminibatch_size = 512\n"
        "[squared.policy]\nhidden_sizes = [16, 8]\n[eval]\nepisodes = 2\n[track]\ntags = ['a']\n"
    )
    few = {"train.device": "cpu", "train.horizon": 16}
    found = pufferlib.sweep("squared", few, config=file, only="train.gamma", trials=1, sweeps=tmp_path)
    best, trial = load_config("squared", file=found.save_best()), found.best.run.settings()
    assert (best.env, best.policy, best.eval) == (trial.env, trial.policy, trial.eval)
    assert (best.train.total_timesteps, best.train.minibatch_size) == (2048, 512)
    assert best.track.tags == ()
    assert "--policy.hidden-sizes 16,8" in found.flags(found.best)


@pytest.mark.all
def test_trials_of_another_policy_have_no_options_of_default(tmp_path):
    file = tmp_path / "img.py"
    file.write_text(
        "import gymnasium\nimport numpy as np\n\n\nclass Img(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 3), np.uint8)\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n        return self.observation_space.sample(), {}\n\n"
        "    def step(self, action):\n        return self.observation_space.sample(), 1.0, True, False, {}\n"
    )
    few = {key: value for key, value in TINY.items() if not key.startswith("env.")}
    few |= {"train.minibatch_size": 64, "train.total_timesteps": 64, "vec.num_envs": 4}
    spaces = {"policy.name": {"choices": ["NatureCNN", "ResNet"]}}
    found = pufferlib.sweep(str(file), few, spaces=spaces, only="policy.name", trials=2, sweeps=tmp_path)
    default, other = (trial.run.settings().policy for trial in found.trials)
    assert (default.name, default.networks, default.activation) == ("Default", "separate", "tanh")
    assert other.name in ("NatureCNN", "ResNet")
    assert (other.networks, other.activation) == ("shared", "relu")


def test_front_has_no_dominated_trials(done):
    front = done.front
    assert done.best.number in [trial.number for trial in front]
    assert [trial.score for trial in front] == sorted({trial.score for trial in front})
    assert [trial.seconds for trial in front] == sorted(trial.seconds for trial in front)


def test_unknown_sweep_lists_existing_ones(done):
    with pytest.raises(APIUsageError, match=r"no sweep 'cube' in .*; there are squared; start it: .* sweep cube"):
        load_sweep("cube", done.folder.parent)
