"""Policies with a recurrent network between encoder and decoder."""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError
from pufferlib.models.policies import Policy, State
from pufferlib.models.recurrent.gated import gru, lstm
from pufferlib.models.recurrent.mingru import MinGRUCell

__all__ = ["CRITIC", "MEMORIES", "GRUWrapper", "LSTMWrapper", "MemoryWrapper", "MinGRUWrapper"]


Cell = TypeVar("Cell", nn.LSTMCell, nn.GRUCell)
CRITIC = "critic_"  # start of the names of the critic's memories


class MemoryWrapper(Policy):
    """A policy with a recurrent network between its encoder and decoder. Subclasses define ``remember``.

    If actor and critic have separate networks, each has its own recurrent network. The one of the critic is in
    ``critic``, and its memories are called ``critic_lstm_h``, and so on.

    Args:
        env: Environment that describes one agent's spaces.
        policy: Policy that encodes observations to ``input_size`` and decodes actions from ``hidden_size``.
        input_size: Width of the network's input. Must equal ``policy.hidden_size``.
        hidden_size: Width of the network's memory and output. Must equal ``policy.hidden_size``.

    Raises:
        APIUsageError: A size differs from ``policy.hidden_size``, or the policy does not support a recurrent network.
    """

    state_names: tuple[str, ...] = ()

    def __init__(self, env: HasSpaces, policy: Policy, input_size: int = 128, hidden_size: int = 128) -> None:
        if not policy.takes_memory:
            raise APIUsageError(
                f"{type(self).__name__}: the policy {type(policy).__name__} does not support a recurrent network; "
                'use policy.memory "none", or a policy that supports it, like "Default"'
            )
        if policy.hidden_size != input_size or policy.hidden_size != hidden_size:
            raise APIUsageError(
                f"{type(self).__name__}: the policy's hidden_size {policy.hidden_size} must equal input_size and "
                f"hidden_size, got input_size={input_size}, hidden_size={hidden_size}"
            )
        super().__init__(env, hidden_size)
        del self.decoder  # the wrapped policy decodes
        if self.is_continuous:
            del self.log_std
        self.policy = policy
        self.critic_size = policy.critic_size
        self.critic: nn.Module | None = None

    def _add_cells(self) -> None:
        """Make the recurrent networks with ``_add_cells_to``."""
        self._add_cells_to(self, self.hidden_size)
        if self.critic_size:
            self.critic = nn.Module()
            self._add_cells_to(self.critic, self.critic_size)

    def _add_cells_to(self, module: Any, size: int) -> None:
        """Add the cells of a recurrent network of width ``size`` to ``module``."""
        raise NotImplementedError

    def _run(self, module: Any, hidden: Tensor, state: State, episode_starts: Tensor | None) -> tuple[Tensor, State]:
        """Run the cells of ``module`` over segments, as in ``remember``."""
        raise NotImplementedError(f"{type(self).__name__}: define remember(hidden, state, episode_starts)")

    def memory_sizes(self) -> dict[str, int]:
        """Return the width of each memory by its name."""
        sizes = dict.fromkeys(self.state_names, self.hidden_size)
        if self.critic is not None:
            sizes |= {CRITIC + name: self.critic_size for name in self.state_names}
        return sizes

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode observations with the wrapped policy."""
        return self.policy.encode_observations(observations)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Decode actions and values with the wrapped policy."""
        return self.policy.decode_actions(hidden)

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """Return the action mask of the wrapped policy."""
        return self.policy.action_mask(observations)

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """Return zeros, float32 ``(num_agents, size)``, for each of ``memory_sizes``."""
        return {name: torch.zeros(num_agents, size, device=device) for name, size in self.memory_sizes().items()}

    def remember(self, hidden: Tensor, state: State, episode_starts: Tensor | None) -> tuple[Tensor, State]:
        """Run the recurrent networks over segments.

        Args:
            hidden: Encoded observations, ``(steps, rows, hidden_size + critic_size)``.
            state: Memory before the first step, ``(rows, size)`` each.
            episode_starts: True where the memory is reset before the step, bool ``(steps, rows)``, or None for nowhere.

        Returns:
            Outputs of the same shape as ``hidden``, and the memory after the last step.
        """
        if self.critic is None:
            return self._run(self, hidden, state, episode_starts)
        actor, critic = torch.split(hidden, [self.hidden_size, self.critic_size], -1)
        outputs, after = self._run(self, actor, state, episode_starts)
        own = {name: state[CRITIC + name] for name in self.state_names}
        critic_outputs, critic_after = self._run(self.critic, critic, own, episode_starts)
        after |= {CRITIC + name: memory for name, memory in critic_after.items()}
        return torch.cat([outputs, critic_outputs], -1), after

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """Compute params and values for one step. Without ``state``, every row is at the start of an episode."""
        if state is None:
            state = self.initial_state(len(observations), observations.device)
        outputs, after = self.remember(self.encode_observations(observations).unsqueeze(0), state, None)
        state.update(after)
        params, values = self.decode_actions(outputs[0])
        return self._allowed(params, observations), values

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute params and values of whole segments. The memory is reset at episode starts."""
        self._check_segments(observations)
        steps, rows = observations.shape[:2]
        state = self.initial_state(rows, observations.device) if state is None else state
        hidden = self.encode_observations(observations.flatten(0, 1)).view(steps, rows, -1)
        outputs, _ = self.remember(hidden, state, episode_starts)
        params, values = self.decode_actions(outputs)
        return self._allowed(params, observations.flatten(0, 1)), values


class LSTMWrapper(MemoryWrapper):
    """A policy with an LSTM. Its memory is ``lstm_h`` and ``lstm_c``. See ``MemoryWrapper`` for the arguments."""

    state_names = ("lstm_h", "lstm_c")

    def __init__(self, env: HasSpaces, policy: Policy, input_size: int = 128, hidden_size: int = 128) -> None:
        super().__init__(env, policy, input_size, hidden_size)
        self._add_cells()

    def _add_cells_to(self, module: Any, size: int) -> None:
        module.cell = _initialized(nn.LSTMCell(size, size))

    def _run(self, module: Any, hidden: Tensor, state: State, episode_starts: Tensor | None) -> tuple[Tensor, State]:
        outputs, c = lstm(module.cell, hidden, state["lstm_h"], state["lstm_c"], episode_starts)
        return outputs, {"lstm_h": outputs[-1], "lstm_c": c}


class GRUWrapper(MemoryWrapper):
    """A policy with a GRU. Its memory is ``gru_h``. See ``MemoryWrapper`` for the arguments."""

    state_names = ("gru_h",)

    def __init__(self, env: HasSpaces, policy: Policy, input_size: int = 128, hidden_size: int = 128) -> None:
        super().__init__(env, policy, input_size, hidden_size)
        self._add_cells()

    def _add_cells_to(self, module: Any, size: int) -> None:
        module.cell = _initialized(nn.GRUCell(size, size))

    def _run(self, module: Any, hidden: Tensor, state: State, episode_starts: Tensor | None) -> tuple[Tensor, State]:
        outputs = gru(module.cell, hidden, state["gru_h"], episode_starts)
        return outputs, {"gru_h": outputs[-1]}


class MinGRUWrapper(MemoryWrapper):
    """A policy with one or several minimal GRUs. Their memories are ``mingru_h``, ``mingru_h1``, and so on.

    The update of a layer depends only on its inputs, not on its memory. Some tasks, for example counting, therefore
    need two layers.

    Args:
        env: Environment that describes one agent's spaces.
        policy: Policy that encodes observations and decodes actions.
        input_size: Width of the input. Must equal ``policy.hidden_size``.
        hidden_size: Width of the memory and the output. Must equal ``policy.hidden_size``.
        num_layers: Number of cells, each of which reads the outputs of the previous one.

    Raises:
        APIUsageError: A size differs from ``policy.hidden_size``, or the policy does not support a recurrent network.
    """

    def __init__(
        self, env: HasSpaces, policy: Policy, input_size: int = 128, hidden_size: int = 128, num_layers: int = 1
    ) -> None:
        super().__init__(env, policy, input_size, hidden_size)
        self.state_names = ("mingru_h", *(f"mingru_h{layer}" for layer in range(1, num_layers)))
        self._add_cells()

    def _add_cells_to(self, module: Any, size: int) -> None:
        module.cell = MinGRUCell(size)
        module.upper = nn.ModuleList(MinGRUCell(size) for _ in self.state_names[1:])

    def _run(self, module: Any, hidden: Tensor, state: State, episode_starts: Tensor | None) -> tuple[Tensor, State]:
        after = {}
        for name, cell in zip(self.state_names, (module.cell, *module.upper), strict=True):
            hidden, after[name] = cell(hidden, state[name], episode_starts)
        return hidden, after


MEMORIES: dict[str, type[MemoryWrapper]] = {"LSTM": LSTMWrapper, "GRU": GRUWrapper, "MinGRU": MinGRUWrapper}


def _initialized(cell: Cell) -> Cell:
    """Initialize ``cell`` with orthogonal weights and zero biases, and return it."""
    for weight in (cell.weight_ih, cell.weight_hh):
        nn.init.orthogonal_(weight)
    for bias in (cell.bias_ih, cell.bias_hh):
        nn.init.zeros_(bias)
    return cell
