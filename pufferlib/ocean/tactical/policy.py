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
NEARBY = 1, 3  # steps, within each of which the shares of cells are known that are one of
SHARES = 4  # where the other can hit, what it sees, where it can be hit, and where to walk
MASK = 1 + TARGETS * CELLS
BOARD = MASK + OTHERS
NUMBERS = BOARD + PLANES * CELLS
UNITS = 11  # numbers of both units, and whether it is to act
FEATURES = TARGETS + PLANES + 4 + SHARES * len(NEARBY)  # of a cell
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

    Of a cell it knows what the observation shows there, where it lies from both units: the steps to each, and whether
    it is in the row or column of each; and how much cover and how many places for a shot are near. So what is learned
    of one place holds for all. A network without this has to learn it for every pair of places.

    Args:
        env: One with the observations of ``tactical``.
        hidden_size: Width of both layers of the perceptron for the whole board.
    """

    takes_memory = False  # which would mix what single cells say

    steps: Tensor
    lines: Tensor
    nearby: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size + TARGETS * CELLS)
        places = torch.stack(torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij"), -1).view(CELLS, 2)
        apart = (places[:, None] - places).abs()
        steps = apart.sum(-1)
        self._buffer("steps", steps.float() / SIDE)
        self._buffer("lines", (apart == 0).any(-1).float())
        within = [(steps <= limit).float() for limit in NEARBY]
        self._buffer("nearby", torch.cat([cells / cells.sum(0) for cells in within], -1))
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
        shots = planes[:, 4] * places[3]
        shares = torch.stack([planes[:, 5], planes[:, 4], shots, reach[:, 0]], 1) @ self.nearby
        known = [reach, planes, torch.stack(places, 1), shares.view(-1, SHARES * len(NEARBY), CELLS)]
        cells = self.cells(torch.cat(known, 1), self.units(units))
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
