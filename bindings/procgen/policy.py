"""A network for Procgen that two cores train: 13 million products for a picture, the residual one has 31.

The first layer steps two pixels, where that of ``NatureCNN`` steps four, for what is small on a picture of 64.
"""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, layer_init

__all__ = ["ProcgenCNN"]


class ProcgenCNN(Policy):
    """Four convolutions, of which three halve the picture, and one layer.

    Args:
        env: Of the binding: its observations are uint8 ``(64, 64, 3)``.
        hidden_size: Width of the layer after the convolutions.

    Raises:
        APIUsageError: Observations are not images.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 256) -> None:
        super().__init__(env, hidden_size)
        if len(self.observation_shape) != 3:
            raise APIUsageError(
                "ProcgenCNN: observations must be images (height, width, channels), got "
                f"{env.single_observation_space}; use policy.name = 'Default'"
            )
        height, width, channels = self.observation_shape
        self.convolutions = nn.Sequential(
            layer_init(nn.Conv2d(channels, 32, 5, stride=2, padding=2)),
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(32, 64, 3, stride=2, padding=1)),
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(64, 64, 3, stride=2, padding=1)),
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(64, 64, 3, padding=1)),
            nn.ReLU(inplace=True),
            nn.Flatten(),
        )
        # Observations lie like that in memory, and convolutions of a CPU are faster so.
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
        self.encoder = nn.Sequential(
            layer_init(nn.Linear(64 * (height // 8) * (width // 8), hidden_size)), nn.ReLU(inplace=True)
        )

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        hidden: Tensor = self.encoder(self.convolutions(observations.permute(0, 3, 1, 2).float() / 255))
        return hidden
