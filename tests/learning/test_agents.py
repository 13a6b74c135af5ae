"""Tests of the trained agents that ship with environments."""

import json
import math
from pathlib import Path

import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.runs.find import shipped_agent
from pufferlib.training.agent import load_policy
from pufferlib.training.evaluation import evaluate
from tests.needs import missing_binding
from tests.tiers import once

OCEAN = [*ocean.names(), *ocean.python_names()]
DOCS = Path(__file__).parents[2] / "docs"
KNOWN_GOOD = {path: json.loads(path.read_text()) for path in sorted((DOCS / "known-good").glob("*.json"))}
RESULTS = {name: DOCS / "curves" / f"{name}.json" for name in OCEAN} | {
    record["env_name"]: path
    for path, record in KNOWN_GOOD.items()
    if record["agent"]  # a large agent does not ship
}


def documented_agent(name):
    """Return score, deviation, number of episodes and way to act of the agent that ships with an environment."""
    record = json.loads(RESULTS[name].read_text())
    if name in OCEAN:
        return record["score"], record["score_std"], record["episodes"], record.get("greedy")
    agent = record["agent"]
    return agent["score"], agent["score_std"], 100, agent["way"] == "greedy"


@pytest.fixture
def name(request):
    if "/" in request.param and (reason := missing_binding(request.param.partition("/")[0])):
        pytest.skip(reason)
    return request.param


# An environment of dm_control takes a quarter of a second to make, and several are made here.
QUICK = [name for name in RESULTS if not name.startswith("dmcontrol/") or name == "dmcontrol/walker-walk"]


@pytest.mark.parametrize("name", once(RESULTS, QUICK), indirect=True)
def test_shipped_agent_acts(name, tmp_path):
    agent = pufferlib.load(name, runs=tmp_path)
    with pufferlib.vector.make(pufferlib.env_creator(name), num_envs=1, backend="Serial") as vecenv:
        observations, _ = vecenv.reset(0)
        vecenv.step(agent(observations))
    assert shipped_agent("test", name).checkpoint.stat().st_size < (2**20 if name in OCEAN else 200_000)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RESULTS, indirect=True)
def test_shipped_agent_reaches_documented_score(name):
    """Allow four standard errors below the documented score, which chance exceeds once in 30,000 times."""
    score, std, played, greedy = documented_agent(name)
    run = shipped_agent("test", name)
    config = run.settings({"train.device": "cpu"})
    if greedy is not None:
        config = run.settings({"train.device": "cpu", "eval.greedy": greedy})
    episodes = min(100, played // 2 + 1)  # environments with long episodes document fewer
    result = evaluate(config, load_policy(config, run), episodes=episodes)
    error = math.hypot(std / math.sqrt(played), result.score_std / math.sqrt(result.episodes))
    assert result.score_mean >= score - 4 * error - 1e-9
