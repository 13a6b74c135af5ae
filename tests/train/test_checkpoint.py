import os
import pickle

import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import Default
from pufferlib.train import checkpoint

WHOLE = {
    "policy": {"w": torch.arange(3.0)},
    "optimizer": {},
    "generator": torch.zeros(1),
    "agent_steps": 64,
    "updates": 1,
    "uptime_s": 0.5,
}


def test_round_trip(tmp_path):
    contents = {**WHOLE, "updates": 7, "name": "x"}
    checkpoint.save(tmp_path / "checkpoint.pt", contents)
    loaded = checkpoint.load(tmp_path / "checkpoint.pt")
    assert loaded["updates"] == 7
    assert torch.equal(loaded["policy"]["w"], torch.arange(3.0))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_a_failed_save_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, WHOLE)

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(path, {**WHOLE, "updates": 2})
    assert checkpoint.load(path)["updates"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


class Evil:
    def __reduce__(self):
        return os.mkdir, ("should-not-exist",)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "cannot read .*No such file"),
        (lambda path: path.write_bytes(b"no checkpoint"), "is not a checkpoint, or is damaged"),
        (lambda path: path.write_bytes(b"hi\n"), "is not a checkpoint, or is damaged"),
        (lambda path: path.write_bytes(b""), "is not a checkpoint, or is damaged"),
        (
            lambda path: path.write_bytes(pickle.dumps(Evil(), protocol=2)),
            "or holds code, which is never executed; give",
        ),
        (lambda path: torch.save([1], path), "must have format 1, got list"),
        (lambda path: torch.save({"format": 0}, path), "must have format 1, got 0"),
        (
            lambda path: torch.save({"format": 1}, path),
            r"must have 'policy' \(Mapping\), got none; it was not written by",
        ),
        (lambda path: checkpoint.save(path, {**WHOLE, "policy": None}), "must have 'policy' .*, got NoneType"),
        (lambda path: checkpoint.save(path, {**WHOLE, "updates": "x"}), r"must have 'updates' \(int\), got str"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path, monkeypatch, write, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "checkpoint.pt")
    with pytest.raises(APIUsageError, match=message):
        checkpoint.load(tmp_path / "checkpoint.pt")
    assert not (tmp_path / "should-not-exist").exists()


def test_weights_of_another_network_are_refused(target_env):
    small, large = Default(target_env(), hidden_size=8), Default(target_env(), hidden_size=16)
    with pytest.raises(APIUsageError, match=r"x\.pt: the checkpoint does not fit this policy: .*size mismatch"):
        checkpoint.load_policy_weights(large, {"policy": small.state_dict()}, "x.pt")


def test_weights_that_are_no_numbers_are_refused(target_env):
    policy = Default(target_env(), hidden_size=8)
    weights = policy.state_dict()
    next(iter(weights.values()))[0] = torch.nan
    with pytest.raises(APIUsageError, match=r"x\.pt: the weights must be finite, got NaN or infinity in decoder"):
        checkpoint.load_policy_weights(policy, {"policy": weights}, "x.pt")
