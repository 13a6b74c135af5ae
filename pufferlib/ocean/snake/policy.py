"""Policy network for ``snake``, with a memory of where the snake's body lies."""

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.models import Policy, State, layer_init
from pufferlib.models.linear import Linear
from pufferlib.ocean.snake import _memory
from pufferlib.ocean.snake._memory import (
    AREAS,
    CORPSE,
    DIRECTIONS,
    DUE,
    FOOD,
    HEAD,
    MOVES,
    OWN_BODY,
    REACH,
    SIDE,
    STEPS,
    WALL,
)

__all__ = ["Snake"]

HERE = (slice(None), REACH, REACH)
UNKNOWN = 1 << 15  # longer than any snake


class Snake(Policy):
    """A perceptron over the cells in view, the time until each body cell is free, and the space that each move leaves.

    A snake sees which cells are its body, but not which of them is the tail, nor anything outside of its view. Both
    follow from its path: a cell is free again ``length`` steps after the head was there. The policy therefore remembers
    its path and length. For each of the four moves it counts the cells that the snake can then reach, including cells
    that become free in time. Without this memory, a network runs into dead ends formed by its own body.

    On a CPU, compiled loops (``_memory.pyx``) update the memory and compute the inputs. On other devices torch does.
    The memory depends only on the observations and has no weights:

    - ``trail``: Steps since the head was in each cell around it, 0 for never, uint8 ``(rows, SIDE, SIDE)``.
    - ``length``: Length of the snake, 0 before the first step, int32 ``(rows,)``.
    - ``eats``: Whether each move leads to food, bool ``(rows, 4)``.

    Args:
        env: Environment with the observations of ``snake``.
        hidden_size: Width of both layers.
    """

    takes_memory = False  # it has its own memory

    ahead: Tensor
    behind: Tensor
    bits: Tensor
    starts: Tensor

    def __init__(self, env: HasSpaces, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        side = self.observation_shape[-1]
        middle = side // 2
        self.view = (slice(None), *[slice(REACH - middle, REACH + middle + 1)] * 2)
        ahead = torch.tensor([down * side + right for down, right in DIRECTIONS])
        self.register_buffer("ahead", side * side // 2 + ahead, persistent=False)
        self.register_buffer("behind", side * side // 2 - ahead, persistent=False)
        starts = torch.zeros(MOVES, SIDE, dtype=torch.int32)
        for move, (down, right) in enumerate(DIRECTIONS):
            starts[move, REACH + down] = 1 << REACH + right
        self.register_buffer("starts", starts, persistent=False)
        self.register_buffer("bits", 1 << torch.arange(SIDE, dtype=torch.int32), persistent=False)
        self.inputs = 6 * side * side + MOVES * (1 + len(AREAS)) + 1
        self.encoder = nn.Sequential(
            layer_init(Linear(self.inputs, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
        )

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """Return the memory before the first step, all zeros."""
        return {
            "trail": torch.zeros(num_agents, SIDE, SIDE, dtype=torch.uint8, device=device),
            "length": torch.zeros(num_agents, dtype=torch.int32, device=device),
            "eats": torch.zeros(num_agents, MOVES, dtype=torch.bool, device=device),
        }

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode observations as the first step of an episode."""
        start = self.initial_state(observations.shape[0], observations.device)
        return self.encode(observations, self.remember(observations, start))

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """Return action parameters and values for one step, and update the memory in ``state``."""
        state = self.initial_state(observations.shape[0], observations.device) if state is None else state
        state.update(self.remember(observations, state))
        return self.decode_actions(self.encode(observations, state))

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return action parameters and values for segments ``(steps, rows, side, side)``."""
        steps, rows = observations.shape[:2]
        state = self.initial_state(rows, observations.device) if state is None else state
        every = self._remember_segments(observations, state, episode_starts)
        hidden = self.encode(observations.flatten(0, 1), {name: part.flatten(0, 1) for name, part in every.items()})
        params, values = self.decode_actions(hidden)
        return params.view(steps, rows, -1), values.view(steps, rows)

    def remember(self, observations: Tensor, state: State) -> State:
        """Return the memory after a step, given the memory before it and observations ``(rows, side, side)``."""
        every = self._remember_segments(observations[None], state, None)
        return {name: part[0] for name, part in every.items()}

    @torch.no_grad()
    def _remember_segments(self, observations: Tensor, state: State, starts: Tensor | None) -> State:
        """Return the memory after each step, ``(steps, rows, ...)``, given the memory before the first.

        Args:
            observations: Observations ``(steps, rows, side, side)``.
            state: Memory before the first step.
            starts: True where an episode starts, bool ``(steps, rows)``, or None if none does.
        """
        state = {"trail": state["trail"].to(torch.uint8), "length": state["length"].int(), "eats": state["eats"].bool()}
        if _fits_loops(observations, state["trail"]):
            steps, rows = observations.shape[:2]
            every = {name: part.new_empty(steps, *part.shape) for name, part in self.initial_state(rows).items()}
            _memory.remember(
                _array(observations, 2),
                None if starts is None else _array(starts),
                _array(state["trail"], 1),
                _array(state["length"]),
                _array(state["eats"]),
                _array(every["trail"], 2),
                _array(every["length"]),
                _array(every["eats"]),
            )
            return every
        states = []
        for step, seen in enumerate(observations):
            if starts is not None:
                state = {name: torch.where(_expand_to(starts[step], part), 0, part) for name, part in state.items()}
            state = self._remember_by_torch(seen, state)
            states.append(state)
        return {name: torch.stack([each[name] for each in states]) for name in state}

    def _remember_by_torch(self, observations: Tensor, state: State) -> State:
        """Return the memory after a step, given the memory before it.

        The direction of the last move follows from the body: the head came from a neighboring cell that is now body. If
        there are several, choose the one for which the remembered body matches the view best.
        """
        cells, own = observations.flatten(1), observations == OWN_BODY
        trail, length, eats = state["trail"], state["length"], state["eats"]
        trail = trail + (trail > 0)  # wraps to 0 (forgotten) after 255 steps
        trail[HERE] = 1
        around = nn.functional.pad(trail, (1, 1, 1, 1))
        moved = [around[:, 1 + down : 1 + down + SIDE, 1 + right : 1 + right + SIDE] for down, right in DIRECTIONS]
        from_there = own.flatten(1)[:, self.behind]
        body = [(trail[self.view] > 0) & (trail[self.view] < _expand_to(length, own)) for trail in moved]
        fits = torch.stack([(part == own).flatten(1).sum(-1) for part in body], -1) + UNKNOWN * from_there
        move = fits.argmax(-1, keepdim=True)
        trail = moved[-1]
        for other in range(MOVES - 1):
            trail = torch.where(_expand_to(move[:, 0] == other, trail), moved[other], trail)
        length = length.clamp(min=1) + (eats & from_there).gather(1, move)[:, 0]
        # Correct the length: visible body cells on the trail are within it, other cells of the trail are beyond it.
        way = trail[self.view].int()
        least = torch.where(own, way + 1, 1).flatten(1).amax(-1)
        most = torch.where((way > 0) & ~own, way, UNKNOWN).flatten(1).amin(-1)
        ahead = cells[:, self.ahead]
        return {
            "trail": trail,
            "length": torch.maximum(torch.minimum(length, most), least).int(),
            "eats": (ahead == FOOD) | (ahead == CORPSE),
        }

    def encode(self, observations: Tensor, state: State) -> Tensor:
        """Encode observations ``(rows, side, side)`` and the memory after them to ``(rows, hidden_size)``."""
        if _fits_loops(observations, state["trail"]):
            inputs = torch.empty(len(observations), self.inputs)
            _memory.features(
                _array(observations, 1), _array(state["trail"], 1), _array(state["length"]), _array(inputs)
            )
        else:
            inputs = self._inputs_by_torch(observations, state)
        hidden: Tensor = self.encoder(inputs)
        return hidden

    def _inputs_by_torch(self, observations: Tensor, state: State) -> Tensor:
        """Return the inputs of the perceptron."""
        cells = observations.flatten(1)
        left = _expand_to(state["length"], observations) - state["trail"].int()  # steps until the tail reaches the cell
        own = (state["trail"] > 0) & (left > 0)
        is_blocked = own.clone()
        is_blocked[self.view] = observations >= WALL
        is_blocked[HERE] = True
        due = torch.where(own & is_blocked, left, 0)
        areas = self._areas(is_blocked, due)
        planes = [cells >= WALL, (cells == FOOD) | (cells == CORPSE), cells == OWN_BODY, cells == HEAD, cells == WALL]
        parts = [plane.float() for plane in planes]
        parts += [due[self.view].flatten(1).clamp(max=127) * (1 / 64), areas * 0.01]
        parts += [(areas > area).float() for area in AREAS]
        return torch.cat([*parts, state["length"][:, None] * 0.01], -1)

    def _areas(self, is_blocked: Tensor, due: Tensor) -> Tensor:
        """Return the number of cells that each move can reach within a few steps, float ``(rows, 4)``.

        Each row of cells is stored as the bits of a number, so a few operations extend all cells by one step.
        """
        free = self._pack(~is_blocked)
        reached = self.starts & free[:, None]
        for time in DUE:
            can_be = (free | self._pack((due > 0) & (due < time)))[:, None]
            for _ in range(STEPS):
                wider = reached | reached << 1 | reached >> 1
                wider[..., 1:] |= reached[..., :-1]
                wider[..., :-1] |= reached[..., 1:]
                reached = wider & can_be
        return _count_bits(reached).sum(-1).float()

    def _pack(self, cells: Tensor) -> Tensor:
        """Pack bool ``(rows, SIDE, SIDE)`` into int32 ``(rows, SIDE)``, one bit per cell."""
        return (cells * self.bits).sum(-1, dtype=torch.int32)


def _fits_loops(observations: Tensor, trail: Tensor) -> bool:
    """Return True if the compiled loops accept these tensors: on a CPU, with the dtypes of the environment."""
    if torch.compiler.is_compiling() or not (observations.is_cpu and trail.is_cpu):
        return False
    return observations.dtype is torch.int8 and trail.dtype is torch.uint8


def _array(tensor: Tensor, leading: int | None = None) -> npt.NDArray[Any]:
    """Return ``tensor`` as an array for the compiled loops: flat after ``leading`` dimensions, bool as uint8."""
    if leading is not None:
        tensor = tensor.flatten(leading)
    tensor = tensor.contiguous()
    return (tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor).numpy()


def _expand_to(numbers: Tensor, pictures: Tensor) -> Tensor:
    """Reshape ``(rows,)`` so that it broadcasts against ``(rows, ...)``."""
    return numbers.view(-1, *[1] * (pictures.dim() - 1))


def _count_bits(numbers: Tensor) -> Tensor:
    """Return the number of set bits among the lowest 31 bits of each of int32 ``numbers``."""
    pairs = numbers - (numbers >> 1 & 0x55555555)
    fours = (pairs & 0x33333333) + (pairs >> 2 & 0x33333333)
    eights = fours + (fours >> 4) & 0x0F0F0F0F
    return eights + (eights >> 8) + (eights >> 16) + (eights >> 24) & 63
