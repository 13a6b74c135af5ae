"""Policies: networks that turn observations into action distributions and value estimates."""

import itertools
import math
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models.distributions import Gaussian, action_distribution
from pufferlib.models.encoders import Features
from pufferlib.models.linear import Linear
from pufferlib.pytorch import (
    TORCH_DTYPES,
    NativeDtype,
    NativeLeaf,
    flattened_tensor_size,
    nativize_dtype,
    nativize_tensor,
)

__all__ = [
    "Default",
    "MixedCNN",
    "NatureCNN",
    "Policy",
    "ResNet",
    "State",
    "channels_first",
    "has_channels_last",
    "layer_init",
]

State = dict[str, Tensor]
Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

NATURE_PX = 36  # smallest image for which the three convolutions have an output
FORBIDDEN = -1e9  # logit with probability 0. If all actions are illegal, all are equally likely.


class Policy(nn.Module):
    """Base class of all networks for the trainer. Subclasses define ``encode_observations``.

    Args:
        env: Environment that describes one agent's spaces.
        hidden_size: Width of the output of ``encode_observations``.

    Attributes:
        distribution: Action distribution (see ``pufferlib.models.distributions``).
        is_continuous: Whether actions are continuous.
        observation_dtype: Dtype of the observations.
        observation_shape: Shape of one observation.
        mask_elements: Slice of an observation that contains the action mask, or None.
        mask_structure: Layout of emulated observations with a field ``action_mask``, or None.
        takes_memory: Whether a recurrent network can be inserted between encoder and decoder. False for policies with
            their own memory, and for encoders that pass more than features to the decoder.

    Raises:
        APIUsageError: torch's default dtype is not float32.
    """

    takes_memory = True

    def __init__(self, env: PufferEnv, hidden_size: int) -> None:
        super().__init__()
        if torch.get_default_dtype() != torch.float32:
            raise APIUsageError(
                f"{type(self).__name__}: torch's default dtype must be float32, got {torch.get_default_dtype()}; call "
                "torch.set_default_dtype(torch.float32), and if the environment needs another one, run it in workers"
            )
        self.hidden_size = hidden_size
        self.distribution = action_distribution(env.single_action_space)
        self.is_continuous = isinstance(self.distribution, Gaussian)
        self.observation_dtype = TORCH_DTYPES[np.dtype(env.single_observation_space.dtype)]
        self.observation_shape = tuple(env.single_observation_space.shape)
        self.mask_structure = _mask_structure(env, self.distribution.num_params)
        self.mask_elements: slice | None = None if env.emulated else env.action_mask
        outputs = self.distribution.num_params // (2 if self.is_continuous else 1)
        # Both heads share one matrix, because in a small network call overhead matters.
        self.decoder = layer_init(Linear(hidden_size, outputs + 1), std=1.0)
        with torch.no_grad():
            self.decoder.weight[:-1] *= 0.01  # the first policy is close to uniform
        if self.is_continuous:
            self.log_std = nn.Parameter(torch.zeros(outputs))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` in the dtype of the space to ``(rows, hidden_size)``."""
        raise NotImplementedError(f"{type(self).__name__}: define encode_observations(observations)")

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Decode ``(..., hidden_size)`` to distribution params ``(..., num_params)`` and values ``(...)``."""
        outputs = self.decoder(hidden)
        params, values = outputs[..., :-1], outputs[..., -1]
        if self.is_continuous:
            params = torch.cat([params, self.log_std.expand_as(params)], -1)
        return params, values

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """Return the legal values of each action component, ``(rows, num_params)``, or None if all are legal.

        By default the mask is read from the elements ``env.action_mask`` of the observation. Emulated observations have
        it in their field ``action_mask``, if there is one of this size.
        """
        if self.mask_elements is not None:
            return observations.flatten(1)[:, self.mask_elements]
        if self.mask_structure is None:
            return None
        mask: Tensor = nativize_tensor(observations, self.mask_structure)["action_mask"]
        return mask.flatten(1)

    def _allowed(self, params: Tensor, observations: Tensor) -> Tensor:
        """Return ``params`` with the logits of illegal actions set so low that they are never chosen.

        Source: Huang and Ontanon, "A Closer Look at Invalid Action Masking" (2022).
        """
        mask = self.action_mask(observations)
        return params if mask is None else params.masked_fill(mask.view(params.shape) == 0, FORBIDDEN)

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
        """
        rows = observations.flatten(0, 1)
        params, values = self.decode_actions(self.encode_observations(rows).view(*observations.shape[:2], -1))
        return self._allowed(params, rows), values


def _mask_structure(env: PufferEnv, num_params: int) -> NativeDtype | None:
    """Return the layout of an observation with a field ``action_mask`` for ``num_params`` logits, or None."""
    structure = nativize_dtype(env.emulated) if env.emulated else None
    if not isinstance(structure, dict) or "action_mask" not in structure:
        return None
    return structure if flattened_tensor_size(structure["action_mask"]) == num_params else None


class Default(Policy):
    """A multilayer perceptron for any observation: arrays, and the structured observations of emulated environments.

    Args:
        env: Environment that describes one agent's spaces.
        hidden_size: Width of every layer.
        num_layers: Number of hidden layers.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 128, num_layers: int = 2) -> None:
        super().__init__(env, hidden_size)
        self.features = Features(env)
        sizes = [self.features.size, *[hidden_size] * num_layers]
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [layer_init(Linear(inputs, outputs)), nn.ReLU(inplace=True)]
        self.encoder = nn.Sequential(*layers)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` to ``(rows, hidden_size)``."""
        hidden: Tensor = self.encoder(self.features(observations))
        return hidden


class NatureCNN(Policy):
    """The network of "Human-level control through deep reinforcement learning" (Mnih et al., 2015).

    Args:
        env: Environment with uint8 image observations, ``(channels, height, width)`` or ``(height, width, channels)``,
            at least 36 px wide and high.
        hidden_size: Width of the layer after the convolutions.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 512) -> None:
        super().__init__(env, hidden_size)
        self.convolutions, flat = _nature_convolutions("NatureCNN", _image_shape("NatureCNN", env))
        self.image_scale = _image_scale(env.single_observation_space.high)
        self.encoder = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode images to ``(rows, hidden_size)``."""
        hidden: Tensor = self.encoder(self.convolutions(_scaled_images(observations, self.image_scale)))
        return hidden


class ResNet(Policy):
    """The deep network of "IMPALA: Scalable Distributed Deep-RL" (Espeholt et al., 2018), without its LSTM.

    Each of three stages has a convolution, halves the image, and adds two residual blocks.

    Args:
        env: Environment with uint8 image observations, ``(channels, height, width)`` or ``(height, width, channels)``,
            of any size.
        hidden_size: Width of the layer after the convolutions.
        width: Channels of the first stage. The other stages have twice as many.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 256, width: int = 16) -> None:
        super().__init__(env, hidden_size)
        shape = _image_shape("ResNet", env)
        self.image_scale = _image_scale(env.single_observation_space.high)
        sizes = [shape[0], width, 2 * width, 2 * width]
        stages = [_residual_stage(inputs, outputs) for inputs, outputs in itertools.pairwise(sizes)]
        self.convolutions = nn.Sequential(*stages, nn.ReLU(inplace=True), nn.Flatten())
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # as in NatureCNN
        flat = self.convolutions(torch.zeros(1, *shape)).shape[1]
        self.encoder = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode images to ``(rows, hidden_size)``."""
        hidden: Tensor = self.encoder(self.convolutions(_scaled_images(observations, self.image_scale)))
        return hidden


class ResidualBlock(nn.Module):
    """Two convolutions, whose result is added to their input.

    Args:
        channels: Number of input and output channels.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.ReLU(),  # not in place, because the sum needs the input
            layer_init(nn.Conv2d(channels, channels, 3, padding=1)),
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(channels, channels, 3, padding=1)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Compute ``(rows, channels, height, width)`` from an input of the same shape."""
        summed: Tensor = images + self.branch(images)
        return summed


def _residual_stage(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        layer_init(nn.Conv2d(inputs, outputs, 3, padding=1)),
        nn.MaxPool2d(3, stride=2, padding=1),
        ResidualBlock(outputs),
        ResidualBlock(outputs),
    )


class MixedCNN(Policy):
    """``NatureCNN`` for observations with one image and other fields, which are joined after the convolutions.

    Args:
        env: Environment with Dict or Tuple observations. Exactly one field must be a uint8 image, as for ``NatureCNN``.
        hidden_size: Width of the image features, and of the layer that joins all features.

    Attributes:
        image_place: Location of the image in the observation.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 512) -> None:
        super().__init__(env, hidden_size)
        structure = nativize_dtype(env.emulated) if env.emulated else None
        fields = structure if isinstance(structure, dict) else {}
        images = {name: leaf[1] for name, leaf in fields.items() if not isinstance(leaf, dict) and _is_image(leaf)}
        if structure is None or len(images) != 1:
            raise APIUsageError(
                "MixedCNN: observations must be a Dict or Tuple with one uint8 image of three dimensions, got "
                f"{len(images)} images in {structure or env.single_observation_space}; use policy.name = 'Default'"
            )
        self._structure = structure
        ((self._image, shape),) = images.items()
        self.image_place: NativeLeaf = fields[self._image]
        bounds = env.emulated["observation_bounds"]  # None if the environment declares none
        self.image_scale = _image_scale(255 if bounds is None else bounds[self._image][1])
        self.convolutions, flat = _nature_convolutions("MixedCNN", channels_first(shape))
        self.picture = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))
        self.others = Features(env, leave_out=self._image) if len(fields) > 1 else None
        width = hidden_size + (self.others.size if self.others else 0)
        self.encoder = nn.Sequential(layer_init(Linear(width, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` to ``(rows, hidden_size)``."""
        images = nativize_tensor(observations, self._structure)[self._image]
        parts = [self.picture(self.convolutions(_scaled_images(images, self.image_scale)))]
        if self.others is not None:
            parts.append(self.others(observations))
        hidden: Tensor = self.encoder(torch.cat(parts, -1))
        return hidden


def _image_shape(where: str, env: PufferEnv) -> tuple[int, ...]:
    """Return channels, height and width of the image observations of ``env``.

    Raises:
        APIUsageError: Observations are not images.
    """
    space = env.single_observation_space
    if len(space.shape) != 3 or space.dtype != np.uint8:
        raise APIUsageError(
            f"{where}: observations must be uint8 images (channels, height, width) or (height, width, channels), got "
            f"{space}; use policy.name = 'Default'"
        )
    return channels_first(space.shape)


def has_channels_last(shape: tuple[int, ...]) -> bool:
    """Return True if an image shape is ``(height, width, channels)``.

    This is the case if the shape starts with a square, or has fewer channels than lines. A shape that ends with a
    square is ``(channels, height, width)``. Squares take precedence, since a small board may have more planes than
    lines.
    """
    return shape[1] != shape[2] and (shape[0] == shape[1] or shape[2] < shape[0])


def channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return channels, height and width of images with ``shape``."""
    return (shape[2], *shape[:2]) if has_channels_last(shape) else shape


def _is_image(leaf: tuple[torch.dtype, tuple[int, ...], int, int]) -> bool:
    return leaf[0] == torch.uint8 and len(leaf[1]) == 3


def _nature_convolutions(where: str, shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """Return the convolutions of Mnih et al. (2015) for images of ``shape``, and the number of their output features.

    Raises:
        APIUsageError: The images are too small.
    """
    if min(shape[1:]) < NATURE_PX:
        raise APIUsageError(
            f"{where}: images must have {NATURE_PX} lines and columns or more, got {shape[1]} and {shape[2]}; use "
            "policy.name = 'ResNet' or 'Default'"
        )
    convolutions = nn.Sequential(
        layer_init(nn.Conv2d(shape[0], 32, 8, stride=4)),
        nn.ReLU(inplace=True),
        layer_init(nn.Conv2d(32, 64, 4, stride=2)),
        nn.ReLU(inplace=True),
        layer_init(nn.Conv2d(64, 64, 3, stride=1)),
        nn.ReLU(inplace=True),
        nn.Flatten(),
    )
    # The channels-last layout makes convolutions a fifth faster on a CPU, and even more on a GPU.
    convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
    return convolutions, convolutions(torch.zeros(1, *shape)).shape[1]


def _image_scale(high: Any) -> float:
    """Return the factor that scales images with values up to ``high`` to the range 0 to 1."""
    return 1 / max(1, int(np.max(high)))


def _scaled_images(images: Tensor, scale: float) -> Tensor:
    if has_channels_last(images.shape[1:]):
        images = images.permute(0, 3, 1, 2)
    return images.to(torch.float32, memory_format=torch.channels_last) * scale


def layer_init(layer: Layer, std: float = math.sqrt(2), bias_const: float = 0.0) -> Layer:
    """Initialize ``layer`` with orthogonal weights of gain ``std`` and constant biases, and return it.

    Source: Andrychowicz et al., "What Matters In On-Policy Reinforcement Learning?" (2021).
    """
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, bias_const)
    return layer
