"""Description of a network for the C engine and for exports."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

__all__ = [
    "ConvolutionSpec",
    "InputSpec",
    "LayerSpec",
    "MatrixSpec",
    "MemorySpec",
    "NetworkSpec",
    "NormSpec",
    "Places",
    "TrunkSpec",
]

Places = npt.NDArray[np.int32]


class InputSpec(NamedTuple):
    """One array of an observation, and its conversion to floats.

    Attributes:
        encoding: "scaled", "logarithms" or "labels".
        type: Type of the numbers, a format character of Python's ``struct``.
        offset: Offset from the start of the observation in bytes.
        size: Number of elements.
        scale: Factor of "scaled".
        low: Lowest value of "labels", which has no float.
        values: Number of labels per element.
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
        """Number of floats after conversion."""
        return self.size * (self.values if self.encoding == "labels" else 1)


class MatrixSpec(NamedTuple):
    """Weights of one matrix product, located inside a parameter.

    Attributes:
        weight: Parameter whose first dimension is the outputs.
        biases: Bias vectors, which are added up. Empty for no bias.
        places: Offset of the weight for each input from the first weight of an output, in elements.
    """

    weight: Tensor
    biases: tuple[Tensor, ...]
    places: Places


class NormSpec(NamedTuple):
    """Layer normalization with an epsilon of 1e-5.

    Attributes:
        weight: Factor of each normalized element.
        bias: Number to add to each element afterwards.
    """

    weight: Tensor
    bias: Tensor


class LayerSpec(NamedTuple):
    """A linear layer with an activation.

    Attributes:
        matrix: Weights.
        activation: "relu", "tanh", "silu", "elu" or "gelu".
        norm: Layer normalization before the activation, or None.
    """

    matrix: MatrixSpec
    activation: str = "relu"
    norm: NormSpec | None = None


class ConvolutionSpec(NamedTuple):
    """A convolution with ReLU, described as a product with patches that consist of runs of consecutive floats.

    Attributes:
        matrix: Weights for the floats of a patch.
        offsets: Offset of each run from the start of the patch, in floats.
        length: Number of floats per run.
        step: Distance between neighboring patches of a line, in floats.
        line_step: Distance between a patch and the one below, in floats.
        out_height: Number of lines of patches.
        out_width: Number of patches per line.
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
        gates: Weights from the input.
        recurrent: Weights from the memory, or None for a minimal GRU.
        names: Names of its arrays in the state, each ``(rows, size)``.
        upper: ``gates`` of further layers, each of which reads the outputs of the previous one.
    """

    kind: str
    gates: MatrixSpec
    recurrent: MatrixSpec | None
    names: tuple[str, ...]
    upper: tuple[MatrixSpec, ...] = ()

    @property
    def size(self) -> int:
        """Width of inputs, memory and outputs."""
        return len(self.gates.places)


class TrunkSpec(NamedTuple):
    """Layers from the inputs to a decoder.

    Attributes:
        decoder: Decoder of params, values, or both. The value is the last output.
        layers: Linear layers with activations.
        labels: Weights of the first layer for labels. Its other weights are in ``layers``.
        memory: Recurrent layer between the last layer and the decoder.
    """

    decoder: MatrixSpec
    layers: Sequence[LayerSpec] = ()
    labels: MatrixSpec | None = None
    memory: MemorySpec | None = None


class NetworkSpec(NamedTuple):
    """Description of a policy for the engine.

    Attributes:
        observation_shape: Shape of one observation.
        observation_dtype: Dtype of observations.
        num_params: Number of parameters of the action distribution.
        trunks: One trunk for params and values, or one for each.
        inputs: Arrays of the observation that become floats or labels.
        image: Array that the convolutions read.
        convolutions: Convolutions, whose outputs pass through ``image_layer`` and then precede the other inputs.
        image_layer: Linear layer with ReLU after the convolutions.
        log_std: Log standard deviations of continuous actions, or None if a decoder computes them, in the range of
            ``Policy``.
        num_log_stds: Number of log standard deviations, which are the last params.
        mask: Elements of the observation that are 0 where an action is illegal.
    """

    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype[Any]
    num_params: int
    trunks: Sequence[TrunkSpec]
    inputs: Sequence[InputSpec] = ()
    image: InputSpec | None = None
    convolutions: Sequence[ConvolutionSpec] = ()
    image_layer: MatrixSpec | None = None
    log_std: Tensor | None = None
    num_log_stds: int = 0
    mask: InputSpec | None = None

    @property
    def tensors(self) -> list[Tensor]:
        """All parameters of the network."""
        matrices = [convolution.matrix for convolution in self.convolutions]
        vectors = [] if self.log_std is None else [self.log_std]
        optional = [self.image_layer]
        for trunk in self.trunks:
            matrices += [trunk.decoder, *(layer.matrix for layer in trunk.layers)]
            vectors += [vector for layer in trunk.layers if layer.norm is not None for vector in layer.norm]
            optional.append(trunk.labels)
            if trunk.memory is not None:
                optional += [trunk.memory.gates, trunk.memory.recurrent, *trunk.memory.upper]
        matrices += [matrix for matrix in optional if matrix is not None]
        return [*vectors, *(tensor for matrix in matrices for tensor in (matrix.weight, *matrix.biases))]
