"""Tests of NaN and infinity in training: the run stops, names the first occurrence and keeps the tensors."""

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from torch import nn

import pufferlib
from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import PufferError
from pufferlib.runs import tensor_file
from pufferlib.settings.config import load_config
from pufferlib.training.trainer import Trainer

SMALL = {
    "train.device": "cpu", "train.num_threads": 1, "train.total_timesteps": 128, "train.horizon": 16,
    "train.minibatch_size": 16, "train.update_epochs": 1, "train.reward_scale": 1.0, "policy.hidden_size": 8,
    "train.normalize_observations": False,
}  # fmt: skip


class Cart(gymnasium.Env[Any, Any]):
    """Environment with episodes of 50 steps. In step 20 of the second copy, ``wrong`` has the value ``value``."""

    observation_space = Dict({"position": Box(-1, 1, (2,)), "motion": Dict({"velocity": Box(-9, 9, (3,))})})
    action_space = Discrete(2)
    made = 0

    def __init__(self, wrong: str = "", value: float = math.inf) -> None:
        Cart.made += 1
        self.wrong, self.value, self.number = wrong, value, Cart.made

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self._observation(0), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        now = self.value if self.steps == 20 and self.number % 2 == 0 else 0
        reward = now if self.wrong == "reward" else 0.0
        velocity = now if self.wrong == "velocity" else 0
        return self._observation(velocity), reward, False, self.steps == 50, {"score": 1.0}

    def _observation(self, velocity: float) -> Any:
        return {"position": np.zeros(2, "f4"), "motion": {"velocity": np.array([0, velocity, 0], "f4")}}


@pytest.fixture
def make(tmp_path: Path) -> Any:
    def make(memory: str = "none", **wrong: Any) -> Trainer:
        Cart.made = 0

        def creator(buf: Any = None, seed: int = 0) -> Any:
            return GymnasiumPufferEnv(Cart(**wrong), buf=buf, seed=seed)

        env = vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step")
        return Trainer(load_config("carts", {**SMALL, "policy.memory": memory}), tmp_path, vecenv=env)

    return make


def message_of(trainer: Trainer) -> str:
    with pytest.raises(PufferError) as raised:
        trainer.train()
    return str(raised.value)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ({"wrong": "velocity"}, "observation['motion']['velocity'][1] = inf of agent 1 (environment 1), in step 4"),
        ({"wrong": "reward", "value": -1e30}, "the value loss, with rewards of up to 1e+30 in size, values of 0;"),
        ({"wrong": "velocity", "value": 1e30}, "the value loss, with rewards of up to 0 in size, values of 1."),
    ],
)
def test_nan_of_env_is_named(make: Any, wrong: dict[str, Any], cause: str) -> None:
    trainer = make(**wrong)
    message = message_of(trainer)
    assert f". In update 2 the first was {cause}" in message
    assert "must be finite, got " in message
    assert message.endswith(f"its tensors are in {trainer.run_dir}/nan.safetensors")


@pytest.mark.parametrize(
    ("buffer", "cause"),
    [
        ("observations", "observation[2] = nan of agent 1, in step 4"),
        ("rewards", "the reward nan of agent 1, in step 3; or the last observation of its episode, which ended there"),
    ],
)
def test_nan_of_native_env_is_named(buffer: str, cause: str, target_env: Any, tmp_path: Path) -> None:
    class Wrong(target_env):  # type: ignore[misc]
        steps = 0

        def step(self, actions: Any) -> Any:
            outcome = super().step(actions)
            self.steps += 1
            if self.steps == 20:
                getattr(self, buffer)[1, ...] = math.nan if buffer == "rewards" else [0, 0, math.nan]
            return outcome

    trainer = Trainer(load_config("target", SMALL), tmp_path, vecenv=Wrong(4))
    assert f". In update 2 the first was {cause}; its tensors" in message_of(trainer)


def test_tensors_and_checkpoint_are_kept(make: Any) -> None:
    trainer = make(wrong="velocity")
    trainer.step()
    trainer.save()
    cause = message_of(trainer).partition(" the first was ")[2].rpartition(";")[0]
    kept = tensor_file.read_tree(trainer.run_dir / "nan.safetensors")
    assert kept["cause"] == cause
    assert kept["update"] == 2
    assert kept["policy"].keys() == trainer.policy.state_dict().keys() == kept["gradients"].keys()
    assert kept["rollout"]["observations"].shape[:2] == (16, 2)
    assert not kept["observations"].isfinite().all()
    assert trainer.checkpoint_path.name == "000001"


def test_nan_parameter_is_named(make: Any) -> None:
    trainer = make()
    trainer.step()
    with torch.no_grad():
        trainer.policy.encoder[2].bias[3] = math.nan
    assert "the first was in parameter encoder.2.bias; its tensors" in message_of(trainer)
    trainer = make("LSTM")
    trainer.step()
    for parameter in trainer.policy.parameters():
        parameter.grad.fill_(math.inf)
    trainer.optimizer.step()
    first = next(name for name, _ in trainer.policy.named_parameters())
    assert f"in parameter {first}, and in its gradient, by a gradient step before;" in message_of(trainer)


class Root(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(x - 1e6)


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_layer_with_nan_output_is_named(make: Any, memory: str) -> None:
    trainer = make(memory)
    encoder = (trainer.policy if memory == "none" else trainer.policy.policy).encoder
    encoder[1] = Root()
    assert "encoder.1 (Root); its tensors" in message_of(trainer)


def test_nan_memory_is_named(make: Any) -> None:
    trainer = make("LSTM")
    trainer.step()
    state = trainer.collector.state_dict()
    name, memory = next(iter(state["memory"].items()))
    state["memory"][name] = torch.full_like(memory, math.nan)
    trainer.collector.reset(0)
    trainer.collector.load_state_dict(state)
    assert f"the first was in memory {name!r} of the policy" in message_of(trainer)


def test_full_disk_keeps_error_message(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    trainer = make(wrong="velocity")
    monkeypatch.setattr(tensor_file, "write_tree", full)
    message = message_of(trainer)
    assert message.endswith(f"could not be saved in {trainer.run_dir}/nan.safetensors (No space left on device)")


def test_run_folder_is_kept_if_first_update_fails(tmp_path: Path) -> None:
    Cart.made = 0
    pufferlib.register("carts/wrong", lambda: Cart("velocity"))
    few = {**SMALL, "train.horizon": 32, "vec.backend": "Serial", "vec.num_envs": 2}
    with pytest.raises(PufferError, match="velocity"):
        pufferlib.train("carts/wrong", few, runs=tmp_path)
    (run,) = tmp_path.iterdir()
    assert (run / "nan.safetensors").is_file()
