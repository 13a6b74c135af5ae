"""The network for ``snake``, which remembers where its body lies."""

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
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
    """A perceptron over the cells in view, over how soon each own one is free, and over how much room each move leaves.

    A snake sees which cells are its body, and neither which of them is the tail nor what lies out of view. Both follow
    from where it has been: a cell is free once its tail has passed, ``length`` steps after its head. So the policy
    remembers its way and its length, and counts for each of the four moves the cells to which the snake can go from
    there, on its way those that are free by then. A network that sees only the present runs into dead ends of its
    own making.

    On a CPU compiled loops (``_memory.pyx``) keep the memory and make the perceptron's inputs, elsewhere torch does.
    The memory is of the game, without weights: ``trail``, uint8 ``(rows, SIDE, SIDE)``, the steps since the head was
    in each cell around it, 0 for never; ``length``, int32 ``(rows,)``, 0 before the first step; ``eats``, bool
    ``(rows, 4)``, whether each move leads to something to eat.

    Args:
        env: One with the observations of ``snake``.
        hidden_size: Width of both layers.
    """

    takes_memory = False  # but its own

    ahead: Tensor
    behind: Tensor
    bits: Tensor
    starts: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
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
        """See ``Policy``."""
        return {
            "trail": torch.zeros(num_agents, SIDE, SIDE, dtype=torch.uint8, device=device),
            "length": torch.zeros(num_agents, dtype=torch.int32, device=device),
            "eats": torch.zeros(num_agents, MOVES, dtype=torch.bool, device=device),
        }

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``, as in the first step of a life."""
        start = self.initial_state(observations.shape[0], observations.device)
        return self.encode(observations, self.remember(observations, start))

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """See ``Policy``."""
        state = self.initial_state(observations.shape[0], observations.device) if state is None else state
        state.update(self.remember(observations, state))
        return self.decode_actions(self.encode(observations, state))

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """See ``Policy``."""
        steps, rows = observations.shape[:2]
        state = self.initial_state(rows, observations.device) if state is None else state
        every = self._remember_segments(observations, state, episode_starts)
        hidden = self.encode(observations.flatten(0, 1), {name: part.flatten(0, 1) for name, part in every.items()})
        params, values = self.decode_actions(hidden)
        return params.view(steps, rows, -1), values.view(steps, rows)

    def remember(self, observations: Tensor, state: State) -> State:
        """Return the memory after a step, from that before it; observations are ``(rows, side, side)``."""
        every = self._remember_segments(observations[None], state, None)
        return {name: part[0] for name, part in every.items()}

    @torch.no_grad()
    def _remember_segments(self, observations: Tensor, state: State, starts: Tensor | None) -> State:
        """Return the memory after each step, ``(steps, rows, ...)``, from that before the first.

        Observations are ``(steps, rows, side, side)``, and ``starts`` bool ``(steps, rows)``; None for nowhere.
        """
        state = {"trail": state["trail"].to(torch.uint8), "length": state["length"].int(), "eats": state["eats"].bool()}
        if _is_for_loops(observations, state["trail"]):
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
                state = {name: torch.where(_like(starts[step], part), 0, part) for name, part in state.items()}
            state = self._remember_by_torch(seen, state)
            states.append(state)
        return {name: torch.stack([each[name] for each in states]) for name in state}

    def _remember_by_torch(self, observations: Tensor, state: State) -> State:
        """Return the memory after a step, from that before it.

        Which way the snake went is told by its body: the head came from a neighbouring cell that is its own now, and
        of several such from that which puts the body as it is remembered where it is seen.
        """
        cells, own = observations.flatten(1), observations == OWN_BODY
        trail, length, eats = state["trail"], state["length"], state["eats"]
        trail = trail + (trail > 0)  # after 255 steps it is forgotten
        trail[HERE] = 1
        around = nn.functional.pad(trail, (1, 1, 1, 1))
        moved = [around[:, 1 + down : 1 + down + SIDE, 1 + right : 1 + right + SIDE] for down, right in DIRECTIONS]
        from_there = own.flatten(1)[:, self.behind]
        body = [(trail[self.view] > 0) & (trail[self.view] < _like(length, own)) for trail in moved]
        fits = torch.stack([(part == own).flatten(1).sum(-1) for part in body], -1) + UNKNOWN * from_there
        move = fits.argmax(-1, keepdim=True)
        trail = moved[-1]
        for other in range(MOVES - 1):
            trail = torch.where(_like(move[:, 0] == other, trail), moved[other], trail)
        length = length.clamp(min=1) + (eats & from_there).gather(1, move)[:, 0]
        # What it sees of its way corrects the length: own cells are within it, and others are behind it.
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
        """Encode observations ``(rows, side, side)`` with the memory after them: ``(rows, hidden_size)``."""
        if _is_for_loops(observations, state["trail"]):
            inputs = torch.empty(len(observations), self.inputs)
            _memory.features(
                _array(observations, 1), _array(state["trail"], 1), _array(state["length"]), _array(inputs)
            )
        else:
            inputs = self._inputs_by_torch(observations, state)
        hidden: Tensor = self.encoder(inputs)
        return hidden

    def _inputs_by_torch(self, observations: Tensor, state: State) -> Tensor:
        """Inputs of the perceptron."""
        cells = observations.flatten(1)
        left = _like(state["length"], observations) - state["trail"].int()  # steps until the tail is there
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
        """Number of cells to which each move leads within some steps: float ``(rows, 4)``.

        A row of cells is the bits of a number, so a step in all directions is a few operations for all of them.
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
        """Bool ``(rows, SIDE, SIDE)`` to int32 ``(rows, SIDE)``, a bit for each cell."""
        return (cells * self.bits).sum(-1, dtype=torch.int32)


def _is_for_loops(observations: Tensor, trail: Tensor) -> bool:
    """Tell whether the compiled loops can take these: on a CPU, in the number formats of the environment."""
    if torch.compiler.is_compiling() or not (observations.is_cpu and trail.is_cpu):
        return False
    return observations.dtype is torch.int8 and trail.dtype is torch.uint8


def _array(tensor: Tensor, leading: int | None = None) -> npt.NDArray[Any]:
    """``tensor`` as the compiled loops take it: after ``leading`` dimensions flat, and truth as numbers."""
    if leading is not None:
        tensor = tensor.flatten(leading)
    tensor = tensor.contiguous()
    return (tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor).numpy()


def _like(numbers: Tensor, pictures: Tensor) -> Tensor:
    """``(rows,)`` in a shape in which it meets ``(rows, ...)``."""
    return numbers.view(-1, *[1] * (pictures.dim() - 1))


def _count_bits(numbers: Tensor) -> Tensor:
    """Ones among the lowest 31 bits of each of int32 ``numbers``."""
    pairs = numbers - (numbers >> 1 & 0x55555555)
    fours = (pairs & 0x33333333) + (pairs >> 2 & 0x33333333)
    eights = fours + (fours >> 4) & 0x0F0F0F0F
    return eights + (eights >> 8) + (eights >> 16) + (eights >> 24) & 63
