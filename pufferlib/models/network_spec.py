"""Description of a network for the C engine and for exports."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

__all__ = ["ConvolutionSpec", "InputSpec", "MatrixSpec", "MemorySpec", "NetworkSpec"]

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
        names: Names of its arrays in the state, each ``(rows, hidden_size)``.
        upper: ``gates`` of further layers, each of which reads the outputs of the previous one.
    """

    kind: str
    gates: MatrixSpec
    recurrent: MatrixSpec | None
    names: tuple[str, ...]
    upper: tuple[MatrixSpec, ...] = ()


class NetworkSpec(NamedTuple):
    """Description of a policy for the engine.

    Attributes:
        observation_shape: Shape of one observation.
        observation_dtype: Dtype of observations.
        num_params: Number of parameters of the action distribution.
        decoder: Decoder, whose last output is the value.
        inputs: Arrays of the observation that become floats or labels.
        layers: Linear layers with ReLU.
        labels: Weights of the first layer for labels. Its other weights are in ``layers``.
        image: Array that the convolutions read.
        convolutions: Convolutions, whose outputs pass through ``image_layer`` and then precede the other inputs.
        image_layer: Linear layer with ReLU after the convolutions.
        memory: Recurrent layer between the last layer and the decoder.
        log_std: Log standard deviations of continuous actions.
        mask: Elements of the observation that are 0 where an action is illegal.
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
        """All matrix products of the network."""
        single = [self.labels, self.image_layer, self.decoder]
        if self.memory is not None:
            single += [self.memory.gates, self.memory.recurrent, *self.memory.upper]
        return [
            *(convolution.matrix for convolution in self.convolutions),
            *self.layers,
            *(matrix for matrix in single if matrix is not None),
        ]
