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

NATURE_PX = 36  # the least that three convolutions with these strides leave a number of
FORBIDDEN = -1e9  # a logit: probability 0, and where everything is forbidden all are alike


class Policy(nn.Module):
    """Base of all networks that the trainer takes. Subclasses define ``encode_observations``.

    Args:
        env: The environment that describes one agent's spaces.
        hidden_size: Width of what ``encode_observations`` returns.

    Attributes:
        distribution: How ``params`` become actions (``pufferlib.models.distributions``).
        is_continuous: Whether the actions are real numbers.
        observation_dtype: Of the observations that it reads.
        observation_shape: Of one of them.
        mask_elements: Elements of an observation that say which actions may be chosen.
        mask_structure: The layout of observations that say so in their field ``action_mask``.
        takes_memory: Whether a recurrent network may stand between its encoder and its decoder: one with a memory of
            its own, or whose encoder hands more than features to the decoder, says no.

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
        # One matrix for both heads: the network is small, and every call has a price.
        self.decoder = layer_init(Linear(hidden_size, outputs + 1), std=1.0)
        with torch.no_grad():
            self.decoder.weight[:-1] *= 0.01  # the first policy is close to uniform
        if self.is_continuous:
            self.log_std = nn.Parameter(torch.zeros(outputs))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """``(rows, *observation shape)`` in the dtype of the space to ``(rows, hidden_size)``."""
        raise NotImplementedError(f"{type(self).__name__}: define encode_observations(observations)")

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """``(..., hidden_size)`` to distribution params ``(..., num_params)`` and values ``(...)``."""
        outputs = self.decoder(hidden)
        params, values = outputs[..., :-1], outputs[..., -1]
        if self.is_continuous:
            params = torch.cat([params, self.log_std.expand_as(params)], -1)
        return params, values

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """Values of each action part that may be chosen: ``(rows, num_params)``; None where all may.

        By default what the elements ``env.action_mask`` of the observation say; in an emulated one the field
        ``action_mask``, if it has one of that size.
        """
        if self.mask_elements is not None:
            return observations.flatten(1)[:, self.mask_elements]
        if self.mask_structure is None:
            return None
        mask: Tensor = nativize_tensor(observations, self.mask_structure)["action_mask"]
        return mask.flatten(1)

    def _allowed(self, params: Tensor, observations: Tensor) -> Tensor:
        """``params`` with the logits of what may not be chosen so low that it never is.

        Source: Huang and Ontanon, "A Closer Look at Invalid Action Masking" (2022).
        """
        mask = self.action_mask(observations)
        return params if mask is None else params.masked_fill(mask.view(params.shape) == 0, FORBIDDEN)

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """The memory of agents at the start of an episode, one row each; empty without memory."""
        return {}

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """One step: params and values of ``(rows, ...)`` observations; ``state`` is updated in place."""
        params, values = self.decode_actions(self.encode_observations(observations))
        return self._allowed(params, observations), values

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Whole segments, with gradients.

        Args:
            observations: ``(steps, rows, *shape)``.
            state: The memory before the first step, ``(rows, ...)`` each.
            episode_starts: ``(steps, rows)`` bool; where it is True the memory starts anew.

        Returns:
            params ``(steps, rows, num_params)`` and values ``(steps, rows)``.
        """
        rows = observations.flatten(0, 1)
        params, values = self.decode_actions(self.encode_observations(rows).view(*observations.shape[:2], -1))
        return self._allowed(params, rows), values


def _mask_structure(env: PufferEnv, num_params: int) -> NativeDtype | None:
    """The layout of an observation that has a field ``action_mask`` for ``num_params`` logits."""
    structure = nativize_dtype(env.emulated) if env.emulated else None
    if not isinstance(structure, dict) or "action_mask" not in structure:
        return None
    return structure if flattened_tensor_size(structure["action_mask"]) == num_params else None


class Default(Policy):
    """A multilayer perceptron for any observation: arrays, and the structures of emulated environments.

    Args:
        env: The environment that describes one agent's spaces.
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
        """See ``Policy``."""
        hidden: Tensor = self.encoder(self.features(observations))
        return hidden


class NatureCNN(Policy):
    """The network of "Human-level control through deep reinforcement learning" (Mnih et al., 2015).

    Args:
        env: Its observations are images of uint8, ``(channels, height, width)`` or ``(height, width, channels)``,
            36 px or more.
        hidden_size: Width of the layer after the convolutions.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 512) -> None:
        super().__init__(env, hidden_size)
        self.convolutions, flat = _nature_convolutions("NatureCNN", _image_shape("NatureCNN", env))
        self.image_scale = _image_scale(env.single_observation_space.high)
        self.encoder = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        hidden: Tensor = self.encoder(self.convolutions(_scaled_images(observations, self.image_scale)))
        return hidden


class ResNet(Policy):
    """The deep network of "IMPALA: Scalable Distributed Deep-RL" (Espeholt et al., 2018), without its LSTM.

    Each of three stages convolves, halves the picture, and adds two residual blocks.

    Args:
        env: Its observations are images of uint8, ``(channels, height, width)`` or ``(height, width, channels)``,
            of any size.
        hidden_size: Width of the layer after the convolutions.
        width: Channels of the first stage; the others have twice as many.
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
        """See ``Policy``."""
        hidden: Tensor = self.encoder(self.convolutions(_scaled_images(observations, self.image_scale)))
        return hidden


class ResidualBlock(nn.Module):
    """Two convolutions of what comes in, added to it.

    Args:
        channels: In and out.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.ReLU(),  # not in place: the sum needs what came in
            layer_init(nn.Conv2d(channels, channels, 3, padding=1)),
            nn.ReLU(inplace=True),
            layer_init(nn.Conv2d(channels, channels, 3, padding=1)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """``(rows, channels, height, width)`` to the same shape."""
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
    """``NatureCNN`` for a picture among other things: these join it after the convolutions.

    Args:
        env: Its observations are a Dict or Tuple; exactly one field is a uint8 image, as ``NatureCNN`` takes it.
        hidden_size: Width of what the picture becomes, and of the layer that joins all.

    Attributes:
        image_place: Of the picture in the observation.
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
        bounds = env.emulated["observation_bounds"]  # None where the environment declares none
        self.image_scale = _image_scale(255 if bounds is None else bounds[self._image][1])
        self.convolutions, flat = _nature_convolutions("MixedCNN", channels_first(shape))
        self.picture = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))
        self.others = Features(env, leave_out=self._image) if len(fields) > 1 else None
        width = hidden_size + (self.others.size if self.others else 0)
        self.encoder = nn.Sequential(layer_init(Linear(width, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        images = nativize_tensor(observations, self._structure)[self._image]
        parts = [self.picture(self.convolutions(_scaled_images(images, self.image_scale)))]
        if self.others is not None:
            parts.append(self.others(observations))
        hidden: Tensor = self.encoder(torch.cat(parts, -1))
        return hidden


def _image_shape(where: str, env: PufferEnv) -> tuple[int, ...]:
    """Channels, height and width of the images that ``env`` shows.

    Raises:
        APIUsageError: It shows something else.
    """
    space = env.single_observation_space
    if len(space.shape) != 3 or space.dtype != np.uint8:
        raise APIUsageError(
            f"{where}: observations must be uint8 images (channels, height, width) or (height, width, channels), got "
            f"{space}; use policy.name = 'Default'"
        )
    return channels_first(space.shape)


def has_channels_last(shape: tuple[int, ...]) -> bool:
    """True for ``(height, width, channels)``: what begins with a square, or has fewer channels than lines.

    What ends on a square is ``(channels, height, width)``. Squares come first, since a small board may have more planes
    than lines.
    """
    return shape[1] != shape[2] and (shape[0] == shape[1] or shape[2] < shape[0])


def channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Channels, height and width of images of ``shape``."""
    return (shape[2], *shape[:2]) if has_channels_last(shape) else shape


def _is_image(leaf: tuple[torch.dtype, tuple[int, ...], int, int]) -> bool:
    return leaf[0] == torch.uint8 and len(leaf[1]) == 3


def _nature_convolutions(where: str, shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """The convolutions of Mnih et al. (2015) for images of ``shape``, and how many floats they make of one.

    Raises:
        APIUsageError: The images are too small for them.
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
    # Channels last is the layout that the convolutions work in: a fifth faster on a CPU, more on a GPU.
    convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch forgot it
    return convolutions, convolutions(torch.zeros(1, *shape)).shape[1]


def _image_scale(high: Any) -> float:
    """Return the factor that brings images with values up to ``high`` into the range from 0 to 1."""
    return 1 / max(1, int(np.max(high)))


def _scaled_images(images: Tensor, scale: float) -> Tensor:
    if has_channels_last(images.shape[1:]):
        images = images.permute(0, 3, 1, 2)
    return images.to(torch.float32, memory_format=torch.channels_last) * scale


def layer_init(layer: Layer, std: float = math.sqrt(2), bias_const: float = 0.0) -> Layer:
    """Give ``layer`` orthogonal weights with gain ``std`` and constant biases; returns it.

    Source: Andrychowicz et al., "What Matters In On-Policy Reinforcement Learning?" (2021).
    """
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, bias_const)
    return layer
