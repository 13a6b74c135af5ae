"""Acting in C: one of the standard policies as a table of its parts, for an engine without torch's price per call.

With few rows nearly all of torch's time is the price of its calls. The engine computes the same numbers in one call of
C (``native/puffer_network.h``), from weights that it packs anew after each update.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pufferlib.models._engine import MAX_LAYERS, Engine
from pufferlib.models.encoders import Features, Labels, Logarithms, Scaled
from pufferlib.models.linear import Linear
from pufferlib.models.policies import Default, MixedCNN, NatureCNN, Policy
from pufferlib.models.recurrent import GRUWrapper, LSTMWrapper, MemoryWrapper, MinGRUCell, MinGRUWrapper
from pufferlib.pytorch import NativeLeaf

__all__ = [
    "ConvolutionSpec",
    "InputSpec",
    "MatrixSpec",
    "MemorySpec",
    "NetworkSpec",
    "compile_policy",
    "describe",
]

Places = npt.NDArray[np.int32]

TYPES = {
    torch.bool: "?",
    torch.uint8: "B",
    torch.int8: "b",
    torch.uint16: "H",
    torch.int16: "h",
    torch.uint32: "I",
    torch.int32: "i",
    torch.uint64: "Q",
    torch.int64: "q",
    torch.float16: "e",
    torch.float32: "f",
    torch.float64: "d",
}
LANES = 16  # channels of a convolution come in whole panels
METHODS = {"remember", "encode_observations", "decode_actions", "action_mask", "forward_eval", "forward"}


class InputSpec(NamedTuple):
    """One array of an observation, and how its numbers become floats.

    Attributes:
        encoding: "scaled", "logarithms" or "labels".
        type: Of its numbers, a letter of Python's ``struct``.
        offset: Bytes from the start of the observation.
        size: Numbers.
        scale: Factor of scaled numbers.
        low: The value of labels that has no float.
        values: Labels of each number.
    """

    encoding: str
    type: str
    offset: int
    size: int
    scale: float = 1.0
    low: int = 0
    values: int = 0

    @property
    def floats(self) -> int:
        """Floats that it becomes."""
        return self.size * (self.values if self.encoding == "labels" else 1)


class MatrixSpec(NamedTuple):
    """Weights of one product, found inside a parameter.

    Attributes:
        weight: The parameter; its first dimension are the outputs.
        biases: Vectors that are added up; none: 0.
        places: Elements between the first weight of an output and that for each input.
    """

    weight: Tensor
    biases: tuple[Tensor, ...]
    places: Places


class ConvolutionSpec(NamedTuple):
    """A convolution with ReLU: a product with patches, each made of runs of consecutive floats.

    Attributes:
        matrix: The weights, for the floats of a patch.
        offsets: Of the runs, in floats from the start of the patch.
        length: Floats of a run.
        step: Floats from a patch to the next one in its line.
        line_step: Floats from a patch to the one below.
        out_height: Lines of patches.
        out_width: Patches of a line.
    """

    matrix: MatrixSpec
    offsets: Places
    length: int
    step: int
    line_step: int
    out_height: int
    out_width: int


class MemorySpec(NamedTuple):
    """A recurrent layer.

    Attributes:
        kind: "lstm", "gru" or "mingru".
        gates: What it takes from its input.
        recurrent: What it takes from its memory; nothing for a minimal GRU.
        names: Of its arrays in the state, each ``(rows, hidden_size)``.
    """

    kind: str
    gates: MatrixSpec
    recurrent: MatrixSpec | None
    names: tuple[str, ...]


class NetworkSpec(NamedTuple):
    """A policy as the engine takes it.

    Attributes:
        observation_shape: Of one observation.
        observation_dtype: Of its elements.
        num_params: Outputs of the action distribution.
        decoder: Its last output is the value.
        inputs: Arrays of the observation that become floats or labels.
        layers: Linear layers with ReLU.
        labels: Weights of the first layer for the labels; its other weights are in ``layers``.
        image: The array that the convolutions read.
        convolutions: Their outputs go through ``image_layer``, and then before the other inputs.
        image_layer: Linear layer with ReLU after the convolutions.
        memory: Between the last layer and the decoder.
        log_std: Of continuous actions.
        mask: Numbers of the observation that are 0 where a logit is forbidden.
    """

    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype[Any]
    num_params: int
    decoder: MatrixSpec
    inputs: Sequence[InputSpec] = ()
    layers: Sequence[MatrixSpec] = ()
    labels: MatrixSpec | None = None
    image: InputSpec | None = None
    convolutions: Sequence[ConvolutionSpec] = ()
    image_layer: MatrixSpec | None = None
    memory: MemorySpec | None = None
    log_std: Tensor | None = None
    mask: InputSpec | None = None

    @property
    def matrices(self) -> list[MatrixSpec]:
        """All products."""
        single = [self.labels, self.image_layer, self.decoder]
        if self.memory is not None:
            single += [self.memory.gates, self.memory.recurrent]
        return [
            *(convolution.matrix for convolution in self.convolutions),
            *self.layers,
            *(matrix for matrix in single if matrix is not None),
        ]


class _NotStandardError(Exception):
    """The policy is none that the engine knows."""


def compile_policy(policy: Policy, threads: int = 1) -> Engine | None:
    """Make an engine that computes ``policy.forward_eval``, or None where only torch can.

    It knows ``Default``, ``NatureCNN`` and ``MixedCNN``, alone or in one of ``MEMORIES``, in float32 on the CPU. One
    of a subclass, with a layer exchanged, with hooks or with parameters of its own is left to torch.

    Args:
        policy: The policy, whose weights ``Engine.refresh`` reads.
        threads: That may share the rows of a call; the numbers are the same with any number of them.
    """
    spec = describe(policy)
    return None if spec is None else Engine(spec, threads)


def describe(policy: Policy) -> NetworkSpec | None:
    """Write down the parts of a standard policy; None for any other, see ``compile_policy``."""
    try:
        _check_modules(policy)
        spec = _network(policy)
    except _NotStandardError:
        return None
    read = {id(tensor) for matrix in spec.matrices for tensor in (matrix.weight, *matrix.biases)}
    read.add(id(spec.log_std))
    parameters = list(policy.parameters())
    is_plain = all(each.device.type == "cpu" and each.dtype == torch.float32 for each in parameters)
    return spec if is_plain and {id(each) for each in parameters} <= read else None


def _check_modules(policy: Policy) -> None:
    """Refuse hooks and methods that were put on an instance: the engine would not call them."""
    for module in policy.modules():
        if module._forward_hooks or module._forward_pre_hooks or METHODS & vars(module).keys():
            raise _NotStandardError


def _network(policy: Policy) -> NetworkSpec:
    memory, inner = _memory(policy), policy
    if isinstance(policy, MemoryWrapper):
        inner = policy.policy
    encoders: dict[type, Callable[[Any], dict[str, Any]]]
    encoders = {Default: _perceptron, NatureCNN: _nature_cnn, MixedCNN: _mixed_cnn}
    if type(inner) not in encoders:
        raise _NotStandardError
    parts = encoders[type(inner)](inner)
    return NetworkSpec(
        observation_shape=inner.observation_shape,
        observation_dtype=np.dtype(TYPES[inner.observation_dtype]),
        num_params=inner.distribution.num_params,
        decoder=_linear(inner.decoder),
        memory=memory,
        log_std=inner.log_std if inner.is_continuous else None,
        mask=_mask(inner),
        **parts,
    )


def _memory(policy: Policy) -> MemorySpec | None:
    """The recurrent network around a policy, if there is one."""
    kinds = {LSTMWrapper: nn.LSTMCell, GRUWrapper: nn.GRUCell, MinGRUWrapper: MinGRUCell}
    if not isinstance(policy, MemoryWrapper):
        return None
    if type(policy) not in kinds or type(policy.cell) is not kinds[type(policy)]:
        raise _NotStandardError
    cell: Any = policy.cell
    if type(cell) is MinGRUCell:
        return MemorySpec(
            "mingru", MatrixSpec(cell.weight, (cell.bias,), _places(cell.weight)), None, policy.state_names
        )
    if not cell.bias:
        raise _NotStandardError
    is_lstm = type(cell) is nn.LSTMCell  # whose biases only ever meet as a sum
    from_input, from_itself = ((cell.bias_ih, cell.bias_hh), ()) if is_lstm else ((cell.bias_ih,), (cell.bias_hh,))
    gates = MatrixSpec(cell.weight_ih, from_input, _places(cell.weight_ih))
    recurrent = MatrixSpec(cell.weight_hh, from_itself, _places(cell.weight_hh))
    return MemorySpec("lstm" if is_lstm else "gru", gates, recurrent, policy.state_names)


def _perceptron(policy: Default) -> dict[str, Any]:
    return _joined(policy.features, policy.encoder, 0)


def _nature_cnn(policy: NatureCNN) -> dict[str, Any]:
    shape = policy.observation_shape
    return _picture((torch.uint8, shape, 0, int(np.prod(shape))), policy.convolutions, policy.encoder)


def _mixed_cnn(policy: MixedCNN) -> dict[str, Any]:
    picture = _picture(policy.image_place, policy.convolutions, policy.picture)
    return {**picture, **_joined(policy.others, policy.encoder, len(picture["image_layer"].weight))}


def _joined(features: Features | None, encoder: nn.Sequential, width: int) -> dict[str, Any]:
    """The linear layers after ``width`` floats and ``features``, whose labels choose columns of the first one."""
    layers = _linear_layers(encoder)
    if not layers:
        raise _NotStandardError
    inputs = (
        [] if features is None else [_input(*each) for each in zip(features.encoders, features.arrays, strict=True)]
    )
    is_label = np.repeat([False, *(each.encoding == "labels" for each in inputs)], [width, *(x.floats for x in inputs)])
    first = layers[0]
    if len(first.places) != len(is_label):
        raise _NotStandardError
    layers[0] = first._replace(places=first.places[~is_label])
    labels = first._replace(places=first.places[is_label]) if is_label.any() else None
    return {"inputs": inputs, "layers": layers, "labels": labels}


def _input(encoder: nn.Module, array: NativeLeaf) -> InputSpec:
    dtype, _, first, count = array
    place = (TYPES[dtype], first * dtype.itemsize, count)
    if type(encoder) is Labels:
        return InputSpec("labels", *place, low=encoder.low, values=encoder.values)
    if type(encoder) is Scaled:
        return InputSpec("scaled", *place, scale=encoder.scale)
    if type(encoder) is Logarithms:
        return InputSpec("logarithms", *place)
    raise _NotStandardError


def _linear_layers(encoder: nn.Sequential) -> list[MatrixSpec]:
    """The matrices of linear layers that are each followed by a ReLU."""
    layers, activations = list(encoder)[::2], list(encoder)[1::2]
    if type(encoder) is not nn.Sequential or len(layers) != len(activations) or len(layers) > MAX_LAYERS:
        raise _NotStandardError
    if any(type(activation) is not nn.ReLU for activation in activations):
        raise _NotStandardError
    return [_linear(layer) for layer in layers]


def _linear(layer: Any) -> MatrixSpec:
    if type(layer) not in (nn.Linear, Linear):
        raise _NotStandardError
    return MatrixSpec(layer.weight, () if layer.bias is None else (layer.bias,), _places(layer.weight))


def _picture(array: NativeLeaf, convolutions: nn.Sequential, encoder: nn.Sequential) -> dict[str, Any]:
    """The convolutions over an image ``(channels, height, width)``, and the layer after them."""
    dtype, shape, first, count = array
    *layers, flatten = convolutions
    if type(convolutions) is not nn.Sequential or type(flatten) is not nn.Flatten or len(layers) > 2 * MAX_LAYERS:
        raise _NotStandardError
    if any(type(layer) is not nn.ReLU for layer in layers[1::2]) or len(layers) % 2:
        raise _NotStandardError
    convolved: list[ConvolutionSpec] = []
    for layer in layers[::2]:
        last = _convolution(layer, shape, is_first=not convolved)
        convolved.append(last)
        shape = (len(last.matrix.weight), last.out_height, last.out_width)
    (image_layer,) = _linear_layers(encoder)
    # torch flattens with the channels first; here they are last.
    places = image_layer.places.reshape(shape[0], -1).T.ravel()
    return {
        "image": InputSpec("scaled", TYPES[dtype], first * dtype.itemsize, count, scale=1 / 255),
        "convolutions": convolved,
        "image_layer": image_layer._replace(places=places),
    }


def _convolution(layer: nn.Module, shape: tuple[int, ...], is_first: bool) -> ConvolutionSpec:
    """One over ``shape`` (channels, height, width); the image that the first reads has its channels first in memory."""
    if type(layer) is not nn.Conv2d or layer.padding != (0, 0) or layer.dilation != (1, 1) or layer.groups != 1:
        raise _NotStandardError
    if layer.stride[0] != layer.stride[1] or layer.out_channels % LANES:
        raise _NotStandardError
    channels, height, width = shape
    lines, columns = layer.kernel_size
    places = _places(layer.weight)  # (channels, lines, columns)
    if is_first:
        offsets = np.add.outer(np.arange(channels) * height * width, np.arange(lines) * width)
        pixel, length = 1, columns
    else:
        offsets = np.arange(lines) * width * channels
        pixel, length = channels, columns * channels
        places = places.transpose(1, 2, 0)
    biases = () if layer.bias is None else (layer.bias,)
    return ConvolutionSpec(
        MatrixSpec(layer.weight, biases, places.ravel()),
        offsets.ravel().astype(np.int32),
        length,
        step=layer.stride[0] * pixel,
        line_step=layer.stride[0] * width * pixel,
        out_height=(height - lines) // layer.stride[0] + 1,
        out_width=(width - columns) // layer.stride[0] + 1,
    )


def _places(weight: Tensor) -> Places:
    """Elements from the first weight of an output to each of its weights, in the shape of these."""
    places = np.zeros((), np.int32)
    for size, stride in zip(weight.shape[1:], weight.stride()[1:], strict=True):
        places = np.add.outer(places, np.arange(size, dtype=np.int32) * stride)
    return places.astype(np.int32)


def _mask(policy: Policy) -> InputSpec | None:
    """The numbers that forbid actions, as ``Policy.action_mask`` reads them."""
    dtype, count = policy.observation_dtype, int(np.prod(policy.observation_shape))
    if policy.mask_elements is not None:
        elements = np.arange(count)[policy.mask_elements]
        if len(elements) != policy.distribution.num_params or np.any(np.diff(elements) != 1):
            raise _NotStandardError
        return InputSpec("scaled", TYPES[dtype], int(elements[0]) * dtype.itemsize, len(elements))
    if not isinstance(policy.mask_structure, dict):
        return None
    array = policy.mask_structure["action_mask"]
    if isinstance(array, dict):
        raise _NotStandardError
    dtype, _, first, count = array
    return InputSpec("scaled", TYPES[dtype], first * dtype.itemsize, count)
