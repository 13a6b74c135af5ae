"""Runs with network options: training, resuming, loading, and the settings of earlier versions."""

import dataclasses
import inspect
import re

import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import Default, MixedCNN, NatureCNN, Policy, ResNet
from pufferlib.runs.folder import Run
from pufferlib.settings.config import PolicyConfig, load_config
from pufferlib.training.agent import load_policy
from pufferlib.training.build import POLICY_ARGUMENTS
from pufferlib.training.trainer import Trainer

SMALL = {
    "env.num_envs": 8,
    "policy.hidden_size": 16,
    "train.horizon": 16,
    "train.minibatch_size": 64,
    "train.total_timesteps": 1024,
    "train.device": "cpu",
}
OPTIONS = {
    "policy.networks": "separate",
    "policy.hidden_sizes": (24, 16),
    "policy.critic_hidden_sizes": (20,),
    "policy.activation": "gelu",
    "policy.layer_norm": True,
    "policy.orthogonal_init": False,
}
STD = {"policy.log_std_init": -1.0, "policy.state_dependent_std": True}


def make_trainer(folder, name, settings):
    folder.mkdir()
    config = load_config(name, {**SMALL, **settings})
    config.save(folder / "config.toml")
    return Trainer(config, folder)


def weights(policy):
    return torch.cat([each.flatten() for each in policy.state_dict().values()])


def test_built_in_policies_have_the_defaults_of_the_settings():
    """Settings equal to their default are not passed to the class, so another default of the class would be used."""
    fields = {field.name: field.default for field in dataclasses.fields(PolicyConfig)}
    expected = {name: default for name, default in fields.items() if name not in POLICY_ARGUMENTS}
    compared = set()
    for policy in (Policy, Default, NatureCNN, ResNet, MixedCNN):
        keywords = inspect.signature(policy).parameters
        for name in expected.keys() & keywords.keys():
            compared.add(name)
            if expected[name] is not None:  # unset, so the class chooses
                assert keywords[name].default == expected[name], f"{policy.__name__}: {name}"
    assert compared == expected.keys()


@pytest.mark.parametrize(
    ("name", "settings"),
    [("pendulum", {**OPTIONS, **STD, "policy.memory": "GRU"}), ("squared", {**OPTIONS, "policy.memory": "LSTM"})],
)
def test_run_with_every_option_is_resumed_and_loaded(name, settings, tmp_path):
    whole, half, resumed = (make_trainer(tmp_path / folder, name, settings) for folder in ("whole", "half", "resumed"))
    before = [each.clone() for each in whole.policy.parameters()]
    for trainer in (whole, half):
        trainer.step()
    half.save()
    resumed.restore(half.checkpoint_path)
    for trainer in (whole, resumed):
        trainer.step()
    resumed.save()
    for trainer in (whole, half, resumed):
        trainer.close()
    assert not any(map(torch.equal, whole.policy.parameters(), before))
    assert torch.equal(weights(resumed.policy), weights(whole.policy))
    run = Run.at(tmp_path / "resumed")
    assert torch.equal(weights(load_policy(run.settings(), run)), weights(whole.policy))


def test_run_of_an_earlier_version_is_loaded(tmp_path):
    """Settings files of earlier versions have no network options."""
    trainer = make_trainer(tmp_path / "run", "pendulum", {"policy.memory": "LSTM", "policy.num_layers": 3})
    trainer.step()
    trainer.save()
    trainer.close()
    file = tmp_path / "run" / "config.toml"
    known = ("name", "hidden_size", "num_layers", "memory", "memory_layers")
    text = file.read_text()
    head, section, rest = re.split(r"(\[policy\]\n(?:\w.*\n)+)", text)
    lines = [line for line in section.splitlines() if line.startswith("[") or line.partition(" ")[0] in known]
    assert len(lines) == 1 + len(known) < len(section.splitlines())
    file.write_text(head + "\n".join(lines) + "\n" + rest)
    run = Run.at(tmp_path / "run")
    assert run.settings().policy == PolicyConfig(hidden_size=16, num_layers=3, memory="LSTM")
    assert torch.equal(weights(load_policy(run.settings(), run)), weights(trainer.policy))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("squared", STD, "state_dependent_std is for continuous actions, got the action space"),
        ("squared", {"policy.critic_hidden_sizes": [8]}, "critic_hidden_sizes is for networks 'separate', got .8."),
        ("squared", {"policy.channels": 8}, "Default does not take the option channels, got 8; it takes hidden_size"),
        ("snake", {"policy.layer_norm": True}, "Snake does not take the option layer_norm, got True; it takes hidden_"),
    ],
)
def test_option_that_does_not_apply_is_refused_before_training(name, settings, message, tmp_path):
    with pytest.raises(APIUsageError, match=message):
        make_trainer(tmp_path / "run", name, settings)
