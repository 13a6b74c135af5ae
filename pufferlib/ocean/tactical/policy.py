"""Policy network for ``tactical``, which evaluates each cell of the board with the same weights."""

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.models import Policy, layer_init

__all__ = ["Tactical"]

SIDE = 12
CELLS = SIDE * SIDE
TARGETS = 2  # actions per cell: walk there, and shoot the explosive arrow there
OTHERS = 9  # actions without a target cell, except the end of the turn
PLANES = 6  # own unit, other unit, ground, walls, cells the other unit sees, cells its wind arrow can hit
NEARBY = 1, 3  # radii, in steps, of the areas over which the SHARES are averaged
SHARES = 4  # cells the other unit can hit, cells it sees, cells from where it can be hit, cells in walking reach
MASK = 1 + TARGETS * CELLS
BOARD = MASK + OTHERS
NUMBERS = BOARD + PLANES * CELLS
UNITS = 11  # numbers of both units, and whether the own unit is to act
FEATURES = TARGETS + PLANES + 4 + SHARES * len(NEARBY)  # per cell
WIDTH = 24


class Cells(nn.Module):
    """A linear layer applied to each cell, plus a term shared by all cells, followed by ReLU.

    Args:
        inputs: Number of inputs per cell.
        outputs: Number of outputs per cell, and size of the shared term.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = layer_init(nn.Linear(inputs, outputs, bias=False)).weight

    def forward(self, cells: Tensor, added: Tensor) -> Tensor:
        """Map ``(rows, inputs, CELLS)`` and a shared term ``(rows, outputs)`` to ``(rows, outputs, CELLS)``."""
        return for_each_cell(self.weight, cells, added).relu_()


def for_each_cell(weight: Tensor, cells: Tensor, added: Tensor) -> Tensor:
    """Return ``weight @ cells + added`` as one batched product, whose matrices fit a CPU's cache row by row."""
    return torch.baddbmm(added[..., None], weight.expand(len(cells), -1, -1), cells)


class Tactical(Policy):
    """A small perceptron applied to each cell with shared weights, around a perceptron for the whole board.

    The features of a cell are what the observation shows there, the number of steps to each unit, whether the cell is
    in the row or column of each unit, and how much cover and how many shooting positions are near. What the network
    learns about one cell therefore holds for all, whereas a plain network has to learn it for every pair of cells.

    Args:
        env: Environment with the observations of ``tactical``.
        hidden_size: Width of both layers of the perceptron for the whole board.
    """

    takes_memory = False  # a recurrent layer would mix the outputs of single cells

    steps: Tensor
    lines: Tensor
    nearby: Tensor

    def __init__(self, env: HasSpaces, hidden_size: int = 128) -> None:
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
        """Return the features of the board, followed by the features of each cell for walking and shooting there."""
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
        # Pool the cell features at both units, over the cells in reach, and over the whole board.
        seen = cells @ torch.stack([itself, other, reach[:, 0] / SIDE, torch.full_like(itself, 1 / CELLS)], -1)
        board = self.board(torch.cat([seen.flatten(1), units, others], -1))
        targets = for_each_cell(self.targets.weight, self.judgement(cells, self.context(board)), self.targets.bias)
        return torch.cat([board, targets.flatten(1)], -1)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return action logits, with two logits per cell, and values."""
        board, targets = hidden[..., : -TARGETS * CELLS], hidden[..., -TARGETS * CELLS :]
        outputs = self.decoder(board)
        return torch.cat([outputs[..., :1], targets, outputs[..., 1:-1]], -1), outputs[..., -1]
