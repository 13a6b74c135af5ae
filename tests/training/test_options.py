"""Every option of learning, with every kind of action, with memory and without."""

import functools

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.machine import cpus
from pufferlib.training.config import load_config
from pufferlib.training.trainer import Trainer
from tests.envs import VariedEnv

SMALL = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 128,
    "train.horizon": 16,
    "train.minibatch_size": 32,
    "train.update_epochs": 2,
    "train.learning_rate": 0.01,
    "policy.hidden_size": 16,
}
OPTIONS = {
    "vtrace": {"train.vtrace_rho_clip": 1.0, "train.vtrace_c_clip": 1.0},
    "priorities": {"train.priority_alpha": 0.8},
    "muon": {"train.optimizer": "muon"},
    "schedules": {"train.lr_schedule": "cosine", "train.clip_schedule": "linear", "train.ent_schedule": "linear"},
    "accumulation": {"train.accumulate_minibatches": 2},
    "bfloat16": {"train.precision": "bfloat16"},
    "offload": {"train.cpu_offload": True},
}
OPTIONS["all"] = {name: value for option in OPTIONS.values() for name, value in option.items()}


class MaskedEnv(VariedEnv):
    """Allows two of four actions in each step, and asserts that no other is taken."""

    def __init__(self):
        super().__init__(
            Dict({"x": Box(-1, 1, (3,)), "action_mask": Box(0, 1, (4,), np.int8)}), action_space=Discrete(4)
        )
        self.observe = self._observe

    @staticmethod
    def _observe(env):
        env.legal = env.count % 2
        mask = np.zeros(4, np.int8)
        mask[[env.legal, env.legal + 2]] = 1
        return {"x": np.ones(3, np.float32), "action_mask": mask}

    def step(self, action):
        assert action % 2 == self.legal
        return super().step(action)


ENVS = {
    "continuous": functools.partial(VariedEnv, action_space=Box(-1, 1, (2,))),
    "multidiscrete": functools.partial(VariedEnv, action_space=MultiDiscrete([3, 2])),
    "nested": functools.partial(
        VariedEnv, action_space=Dict({"move": Discrete(3), "use": Tuple([Discrete(2), MultiDiscrete([2, 4])])})
    ),
    "masked": MaskedEnv,
}


def trained(make_env, folder, overrides):
    def make(buf=None, seed=0):
        return GymnasiumPufferEnv(make_env(), buf=buf, seed=seed)

    envs = vector.make(make, num_envs=4, backend="Serial", autoreset="next_step")  # whose resets are masked
    trainer = Trainer(load_config("mine", {**SMALL, **overrides}), folder, vecenv=envs)
    before = torch.cat([weights.detach().flatten() for weights in trainer.policy.parameters()])
    lines = []
    while trainer.updates < 2:
        lines.append(trainer.step())
    trainer.close()
    after = torch.cat([weights.detach().flatten() for weights in trainer.policy.parameters()])
    assert not torch.equal(before, after)
    assert torch.isfinite(after).all()
    return after


@pytest.fixture(autouse=True)
def able(monkeypatch):
    monkeypatch.setattr(cpus, "has_bfloat16", lambda: True)


@pytest.mark.filterwarnings("ignore:.*EpisodeStats")
@pytest.mark.parametrize("memory", ["none", "LSTM"])
@pytest.mark.parametrize("make_env", ENVS.values(), ids=ENVS)
def test_every_option_learns_every_kind_of_action(make_env, memory, tmp_path):
    memory = {"policy.memory": memory}
    plain = trained(make_env, tmp_path, memory)
    for name, option in OPTIONS.items():
        weights = trained(make_env, tmp_path, {**memory, **option})
        assert torch.equal(weights, plain) == (name == "offload"), name  # on a CPU it stores in the same memory


def test_a_run_with_muon_goes_on_as_the_uninterrupted_one(tmp_path):
    def make(folder):
        (tmp_path / folder).mkdir()
        config = load_config("squared", {**SMALL, "env.num_envs": 4, "train.optimizer": "muon"})
        return Trainer(config, tmp_path / folder)

    whole, half, resumed = map(make, ("whole", "half", "resumed"))
    for trainer in (whole, half):
        trainer.step()
    half.save()
    resumed.restore(half.checkpoint_path)
    for trainer in (whole, resumed):
        trainer.step()
    for trainer in (whole, half, resumed):
        trainer.close()
    assert all(map(torch.equal, whole.policy.parameters(), resumed.policy.parameters()))
    assert not any(map(torch.equal, half.policy.parameters(), resumed.policy.parameters()))
