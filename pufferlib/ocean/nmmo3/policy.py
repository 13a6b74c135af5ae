"""The network for ``nmmo3``, whose observation is a picture of codes and a row of numbers."""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.models import Policy, layer_init

__all__ = ["NMMO3"]

ROWS, COLUMNS = 11, 15
CARDINALITIES = (4, 4, 15, 6, 3, 5, 5, 5, 7, 4)  # of the codes of a tile
VIEW = ROWS * COLUMNS * len(CARDINALITIES)
ITEMS = slice(VIEW + 13, VIEW + 30)  # five that are worn, twelve in the bag
WORN = slice(VIEW + 30, VIEW + 42)
MODE = VIEW + 8
TYPES_PER_TIER, TYPES, TIERS, MODES = 17, 11, 5, 5
SCALES = (1, 40, 4, 3, 6, 99, 99, 40, 4, 5, 12, 99, 5, *[1] * 12, 255, 1, 40, 192, 192, *[1] * 10)


class NMMO3(Policy):
    """Embeds every tile by its codes, convolves what surrounds the player, and adds what it is and has.

    Args:
        env: One with the observations of ``nmmo3``.
        hidden_size: Width of the last layer.
    """

    levels: Tensor
    places: Tensor
    scales: Tensor
    item_types: Tensor
    item_tiers: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        # Of every code one plane for each value but the lowest.
        codes = [(place, level) for place, count in enumerate(CARDINALITIES) for level in range(1, count)]
        self._buffer("places", torch.tensor([place for place, _ in codes]))
        self._buffer("levels", torch.tensor([level for _, level in codes], dtype=torch.uint8))
        self._buffer("scales", 1 / torch.tensor(SCALES, dtype=torch.float32))
        self._buffer("item_types", torch.arange(1, TYPES + 1))
        self._buffer("item_tiers", torch.arange(TIERS))
        channels = 32
        self.tile = layer_init(nn.Linear(len(codes), 16))
        self.view = nn.Sequential(
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(16, channels, 3, stride=2)),
            nn.ReLU(inplace=True),
            nn.Flatten(),
        )
        view = channels * ((ROWS - 1) // 2) * ((COLUMNS - 1) // 2)
        items = (5 + 12) * (TYPES + TIERS)
        self.encoder = nn.Sequential(
            layer_init(nn.Linear(view + items + MODES + len(SCALES), hidden_size)),
            nn.ReLU(inplace=True),
        )

    def _buffer(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values, persistent=False)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        rows = len(observations)
        tiles = observations[:, :VIEW].reshape(rows * ROWS * COLUMNS, len(CARDINALITIES))
        planes = (tiles[:, self.places] == self.levels).float()
        view = self.tile(planes).view(rows, ROWS, COLUMNS, -1).permute(0, 3, 1, 2)
        hidden: Tensor = self.encoder(torch.cat([self.view(view), *self._self(observations)], -1))
        return hidden

    def _self(self, observations: Tensor) -> tuple[Tensor, ...]:
        """What the player is and has, as floats: types and tiers of items, mode of the keys, numbers."""
        items = observations[:, ITEMS].long()
        number = items - 1
        types = ((number % TYPES_PER_TIER + 1).unsqueeze(-1) == self.item_types) & (items > 0).unsqueeze(-1)
        tiers = ((number // TYPES_PER_TIER).unsqueeze(-1) == self.item_tiers) & (items > 0).unsqueeze(-1)
        mode = observations[:, MODE, None] == torch.arange(MODES, device=observations.device)
        numbers = torch.cat([observations[:, VIEW : ITEMS.start], observations[:, WORN.start :]], -1)
        return types.flatten(1).float(), tiers.flatten(1).float(), mode.float(), numbers * self.scales
