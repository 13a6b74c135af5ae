"""Rollouts that training must refuse."""

import pytest
import torch

from pufferlib.errors import PufferError

__all__ = ["assert_nan_raises_and_keeps_weights"]


def assert_nan_raises_and_keeps_weights(trainer):
    """Make the next rollout of ``trainer`` contain NaN. Assert that its update raises and changes no weights to NaN."""
    take = trainer.source.take

    def broken():
        rollout = take()
        rollout.log_probs[2, 3] = torch.nan
        return rollout

    trainer.source.take = broken
    with pytest.raises(PufferError, match="the loss must be finite"):
        trainer.step()
    assert all(bool(torch.isfinite(weights).all()) for weights in trainer.policy.parameters())
