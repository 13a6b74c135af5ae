"""Policy network for ``nmmo3``, whose observation is a grid of codes and a row of numbers."""

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.models import Policy, layer_init

__all__ = ["NMMO3"]

ROWS, COLUMNS, CODES = 11, 15, 10
TILES = ROWS * COLUMNS
VIEW = TILES * CODES
TERRAIN, ITEM, KIND, LEVEL, HP = 1, 2, 4, 6, 7  # index among the codes of a tile
STONE, PLAYER, ENEMY = 2, 1, 2  # first terrain that blocks the way, and kinds of units
FULL_HP = 4
TOOL, GEMS, HARVESTS = 6, slice(7, 11), slice(11, 15)  # item codes: all gems are one sort, each harvest is its own
ITEM_SORTS, LEVELS = 6, 5  # each enemy level is a sort
SORTS = ITEM_SORTS + LEVELS + 1  # the last sort is the other players
NEAR = 3  # radius in tiles within which every tile is an input: whether it is blocked, and by which unit
KEYS, REPEATED = slice(8, 20), slice(6, 8)  # actions: inventory keys, and two duplicates of other actions
SLOTS = KEYS.stop - KEYS.start
MODE, MODES, PLAYING = VIEW + 8, 5, 0
WORN = slice(VIEW + 13, VIEW + 18)
BAG = slice(WORN.stop, WORN.stop + SLOTS)
IS_WORN = slice(BAG.stop, BAG.stop + SLOTS)
TYPES_PER_TIER, TYPES, TIERS = 17, 11, 5  # item numbers per tier, item types, item tiers
USES = 2 * (TYPES + 1)  # a key can equip or unequip an item of each type (0: empty slot)
SCALES = (1, 10, 4, 3, 6, 99, 99, 10, 4, 5, 12, 10, 5, *[1] * 12, 255, 1, 10, 48, 24, *[1] * 10)


class NMMO3(Policy):
    """A perceptron over the nearest object of each sort, the surroundings, and the items of the player.

    For tools, each resource, enemies by level, and players, it knows the direction, distance and hp of the nearest one
    in view. What it learns about an enemy to the left therefore holds at every distance, whereas a network over all
    tiles has to learn it for each tile.

    An inventory key does what its item can do. The logit of a key therefore depends on the item's type and not on its
    slot, and empty slots are never chosen.

    Args:
        env: Environment with the observations of ``nmmo3``.
        hidden_size: Width of both layers.
    """

    takes_memory = False  # a recurrent layer would mix up the uses of the inventory keys

    near: Tensor
    closeness: Tensor
    tiles: Tensor
    places: Tensor
    item_sorts: Tensor
    sorts: Tensor
    items: Tensor
    types: Tensor
    scales: Tensor

    def __init__(self, env: HasSpaces, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size + SLOTS)
        offsets = torch.cartesian_prod(torch.arange(ROWS) - ROWS // 2, torch.arange(COLUMNS) - COLUMNS // 2)
        farthest_first = offsets.abs().sum(-1).argsort(descending=True, stable=True)
        self._buffer("near", (offsets.abs().amax(-1) <= NEAR).nonzero()[:, 0])
        self._buffer("closeness", (farthest_first.argsort() + 1).to(torch.uint8))  # of each tile, 0 if not in view
        self._buffer("tiles", nn.functional.pad(farthest_first, (1, 0)))  # tile of each closeness
        self._buffer("places", nn.functional.pad(_place_features(offsets[farthest_first]), (0, 0, 1, 0)))
        self._buffer("item_sorts", _item_sorts())
        self._buffer("sorts", torch.arange(1, SORTS + 1, dtype=torch.uint8)[:, None])
        self._buffer("items", _item_features())
        self._buffer("types", torch.cat([torch.zeros(1), torch.arange(255) % TYPES_PER_TIER + 1]).clamp(max=TYPES))
        self._buffer("scales", 1 / torch.tensor(SCALES, dtype=torch.float32))
        seen = SORTS * (self.places.shape[1] + 1) + 3 * len(self.near)
        own = (WORN.stop - WORN.start + 2) * self.items.shape[1] + MODES + len(SCALES)
        self.encoder = nn.Sequential(
            layer_init(nn.Linear(seen + own, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(nn.Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
        )
        actions = self.distribution.num_params
        self.decoder = layer_init(nn.Linear(hidden_size, actions + USES + 1), std=1.0)
        with torch.no_grad():
            self.decoder.weight[:-1] *= 0.01

    def _buffer(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values, persistent=False)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Return the perceptron's features, followed by the use of each inventory key."""
        hidden = self.encoder(torch.cat([*self._seen(observations), *self._own(observations)], -1))
        uses = self.types[observations[:, BAG].long()] + (TYPES + 1) * observations[:, IS_WORN]
        return torch.cat([hidden, uses.to(hidden.dtype)], -1)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return action logits and values. The logit of an inventory key includes the logit of its use."""
        outputs, uses = self.decoder(hidden[..., :-SLOTS]), hidden[..., -SLOTS:].long().clamp(0, USES - 1)
        actions, by_use, values = outputs.split([self.distribution.num_params, USES, 1], -1)
        keys = actions[..., KEYS] + by_use.gather(-1, uses)
        return torch.cat([actions[..., : KEYS.start], keys, actions[..., KEYS.stop :]], -1), values[..., 0]

    def action_mask(self, observations: Tensor) -> Tensor:
        """Allow all actions except keys of empty slots and actions that duplicate another one."""
        mask = torch.ones_like(observations[:, : self.distribution.num_params])
        mask[:, KEYS] = (observations[:, BAG] > 0) | (observations[:, MODE, None] != PLAYING)
        mask[:, REPEATED] = 0
        return mask

    def _seen(self, observations: Tensor) -> list[Tensor]:
        """Return features of the nearest object of each sort and of the tiles around the player, as floats."""
        codes = observations[:, :VIEW].reshape(-1, TILES, CODES)
        item_sorts, kinds = self.item_sorts[codes[..., ITEM].long()], codes[..., KIND]
        bodies = (kinds == PLAYER) * self.sorts[-1] + (kinds == ENEMY) * (codes[..., LEVEL] + (ITEM_SORTS + 1))
        bodies[:, TILES // 2] = 0  # the player itself
        found = self._closest(item_sorts, self.sorts[:ITEM_SORTS]), self._closest(bodies, self.sorts[ITEM_SORTS:])
        closest = torch.cat(found, -1).long()
        near = kinds[:, self.near]
        return [
            self.places[closest].flatten(1),
            codes[..., HP].gather(1, self.tiles[closest]) * (1 / FULL_HP),
            (codes[..., TERRAIN][:, self.near] >= STONE).float(),
            (near == PLAYER).float(),
            (near == ENEMY).float(),
        ]

    def _closest(self, tiles: Tensor, sorts: Tensor) -> Tensor:
        """Return the closeness of the nearest tile of each sort, shape ``(rows, sorts)``.

        Args:
            tiles: Sort of each tile, shape ``(rows, TILES)``.
            sorts: Sorts to look for, shape ``(sorts, 1)``.
        """
        return torch.where(tiles[:, None] == sorts, self.closeness, 0).amax(-1)

    def _own(self, observations: Tensor) -> list[Tensor]:
        """Return features of the player: worn items, the whole bag, bag items not worn, key mode, and other numbers."""
        bag = self.items[observations[:, BAG].long()]
        numbers = torch.cat([observations[:, VIEW : WORN.start], observations[:, IS_WORN.start :]], -1)
        return [
            self.items[observations[:, WORN].long()].flatten(1),
            bag.sum(1),
            (bag * (observations[:, IS_WORN, None] == 0)).sum(1),
            (observations[:, MODE, None] == torch.arange(MODES, device=observations.device)).float(),
            numbers * self.scales,
        ]


def _place_features(offsets: Tensor) -> Tensor:
    """Return direction and distance features of tiles at ``offsets`` (rows, columns)."""
    down, right = offsets.unbind(-1)
    apart = offsets.abs().sum(-1)
    sides = [down > 0, down < 0, right > 0, right < 0]
    flags = [*sides, down == 0, right == 0, right.abs() > down.abs()]
    flags += [apart <= limit for limit in (0, 1, 2, 3, 5)]
    flags += [(apart <= 1) & side for side in sides]
    numbers = [torch.ones_like(apart), down / (ROWS // 2), right / (COLUMNS // 2), 1 / (1 + apart)]
    return torch.stack([part.float() for part in [*flags, *numbers]], -1)


def _item_sorts() -> Tensor:
    """Return a table from item code to sort, starting at 1. Items that only enemies or players drop have sort 0."""
    sorts = torch.zeros(256, dtype=torch.uint8)
    sorts[TOOL], sorts[GEMS] = 1, 2
    sorts[HARVESTS] = torch.arange(3, ITEM_SORTS + 1, dtype=torch.uint8)
    return sorts


def _item_features() -> Tensor:
    """Return a table with a one-hot type and a one-hot tier for every item number, and zeros for no item."""
    features = torch.zeros(256, TYPES + TIERS)
    for tier in range(TIERS):
        for kind in range(TYPES):
            number = tier * TYPES_PER_TIER + kind + 1
            features[number, kind] = features[number, TYPES + tier] = 1
    return features
