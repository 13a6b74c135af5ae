"""Tests of ``train.rescale_actions``: a policy acts in [-1, 1], and environments get actions within their bounds."""

import contextlib
import copy
import textwrap

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

import pufferlib
from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.cleanrl import CleanRLPolicy
from pufferlib.models import make_policy
from pufferlib.models.distributions import Gaussian
from pufferlib.settings.config import Config, SelfplayConfig, load_config
from pufferlib.training.build import build_policy
from pufferlib.training.opponent_pool import OpponentPool
from pufferlib.training.trainer import Trainer
from tests.envs import FunctionEnv

pytestmark = pytest.mark.usefixtures("blank_curves")

TARGET_ENV = """
    import gymnasium
    import numpy as np

    class Aim(gymnasium.Env):
        '''Task to take the action that the observation shows, which is between -0.8 and 0.8 in an interval.'''

        def __init__(self, low=0.0, high=1000.0):
            self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
            self.action_space = gymnasium.spaces.Box(low, high, (1,), np.float32)
            self.middle, self.half = (low + high) / 2, (high - low) / 2

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.left = 8
            return self._observe(), {}

        def _observe(self):
            self.aim = self.np_random.uniform(-0.8, 0.8)
            return np.array([self.aim], np.float32)

        def step(self, action):
            assert self.action_space.contains(action), action
            reward = -abs(float(action[0] - self.middle) / self.half - self.aim)
            self.left -= 1
            return self._observe(), reward, self.left == 0, False, {}
"""
SMALL = {
    "vec.backend": "Serial",
    "vec.num_envs": 8,
    "policy.hidden_size": 16,
    "policy.networks": "shared",
    "policy.activation": "relu",
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.horizon": 32,
    "train.minibatch_size": 64,
    "train.total_timesteps": 1024,
    "eval.episodes": 4,
    "eval.greedy": True,
}


@pytest.fixture
def aim(tmp_path):
    """Return the name of an environment with actions from 0 to 1000."""
    file = tmp_path / "aim.py"
    file.write_text(textwrap.dedent(TARGET_ENV))
    return f"{file}:Aim"


@pytest.mark.parametrize(
    ("env_name", "is_on"),
    [
        ("breakout", False),
        ("pendulum", False),
        ("pymultiagent", False),
        ("mujoco/Humanoid-v5", True),
        ("CartPole-v1", True),
        ("Pendulum-v1", True),
    ],
)
def test_rescaling_is_on_by_default_for_third_party_environments(env_name, is_on):
    assert load_config(env_name).train.rescale_actions is is_on
    assert load_config(env_name, {"train.rescale_actions": not is_on}).train.rescale_actions is not is_on


def test_own_python_and_c_files_are_rescaled(aim, tmp_path):
    assert load_config(aim).train.rescale_actions
    assert not Config(aim).train.rescale_actions


def test_environment_gets_actions_in_its_units_and_policy_acts_in_unit_interval(aim, tmp_path):
    with contextlib.closing(Trainer(load_config(aim, SMALL), tmp_path)) as trainer:
        trainer.step()
        rollout = trainer.rollout
        assert abs(float(rollout.actions.mean())) < 0.3
        assert 0.8 < float(rollout.actions.std()) < 1.2
        sent = trainer.vecenv.actions[:, 0]
        last = rollout.actions[-1, :, 0].numpy()
        assert sent == pytest.approx(np.clip(500 + 500 * last, 0, 1000), rel=1e-6)


WORKERS = {"vec.backend": "Multiprocessing", "vec.num_workers": 2, "vec.overwork": True}


@pytest.mark.parametrize(
    "settings", [{"train.overlap": "learning"}, {"train.overlap": "envs", **WORKERS}, {"vec.batch_size": 4, **WORKERS}]
)
def test_all_collectors_rescale(aim, tmp_path, settings):
    with contextlib.closing(Trainer(load_config(aim, {**SMALL, **settings}), tmp_path)) as trainer:
        score = trainer.step()["environment/episode_return"]
    assert -8 * 1.2 < score < -8 * 0.4  # of random play in [-1, 1]. Always 0 or 1,000 gives -8 or less


def test_run_is_loaded_evaluated_and_exported_in_units_of_the_space(aim, tmp_path):
    done = pufferlib.train(aim, SMALL, runs=tmp_path / "runs")
    agent = pufferlib.load(done.run.folder)
    observation = np.array([0.3], np.float32)
    with torch.no_grad():
        mean = agent.policy.forward_eval(torch.from_numpy(observation[None]))[0][0, 0]
    assert agent(observation) == pytest.approx([500 + 500 * float(mean)], rel=1e-6)
    assert abs(float(mean)) < 1
    assert done.config.train.rescale_actions
    assert done.comparison.agent.score_mean == pufferlib.training.evaluate(done.config, agent.policy).score_mean
    exported = pufferlib.export(done.run.folder, to="torch", path=tmp_path / "aim.pt2")
    program = torch.export.load(exported.path).module()
    action, mean_in_units, std, _ = program(torch.from_numpy(observation[None]))
    assert action.tolist() == [agent(observation).tolist()] == mean_in_units.tolist()
    assert std.item() == pytest.approx(500 * done.policy.log_std.detach().exp().item(), rel=1e-5)


@pytest.mark.filterwarnings("ignore:the bounds of actions should be near")
def test_run_without_the_setting_stays_without_it(aim, tmp_path):
    done = pufferlib.train(aim, {**SMALL, "train.rescale_actions": False}, runs=tmp_path / "runs")
    file = done.run.config
    text = file.read_text()
    assert "rescale_actions = false\n" in text
    file.write_text(text.replace("rescale_actions = false\n", ""))
    agent = pufferlib.load(done.run.folder)
    assert not agent.policy.distribution.is_rescaled
    assert agent(np.array([0.3], np.float32)) < 5
    longer = pufferlib.train(resume=done.run.folder, settings={"train.total_timesteps": 2048})
    assert not longer.policy.distribution.is_rescaled
    assert longer.comparison.agent.score_mean < -8 * 0.8  # near action 0, the end of the interval
    with pytest.raises(APIUsageError, match=r"a resumed run keeps its settings, got --train.rescale-actions True"):
        pufferlib.train(resume=done.run.folder, settings={"train.rescale_actions": True})


@pytest.mark.filterwarnings("ignore:the bounds of actions should be near")
def test_initial_weights_must_have_the_same_units(aim, tmp_path):
    done = pufferlib.train(aim, SMALL, runs=tmp_path / "runs")
    for settings, message in (
        ({}, ""),
        ({"train.rescale_actions": False}, "rescale_actions true, got false; add --train.rescale-actions True"),
        ({"train.rescale_actions": False, "env.low": -1.0, "env.high": 1.0}, ""),
    ):
        config = load_config(aim, {**SMALL, "train.init": str(done.run.folder), **settings})
        error = pytest.raises(APIUsageError, match=message) if message else contextlib.nullcontext()
        with contextlib.closing(Trainer(config, tmp_path)) as trainer, error:
            trainer.step()


@pytest.fixture
def vecenv():
    space = Box(np.array([0, -1, -np.inf, 5], "f4"), np.array([1000, 1, np.inf, 6], "f4"))

    def make():
        return GymnasiumPufferEnv(FunctionEnv(action_space=space, length=7))

    with vector.make(make, num_envs=2, backend="Serial", seed=1, autoreset="same_step") as vecenv:
        yield vecenv


def test_given_policy_and_its_copies_are_rescaled(vecenv, tmp_path):
    policy = make_policy(vecenv.driver_env, hidden_size=8, memory="LSTM")
    config = Config("mine").located(tmp_path)
    assert not policy.distribution.is_rescaled
    on = load_config("CartPole-v1", {"train.device": "cpu"})
    Trainer(on, tmp_path, vecenv=vecenv, policy=policy).close()
    for each in (policy, copy.deepcopy(policy), build_policy(on, vecenv)):
        assert each.distribution.start.tolist() == [500, 0, 0, 5.5]
        assert each.distribution.scale.tolist() == [500, 1, 1, 0.5]
    pool = OpponentPool(SelfplayConfig(opponents=1), 0)
    pool.add(policy, 0)
    assert pool[0].policy.distribution.is_rescaled
    assert not build_policy(config, vecenv).distribution.is_rescaled


def test_cleanrl_agent_acts_in_units_of_the_space(vecenv):
    policy = make_policy(vecenv.driver_env, hidden_size=8)
    assert isinstance(policy.distribution, Gaussian)
    policy.distribution.rescale(True)
    agent = CleanRLPolicy(policy)
    observations = torch.rand(500, 1)
    with torch.no_grad():
        actions, log_probs, _, _ = agent.get_action_and_value(observations)
        assert actions.mean(0).tolist() == pytest.approx([500, 0, 0, 5.5], abs=70)
        assert actions.std(0).tolist() == pytest.approx([500, 1, 1, 0.5], rel=0.1)
        again = agent.get_action_and_value(observations, actions)
    assert torch.allclose(again[1], log_probs, atol=1e-3)


@pytest.mark.all
@pytest.mark.filterwarnings("ignore:the bounds of actions should be near")
def test_wide_interval_is_learned_like_unit_interval(aim, tmp_path):
    def score(**more):
        names = {name.replace("__", "."): value for name, value in more.items()}
        longer = {"train.total_timesteps": 40_000, "train.learning_rate": 3e-3, "eval.episodes": 32}
        done = pufferlib.train(aim, {**SMALL, **longer, **names}, runs=tmp_path / "runs")
        return done.comparison.agent.score_mean

    unit = score(env__low=-1.0, env__high=1.0)
    assert score() == pytest.approx(unit, abs=0.05)
    assert score(env__low=-0.01, env__high=0.02) == pytest.approx(unit, abs=0.05)
    assert unit > -8 * 0.15
    assert score(train__rescale_actions=False) < -8 * 0.5
