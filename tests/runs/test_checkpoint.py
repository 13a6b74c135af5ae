import errno
import os
import random
import re
import signal
import time

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from safetensors.torch import load_file, save_file

from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Default
from pufferlib.runs import checkpoint
from pufferlib.runs.checkpoint import About
from pufferlib.settings.config import TrainConfig
from pufferlib.training.optimizers import build_optimizer
from tests.envs import FunctionEnv

STATE = {"optimizer": {}, "generator": torch.zeros(1), "agent_steps": 64, "updates": 1, "uptime_s": 0.5}


def save(folder, updates=1, score=None, **changes):
    weights = {"w": torch.full((64,), float(updates))}
    return checkpoint.save(folder, weights, {**STATE, "updates": updates, **changes}, About("x", updates, 64, score))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_saved_checkpoint_is_read_back(tmp_path):
    path = save(tmp_path / "checkpoints", 7, score=1.5)
    assert path == tmp_path / "checkpoints" / "000007"
    assert checkpoint.read_about(path) == About("x", 7, 64, 1.5, number=1)
    assert checkpoint.read_about(path / "policy.safetensors") == checkpoint.read_about(path)
    assert checkpoint.read_state(path)["updates"] == 7
    assert torch.equal(checkpoint.read_policy(path)["w"], torch.full((64,), 7.0))
    assert load_file(path / "policy.safetensors").keys() == {"w"}
    assert names(tmp_path / "checkpoints") == ["000007"]


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.nightly)])
def test_kill_during_save_keeps_latest_checkpoint(tmp_path, kills):
    rng, done = random.Random(1), 2
    save(tmp_path, 1)
    start = time.monotonic()
    save(tmp_path, done)
    longest = 3 * (time.monotonic() - start)
    for _ in range(kills):
        child = os.fork()
        if not child:
            try:
                while True:
                    done += 1
                    save(tmp_path, done)
                    checkpoint.rotate(tmp_path, keep=2)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        latest = checkpoint.latest(tmp_path)
        done = checkpoint.read_state(latest)["updates"]
        assert (checkpoint.read_policy(latest)["w"] == done).all()
    save(tmp_path, done + 1)
    checkpoint.rotate(tmp_path, keep=2)
    assert names(tmp_path) == [f"{done:06}", f"{done + 1:06}"]


def test_rotate_keeps_latest_and_best(tmp_path):
    for updates, score in ((100, 1.0), (200, 5.0), (300, None), (400, 5.0), (500, 2.0), (600, 3.0)):
        save(tmp_path, updates, score)
        checkpoint.rotate(tmp_path, keep=2)
    assert names(tmp_path) == ["000400", "000500", "000600"]
    assert checkpoint.latest(tmp_path) == tmp_path / "000600"
    assert checkpoint.best(tmp_path) == tmp_path / "000400"
    checkpoint.rotate(tmp_path, keep=0)
    assert len(names(tmp_path)) == 3


def test_latest_is_most_recently_saved(tmp_path):
    for updates in (100, 200, 100):
        path = save(tmp_path, updates)
    assert path == checkpoint.latest(tmp_path) == tmp_path / "000100-2"
    checkpoint.rotate(tmp_path, keep=2)
    assert names(tmp_path) == ["000100-2", "000200"]


def test_damaged_and_foreign_checkpoints_are_skipped_with_warning(tmp_path):
    (tmp_path / "000300").mkdir(parents=True)
    save_file({"w": torch.zeros(1)}, tmp_path / "000300" / "policy.safetensors")
    whole, cut = save(tmp_path, 100), save(tmp_path, 200)
    os.truncate(cut / "state.safetensors", 100)
    with pytest.warns(UserWarning, match="; this checkpoint is left out$") as warned:
        assert checkpoint.latest(tmp_path) == whole
    assert [str(warning.message).partition(";")[0].partition(": ")[2] for warning in warned] == [
        "is not a safetensors file: its header cannot be read",
        "contains tensors, but was not saved by pufferlib",
    ]
    save(tmp_path, 300)
    checkpoint.rotate(tmp_path, keep=1)
    assert names(tmp_path) == ["000200", "000300", "000300-2"]


def test_policy_state_that_no_checkpoint_can_store_is_refused(tmp_path):
    class Counting(torch.nn.Linear):
        def get_extra_state(self):
            return {"calls": 3}

    with pytest.raises(APIUsageError, match="got '_extra_state' of type dict; return a tensor from get_extra_state"):
        checkpoint.check_storable(tmp_path, Counting(2, 2))


def test_failed_save_keeps_previous_checkpoint(tmp_path, monkeypatch):
    save(tmp_path, 1)

    def full_disk(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, 2)
    assert names(tmp_path) == ["000001"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"updates": "x"},
            r"state\.safetensors: must have 'updates' \(int\), got str; it was not written by",
        ),
        ({"optimizer": None}, r"must have 'optimizer' \(Mapping\), got NoneType"),
    ],
)
def test_invalid_state_raises(tmp_path, change, message):
    path = save(tmp_path)
    checkpoint.tensor_file.write_tree(path / "state.safetensors", {**STATE, **change}, {})
    with pytest.raises(APIUsageError, match=message):
        checkpoint.read_state(path)


def test_read_state_of_policy_file_raises(tmp_path):
    with pytest.raises(
        APIUsageError, match="is a policy file, which can be played and evaluated; to resume a run, give"
    ):
        checkpoint.read_state(save(tmp_path) / "policy.safetensors")


def test_torch_file_raises(tmp_path):
    torch.save({}, tmp_path / "checkpoint.pt")
    with pytest.raises(APIUsageError, match=r"checkpoint\.pt: is a file of torch\.save, which may contain code"):
        checkpoint.read_about(tmp_path / "checkpoint.pt")


def test_weights_of_other_network_raise(target_env):
    small, large = Default(target_env(), hidden_size=8), Default(target_env(), hidden_size=16)
    with pytest.raises(
        APIUsageError,
        match=r"^x: the checkpoint does not fit this policy: .*size mismatch.*; it was trained in pong; tra",
    ):
        checkpoint.load_weights(large, small.state_dict(), "x", "pong")


FLOATS, NAMED = Box(-1, 1, (2,), np.float32), {"a": Box(-1, 1, (2,), np.float32), "b": Discrete(3)}
MIXED = Tuple([Discrete(3), Box(0, 1, (1,), np.float32)])


@pytest.mark.parametrize(
    ("name", "before", "now", "message"),
    [
        ("actions", Discrete(5), MultiDiscrete([2, 3]), "0 to 4, got [0 to 1, 0 to 2]"),
        ("actions", Discrete(3), Discrete(3, start=1), "0 to 2, got 1 to 3"),
        ("actions", MIXED, Tuple(MIXED.spaces[::-1]), "[0 to 2, float], got [float, 0 to 2]"),
        ("actions", FLOATS, Box(0, 99, (2,), np.float64), ""),  # other bounds, for an environment of another size
        ("observations", Dict(NAMED), Dict(a=NAMED["a"], c=NAMED["b"]), "b: integers ()}, got {a: floats (2,), c: i"),
        ("observations", FLOATS, Box(-1, 1, (1, 2), np.float32), "floats (2,), got floats (1, 2)"),
        ("observations", FLOATS, Box(-9, 9, (2,), np.float64), ""),
    ],
)
def test_spaces_of_equal_sizes_are_compared(name, before, now, message):
    spaces = ((space, None) if name == "observations" else (FLOATS, space) for space in (before, now))
    saved, loaded = (Default(GymnasiumPufferEnv(FunctionEnv(*each)), hidden_size=8) for each in spaces)
    about = About("mine", 1, 1, spaces=saved.described_spaces)
    if not message:
        checkpoint.check_spaces(loaded, about, "x")
        return
    with pytest.raises(APIUsageError, match=rf"^x: was trained with other {name} of mine: .*{re.escape(message)}"):
        checkpoint.check_spaces(loaded, about, "x")


def test_nan_weights_raise(target_env):
    policy = Default(target_env(), hidden_size=8)
    weights = policy.state_dict()
    next(iter(weights.values()))[0] = torch.nan
    with pytest.raises(APIUsageError, match=r"^x: the weights must be finite, got NaN or infinity in decoder"):
        checkpoint.load_weights(policy, weights, "x")


def test_buffers_may_be_infinite(target_env):
    saved, loaded = (Default(target_env(), hidden_size=8) for _ in range(2))
    saved.register_buffer("causal", torch.full((4, 4), float("-inf")).triu(1))
    loaded.register_buffer("causal", torch.zeros(4, 4))
    checkpoint.load_weights(loaded, saved.state_dict(), "x")
    assert torch.equal(loaded.causal, saved.causal)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_optimizer_of_channels_last_weights_is_resumed(name, tmp_path):
    """A fused optimizer step uses the memory layout of weights and moments."""

    def learner():
        torch.manual_seed(0)
        convolution = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        network = torch.nn.Sequential(convolution, torch.nn.Linear(4, 4))
        return network, build_optimizer(TrainConfig(optimizer=name), network)

    def learn(network, optimizer):
        for parameter in network.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()

    (whole, of_whole), (resumed, of_resumed) = learner(), learner()
    learn(whole, of_whole)
    path = checkpoint.save(
        tmp_path, whole.state_dict(), {**STATE, "optimizer": of_whole.state_dict()}, About("x", 1, 1)
    )
    resumed.load_state_dict(checkpoint.read_policy(path))
    checkpoint.load_optimizer(of_resumed, checkpoint.read_state(path)["optimizer"], path)
    for network, optimizer in ((whole, of_whole), (resumed, of_resumed)):
        torch.manual_seed(1)
        learn(network, optimizer)
    for before, after in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(before, after)


def test_state_of_other_optimizer_raises():
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    state = torch.optim.Adam(parameters).state_dict()
    with pytest.raises(APIUsageError, match=r"^x: the state does not fit this optimizer: "):
        checkpoint.load_optimizer(torch.optim.Adam(parameters[:1]), state, "x")


def test_moments_of_other_shape_raise():
    weight = torch.nn.Parameter(torch.zeros(4, 4))
    weight.grad = torch.ones(4, 4)
    optimizer = torch.optim.Adam([weight], fused=True)
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["exp_avg"] = torch.zeros(3)
    with pytest.raises(
        APIUsageError, match=r"^x: the state does not fit .* 'exp_avg' of shape \(4, 4\), got \(3,\); use"
    ):
        checkpoint.load_optimizer(torch.optim.Adam([weight], fused=True), state, "x")
