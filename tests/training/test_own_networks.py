"""Tests of custom networks: dropout, batch normalization, random numbers and lazy modules."""

import threading

import pytest
import torch
from torch import nn

import pufferlib
from pufferlib import vector
from pufferlib.errors import PufferError
from pufferlib.models import Policy, make_policy
from pufferlib.settings.config import load_config
from pufferlib.training import ppo
from pufferlib.training.agent import Agent
from pufferlib.training.evaluation import evaluate
from pufferlib.training.trainer import Trainer

SMALL = {
    "vec.backend": "Serial",
    "vec.num_envs": 2,
    "train.horizon": 16,
    "train.minibatch_size": 16,
    "train.update_epochs": 2,
    "train.total_timesteps": 128,
    "train.device": "cpu",
    "eval.episodes": 1,
}


class DropoutNet(Policy):
    """Network with dropout and batch normalization."""

    def __init__(self, env, hidden_size=8):
        super().__init__(env, hidden_size)
        self.body = nn.Sequential(nn.Linear(4, hidden_size), nn.BatchNorm1d(hidden_size), nn.Tanh(), nn.Dropout(0.5))

    def encode_observations(self, observations):
        return self.body(observations)


class LazyNet(DropoutNet):
    def __init__(self, env, hidden_size=8):
        super().__init__(env, hidden_size)
        self.body = nn.Sequential(nn.LazyLinear(hidden_size), nn.LazyBatchNorm1d(), nn.Tanh())


def make_trainer(tmp_path, policy=DropoutNet, name="CartPole-v1", **settings):
    config = load_config(name, {**SMALL, **settings})
    with (
        vector.make(pufferlib.registry.env_creator(name), num_envs=1, backend="Serial") as vecenv,
        torch.random.fork_rng(),
    ):
        torch.manual_seed(1)
        network = make_policy(vecenv.driver_env, policy, memory=config.policy.memory)
    return Trainer(config, tmp_path, policy=network)


def weights(trainer):
    return torch.cat([tensor.flatten().float() for tensor in trainer.policy.state_dict().values()])


@pytest.mark.parametrize("settings", [{}, {"train.overlap": "learning"}, {"train.precision": "bfloat16"}], ids=str)
@pytest.mark.filterwarnings("ignore:.*bfloat16")
def test_network_acts_in_eval_mode_and_learns_in_train_mode(tmp_path, monkeypatch, settings):
    modes = {"acting": set(), "learning": set()}
    encode, update = DropoutNet.encode_observations, ppo.update
    trainer = make_trainer(tmp_path, **settings)
    is_learning = []

    def encoded(policy, observations):
        is_here = threading.current_thread() is threading.main_thread()  # another thread may act at the same time
        modes["learning" if is_learning and is_here else "acting"].add(policy.body[-1].training)
        return encode(policy, observations)

    def updated(*given):
        is_learning.append(True)
        figures = update(*given)
        is_learning.clear()
        return figures

    monkeypatch.setattr(DropoutNet, "encode_observations", encoded)
    monkeypatch.setattr(ppo, "update", updated)
    trainer.step()
    assert modes == {"acting": {False}, "learning": {True}}
    assert not any(module.training for module in trainer.policy.modules())
    assert trainer.policy.body[1].num_batches_tracked == 4  # only minibatches of learning count
    trainer.close()


def test_training_works_inside_no_grad(tmp_path):
    trainer = make_trainer(tmp_path)
    before = weights(trainer)
    with torch.no_grad():
        trainer.step()
        assert not torch.is_grad_enabled()
    assert not torch.equal(before, weights(trainer))
    trainer.close()


def test_vtrace_estimates_values_in_eval_mode(tmp_path):
    trainer = make_trainer(tmp_path, **{"train.vtrace_rho_clip": 1.0})
    trainer.step()
    assert trainer.policy.body[1].num_batches_tracked == 4
    trainer.close()


def test_evaluate_and_agent_use_eval_mode():
    with vector.make(pufferlib.registry.env_creator("CartPole-v1"), num_envs=2, backend="Serial") as vecenv:
        policy = make_policy(vecenv.driver_env, DropoutNet).train()
        agent = Agent(policy, vecenv, greedy=True)
        assert not policy.body[-1].training
        observation = vecenv.reset(seed=0)[0][0]
        assert len({agent(observation) for _ in range(20)}) == 1
        config = load_config("CartPole-v1", SMALL)
        results = [evaluate(config, policy.train(), 2) for _ in range(2)]
        assert results[0] == results[1]
        assert policy.body[1].num_batches_tracked == 0


def test_weights_do_not_depend_on_global_random_state(tmp_path):
    found = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        torch.rand(number)
        trainer = make_trainer(tmp_path / str(number))
        before = torch.get_rng_state()
        trainer.step()
        assert torch.equal(torch.get_rng_state(), before)  # the global generator is restored
        torch.rand(3 + number)
        trainer.step()
        found.append(weights(trainer))
        trainer.close()
    assert torch.equal(*found)


def test_resumed_run_restores_random_state(tmp_path):
    found = []
    for name, stops in (("whole", False), ("resumed", True)):
        folder = tmp_path / name
        folder.mkdir()
        trainer = make_trainer(folder)
        trainer.step()
        trainer.save()
        path = trainer.checkpoint_path
        if stops:
            trainer.close()
            trainer = make_trainer(folder)
            torch.rand(7)
            trainer.restore(path)
        trainer.step()
        found.append(weights(trainer))
        trainer.close()
    assert torch.equal(*found)


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_lazy_modules_are_initialized_before_training(tmp_path, memory):
    trainer = make_trainer(tmp_path, LazyNet, **{"policy.memory": memory})
    trainer.step()
    inner = trainer.policy if memory == "none" else trainer.policy.policy
    assert inner.body[0].weight.shape == (128, 4)
    trainer.close()


class IdentityNet(Policy):
    def __init__(self, env):
        super().__init__(env, 3)

    def encode_observations(self, observations):
        return observations.float()


@pytest.mark.parametrize("log_std", [-95.0, 95.0])
def test_runaway_log_std_is_named(tmp_path, log_std):
    trainer = make_trainer(tmp_path, IdentityNet, "Pendulum-v1")
    with torch.no_grad():
        trainer.policy.log_std.fill_(log_std)
    with pytest.raises(PufferError, match=f"log_std reached {log_std:.0f}: the logarithm of the standard deviation"):
        trainer.train()
