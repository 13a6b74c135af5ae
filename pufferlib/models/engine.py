"""Compilation of standard policies for the C inference engine, which avoids torch's overhead per call.

With few rows, torch spends nearly all of its time on call overhead. The engine computes the same numbers in a single C
call (``native/puffer_network.h``). It packs the weights again after each update.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pufferlib.models._engine import MAX_LAYERS, MAX_MEMORIES, Engine
from pufferlib.models.encoders import Features, Labels, Logarithms, Scaled
from pufferlib.models.linear import Linear
from pufferlib.models.network_spec import ConvolutionSpec, InputSpec, MatrixSpec, MemorySpec, NetworkSpec
from pufferlib.models.policies import Default, MixedCNN, NatureCNN, Policy, channels_first, has_channels_last
from pufferlib.models.recurrent import GRUWrapper, LSTMWrapper, MemoryWrapper, MinGRUCell, MinGRUWrapper
from pufferlib.pytorch import NativeLeaf

__all__ = [
    "ConvolutionSpec",
    "InputSpec",
    "MatrixSpec",
    "MemorySpec",
    "NetworkSpec",
    "UnknownLayerError",
    "compile_policy",
    "describe",
    "network_spec",
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
LANES = 16  # the number of output channels of a convolution must be a multiple of this panel size
METHODS = {"remember", "encode_observations", "decode_actions", "action_mask", "forward_eval", "forward"}


class UnknownLayerError(Exception):
    """A part of the policy that the engine does not support. The message names it."""


def compile_policy(policy: Policy, threads: int = 1) -> Engine | None:
    """Return an engine that computes ``policy.forward_eval``, or None if the policy is not supported.

    Supported are ``Default``, ``NatureCNN`` and ``MixedCNN``, alone or inside a wrapper from ``MEMORIES``, in float32
    on the CPU. Subclasses, and policies with replaced layers, hooks or additional parameters, are not supported and use
    torch.

    Args:
        policy: The policy. ``Engine.refresh`` reads its weights.
        threads: Maximum number of threads that share the rows of a call. It does not affect the results.
    """
    spec = describe(policy)
    return None if spec is None else Engine(spec, threads)


def describe(policy: Policy) -> NetworkSpec | None:
    """Return the spec of a standard policy, or None for any other policy. See ``compile_policy``."""
    try:
        return network_spec(policy)
    except UnknownLayerError:
        return None


def network_spec(policy: Policy) -> NetworkSpec:
    """Return the spec of a standard policy. See ``compile_policy``.

    Raises:
        UnknownLayerError: The policy has an unsupported part.
    """
    _check_modules(policy)
    spec = _network(policy)
    read = {id(tensor) for matrix in spec.matrices for tensor in (matrix.weight, *matrix.biases)}
    read.add(id(spec.log_std))
    for name, parameter in policy.named_parameters():
        if parameter.device.type != "cpu" or parameter.dtype != torch.float32:
            raise UnknownLayerError(f"{name} is {parameter.dtype} on {parameter.device}, not float32 on the CPU")
        if id(parameter) not in read:
            raise UnknownLayerError(f"the parameter {name} is not part of a supported layer")
    return spec


def _check_modules(policy: Policy) -> None:
    """Raise UnknownLayerError for hooks and overridden methods of instances, which the engine would not call."""
    for name, module in policy.named_modules():
        if module._forward_hooks or module._forward_pre_hooks or METHODS & vars(module).keys():
            raise UnknownLayerError(f"{_describe(name, module)} has hooks or overridden methods")


def _describe(name: str, module: nn.Module) -> str:
    """Describe a layer by its class and its name in the policy."""
    return f"{type(module).__name__} ({name})" if name else type(module).__name__


def _unknown(policy: nn.Module, module: nn.Module) -> UnknownLayerError:
    """Return the error for an unsupported layer of ``policy``."""
    names = [name for name, each in policy.named_modules() if each is module]
    return UnknownLayerError(_describe(names[0] if names else "", module))


def _network(policy: Policy) -> NetworkSpec:
    memory, inner = _memory(policy), policy
    if isinstance(policy, MemoryWrapper):
        inner = policy.policy
    encoders: dict[type, Callable[[Any], dict[str, Any]]]
    encoders = {Default: _perceptron, NatureCNN: _nature_cnn, MixedCNN: _mixed_cnn}
    if type(inner) not in encoders:
        raise UnknownLayerError(f"the class {type(inner).__name__}")
    parts = encoders[type(inner)](inner)
    return NetworkSpec(
        observation_shape=inner.observation_shape,
        observation_dtype=np.dtype(TYPES[inner.observation_dtype]),
        num_params=inner.distribution.num_params,
        decoder=_linear(inner, inner.decoder),
        memory=memory,
        log_std=inner.log_std if inner.is_continuous else None,
        mask=_mask(inner),
        **parts,
    )


def _memory(policy: Policy) -> MemorySpec | None:
    """Return the spec of the recurrent network around a policy, or None."""
    kinds = {LSTMWrapper: nn.LSTMCell, GRUWrapper: nn.GRUCell, MinGRUWrapper: MinGRUCell}
    if not isinstance(policy, MemoryWrapper):
        return None
    if type(policy) not in kinds:
        raise UnknownLayerError(f"the class {type(policy).__name__}")
    cell: Any = policy.cell
    if type(cell) is not kinds[type(policy)]:
        raise _unknown(policy, cell)
    return _stacked(policy) if isinstance(policy, MinGRUWrapper) else _gated(policy, cell)


def _gated(policy: MemoryWrapper, cell: Any) -> MemorySpec:
    """Return the spec of an LSTM or a GRU."""
    if not cell.bias:
        raise UnknownLayerError(f"{_describe('cell', cell)} has no bias")
    is_lstm = type(cell) is nn.LSTMCell  # its two biases only occur as a sum
    from_input, from_itself = ((cell.bias_ih, cell.bias_hh), ()) if is_lstm else ((cell.bias_ih,), (cell.bias_hh,))
    gates = MatrixSpec(cell.weight_ih, from_input, _places(cell.weight_ih))
    recurrent = MatrixSpec(cell.weight_hh, from_itself, _places(cell.weight_hh))
    return MemorySpec("lstm" if is_lstm else "gru", gates, recurrent, policy.state_names)


def _stacked(policy: MinGRUWrapper) -> MemorySpec:
    """Return the spec of minimal GRUs."""
    cells: list[Any] = [policy.cell, *policy.upper]
    if len(cells) > MAX_MEMORIES:
        raise UnknownLayerError(f"MinGRU of {len(cells)} layers, more than {MAX_MEMORIES}")
    for cell in cells:
        if type(cell) is not MinGRUCell:
            raise _unknown(policy, cell)
    first, *upper = (MatrixSpec(cell.weight, (cell.bias,), _places(cell.weight)) for cell in cells)
    return MemorySpec("mingru", first, None, policy.state_names, tuple(upper))


def _perceptron(policy: Default) -> dict[str, Any]:
    return _joined(policy, policy.features, 0)


def _nature_cnn(policy: NatureCNN) -> dict[str, Any]:
    shape = policy.observation_shape
    return _image_parts(policy, (torch.uint8, shape, 0, int(np.prod(shape))), policy.encoder)


def _mixed_cnn(policy: MixedCNN) -> dict[str, Any]:
    picture = _image_parts(policy, policy.image_place, policy.picture)
    return {**picture, **_joined(policy, policy.others, len(picture["image_layer"].weight))}


def _joined(policy: Default | MixedCNN, features: Features | None, width: int) -> dict[str, Any]:
    """Return the linear layers for ``width`` floats and ``features``. Labels select columns of the first layer."""
    layers = _linear_layers(policy, policy.encoder)
    if not layers:
        raise UnknownLayerError("an encoder without layers")
    read = [] if features is None else zip(features.encoders, features.arrays, strict=True)
    inputs = [_input(policy, *each) for each in read]
    is_label = np.repeat([False, *(each.encoding == "labels" for each in inputs)], [width, *(x.floats for x in inputs)])
    first = layers[0]
    if len(first.places) != len(is_label):
        raise UnknownLayerError(f"{_describe('encoder.0', policy.encoder[0])} does not have the observation's inputs")
    layers[0] = first._replace(places=first.places[~is_label])
    labels = first._replace(places=first.places[is_label]) if is_label.any() else None
    return {"inputs": inputs, "layers": layers, "labels": labels}


def _input(policy: Policy, encoder: nn.Module, array: NativeLeaf) -> InputSpec:
    dtype, _, first, count = array
    place = (TYPES[dtype], first * dtype.itemsize, count)
    if type(encoder) is Labels:
        return InputSpec("labels", *place, low=encoder.low, values=encoder.values)
    if type(encoder) is Scaled:
        return InputSpec("scaled", *place, scale=encoder.scale)
    if type(encoder) is Logarithms:
        return InputSpec("logarithms", *place)
    raise _unknown(policy, encoder)


def _linear_layers(policy: Policy, encoder: nn.Sequential) -> list[MatrixSpec]:
    """Return the matrices of linear layers that are each followed by a ReLU."""
    layers, activations = list(encoder)[::2], list(encoder)[1::2]
    if type(encoder) is not nn.Sequential or len(layers) > MAX_LAYERS:
        raise _unknown(policy, encoder)
    for activation in activations:
        if type(activation) is not nn.ReLU:
            raise _unknown(policy, activation)
    if len(layers) != len(activations):
        raise _unknown(policy, layers[-1])
    return [_linear(policy, layer) for layer in layers]


def _linear(policy: Policy, layer: Any) -> MatrixSpec:
    if type(layer) not in (nn.Linear, Linear):
        raise _unknown(policy, layer)
    return MatrixSpec(layer.weight, () if layer.bias is None else (layer.bias,), _places(layer.weight))


def _image_parts(policy: NatureCNN | MixedCNN, array: NativeLeaf, encoder: nn.Sequential) -> dict[str, Any]:
    """Return the convolutions over an image and the layer after them."""
    dtype, image, first, count = array
    shape, planes = channels_first(image), not has_channels_last(image)
    *layers, flatten = policy.convolutions
    if type(policy.convolutions) is not nn.Sequential or len(layers) > 2 * MAX_LAYERS or len(layers) % 2:
        raise _unknown(policy, policy.convolutions)
    for layer, kind in ((flatten, nn.Flatten), *((activation, nn.ReLU) for activation in layers[1::2])):
        if type(layer) is not kind:
            raise _unknown(policy, layer)
    convolved: list[ConvolutionSpec] = []
    for layer in layers[::2]:
        last = _convolution(policy, layer, shape, planes and not convolved)
        convolved.append(last)
        shape = (len(last.matrix.weight), last.out_height, last.out_width)
    (image_layer,) = _linear_layers(policy, encoder)
    # torch flattens with channels first. The engine has channels last.
    places = image_layer.places.reshape(shape[0], -1).T.ravel()
    return {
        "image": InputSpec("scaled", TYPES[dtype], first * dtype.itemsize, count, scale=policy.image_scale),
        "convolutions": convolved,
        "image_layer": image_layer._replace(places=places),
    }


def _convolution(policy: Policy, layer: nn.Module, shape: tuple[int, ...], planes: bool) -> ConvolutionSpec:
    """Return the spec of a convolution over ``shape`` (channels, height, width).

    If ``planes``, memory holds whole channels one after another. Otherwise it holds the channels of each pixel
    together.
    """
    if type(layer) is not nn.Conv2d or layer.padding != (0, 0) or layer.dilation != (1, 1) or layer.groups != 1:
        raise _unknown(policy, layer)
    if layer.stride[0] != layer.stride[1] or layer.out_channels % LANES:
        raise _unknown(policy, layer)
    channels, height, width = shape
    lines, columns = layer.kernel_size
    places = _places(layer.weight)  # (channels, lines, columns)
    if planes:
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
    """Return the offset of each weight of an output from its first weight, in the shape of the weights."""
    places = np.zeros((), np.int32)
    for size, stride in zip(weight.shape[1:], weight.stride()[1:], strict=True):
        places = np.add.outer(places, np.arange(size, dtype=np.int32) * stride)
    return places.astype(np.int32)


def _mask(policy: Policy) -> InputSpec | None:
    """Return the location of the action mask in the observation, as ``Policy.action_mask`` reads it."""
    dtype, count = policy.observation_dtype, int(np.prod(policy.observation_shape))
    if policy.mask_elements is not None:
        elements = np.arange(count)[policy.mask_elements]
        if len(elements) != policy.distribution.num_params or np.any(np.diff(elements) != 1):
            raise UnknownLayerError("a mask whose elements are not contiguous in the observation")
        return InputSpec("scaled", TYPES[dtype], int(elements[0]) * dtype.itemsize, len(elements))
    if not isinstance(policy.mask_structure, dict):
        return None
    array = policy.mask_structure["action_mask"]
    if isinstance(array, dict):
        raise UnknownLayerError("a mask of several arrays")
    dtype, _, first, count = array
    return InputSpec("scaled", TYPES[dtype], first * dtype.itemsize, count)
