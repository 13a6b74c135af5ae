"""Parts of a network, in the words that the engine in C and its exports have for them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

__all__ = ["ConvolutionSpec", "InputSpec", "MatrixSpec", "MemorySpec", "NetworkSpec"]

Places = npt.NDArray[np.int32]


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
        upper: ``gates`` of further layers, each of which reads the outputs of the one before.
    """

    kind: str
    gates: MatrixSpec
    recurrent: MatrixSpec | None
    names: tuple[str, ...]
    upper: tuple[MatrixSpec, ...] = ()


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
            single += [self.memory.gates, self.memory.recurrent, *self.memory.upper]
        return [
            *(convolution.matrix for convolution in self.convolutions),
            *self.layers,
            *(matrix for matrix in single if matrix is not None),
        ]
