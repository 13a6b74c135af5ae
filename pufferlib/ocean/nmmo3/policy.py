"""The network for ``nmmo3``, whose observation is a picture of codes and a row of numbers."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.models import Policy, layer_init

__all__ = ["NMMO3"]

ROWS, COLUMNS = 11, 15
CARDINALITIES = (4, 4, 15, 6, 3, 5, 5, 5, 7, 4)  # of the codes of a tile
TERRAIN, ITEM, KIND, LEVEL = 1, 2, 4, 6  # where among them
WATER_OR_STONE, TOOL, ENEMY = 2, 6, 2  # the first code that blocks the way; codes of an item and of a kind
HARVESTS = ((7, 10), (11, 11), (12, 14))  # gems; herbs; what gear is made of
FOES = ((0, 0), (1, 1), (2, 4))  # enemies by how much stronger they are
TILES = ROWS * COLUMNS
VIEW = TILES * len(CARDINALITIES)
ITEMS = slice(VIEW + 13, VIEW + 30)  # five that are worn, twelve in the bag
WORN = slice(VIEW + 30, VIEW + 42)
MODE = VIEW + 8
TYPES_PER_TIER, TYPES, TIERS, MODES = 17, 11, 5, 5
SCALES = (1, 40, 4, 3, 6, 99, 99, 40, 4, 5, 12, 99, 5, *[1] * 12, 255, 1, 40, 192, 192, *[1] * 10)


class NMMO3(Policy):
    """Multilayer perceptron over the codes of all tiles, and extra planes for the most relevant of them.

    Args:
        env: One with the observations of ``nmmo3``.
        hidden_size: Width of both layers.
    """

    code_scales: Tensor
    scales: Tensor
    items: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        self._buffer("code_scales", 1 / (torch.tensor(CARDINALITIES).repeat(TILES) - 1))
        self._buffer("scales", 1 / torch.tensor(SCALES, dtype=torch.float32))
        self._buffer("items", _item_features())
        view = VIEW + TILES * (2 + len(HARVESTS) + len(FOES))
        own = (5 + 12) * (TYPES + TIERS) + MODES + len(SCALES)
        self.encoder = nn.Sequential(
            layer_init(nn.Linear(view + own, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(nn.Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
        )

    def _buffer(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values, persistent=False)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        codes = observations[:, :VIEW]
        parts = [codes * self.code_scales, *self._tiles(codes), *self._self(observations)]
        hidden: Tensor = self.encoder(torch.cat(parts, -1))
        return hidden

    def _tiles(self, codes: Tensor) -> Iterator[Tensor]:
        """Yield one plane each for blocked tiles, tools, kinds of resources, and enemies by their level."""
        tiles = codes.reshape(-1, TILES, len(CARDINALITIES)).transpose(1, 2).contiguous()
        item, level = tiles[:, ITEM], tiles[:, LEVEL]
        is_enemy = tiles[:, KIND] == ENEMY
        yield (tiles[:, TERRAIN] >= WATER_OR_STONE).float()
        yield (item == TOOL).float()
        for low, high in HARVESTS:
            yield ((item >= low) & (item <= high)).float()
        for low, high in FOES:
            yield (is_enemy & (level >= low) & (level <= high)).float()

    def _self(self, observations: Tensor) -> tuple[Tensor, ...]:
        """Encode the player itself as floats: types and tiers of its items, mode of the keys, scaled numbers."""
        items = self.items[observations[:, ITEMS].long()].flatten(1)
        mode = observations[:, MODE, None] == torch.arange(MODES, device=observations.device)
        numbers = torch.cat([observations[:, VIEW : ITEMS.start], observations[:, WORN.start :]], -1)
        return items, mode.float(), numbers * self.scales


def _item_features() -> Tensor:
    """Table with a one-hot type and a one-hot tier for every item number; zeros for no item."""
    features = torch.zeros(256, TYPES + TIERS)
    for tier in range(TIERS):
        for kind in range(TYPES):
            number = tier * TYPES_PER_TIER + kind + 1
            features[number, kind] = features[number, TYPES + tier] = 1
    return features
