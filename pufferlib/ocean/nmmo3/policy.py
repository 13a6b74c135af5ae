"""The network for ``nmmo3``, whose observation is a picture of codes and a row of numbers."""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.models import Policy, layer_init

__all__ = ["NMMO3"]

ROWS, COLUMNS = 11, 15
CARDINALITIES = (4, 4, 15, 6, 3, 5, 5, 5, 7, 4)  # of the codes of a tile
GROUPS = ((0, 1), (2, 3), (4, 5, 6), (7, 8, 9))  # land; item; who stands there; how it is
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

    weights: Tensor
    offsets: Tensor
    scales: Tensor
    items: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        channels, embedding = 32, 16
        weights, offsets = _group_numbers()
        self._buffer("weights", weights)
        self._buffer("offsets", offsets[:-1])
        self._buffer("scales", 1 / torch.tensor(SCALES, dtype=torch.float32))
        self._buffer("items", _item_features())
        self.tile = nn.EmbeddingBag(int(offsets[-1]), embedding, mode="sum")
        self.view = nn.Sequential(
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(embedding, channels, 3, stride=2)),
            nn.ReLU(inplace=True),
            nn.Flatten(),
        )
        view = channels * ((ROWS - 1) // 2) * ((COLUMNS - 1) // 2)
        own = (5 + 12) * (TYPES + TIERS) + MODES + len(SCALES)
        self.encoder = nn.Sequential(layer_init(nn.Linear(view + own, hidden_size)), nn.ReLU(inplace=True))

    def _buffer(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values, persistent=False)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        rows = len(observations)
        codes = observations[:, :VIEW].reshape(rows * ROWS * COLUMNS, len(CARDINALITIES)).float()
        tiles: Tensor = self.tile((codes @ self.weights).long() + self.offsets)
        view = tiles.view(rows, ROWS, COLUMNS, -1).permute(0, 3, 1, 2)
        hidden: Tensor = self.encoder(torch.cat([self.view(view), *self._self(observations)], -1))
        return hidden

    def _self(self, observations: Tensor) -> tuple[Tensor, ...]:
        """What the player is and has, as floats: types and tiers of items, mode of the keys, numbers."""
        items = self.items[observations[:, ITEMS].long()].flatten(1)
        mode = observations[:, MODE, None] == torch.arange(MODES, device=observations.device)
        numbers = torch.cat([observations[:, VIEW : ITEMS.start], observations[:, WORN.start :]], -1)
        return items, mode.float(), numbers * self.scales


def _group_numbers() -> tuple[Tensor, Tensor]:
    """What makes one number of the codes of each group, and where the numbers of each group begin."""
    weights = torch.zeros(len(CARDINALITIES), len(GROUPS))
    offsets = [0]
    for group, places in enumerate(GROUPS):
        size = 1
        for place in reversed(places):
            weights[place, group] = size
            size *= CARDINALITIES[place]
        offsets.append(offsets[-1] + size)
    return weights, torch.tensor(offsets)


def _item_features() -> Tensor:
    """Of every number that an item may have, one float for each type and for each tier; of none all 0."""
    features = torch.zeros(256, TYPES + TIERS)
    for tier in range(TIERS):
        for kind in range(TYPES):
            number = tier * TYPES_PER_TIER + kind + 1
            features[number, kind] = features[number, TYPES + tier] = 1
    return features
