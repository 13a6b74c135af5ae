"""Tests of the trained agents that ship with Ocean environments."""

import json
import math
from pathlib import Path

import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.runs.folder import find_run
from pufferlib.training.agent import load_policy
from pufferlib.training.evaluation import evaluate

NAMES = [*ocean.names(), *ocean.python_names()]
CURVES = Path(__file__).parents[2] / "docs" / "curves"


@pytest.mark.parametrize("name", NAMES)
def test_shipped_agent_acts(name, tmp_path):
    agent = pufferlib.load(name, runs=tmp_path)
    with pufferlib.vector.make(pufferlib.env_creator(name), num_envs=2, backend="Serial") as vecenv:
        observations, _ = vecenv.reset(0)
        vecenv.step(agent(observations))
    assert ocean.agent_file(name).stat().st_size < 2**20


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_shipped_agent_reaches_documented_score(name, tmp_path):
    """Allow four standard errors below the documented score, which chance exceeds once in 30,000 times."""
    documented = json.loads((CURVES / f"{name}.json").read_text())
    run = find_run("test", name, tmp_path)
    config = run.settings({"train.device": "cpu"})
    config = run.settings({"train.device": "cpu", "eval.greedy": documented.get("greedy", config.eval.greedy)})
    played = documented.get("episodes", config.eval.episodes)
    result = evaluate(
        config, load_policy(config, run), episodes=min(100, played // 2 + 1)
    )  # environments with long episodes document fewer
    error = math.hypot(documented["score_std"] / math.sqrt(played), result.score_std / math.sqrt(result.episodes))
    assert result.score_mean >= documented["score"] - 4 * error - 1e-9
