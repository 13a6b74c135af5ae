"""Tests of every training option with every action space, with and without memory."""

import functools
import itertools
import threading

import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from torch.utils._python_dispatch import TorchDispatchMode

from pufferlib import ocean, vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.machine import cpus
from pufferlib.models import make_policy
from pufferlib.settings.config import TrainConfig, load_config
from pufferlib.training.collector import Collector
from pufferlib.training.ppo import Reduction, ppo_loss
from pufferlib.training.rollout import Minibatch
from pufferlib.training.sources import RolloutSource
from pufferlib.training.trainer import Trainer
from tests.envs import EnvDescription, MaskedEnv, VariedEnv
from tests.tiers import once

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


ENVS = {
    "continuous": functools.partial(VariedEnv, action_space=Box(-1, 1, (2,))),
    "multidiscrete": functools.partial(VariedEnv, action_space=MultiDiscrete([3, 2])),
    "nested": functools.partial(
        VariedEnv, action_space=Dict({"move": Discrete(3), "use": Tuple([Discrete(2), MultiDiscrete([2, 4])])})
    ),
    "masked": MaskedEnv,
}


def trained(make_env, folder, overrides):
    """Run two updates. Return the weights, which must have changed."""

    def make(buf=None, seed=0):
        return GymnasiumPufferEnv(make_env(), buf=buf, seed=seed)

    envs = vector.make(make, num_envs=4, backend="Serial", autoreset="next_step")  # reset steps are masked
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
def bfloat16(monkeypatch):
    """Pretend that the CPU supports bfloat16."""
    monkeypatch.setattr(cpus, "has_bfloat16", lambda: True)


@pytest.mark.filterwarnings("ignore:.*EpisodeStats")
@pytest.mark.parametrize(
    ("env_name", "memory"),
    once(
        list(itertools.product(ENVS, ["none", "LSTM"])),
        [("continuous", "none"), ("nested", "LSTM")],
    ),
)
def test_every_option_trains_every_action_space(env_name, memory, tmp_path):
    make_env = ENVS[env_name]
    memory = {"policy.memory": memory}
    plain = trained(make_env, tmp_path, memory)
    for name, option in OPTIONS.items():
        weights = trained(make_env, tmp_path, {**memory, **option})
        assert torch.equal(weights, plain) == (name == "offload"), name  # on a CPU it uses the same memory


def test_options_that_are_off_add_nothing(tmp_path):
    """No wrapper, callback, thread, record or second network is made for a default run."""
    threads = threading.active_count()
    config = load_config("squared", {"env.num_envs": 4, "train.device": "cpu", "train.total_timesteps": 256})
    trainer = Trainer(config, tmp_path)
    trainer.step()
    parts = trainer.vecenv, trainer.collector, trainer.source, trainer.reduction, trainer.optimizer
    trainer.close()
    assert [*map(type, parts)] == [ocean.OceanEnv, Collector, RolloutSource, Reduction, torch.optim.Adam]
    assert trainer.callbacks.members == []
    assert trainer.episodes.records is None
    assert {name for name in trainer.policy.state_dict() if "moments" in name} == set()
    assert threading.active_count() == threads


def test_coefficients_that_are_off_add_no_call_of_torch():
    """The default loss takes 56 calls. A new term must be skipped, not multiplied by 0."""

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.calls += 1
            return function(*args, **kwargs or {})

    policy = make_policy(EnvDescription(Box(-1, 1, (3,)), Discrete(3)), hidden_size=8)
    fields = {name: torch.rand(3, 4) for name in ("log_probs", "values", "advantages", "returns")}
    batch = Minibatch(torch.rand(3, 4, 3), torch.randint(3, (3, 4)), **fields, mask=None, state={}, episode_starts=None)
    with Count() as outputs:
        policy(batch.observations, {}, None)
    with Count() as count:
        ppo_loss(policy, batch, TrainConfig())
    assert count.calls - outputs.calls <= 56


def test_resumed_muon_run_matches_uninterrupted_run(tmp_path):
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
