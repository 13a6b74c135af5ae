"""ImpalaCNN: a small residual network for pictures, the usual one for Procgen."""

import numpy as np
import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, layer_init

__all__ = ["ImpalaCNN"]

CHANNELS = (16, 32, 32)


class ImpalaCNN(Policy):
    """The large network of "IMPALA: Scalable Distributed Deep-RL" (Espeholt et al., 2018), without its memory.

    Three sections, each a convolution, a pooling that halves the picture, and two residual blocks.

    Args:
        env: Its observations are pictures ``(height, width, channels)`` of uint8.
        hidden_size: Width of the layer after the convolutions.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 256) -> None:
        super().__init__(env, hidden_size)
        space = env.single_observation_space
        if len(space.shape) != 3 or space.dtype != np.uint8:
            raise APIUsageError(
                f"ImpalaCNN: observations must be uint8 pictures (height, width, channels), got {space}; "
                "use policy.name = 'Default'"
            )
        height, width, channels = space.shape
        sections: list[nn.Module] = []
        for wider in CHANNELS:
            sections += [layer_init(nn.Conv2d(channels, wider, 3, padding=1), std=1.0)]
            sections += [nn.MaxPool2d(3, stride=2, padding=1), _Residual(wider), _Residual(wider)]
            channels = wider
        self.convolutions = nn.Sequential(*sections, nn.ReLU(), nn.Flatten())
        # Channels last is how the pictures lie in memory already.
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch forgot it
        flat = self.convolutions(torch.zeros(1, space.shape[2], height, width)).shape[1]
        self.encoder = nn.Sequential(layer_init(nn.Linear(flat, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        pictures = observations.permute(0, 3, 1, 2).to(torch.float32) * (1 / 255)
        hidden: Tensor = self.encoder(self.convolutions(pictures))
        return hidden


class _Residual(nn.Module):
    """Residual block of two convolutions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first, second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.change = nn.Sequential(nn.ReLU(), layer_init(first, std=1.0), nn.ReLU(), layer_init(second, std=1.0))

    def forward(self, features: Tensor) -> Tensor:
        changed: Tensor = features + self.change(features)
        return changed
