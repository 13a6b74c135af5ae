"""Policy network for Procgen that can be trained on two CPU cores: 13 million products per image, while ResNet has 31.

The first layer has a stride of two pixels, not four as in ``NatureCNN``, because details matter in a 64 x 64 image.
"""

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, layer_init

__all__ = ["ProcgenCNN"]


class ProcgenCNN(Policy):
    """Four convolutions, three of which halve the image, and one linear layer.

    Args:
        env: Environment of this binding, with uint8 observations ``(64, 64, 3)``.
        hidden_size: Width of the layer after the convolutions.

    Raises:
        APIUsageError: Observations are not images.
    """

    def __init__(self, env: HasSpaces, hidden_size: int = 256) -> None:
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
        # Observations have this memory layout, and convolutions on a CPU are faster with it.
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
        self.encoder = nn.Sequential(
            layer_init(nn.Linear(64 * (height // 8) * (width // 8), hidden_size)), nn.ReLU(inplace=True)
        )

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode images to ``(rows, hidden_size)``."""
        hidden: Tensor = self.encoder(self.convolutions(observations.permute(0, 3, 1, 2).float() / 255))
        return hidden
