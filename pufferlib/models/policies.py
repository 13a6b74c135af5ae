"""Policies: networks that turn observations into action distributions and value estimates."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.models.described_spaces import describe_spaces
from pufferlib.models.distributions import action_distribution
from pufferlib.models.encoders import Features
from pufferlib.models.linear import ACTIVATIONS, Linear, layer_init, perceptron
from pufferlib.pytorch import (
    TORCH_DTYPES,
    NativeDtype,
    flattened_tensor_size,
    nativize_dtype,
    nativize_tensor,
)

__all__ = [
    "FORBIDDEN",
    "Default",
    "Policy",
    "State",
    "check_default_dtype",
]

State = dict[str, Tensor]

MIN_LOG_STD, MAX_LOG_STD = -5.0, 2.0  # range of log standard deviations that depend on the observation
NETWORKS = ("shared", "separate")
FORBIDDEN = -1e9  # logit with probability 0. If all actions are illegal, all are equally likely.


def check_default_dtype(where: str) -> None:
    """Raise APIUsageError if torch's default dtype is not float32, with a message that starts with ``where``."""
    if torch.get_default_dtype() != torch.float32:
        raise APIUsageError(
            f"{where}: torch's default dtype must be float32, got {torch.get_default_dtype()}; call "
            "torch.set_default_dtype(torch.float32), and if the environment needs another one, run it in workers"
        )


class Policy(nn.Module):
    """Base class of all networks for the trainer. Subclasses define ``encode_observations``.

    Args:
        env: Environment that describes one agent's spaces.
        hidden_size: Width of the output of ``encode_observations``, without the part for the critic.
        critic_size: Width of the part for the critic if actor and critic have separate networks. It follows the part
            for the actor. 0 means that both decode the same features.
        orthogonal_init: Whether the heads have orthogonal weights at the start, or those of ``torch.nn.Linear``.
        log_std_init: Log standard deviation of continuous actions at the start, from -5 to 2.
        state_dependent_std: Whether the log standard deviation is an output of the decoder, limited to -5 to 2, instead
            of the parameter ``log_std``.

    Attributes:
        distribution: Action distribution (see ``pufferlib.models.distributions``).
        is_continuous: Whether any part of the actions is continuous.
        observation_dtype: Dtype of the observations.
        observation_shape: Shape of one observation.
        mask_elements: Slice of an observation that contains the action mask, or None.
        mask_structure: Layout of emulated observations with a field ``action_mask``, or None.
        described_spaces: Descriptions of the observations and actions, to recognize an agent of other spaces.
        takes_memory: Whether a recurrent network can be inserted between encoder and decoder. False for policies with
            their own memory, and for encoders that pass more than features to the decoder.

    Raises:
        APIUsageError: torch's default dtype is not float32, or the action space is not supported.
        UsageError: An option of continuous actions is out of its range, or given for discrete actions.
    """

    takes_memory = True

    def __init__(
        self,
        env: HasSpaces,
        hidden_size: int,
        *,
        critic_size: int = 0,
        orthogonal_init: bool = True,
        log_std_init: float = 0.0,
        state_dependent_std: bool = False,
    ) -> None:
        super().__init__()
        check_default_dtype(type(self).__name__)
        self.hidden_size, self.critic_size = hidden_size, critic_size
        self.distribution = action_distribution(env.single_action_space)
        self.is_continuous = self.distribution.num_log_stds > 0
        self.observation_dtype = TORCH_DTYPES[np.dtype(env.single_observation_space.dtype)]
        self.observation_shape = tuple(env.single_observation_space.shape)
        self.described_spaces = describe_spaces(env)
        self.mask_structure = _mask_structure(env, self.distribution.num_logits)
        native: Any = getattr(env, "driver_env", env)
        self.mask_elements: slice | None = None if env.emulated else native.action_mask
        self.state_dependent_std = state_dependent_std
        self._check_std(env, log_std_init)
        outputs, log_stds = self.distribution.num_params, self.distribution.num_log_stds
        if not state_dependent_std:
            outputs -= log_stds
        # Heads that read the same features share one matrix, because in a small network call overhead matters.
        self.decoder: nn.Linear = _head(hidden_size, outputs + (0 if critic_size else 1), orthogonal_init)
        self.critic_decoder = _head(critic_size, 1, orthogonal_init) if critic_size else None
        with torch.no_grad():
            self.decoder.weight[:outputs] *= 0.01  # the first policy is close to uniform
            if state_dependent_std:
                self.decoder.bias[outputs - log_stds : outputs] = log_std_init
        if self.is_continuous and not state_dependent_std:
            self.log_std = nn.Parameter(torch.full((log_stds,), float(log_std_init)))

    def _check_std(self, env: HasSpaces, log_std_init: float) -> None:
        where = type(self).__name__
        if not MIN_LOG_STD <= log_std_init <= MAX_LOG_STD:
            raise UsageError(
                f"{where}: log_std_init must be from {MIN_LOG_STD:g} to {MAX_LOG_STD:g}, got {log_std_init}"
            )
        if not self.is_continuous and (log_std_init or self.state_dependent_std):
            option = "state_dependent_std" if self.state_dependent_std else "log_std_init"
            raise UsageError(
                f"{where}: {option} is for continuous actions, got the action space {env.single_action_space}; "
                "remove the option"
            )

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` in the dtype of the space to ``(rows, hidden_size + critic_size)``."""
        raise NotImplementedError(f"{type(self).__name__}: define encode_observations(observations)")

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Decode ``(..., hidden_size + critic_size)`` to params ``(..., num_params)`` and values ``(...)``.

        Raises:
            APIUsageError: ``hidden`` has another size, because ``encode_observations`` returns one.
        """
        if hidden.shape[-1] != self.hidden_size + self.critic_size:
            raise APIUsageError(
                f"{type(self).__name__}.encode_observations: must return shape (rows, hidden_size), here (rows, "
                f"{self.hidden_size + self.critic_size}), got {hidden.shape[-1]} numbers per row; change its last "
                "layer, or the hidden_size of super().__init__"
            )
        if self.critic_decoder is None:
            outputs = self.decoder(hidden)
            params, values = outputs[..., :-1], outputs[..., -1]
        else:
            actor, critic = torch.split(hidden, [self.hidden_size, self.critic_size], -1)
            params, values = self.decoder(actor), self.critic_decoder(critic).squeeze(-1)
        if self.state_dependent_std:
            count = self.distribution.num_log_stds
            log_std = params[..., -count:].clamp(MIN_LOG_STD, MAX_LOG_STD)
            params = torch.cat([params[..., :-count], log_std], -1)
        elif self.is_continuous:
            params = torch.cat([params, self.log_std.expand(*params.shape[:-1], -1)], -1)
        return params, values

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """Return the legal values of each discrete part, ``(rows, distribution.num_logits)``, or None if all are legal.

        By default the mask is read from the elements ``env.action_mask`` of the observation. Emulated observations have
        it in their field ``action_mask``, if there is one of this size.
        """
        if self.mask_elements is not None:
            return observations.flatten(1)[:, self.mask_elements]
        if self.mask_structure is None:
            return None
        mask: Tensor = nativize_tensor(observations, self.mask_structure)["action_mask"]
        return mask.flatten(1)

    def _check_segments(self, observations: Tensor) -> None:
        """Raise an APIUsageError if ``observations`` are ``(rows, *shape)``, as ``forward_eval`` takes them."""
        if observations.dim() == 1 + len(self.observation_shape):
            shape = ", ".join(map(str, ("steps", "rows", *self.observation_shape)))
            raise APIUsageError(
                f"{type(self).__name__}.forward: observations must have shape ({shape}), got "
                f"{tuple(observations.shape)}; call forward_eval for a step without the first axis"
            )

    def _allowed(self, params: Tensor, observations: Tensor) -> Tensor:
        """Return ``params`` with the logits of illegal actions set so low that they are never chosen.

        Source: Huang and Ontanon, "A Closer Look at Invalid Action Masking" (2022).
        """
        mask = self.action_mask(observations)
        if mask is None:
            return params
        logits = self.distribution.num_logits
        is_forbidden = mask.view(*params.shape[:-1], logits) == 0
        value = max(FORBIDDEN, torch.finfo(params.dtype).min)  # float16 ends at -65504
        if logits == params.shape[-1]:
            return params.masked_fill(is_forbidden, value)
        return torch.cat([params[..., :logits].masked_fill(is_forbidden, value), params[..., logits:]], -1)

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """Return the memory at the start of an episode, one row per agent. Empty for policies without memory."""
        return {}

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """Compute params and values of ``(rows, ...)`` observations for one step, and update ``state`` in place."""
        params, values = self.decode_actions(self.encode_observations(observations))
        return self._allowed(params, observations), values

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute params and values of whole segments, with gradients.

        Args:
            observations: Observations ``(steps, rows, *shape)``.
            state: Memory before the first step, ``(rows, ...)`` each.
            episode_starts: True where the memory is reset before the step, bool ``(steps, rows)``.

        Returns:
            Params ``(steps, rows, num_params)`` and values ``(steps, rows)``.

        Raises:
            APIUsageError: ``observations`` has no axis for steps.
        """
        self._check_segments(observations)
        rows = observations.flatten(0, 1)
        params, values = self.decode_actions(self.encode_observations(rows).view(*observations.shape[:2], -1))
        return self._allowed(params, rows), values


def _head(inputs: int, outputs: int, orthogonal: bool) -> Linear:
    head = Linear(inputs, outputs)
    if orthogonal:
        layer_init(head, std=1.0)
    return head


def _mask_structure(env: HasSpaces, num_logits: int) -> NativeDtype | None:
    """Return the layout of an observation with a field ``action_mask`` for ``num_logits`` logits, or None."""
    structure = nativize_dtype(env.emulated) if env.emulated else None
    if not isinstance(structure, dict) or "action_mask" not in structure:
        return None
    return structure if flattened_tensor_size(structure["action_mask"]) == num_logits else None


class Default(Policy):
    """A multilayer perceptron for any observation: arrays, and the structured observations of emulated environments.

    Args:
        env: Environment that describes one agent's spaces.
        hidden_size: Width of every layer if ``hidden_sizes`` is empty.
        num_layers: Number of hidden layers if ``hidden_sizes`` is empty.
        hidden_sizes: Width of each hidden layer.
        networks: "shared" for one network with two heads, or "separate" for one network for the actions and one for the
            value.
        critic_hidden_sizes: Width of each hidden layer of the value's network, by default as for the actions.
        activation: "relu", "tanh", "silu", "elu" or "gelu".
        layer_norm: Whether to normalize the outputs of each hidden layer before the activation.
        orthogonal_init: Whether weights are orthogonal at the start, or those of ``torch.nn.Linear``.
        log_std_init: Log standard deviation of continuous actions at the start. See ``Policy``.
        state_dependent_std: Whether the standard deviation depends on the observation. See ``Policy``.

    Raises:
        UsageError: ``num_layers`` or a size in ``hidden_sizes`` or ``critic_hidden_sizes`` is not a positive int,
            ``networks`` or ``activation`` is unknown, or the networks are shared and ``critic_hidden_sizes`` is given.
    """

    def __init__(
        self,
        env: HasSpaces,
        hidden_size: int = 128,
        num_layers: int = 2,
        *,
        hidden_sizes: Sequence[int] = (),
        networks: str = "shared",
        critic_hidden_sizes: Sequence[int] = (),
        activation: str = "relu",
        layer_norm: bool = False,
        orthogonal_init: bool = True,
        log_std_init: float = 0.0,
        state_dependent_std: bool = False,
    ) -> None:
        _check_choice("networks", networks, NETWORKS)
        _check_choice("activation", activation, ACTIVATIONS)
        is_separate = networks == "separate"
        if critic_hidden_sizes and not is_separate:
            raise UsageError(
                f"Default: critic_hidden_sizes is for networks 'separate', got {list(critic_hidden_sizes)} with "
                "networks 'shared'"
            )
        if type(num_layers) is not int or num_layers < 1:
            raise UsageError(f"Default: num_layers must be an int of at least 1, got {num_layers!r}")
        sizes = _checked_sizes("hidden_sizes", hidden_sizes) or [hidden_size] * num_layers
        critic_sizes = _checked_sizes("critic_hidden_sizes", critic_hidden_sizes) or sizes
        super().__init__(
            env,
            sizes[-1],
            critic_size=critic_sizes[-1] if is_separate else 0,
            orthogonal_init=orthogonal_init,
            log_std_init=log_std_init,
            state_dependent_std=state_dependent_std,
        )
        self.features = Features(env)
        options = activation, layer_norm, orthogonal_init
        self.encoder = perceptron(self.features.size, sizes, *options)
        self.critic_encoder = perceptron(self.features.size, critic_sizes, *options) if is_separate else None

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` to ``(rows, hidden_size + critic_size)``."""
        rows = self.features(observations)
        hidden: Tensor = self.encoder(rows)
        return hidden if self.critic_encoder is None else torch.cat([hidden, self.critic_encoder(rows)], -1)


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise UsageError(f"Default: {name} must be {' or '.join(map(repr, choices))}, got {value!r}")


def _checked_sizes(name: str, sizes: Sequence[int]) -> list[int]:
    """Return ``sizes`` as a list.

    Raises:
        UsageError: One is not a positive int.
    """
    if any(type(size) is not int or size < 1 for size in sizes):
        raise UsageError(f"Default: {name} must be a list of ints of at least 1, got {sizes!r}")
    return list(sizes)
