"""Policy network that chooses actions for all cells of the map at once.

Source: Han et al., "Grid-Wise Control for Multi-Agent Reinforcement Learning" (2019), as in Huang et al. 2021.
"""

from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.models import Policy, layer_init

__all__ = ["GridNet"]

MASK_PLANES = 78  # number of mask planes at the end of an observation, and of logits per cell


class GridNet(Policy):
    """Convolutions that keep the size of the map, with a shared linear layer for each cell's action.

    Args:
        env: Environment of this binding.
        hidden_size: Channels of the convolutions.
    """

    def __init__(self, env: HasSpaces, hidden_size: int = 64) -> None:
        super().__init__(env, hidden_size)
        height, width, planes = env.single_observation_space.shape
        del self.decoder  # a dense layer over all cells would be a hundred times larger than the rest
        self._channels = hidden_size
        self.hidden_size = height * width * hidden_size
        layers: list[nn.Module] = []
        for inputs in (planes - MASK_PLANES, hidden_size, hidden_size, hidden_size):
            layers += [layer_init(nn.Conv2d(inputs, hidden_size, 3, padding=1)), nn.ReLU(inplace=True)]
        self.encoder = nn.Sequential(*layers)
        self.actor = layer_init(nn.Linear(hidden_size, MASK_PLANES), std=0.01)
        self.critic = layer_init(nn.Linear(hidden_size, 1), std=1.0)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode observations to ``(rows, cells * channels)``."""
        planes = observations[..., :-MASK_PLANES].permute(0, 3, 1, 2).float()
        cells: Tensor = self.encoder(planes).permute(0, 2, 3, 1)
        return cells.reshape(len(observations), -1)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return action logits for each cell, and values."""
        cells = hidden.view(*hidden.shape[:-1], -1, self._channels)
        params: Tensor = self.actor(cells)
        values: Tensor = self.critic(cells.mean(-2))
        return params.flatten(-2), values.squeeze(-1)

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """Return the last planes of each cell."""
        return observations[..., -MASK_PLANES:].flatten(1)
