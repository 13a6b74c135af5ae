"""Training in a few Python environments with the default settings."""

import functools
import statistics

import gymnasium
import pytest

import pufferlib
from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.settings.config import load_config
from pufferlib.training.trainer import Trainer

pytestmark = pytest.mark.timeout(900)


def make(name, buf=None, seed=0):
    return GymnasiumPufferEnv(pufferlib.EpisodeStats(gymnasium.make(name)), buf=buf, seed=seed)


@pytest.mark.parametrize(
    ("name", "num_envs", "steps", "score"),
    [
        ("CartPole-v1", 8, 60_000, 400.0),  # 22 at random, 500 at best
        pytest.param("Pendulum-v1", 4, 60_000, -300.0, marks=pytest.mark.all),  # -1,200 at random, about -150 at best
    ],
)
def test_default_settings_learn(name, num_envs, steps, score, tmp_path):
    envs = vector.make(functools.partial(make, name), num_envs=num_envs, backend="Serial", autoreset="same_step")
    trainer = Trainer(load_config("mine", {"train.device": "cpu"}), tmp_path, vecenv=envs)
    reports = []
    while len(reports) < 5 or statistics.fmean(reports[-5:]) < score:
        assert trainer.agent_steps < steps, reports[-5:]
        report = trainer.step().get("environment/score")  # not every update has one
        reports += [] if report is None else [report]
    trainer.close()
    assert reports[0] < score
