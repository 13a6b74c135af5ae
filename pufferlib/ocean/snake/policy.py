"""The network for ``snake``, which remembers where its body lies."""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.models import Policy, State, layer_init
from pufferlib.models.linear import Linear

__all__ = ["Snake"]

FOOD, CORPSE, WALL, OWN_BODY, HEAD = 1, 2, 3, 4, 7  # codes of cells; from WALL on they are in the way
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # rows and columns of each action
REACH = 10  # cells in each direction in which it remembers its body, at most what vision may be
SIDE = 2 * REACH + 1
HERE = (slice(None), REACH, REACH)
DUE = (1, 4, 8, 12)  # steps: whoever comes as late finds those own cells free that are free by then
STEPS = 4  # from one of these to the next
AREAS = (0, 2, 6, 12, 24, 48, 96)  # cells
UNKNOWN = 1 << 15  # longer than any snake


class Snake(Policy):
    """A perceptron over the cells in view, over how soon each own one is free, and over how much room each move leaves.

    A snake sees which cells are its body, and neither which of them is the tail nor what lies out of view. Both follow
    from where it has been: a cell is free once its tail has passed, ``length`` steps after its head. So the policy
    remembers its way and its length, and counts for each of the four moves the cells to which the snake can go from
    there, on its way those that are free by then. A network that sees only the present runs into dead ends of its
    own making.

    The memory is of the game, without weights: ``trail``, uint8 ``(rows, SIDE, SIDE)``, the steps since the head was
    in each cell around it, 0 for never; ``length``, int32 ``(rows,)``, 0 before the first step; ``eats``, bool
    ``(rows, 4)``, whether each move leads to something to eat.

    Args:
        env: One with the observations of ``snake``.
        hidden_size: Width of both layers.
    """

    ahead: Tensor
    behind: Tensor
    bits: Tensor
    starts: Tensor

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        side = self.observation_shape[-1]
        middle = side // 2
        self.view = (slice(None), *[slice(REACH - middle, REACH + middle + 1)] * 2)
        ahead = torch.tensor([down * side + right for down, right in MOVES])
        self.register_buffer("ahead", side * side // 2 + ahead, persistent=False)
        self.register_buffer("behind", side * side // 2 - ahead, persistent=False)
        starts = torch.zeros(len(MOVES), SIDE, dtype=torch.int32)
        for move, (down, right) in enumerate(MOVES):
            starts[move, REACH + down] = 1 << REACH + right
        self.register_buffer("starts", starts, persistent=False)
        self.register_buffer("bits", 1 << torch.arange(SIDE, dtype=torch.int32), persistent=False)
        inputs = 6 * side * side + len(MOVES) * (1 + len(AREAS)) + 1
        self.encoder = nn.Sequential(
            layer_init(Linear(inputs, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
        )

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """See ``Policy``."""
        return {
            "trail": torch.zeros(num_agents, SIDE, SIDE, dtype=torch.uint8, device=device),
            "length": torch.zeros(num_agents, dtype=torch.int32, device=device),
            "eats": torch.zeros(num_agents, len(MOVES), dtype=torch.bool, device=device),
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
        states = []
        for step in range(steps):
            if episode_starts is not None:
                state = {name: torch.where(_like(episode_starts[step], part), 0, part) for name, part in state.items()}
            state = self.remember(observations[step], state)
            states.append(state)
        every = {name: torch.cat([state[name] for state in states]) for name in state}
        params, values = self.decode_actions(self.encode(observations.flatten(0, 1), every))
        return params.view(steps, rows, -1), values.view(steps, rows)

    @torch.no_grad()
    def remember(self, observations: Tensor, state: State) -> State:
        """Return the memory after a step that ended in ``observations``, ``(rows, side, side)``, from that before it.

        Which way the snake went is told by its body: the head came from a neighbouring cell that is its own now, and
        of several such from that which puts the body as it is remembered where it is seen.
        """
        cells, own = observations.flatten(1), observations == OWN_BODY
        trail, length, eats = state["trail"].to(torch.uint8), state["length"].int(), state["eats"].bool()
        trail = trail + (trail > 0)  # after 255 steps it is forgotten
        trail[HERE] = 1
        around = nn.functional.pad(trail, (1, 1, 1, 1))
        moved = [around[:, 1 + down : 1 + down + SIDE, 1 + right : 1 + right + SIDE] for down, right in MOVES]
        from_there = own.flatten(1)[:, self.behind]
        body = [(trail[self.view] > 0) & (trail[self.view] < _like(length, own)) for trail in moved]
        fits = torch.stack([(part == own).flatten(1).sum(-1) for part in body], -1) + UNKNOWN * from_there
        move = fits.argmax(-1, keepdim=True)
        trail = moved[-1]
        for other in range(len(MOVES) - 1):
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
        hidden: Tensor = self.encoder(torch.cat([*parts, state["length"][:, None] * 0.01], -1))
        return hidden

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


def _like(numbers: Tensor, pictures: Tensor) -> Tensor:
    """``(rows,)`` in a shape in which it meets ``(rows, ...)``."""
    return numbers.view(-1, *[1] * (pictures.dim() - 1))


def _count_bits(numbers: Tensor) -> Tensor:
    """Ones among the lowest 31 bits of each of int32 ``numbers``."""
    pairs = numbers - (numbers >> 1 & 0x55555555)
    fours = (pairs & 0x33333333) + (pairs >> 2 & 0x33333333)
    eights = fours + (fours >> 4) & 0x0F0F0F0F
    return eights + (eights >> 8) + (eights >> 16) + (eights >> 24) & 63
