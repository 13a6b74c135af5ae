"""Tests of pufferlib.train."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
import torch
from torch.nn.utils import parameters_to_vector

import pufferlib
from pufferlib.models import Policy
from pufferlib.registry import outside
from pufferlib.settings.config import TrainConfig, load_config
from pufferlib.training import Losses, Minibatch, ppo_loss
from pufferlib.training.launch import train
from pufferlib.vector import Bundle, replay
from tests.loggers import ListLogger
from tests.tiers import once

pytestmark = pytest.mark.usefixtures("blank_curves")

QUICK = {
    "train.total_timesteps": 1024, "train.device": "cpu", "train.num_threads": 1, "policy.hidden_size": 8,
    "eval.episodes": 2, "eval.max_steps": 600, "eval.video_seconds": 1, "vec.backend": "Serial", "vec.num_envs": 2,
}  # fmt: skip


def pole(max_episode_steps: int = 20) -> gymnasium.Env:
    return gymnasium.make("CartPole-v1", max_episode_steps=max_episode_steps)


@pytest.mark.usefixtures("drawn_curves")
def test_train_accepts_function_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = ListLogger()
    done = pufferlib.train(pole, QUICK, runs=tmp_path, loggers=[metrics])
    assert done.config.env_name == f"{__name__}:pole"
    assert [row["agent_steps"] for row in metrics] == [1024]
    assert 1 <= done.comparison.agent.score_mean <= 20
    assert all(path.exists() for path in (done.run.config, done.run.metrics, done.run.curve, done.run.summary))
    again = train(resume=done.run.folder, runs=tmp_path)
    assert again.comparison.agent == done.comparison.agent, "the run was already finished"
    longer = train(resume=done.run.folder, runs=tmp_path, settings={"train.total_timesteps": 2048})
    assert longer.run.folder == done.run.folder
    assert longer.config.train.total_timesteps == 2048
    assert capsys.readouterr().out == ""
    settings = {"train.total_timesteps": 3072}
    train(resume=done.run.folder, runs=tmp_path, settings=settings, progress=True)
    assert re.search(r"100%  3.07k of 3.07k steps, 0:00 left, .*, score \d+", capsys.readouterr().out)


def test_result_can_be_pickled_and_copied(tmp_path: Path) -> None:
    done = train("squared", {**QUICK, "env.num_envs": 2, "vec.backend": "native", "vec.num_envs": 1}, runs=tmp_path)
    assert done.run.video.exists()
    for shown in (done, done.run):
        assert re.search("(?s)squared.*alt=.learning curve.*<video", shown._repr_html_()), "in a notebook"
    assert re.search("(?s)random play.*<video", done.comparison._repr_html_())
    assert "score_mean=" in repr(done)
    assert "Linear" not in repr(done), "no settings and no network"
    for other in (pickle.loads(pickle.dumps(done)), copy.deepcopy(done)):  # as by a ProcessPoolExecutor
        assert str(other.comparison) == str(done.comparison)
        assert other.comparison.as_dict() == done.comparison.as_dict()
        assert other._repr_html_() == done._repr_html_()
        assert torch.equal(
            parameters_to_vector(other.policy.parameters()), parameters_to_vector(done.policy.parameters())
        )


def test_settings_of_call_override_config_file(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f"[train]\ngamma = 0.5\nseed = 3\n[vec]\nrecord = '{tmp_path}/bundles'\n")
    done = train("CartPole-v1", {**QUICK, "train.seed": 4, "env.max_episode_steps": 9}, config=file, runs=tmp_path)
    assert (done.config.train.gamma, done.config.train.seed) == (0.5, 4)
    assert done.comparison.agent.score_mean <= 9
    bundles = [Bundle.load(path) for path in sorted((tmp_path / "bundles").iterdir())]
    assert [len(bundle.actions) for bundle in bundles] == [512, 512]
    assert all(replay(bundle).is_same for bundle in bundles)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=[pytest.mark.all, pytest.mark.timeout(600)])])
def test_train_minimizes_given_loss_in_all_processes(processes: int, tmp_path: Path) -> None:
    def zero(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        losses = ppo_loss(policy, batch, config)
        return losses._replace(total=0 * losses.total)

    settings = {**QUICK, "vec.backend": "native", "vec.num_envs": 1, "train.processes": processes}
    settings |= {"env.num_envs": 32, "train.horizon": 16, "train.minibatch_size": 256}
    trained = [
        train("squared", {**settings, "train.total_timesteps": steps}, loss=zero, runs=tmp_path)
        for steps in (1024, 2048)
    ]
    first, second = (parameters_to_vector(run.policy.parameters()) for run in trained)
    assert torch.equal(first, second)
    with pytest.warns(UserWarning, match="was trained with the loss .*zero, which this training does not have"):
        resumed = train(resume=trained[0].run.folder, settings={"train.total_timesteps": 2048}, runs=tmp_path)
    assert not torch.equal(first, parameters_to_vector(resumed.policy.parameters()))


def test_further_seeds_without_the_loss_warn(tmp_path: Path) -> None:
    def own(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        return ppo_loss(policy, batch, config)

    settings = {**QUICK, "vec.backend": "native", "vec.num_envs": 1, "env.num_envs": 32, "train.total_timesteps": 512}
    group = train("squared", settings, seeds=1, loss=own, runs=tmp_path).group.folder
    train(resume=group, seeds=2, loss=own, runs=tmp_path)
    with pytest.warns(UserWarning, match="was trained with the loss .*own, which this training does not have"):
        train(resume=group, seeds=3, runs=tmp_path)


def test_lambda_env_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "REGISTERED", {})
    done = train(lambda: pole(5), QUICK, runs=tmp_path)
    assert done.config.env_name == "lambda"
    assert list(outside.REGISTERED) == ["lambda"]


def test_registered_settings_are_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "REGISTERED", {})
    file = tmp_path / "train.toml"
    file.write_text("[train]\ngamma = 0.25\n")
    pufferlib.register("mine/pole", pole, settings={"vec": {"num_envs": 3}, "train": {"gamma": 0.5}})
    pufferlib.register("mine/other", pole, settings=file)
    pufferlib.register("mine/wrong", pole, settings={"train": {"lr": 0.5}})
    config = load_config("mine/pole")
    assert (config.vec.backend, config.vec.num_envs, config.train.gamma) == ("Multiprocessing", 3, 0.5)
    assert load_config("mine/other").train.gamma == 0.25
    with pytest.raises(pufferlib.UnknownNameError, match=r"settings of mine/wrong, \[train\]: unknown key 'lr'; did"):
        load_config("mine/wrong")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train(), r"pufferlib\.train: expected an environment, its name or what makes it, got None"),
        (lambda: train("squard"), r"pufferlib\.train: unknown environment 'squard'; did you mean 'squared'"),
        (lambda: train("squared", resume="squared"), "leave out env, config and vec"),
        (lambda: train(resume="nowhere"), "'nowhere' is not a run, a checkpoint or an environment"),
        (lambda: train("squared", {"train.lr": 1}), "unknown key 'lr'; did you mean 'learning_rate'"),
        (
            lambda: train("squared", vec="Serial"),
            "vec must be \"auto\" or None, got 'Serial'; give a layout of your own",
        ),
        (lambda: train(3), "env must be a name, a class or a function, got 3"),  # type: ignore[call-overload]
        (lambda: train("squared", "x"), "settings must be a dict such as .*, got 'x'"),  # type: ignore[call-overload]
        (lambda: train("squared", runs=None), "runs must be the path of a folder, got None"),  # type: ignore[call-overload]
        (lambda: train("squared", callbacks=len), "callbacks must be a list, got <built-in"),  # type: ignore[call-overload]
        (lambda: train("squared", loggers="csv"), "loggers must be a list of .*, got 'csv'; .*track="),  # type: ignore[arg-type]
        (lambda: train("squared", loggers=["csv"]), "a logger must be an object with .*, got 'csv'"),  # type: ignore[list-item]
    ],
)
def test_invalid_call_raises(call: object, message: str, tmp_path: Path) -> None:
    assert callable(call)
    with pytest.raises(pufferlib.APIUsageError, match=message):
        call()


def test_train_in_script_of_launcher_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(pufferlib.APIUsageError, match="a launcher started this script in 4 processes, and each would"):
        train("squared")


@pytest.mark.all
def test_train_function_and_training_package_coexist() -> None:
    code = (
        "import sys, pufferlib, pufferlib.training; assert 'torch' not in sys.modules\n"
        "import pufferlib.settings.config as c; assert pufferlib.settings.config is c and callable(pufferlib.train)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("package", once(["torch", "safetensors"], ["torch"]))
def test_missing_package_raises_before_training(package: str) -> None:
    code = f"import sys; sys.modules['{package}'] = None; import pufferlib; pufferlib.train('squared')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    message = f"BindingMissing: pufferlib.train: the package {package} is not installed; "
    assert message in done.stderr.splitlines()[-1]
