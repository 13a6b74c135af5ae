"""Compilation of standard policies for the C inference engine, which avoids torch's overhead per call.

With few rows, torch spends nearly all of its time on call overhead. The engine computes the same numbers in a single C
call (``native/puffer_network.h``). It packs the weights again after each update.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pufferlib.models._engine import MAX_LAYERS, MAX_MEMORIES, Engine
from pufferlib.models.encoders import Features, Labels, Logarithms, Scaled
from pufferlib.models.image_policies import ImageConv2d, MixedCNN, NatureCNN, channels_first, has_channels_last
from pufferlib.models.linear import Linear
from pufferlib.models.network_spec import (
    ConvolutionSpec,
    InputSpec,
    LayerSpec,
    MatrixSpec,
    MemorySpec,
    NetworkSpec,
    NormSpec,
    Places,
    TrunkSpec,
)
from pufferlib.models.policies import Default, Policy
from pufferlib.models.recurrent import CRITIC, GRUWrapper, LSTMWrapper, MemoryWrapper, MinGRUCell, MinGRUWrapper
from pufferlib.pytorch import NativeLeaf

__all__ = [
    "ConvolutionSpec",
    "InputSpec",
    "LayerSpec",
    "MatrixSpec",
    "MemorySpec",
    "NetworkSpec",
    "NormSpec",
    "TrunkSpec",
    "UnknownLayerError",
    "compile_policy",
    "describe",
    "network_spec",
]

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
NAMES = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.SiLU: "silu", nn.ELU: "elu", nn.GELU: "gelu"}  # of activations
EPSILON = 1e-5  # of layer normalization
LANES = 16  # the number of output channels of a convolution must be a multiple of this panel size
METHODS = {"remember", "_run", "encode_observations", "decode_actions", "action_mask", "forward_eval", "forward"}


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
    read = {id(tensor) for tensor in spec.tensors}
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
    memories, inner = _memories(policy), policy
    if isinstance(policy, MemoryWrapper):
        inner = policy.policy
    encoders: dict[type, Callable[[Any], dict[str, Any]]]
    encoders = {Default: _perceptron, NatureCNN: _nature_cnn, MixedCNN: _mixed_cnn}
    if type(inner) not in encoders:
        raise UnknownLayerError(f"the class {type(inner).__name__}")
    parts = encoders[type(inner)](inner)
    layers: list[dict[str, Any]] = parts.pop("layers")
    decoders = [inner.decoder] if inner.critic_decoder is None else [inner.decoder, inner.critic_decoder]
    trunks = [TrunkSpec(_linear(inner, decoder), **own) for decoder, own in zip(decoders, layers, strict=True)]
    if memories:
        trunks = [trunk._replace(memory=memory) for trunk, memory in zip(trunks, memories, strict=True)]
    return NetworkSpec(
        observation_shape=inner.observation_shape,
        observation_dtype=np.dtype(TYPES[inner.observation_dtype]),
        num_params=inner.distribution.num_params,
        trunks=trunks,
        log_std=inner.log_std if inner.is_continuous and not inner.state_dependent_std else None,
        num_log_stds=inner.distribution.num_log_stds,
        mask=_mask(inner),
        **parts,
    )


def _memories(policy: Policy) -> list[MemorySpec]:
    """Return the specs of the recurrent networks around a policy: none, one, or those of actor and critic."""
    kinds = {LSTMWrapper: nn.LSTMCell, GRUWrapper: nn.GRUCell, MinGRUWrapper: MinGRUCell}
    if not isinstance(policy, MemoryWrapper):
        return []
    if type(policy) not in kinds:
        raise UnknownLayerError(f"the class {type(policy).__name__}")
    if len(policy.memory_sizes()) > MAX_MEMORIES:
        raise UnknownLayerError(f"{len(policy.memory_sizes())} arrays of memory, more than {MAX_MEMORIES}")
    networks: list[Any] = [policy] if policy.critic is None else [policy, policy.critic]
    specs = []
    for module, prefix in zip(networks, ("", CRITIC), strict=False):
        names = tuple(prefix + name for name in policy.state_names)
        cells = [module.cell, *module.upper] if isinstance(policy, MinGRUWrapper) else [module.cell]
        for cell in cells:
            if type(cell) is not kinds[type(policy)]:
                raise _unknown(policy, cell)
        specs.append(_stacked(cells, names) if isinstance(policy, MinGRUWrapper) else _gated(cells[0], names))
    return specs


def _gated(cell: Any, names: tuple[str, ...]) -> MemorySpec:
    """Return the spec of an LSTM or a GRU."""
    if not cell.bias:
        raise UnknownLayerError(f"{_describe('cell', cell)} has no bias")
    is_lstm = type(cell) is nn.LSTMCell  # its two biases only occur as a sum
    from_input, from_itself = ((cell.bias_ih, cell.bias_hh), ()) if is_lstm else ((cell.bias_ih,), (cell.bias_hh,))
    gates = MatrixSpec(cell.weight_ih, from_input, _places(cell.weight_ih))
    recurrent = MatrixSpec(cell.weight_hh, from_itself, _places(cell.weight_hh))
    return MemorySpec("lstm" if is_lstm else "gru", gates, recurrent, names)


def _stacked(cells: list[Any], names: tuple[str, ...]) -> MemorySpec:
    """Return the spec of minimal GRUs."""
    first, *upper = (MatrixSpec(cell.weight, (cell.bias,), _places(cell.weight)) for cell in cells)
    return MemorySpec("mingru", first, None, names, tuple(upper))


def _perceptron(policy: Default) -> dict[str, Any]:
    inputs = _inputs(policy, policy.features)
    encoders = [policy.encoder] if policy.critic_encoder is None else [policy.encoder, policy.critic_encoder]
    return {"inputs": inputs, "layers": [_split_labels(policy, encoder, inputs, 0) for encoder in encoders]}


def _nature_cnn(policy: NatureCNN) -> dict[str, Any]:
    shape = policy.observation_shape
    image = (torch.uint8, shape, 0, int(np.prod(shape)))
    return {**_image_parts(policy, image, policy.encoder), "layers": [{}]}


def _mixed_cnn(policy: MixedCNN) -> dict[str, Any]:
    parts = _image_parts(policy, policy.image_place, policy.picture)
    inputs = _inputs(policy, policy.others)
    layers = [_split_labels(policy, policy.encoder, inputs, len(parts["image_layer"].weight))]
    return {**parts, "inputs": inputs, "layers": layers}


def _inputs(policy: Policy, features: Features | None) -> list[InputSpec]:
    read = [] if features is None else zip(features.encoders, features.arrays, strict=True)
    return [_input(policy, *each) for each in read]


def _split_labels(policy: Policy, encoder: nn.Sequential, inputs: list[InputSpec], width: int) -> dict[str, Any]:
    """Return the layers of a trunk for ``width`` floats and ``inputs``. Labels select columns of the first layer."""
    layers = _linear_layers(policy, encoder)
    if not layers:
        raise UnknownLayerError("an encoder without layers")
    is_label = np.repeat([False, *(each.encoding == "labels" for each in inputs)], [width, *(x.floats for x in inputs)])
    first = layers[0].matrix
    if len(first.places) != len(is_label):
        raise UnknownLayerError(f"{_describe('encoder.0', encoder[0])} does not have the observation's inputs")
    layers[0] = layers[0]._replace(matrix=first._replace(places=first.places[~is_label]))
    labels = first._replace(places=first.places[is_label]) if is_label.any() else None
    return {"layers": layers, "labels": labels}


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


def _linear_layers(policy: Policy, encoder: nn.Sequential) -> list[LayerSpec]:
    """Return the linear layers, each of which has an activation, and perhaps a normalization before it."""
    if type(encoder) is not nn.Sequential:
        raise _unknown(policy, encoder)
    modules, layers = list(encoder), []
    while modules:
        linear, *modules = modules
        norm, modules = (modules[0], modules[1:]) if modules and type(modules[0]) is nn.LayerNorm else (None, modules)
        if not modules:
            raise _unknown(policy, linear)
        activation, *modules = modules
        layers.append(LayerSpec(_linear(policy, linear), _activation(policy, activation), _norm(policy, norm)))
    if len(layers) > MAX_LAYERS:
        raise _unknown(policy, encoder)
    return layers


def _activation(policy: Policy, module: Any) -> str:
    is_plain = getattr(module, "alpha", 1.0) == 1.0 and getattr(module, "approximate", "none") == "none"
    if type(module) not in NAMES or not is_plain:
        raise _unknown(policy, module)
    return NAMES[type(module)]


def _norm(policy: Policy, module: nn.LayerNorm | None) -> NormSpec | None:
    if module is None:
        return None
    if module.eps != EPSILON or module.weight is None or module.bias is None or len(module.normalized_shape) != 1:
        raise _unknown(policy, module)
    return NormSpec(module.weight, module.bias)


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
    (after,) = _linear_layers(policy, encoder)
    if after.activation != "relu" or after.norm is not None:
        raise _unknown(policy, encoder)
    image_layer = after.matrix
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
    if not isinstance(layer, nn.Conv2d) or type(layer) not in (nn.Conv2d, ImageConv2d):
        raise _unknown(policy, layer)
    if layer.padding != (0, 0) or layer.dilation != (1, 1) or layer.groups != 1:
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
        if len(elements) != policy.distribution.num_logits or np.any(np.diff(elements) != 1):
            raise UnknownLayerError("a mask whose elements are not contiguous in the observation")
        return InputSpec("scaled", TYPES[dtype], int(elements[0]) * dtype.itemsize, len(elements))
    if not isinstance(policy.mask_structure, dict):
        return None
    array = policy.mask_structure["action_mask"]
    if isinstance(array, dict):
        raise UnknownLayerError("a mask of several arrays")
    dtype, _, first, count = array
    return InputSpec("scaled", TYPES[dtype], first * dtype.itemsize, count)
