"""Names and interfaces of the paper "PufferLib 2.0: Reinforcement Learning at 1M steps/s"."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

import pufferlib
import pufferlib.vector
from pufferlib import models
from tests.envs import EnvDescription

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
ENVIRONMENTS = (
    "pong breakout enduro connect4 tripletriad go rware trash_pickup snake nmmo3 moba tactical "
    "squared password stochastic memory multiagent spaces bandit"
)


def test_environments_of_section_3_1():
    assert set(ENVIRONMENTS.split()) <= {*pufferlib.list_envs()}


@pytest.mark.parametrize("extra", ["atari", "nethack", "common"])
def test_extras_of_section_3_3(extra):
    """``pip install pufferlib[atari]``, ``pufferlib[nethack]``, ``pufferlib[common]``."""
    assert tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"][extra]


BINDINGS = "atari procgen nethack minigrid minihack crafter griddly pokemon_red nmmo"


def test_bindings_of_section_3_3():
    folders = {path.parent.name for path in (PYPROJECT.parent / "bindings").glob("*/binding.toml")}
    assert set(BINDINGS.split()) <= folders


def test_backends_of_section_3_4_have_one_interface():
    """Serial, Multiprocessing and Ray have the attributes and methods of one class."""
    for backend in (pufferlib.vector.Serial, pufferlib.vector.Multiprocessing, pufferlib.vector.Ray):
        assert issubclass(backend, pufferlib.vector.VectorEnv)
    assert callable(pufferlib.vector.autotune)


@pytest.mark.parametrize("name", ["Default", "NatureCNN", "ResNet"])
def test_models_of_section_3_5(name):
    """Models subclass ``torch.nn.Module``. They encode and decode separately, so that an LSTM fits in between."""
    image = Box(0, 255, (3, 36, 36), np.uint8)
    env = EnvDescription(image, Discrete(4))
    policy = models.make_policy(env, name, hidden_size=16)
    assert isinstance(policy, torch.nn.Module)
    observations = torch.zeros(2, 3, 36, 36, dtype=torch.uint8)
    logits, values = policy.decode_actions(policy.encode_observations(observations))
    assert (logits.shape, values.shape) == ((2, 4), (2,))
    recurrent = models.LSTMWrapper(env, policy, input_size=16, hidden_size=16)
    assert recurrent.forward_eval(observations, recurrent.initial_state(2))[0].shape == (2, 4)
