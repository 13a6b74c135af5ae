"""The examples in the style of CleanRL run on Gymnasium's vectorization and on ours, and with our policies.

EnvPool is not installed, so ppo_atari_envpool.py is tested only on our environments.
"""

import functools
import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from pufferlib.frameworks.cleanrl import Policy, RecurrentPolicy
from pufferlib.models import make_policy

FOLDER = Path(__file__).parents[2] / "examples" / "cleanrl"
FILES = ["ppo", "ppo_atari", "ppo_atari_envpool", "ppo_atari_lstm"]
SHORT = {"num_envs": 2, "num_steps": 4, "num_minibatches": 2, "update_epochs": 1, "total_timesteps": 16}


@pytest.fixture(params=["ppo", pytest.param("ppo_atari", marks=pytest.mark.all), "ppo_atari_lstm"])
def example(request, monkeypatch):
    return load(request.param, monkeypatch)


def load(name, monkeypatch):
    """Import an example as a module that worker processes cannot import."""
    if name != "ppo":
        pytest.importorskip("ale_py")
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    return module


def test_every_example_file_is_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == FILES


@pytest.mark.parametrize("vectorization", [pytest.param("gymnasium", marks=pytest.mark.all), "pufferlib"])
def test_example_runs_on_both_vectorizations(example, vectorization):
    made = []
    agent_class = example.Agent
    example.Agent = lambda envs: made.append(agent_class(envs)) or made[-1]
    torch.manual_seed(1)
    example.main(example.Args(vectorization=vectorization, **SHORT))
    assert all(torch.isfinite(weights).all() for weights in made[0].parameters())
    assert any(parameter.grad.any() for parameter in made[0].parameters())


def test_our_policies_work_in_the_example(example):
    recurrent = example.__name__.endswith("lstm")
    kind, name = RecurrentPolicy if recurrent else Policy, "Default" if example.__name__ == "ppo" else "NatureCNN"
    make = functools.partial(make_policy, name=name, hidden_size=16, memory="LSTM" if recurrent else "none")
    made = []
    example.Agent = lambda envs: made.append(kind(make(envs.vecenv.driver_env))) or made[-1]
    example.main(example.Args(vectorization="pufferlib", **SHORT))
    assert all(torch.isfinite(weights).all() for weights in made[0].parameters())
    assert any(parameter.grad.any() for parameter in made[0].parameters())


@pytest.mark.all
def test_envpool_example_runs_on_our_environments(monkeypatch, capsys):
    example = load("ppo_atari_envpool", monkeypatch)
    example.main(example.Args(**{**SHORT, "num_steps": 512, "total_timesteps": 1024}))
    assert "1,024 steps, " in capsys.readouterr().out


def test_example_prints_episode_returns(capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("ppo", FOLDER / "ppo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    for vectorization in ("gymnasium", "pufferlib"):
        module.main(module.Args(vectorization=vectorization, num_envs=4, num_steps=64, total_timesteps=256))
        assert "256 steps, " in capsys.readouterr().out
