"""Policy network for Neural MMO: the map as an image, entities and items as sets, with masked actions.

Sources: Suarez et al. 2023 (see the binding) encodes tiles, entities and items separately. Zaheer et al., "Deep Sets"
(2017), https://doi.org/10.48550/arXiv.1703.06114, encodes a set as the sum, here the maximum, of its members.
"""

from typing import Any

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, layer_init
from pufferlib.pytorch import nativize_dtype, nativize_tensor

__all__ = ["NeuralMMO"]

MATERIALS = 16
SETS = ("Entity", "Inventory", "Market", "Communication")
SET_WIDTH = 64


class NeuralMMO(Policy):
    """Encodes each field of the observation separately, and masks actions with ``ActionTargets``.

    Args:
        env: Environment of this binding, which must observe ``Tile``, ``Entity`` and ``AgentId``.
        hidden_size: Width of the layer that joins all fields.
    """

    def __init__(self, env: HasSpaces, hidden_size: int = 256) -> None:
        super().__init__(env, hidden_size)
        self._structure: Any = nativize_dtype(env.emulated) if env.emulated else {}
        if not isinstance(self._structure, dict) or not {"Tile", "Entity", "AgentId"} <= self._structure.keys():
            raise APIUsageError(
                "NeuralMMO: the environment must observe Tile, Entity and AgentId, "
                f"got {env.single_observation_space}; leave the option observe at its default"
            )
        self._sets = [name for name in SETS if name in self._structure]
        widths = {name: self._structure[name][1][1] for name in self._sets}
        self.tiles = nn.Sequential(
            layer_init(nn.Conv2d(MATERIALS, 32, 3, stride=2)),
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(32, 32, 3, stride=2)),
            nn.ReLU(inplace=True),
            nn.Flatten(),
        )
        self.members = nn.ModuleDict(
            {
                name: nn.Sequential(layer_init(nn.Linear(width, SET_WIDTH)), nn.ReLU(inplace=True))
                for name, width in widths.items()
            }
        )
        self.task = layer_init(nn.Linear(4096, SET_WIDTH)) if "Task" in self._structure else None
        inputs = 32 * 3 * 3 + widths["Entity"] + SET_WIDTH * (len(self._sets) + (self.task is not None))
        self.encoder = nn.Sequential(layer_init(nn.Linear(inputs, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` to ``(rows, hidden_size)``."""
        fields = nativize_tensor(observations, self._structure)
        entities = fields["Entity"]
        # The agent's own row has its number. An absent agent has no such row, so it gets zeros.
        own = (entities[:, :, 0] == fields["AgentId"].view(-1, 1)).unsqueeze(-1)
        self_row = (entities * own).sum(1, dtype=entities.dtype)
        parts = [self._tiles(fields["Tile"]), _squashed(self_row)]
        parts += [self._pooled(name, fields[name], self_row) for name in self._sets]
        if self.task is not None:
            parts.append(torch.relu(self.task(fields["Task"].float())))
        hidden: Tensor = self.encoder(torch.cat(parts, -1))
        return hidden

    def _tiles(self, tiles: Tensor) -> Tensor:
        """Encode the tiles around the agent, ``(rows, 225, 3)``, with one channel per material."""
        materials = nn.functional.one_hot(tiles[:, :, 2].long().clamp(0, MATERIALS - 1), MATERIALS)
        side = int(tiles.shape[1] ** 0.5)
        picture = materials.transpose(1, 2).float().view(-1, MATERIALS, side, side)
        encoded: Tensor = self.tiles(picture)
        return encoded

    def _pooled(self, name: str, members: Tensor, self_row: Tensor) -> Tensor:
        """Return the maximum over the encoded members of a set ``(rows, members, width)``. Zero rows are ignored."""
        present = (members != 0).any(-1, keepdim=True)
        if name == "Entity":  # positions relative to the agent
            members = torch.cat([members[..., :2], members[..., 2:4] - self_row[:, None, 2:4], members[..., 4:]], -1)
        encoded: Tensor = self.members[name](_squashed(members))
        return (encoded * present).amax(1)

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """Return the action masks, which are nested and ordered like the actions."""
        if "ActionTargets" not in self._structure:
            return None
        return torch.cat(list(_leaves(nativize_tensor(observations, self._structure)["ActionTargets"])), -1)


def _leaves(tree: Any) -> Any:
    for value in tree.values():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield value


def _squashed(numbers: Tensor) -> Tensor:
    """Compress integers to small floats, because levels, positions and gold differ by orders of magnitude."""
    real = numbers.float()
    return real.sign() * real.abs().log1p()
