"""The network for ``tactical``, which judges each place of the board by the same weights."""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.models import Policy, layer_init

__all__ = ["Tactical"]

SIDE = 12
CELLS = SIDE * SIDE
TARGETS = 2  # actions that each cell has: walk there, and the explosive arrow to there
OTHERS = 9  # actions without a cell, besides the end of the turn
PLANES = 6  # itself, the other, ground, walls, what the other sees, where its wind arrow can hit
MASK = 1 + TARGETS * CELLS
BOARD = MASK + OTHERS
NUMBERS = BOARD + PLANES * CELLS
UNITS = 11  # numbers of both units, and whether it is to act
FEATURES = TARGETS + PLANES + 4  # of a cell
WIDTH = 24


class Cells(nn.Module):
    """A layer for each cell, with what is added for all of them, and ReLU.

    Args:
        inputs: Numbers of a cell.
        outputs: Numbers of a cell, and of what is added.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = layer_init(nn.Linear(inputs, outputs, bias=False)).weight

    def forward(self, cells: Tensor, added: Tensor) -> Tensor:
        """``(rows, inputs, CELLS)`` and ``(rows, outputs)`` to ``(rows, outputs, CELLS)``."""
        return for_each_cell(self.weight, cells, added).relu_()


def for_each_cell(weight: Tensor, cells: Tensor, added: Tensor) -> Tensor:
    """``weight`` times ``cells``, plus ``added``: products of matrices that a CPU does in its cache, row by row."""
    return torch.baddbmm(added[..., None], weight.expand(len(cells), -1, -1), cells)


class Tactical(Policy):
    """A small perceptron for each cell, all with the same weights, around one for what they show together.

    Of a cell it knows what the observation shows there, and where it lies from both units: the steps to each, and
    whether it is in the row or column of each. So what is learned of one place, that it gives cover or a shot, holds
    for all. A network without this has to learn it for every pair of places.

    Args:
        env: One with the observations of ``tactical``.
        hidden_size: Width of both layers of the perceptron for the whole board.
    """

    steps: Tensor
    lines: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size + TARGETS * CELLS)
        places = torch.stack(torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij"), -1).view(CELLS, 2)
        apart = (places[:, None] - places).abs()
        self._buffer("steps", apart.sum(-1).float() / SIDE)
        self._buffer("lines", (apart == 0).any(-1).float())
        self.units, self.cells = layer_init(nn.Linear(UNITS, WIDTH)), Cells(FEATURES, WIDTH)
        self.board = nn.Sequential(
            layer_init(nn.Linear(4 * WIDTH + UNITS + OTHERS, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(nn.Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
        )
        self.context, self.judgement = layer_init(nn.Linear(hidden_size, WIDTH)), Cells(WIDTH, WIDTH)
        self.targets = layer_init(nn.Linear(WIDTH, TARGETS), std=0.01)
        self.decoder = layer_init(nn.Linear(hidden_size, 1 + OTHERS + 1), std=1.0)
        with torch.no_grad():
            self.decoder.weight[:-1] *= 0.01

    def _buffer(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values, persistent=False)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``: what the board says, then what each cell says for walking there, and for shooting there."""
        numbers = observations.float() * (1 / 255)
        units, others = numbers[:, NUMBERS:], numbers[:, MASK:BOARD]
        planes = numbers[:, BOARD:NUMBERS].view(-1, PLANES, CELLS)
        reach = numbers[:, 1:MASK].view(-1, TARGETS, CELLS)
        itself, other = planes[:, 0], planes[:, 1]
        places = [plane @ table for plane in (itself, other) for table in (self.steps, self.lines)]
        cells = self.cells(torch.cat([reach, planes, torch.stack(places, 1)], 1), self.units(units))
        # Of the cells of both units, of those in reach, and of all.
        seen = cells @ torch.stack([itself, other, reach[:, 0] / SIDE, torch.full_like(itself, 1 / CELLS)], -1)
        board = self.board(torch.cat([seen.flatten(1), units, others], -1))
        targets = for_each_cell(self.targets.weight, self.judgement(cells, self.context(board)), self.targets.bias)
        return torch.cat([board, targets.flatten(1)], -1)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """See ``Policy``."""
        board, targets = hidden[..., : -TARGETS * CELLS], hidden[..., -TARGETS * CELLS :]
        outputs = self.decoder(board)
        return torch.cat([outputs[..., :1], targets, outputs[..., 1:-1]], -1), outputs[..., -1]
