"""Policy network for ``moba``, whose observation is a grid of codes and a row of numbers."""

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.models import Policy, layer_init

__all__ = ["Moba"]

CELLS, LAYERS, SELF = 11 * 11, 4, 26
VIEW = CELLS * LAYERS
# Lowest and highest code of each kind of unit: wall, own creep, own tower, own hero, neutral creep, enemy creep, enemy
# tower, enemy hero.
LOWEST = (15, 30, 45, 60, 135, 150, 165, 180)
HIGHEST = (15, 30, 45, 120, 135, 150, 165, 240)
REGIONS = 8  # number of map regions in each direction


class Moba(Policy):
    """A multilayer perceptron with an input for each kind of unit in each cell, and for each region of the map.

    Args:
        env: Environment with the observations of ``moba``.
        hidden_size: Width of both layers.
    """

    lowest: Tensor
    highest: Tensor
    regions: Tensor

    def __init__(self, env: HasSpaces, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        self._buffer("lowest", torch.tensor(LOWEST, dtype=torch.uint8)[:, None])
        self._buffer("highest", torch.tensor(HIGHEST, dtype=torch.uint8)[:, None])
        self._buffer("regions", torch.arange(REGIONS * REGIONS, dtype=torch.uint8))
        inputs = (len(LOWEST) + 1) * CELLS + SELF + REGIONS * REGIONS
        self.encoder = nn.Sequential(
            layer_init(nn.Linear(inputs, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(nn.Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
        )

    def _buffer(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values, persistent=False)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode observations ``(rows, numbers)`` to ``(rows, hidden_size)``."""
        cells = observations[:, :VIEW].reshape(-1, CELLS, LAYERS)
        own = observations[:, VIEW:]
        codes = cells[:, None, :, 0]
        kinds = ((codes >= self.lowest) & (codes <= self.highest)).float().flatten(1)
        mana = cells[:, :, 2].float() * (1 / 255)  # for a tower: whether it is shielded
        here = (self._region(own)[:, None] == self.regions).float()
        hidden: Tensor = self.encoder(torch.cat([kinds, mana, own.float() * (1 / 255), here], -1))
        return hidden

    def _region(self, own: Tensor) -> Tensor:
        """Return the index of the map region of the hero, whose position is the first two columns of ``own``."""
        column, row = own[:, 0] // (256 // REGIONS), own[:, 1] // (256 // REGIONS)
        return row * REGIONS + column
