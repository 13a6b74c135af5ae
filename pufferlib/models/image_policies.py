"""Policies for images: convolutional networks."""

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError
from pufferlib.models.encoders import Features
from pufferlib.models.linear import Linear, layer_init
from pufferlib.models.policies import Policy
from pufferlib.pytorch import NativeLeaf, nativize_dtype, nativize_tensor

__all__ = ["ImageConv2d", "MixedCNN", "NatureCNN", "ResNet", "channels_first", "has_channels_last"]

NATURE_PX = 36  # smallest image for which the three convolutions have an output
BLOCK_PX = 4  # stride of the first convolution of NatureCNN, and the number of bytes of an int32


class NatureCNN(Policy):
    """The network of "Human-level control through deep reinforcement learning" (Mnih et al., 2015).

    Args:
        env: Environment with uint8 image observations, ``(channels, height, width)`` or ``(height, width, channels)``,
            at least 36 px wide and high.
        hidden_size: Width of the layer after the convolutions.
        channels: Channels of the first convolution. The other two have twice as many.
        log_std_init: Log standard deviation of continuous actions at the start. See ``Policy``.
        state_dependent_std: Whether the standard deviation depends on the observation. See ``Policy``.

    Raises:
        APIUsageError: Observations are not uint8 images, or the images are too small.
    """

    def __init__(
        self,
        env: HasSpaces,
        hidden_size: int = 512,
        *,
        channels: int = 32,
        log_std_init: float = 0.0,
        state_dependent_std: bool = False,
    ) -> None:
        super().__init__(env, hidden_size, log_std_init=log_std_init, state_dependent_std=state_dependent_std)
        shape = _image_shape("NatureCNN", env)
        self.image_scale = _image_scale(env.single_observation_space.high)
        self.convolutions, flat = _nature_convolutions("NatureCNN", shape, channels, self.image_scale)
        self.encoder = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode images to ``(rows, hidden_size)``."""
        hidden: Tensor = self.encoder(self.convolutions(_planes(observations)))
        return hidden


class ResNet(Policy):
    """The deep network of "IMPALA: Scalable Distributed Deep-RL" (Espeholt et al., 2018), without its LSTM.

    Each of three stages has a convolution, halves the image, and adds two residual blocks.

    Args:
        env: Environment with uint8 image observations, ``(channels, height, width)`` or ``(height, width, channels)``,
            of any size.
        hidden_size: Width of the layer after the convolutions.
        channels: Channels of the first stage. The other stages have twice as many.
        log_std_init: Log standard deviation of continuous actions at the start. See ``Policy``.
        state_dependent_std: Whether the standard deviation depends on the observation. See ``Policy``.

    Raises:
        APIUsageError: Observations are not uint8 images.
    """

    def __init__(
        self,
        env: HasSpaces,
        hidden_size: int = 256,
        *,
        channels: int = 16,
        log_std_init: float = 0.0,
        state_dependent_std: bool = False,
    ) -> None:
        super().__init__(env, hidden_size, log_std_init=log_std_init, state_dependent_std=state_dependent_std)
        shape = _image_shape("ResNet", env)
        self.image_scale = _image_scale(env.single_observation_space.high)
        sizes = [shape[0], channels, 2 * channels, 2 * channels]
        first = ImageConv2d(shape[0], channels, 3, padding=1, scale=self.image_scale)
        others = (nn.Conv2d(inputs, outputs, 3, padding=1) for inputs, outputs in itertools.pairwise(sizes[1:]))
        stages = [_residual_stage(convolution) for convolution in itertools.chain([first], others)]
        self.convolutions = nn.Sequential(*stages, nn.ReLU(inplace=True), nn.Flatten())
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # as in NatureCNN
        flat = self.convolutions(torch.zeros(1, *shape)).shape[1]
        self.encoder = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode images to ``(rows, hidden_size)``."""
        hidden: Tensor = self.encoder(self.convolutions(_planes(observations)))
        return hidden


class ImageConv2d(nn.Conv2d):
    """A convolution of images of bytes that multiplies their values by ``scale`` first.

    It is faster than both operations one after the other. The weights are scaled instead of the images, and bytes get
    the layout for convolutions before they become floats. On a CPU, a convolution with a stride of 4 px cuts images of
    bytes into blocks of 4 by 4 px, and treats the pixels of a block as channels. The sums are the same, and matrix
    instructions are made for many channels.

    Args:
        scale: Factor of the values of the images.
        options: Arguments of ``torch.nn.Conv2d``.
    """

    def __init__(self, *options: Any, scale: float, **named: Any) -> None:
        super().__init__(*options, **named)
        self.scale = scale
        sizes = (*self.stride, *self.kernel_size, *map(int, self.padding), *self.dilation, self.groups)
        self._has_blocks = sizes == (BLOCK_PX, BLOCK_PX, 2 * BLOCK_PX, 2 * BLOCK_PX, 0, 0, 1, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Compute ``(rows, out_channels, ...)`` from images ``(rows, in_channels, height, width)``."""
        weight, device = self.weight * self.scale, images.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32
        if self._has_blocks and _can_be_cut(images):
            return functional.conv2d(_blocks(images).to(dtype), functional.pixel_unshuffle(weight, BLOCK_PX), self.bias)
        images = images.contiguous(memory_format=torch.channels_last)
        convolved: Tensor = self._conv_forward(images.to(dtype), weight, self.bias)
        return convolved


def _can_be_cut(images: Tensor) -> bool:
    sizes = (*images.shape[2:], images.storage_offset())
    is_plain = images.dtype == torch.uint8 and images.is_cpu and images.is_contiguous()
    return is_plain and not any(size % BLOCK_PX for size in sizes) and not torch.compiler.is_exporting()


def _blocks(images: Tensor) -> Tensor:
    """Return blocks of pixels as channels, as ``torch.pixel_unshuffle`` does. Each copy moves four pixels."""
    rows, channels, height, width = images.shape
    lines = images.flatten().view(torch.int32).view(rows, channels, height // BLOCK_PX, BLOCK_PX, width // BLOCK_PX)
    return lines.permute(0, 2, 4, 1, 3).contiguous().view(torch.uint8).flatten(3).permute(0, 3, 1, 2)


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


def _residual_stage(convolution: nn.Conv2d) -> nn.Sequential:
    channels = convolution.out_channels
    return nn.Sequential(
        layer_init(convolution),
        nn.MaxPool2d(3, stride=2, padding=1),
        ResidualBlock(channels),
        ResidualBlock(channels),
    )


class MixedCNN(Policy):
    """``NatureCNN`` for observations with one image and other fields, which are joined after the convolutions.

    Args:
        env: Environment with Dict or Tuple observations. Exactly one field at the top level must be a uint8 image, as
            for ``NatureCNN``.
        hidden_size: Width of the image features, and of the layer that joins all features.
        channels: Channels of the first convolution. The other two have twice as many.
        log_std_init: Log standard deviation of continuous actions at the start. See ``Policy``.
        state_dependent_std: Whether the standard deviation depends on the observation. See ``Policy``.

    Attributes:
        image_place: Location of the image in the observation.

    Raises:
        APIUsageError: Observations do not have exactly one image, or the image is too small.
    """

    def __init__(
        self,
        env: HasSpaces,
        hidden_size: int = 512,
        *,
        channels: int = 32,
        log_std_init: float = 0.0,
        state_dependent_std: bool = False,
    ) -> None:
        super().__init__(env, hidden_size, log_std_init=log_std_init, state_dependent_std=state_dependent_std)
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
        self.convolutions, flat = _nature_convolutions("MixedCNN", channels_first(shape), channels, self.image_scale)
        self.picture = nn.Sequential(layer_init(Linear(flat, hidden_size)), nn.ReLU(inplace=True))
        self.others = Features(env, leave_out=self._image) if len(fields) > 1 else None
        width = hidden_size + (self.others.size if self.others else 0)
        self.encoder = nn.Sequential(layer_init(Linear(width, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` to ``(rows, hidden_size)``."""
        images = nativize_tensor(observations, self._structure)[self._image]
        parts = [self.picture(self.convolutions(_planes(images)))]
        if self.others is not None:
            parts.append(self.others(observations))
        hidden: Tensor = self.encoder(torch.cat(parts, -1))
        return hidden


def _image_shape(where: str, env: HasSpaces) -> tuple[int, ...]:
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


def _nature_convolutions(where: str, shape: tuple[int, ...], channels: int, scale: float) -> tuple[nn.Sequential, int]:
    """Return the convolutions of Mnih et al. (2015) for images of ``shape``, and the number of their output features.

    Args:
        where: Start of an error.
        shape: Channels, height and width of the images.
        channels: Channels of the first convolution.
        scale: Factor of the values of the images.

    Raises:
        APIUsageError: The images are too small.
    """
    if min(shape[1:]) < NATURE_PX:
        raise APIUsageError(
            f"{where}: images must have {NATURE_PX} lines and columns or more, got {shape[1]} and {shape[2]}; use "
            "policy.name = 'ResNet' or 'Default'"
        )
    convolutions = nn.Sequential(
        layer_init(ImageConv2d(shape[0], channels, 8, stride=BLOCK_PX, scale=scale)),
        nn.ReLU(inplace=True),
        layer_init(nn.Conv2d(channels, 2 * channels, 4, stride=2)),
        nn.ReLU(inplace=True),
        layer_init(nn.Conv2d(2 * channels, 2 * channels, 3, stride=1)),
        nn.ReLU(inplace=True),
        nn.Flatten(),
    )
    # The channels-last layout makes convolutions a fifth faster on a CPU, and even more on a GPU.
    convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
    return convolutions, convolutions(torch.zeros(1, *shape)).shape[1]


def _image_scale(high: Any) -> float:
    """Return the factor that scales images with values up to ``high`` to the range 0 to 1."""
    return 1 / max(1, int(np.max(high)))


def _planes(images: Tensor) -> Tensor:
    """Return images as ``(rows, channels, height, width)``."""
    return images.permute(0, 3, 1, 2) if has_channels_last(images.shape[1:]) else images
