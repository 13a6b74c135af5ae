"""C constants of an agent: weights, and tables for the structs in ``native/puffer_network.h``."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pufferlib.exports.c_arrays import array_text, literal
from pufferlib.exports.trained import TrainedPolicy
from pufferlib.models.network_spec import InputSpec, LayerSpec, MatrixSpec, NetworkSpec, NormSpec, TrunkSpec

__all__ = ["LETTERS", "Constants", "padded", "row_width"]

Array = npt.NDArray[Any]

LANES = 16  # outputs in a panel, equal to PUFFER_LANES
ENCODINGS = {"scaled": "PUFFER_SCALED", "logarithms": "PUFFER_LOGARITHMS", "labels": "PUFFER_LABELS"}
# Type codes of dtypes, as in Python's struct module, equal on all platforms.
LETTERS = {
    "b1": "?",
    "i1": "b",
    "u1": "B",
    "i2": "h",
    "u2": "H",
    "i4": "i",
    "u4": "I",
    "i8": "q",
    "u8": "Q",
    "f2": "e",
    "f4": "f",
    "f8": "d",
}
NO_MATRIX, NO_INPUT = "{0, 0, NULL, NULL}", "{PUFFER_SCALED, 'f', 0, 0, 0, 0, 0}"
NO_LAYER = f"{{{NO_MATRIX}, PUFFER_RELU, NULL, NULL}}"
TRUNKS = ("", "critic_")  # start of the names of their arrays
NO_CONVOLUTION = f"{{{NO_MATRIX}, NULL, 0, 0, 0, 0, 0, 0}}"


class Constants:
    """Arrays and structs of one agent, in the order that C requires.

    Args:
        name: Prefix of all C names.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines: list[str] = []

    def network(self, spec: NetworkSpec, row_bytes: int) -> None:
        """Add the ``PufferNetwork`` struct."""
        memory = spec.trunks[0].memory
        log_std = None if spec.log_std is None else spec.log_std.detach().numpy()
        parts = [
            (str(row_bytes), "bytes of an observation"),
            (self._structs("PufferInput", "inputs", map(_input, spec.inputs)), "inputs"),
            (str(len(spec.inputs)), "number of inputs"),
            (_input(spec.image), "image"),
            (_braces(map(self._convolution, range(16), spec.convolutions), NO_CONVOLUTION), "convolutions"),
            (str(len(spec.convolutions)), "number of convolutions"),
            (self._matrix("image_layer", spec.image_layer), "layer after the image"),
            (f"{{{', '.join(map(self._trunk, TRUNKS, spec.trunks))}}}", "trunks"),
            (str(len(spec.trunks)), "number of trunks"),
            ("PUFFER_" + ("NO_MEMORY" if memory is None else memory.kind.upper()), "memory"),
            (str(0 if memory is None else 1 + len(memory.upper)), "layers of the memory"),
            ("NULL" if log_std is None else self.array("log_std", log_std), "log std of continuous actions"),
            (str(spec.num_log_stds), "number of log stds"),
            (_input(spec.mask), "mask"),
            (str(row_width(spec)), "width"),
        ]
        self._struct("PufferNetwork", "network", parts)

    def agent(self, trained: TrainedPolicy, space: Any) -> None:
        """Add the ``PufferAgent`` struct, with the processing of observations and actions."""
        distribution: Any = trained.policy.distribution
        count = int(np.prod(distribution.shape, dtype=np.int64))
        sizes = starts = low = high = centers = scales = "NULL"
        if distribution.num_log_stds:
            bounds = (np.broadcast_to(each, distribution.shape) for each in (space.low, space.high))
            low, high = (self.array(key, each) for key, each in zip(("low", "high"), bounds, strict=True))
            if getattr(distribution, "is_rescaled", False):
                centers, scales = self.array("centers", distribution.start), self.array("scales", distribution.scale)
        if distribution.num_logits:
            integers = getattr(distribution, "integers", distribution)
            values, lowest = np.zeros((2, count), np.int32)
            places = np.broadcast_to(getattr(distribution, "is_integer", True), distribution.shape).ravel()
            values[places] = integers.sizes
            lowest[places] = np.broadcast_to(integers.start, integers.shape).ravel()
            sizes, starts = self.array("sizes", values), self.array("starts", lowest)
        fields = list(map(self._field, trained.fields, range(len(trained.fields)))) if trained.limit else []
        parts = [
            (self._structs("PufferField", "fields", fields), "fields of normalized observations"),
            (str(len(fields)), "number of fields"),
            (repr(trained.limit), "limit of normalized values"),
            (str(count), "components of an action"),
            (sizes, "number of values of each, 0 for a real number"),
            (starts, "lowest value of each"),
            (low, "lower bounds of continuous actions"),
            (high, "upper bounds of continuous actions"),
            (centers, "environment actions that correspond to 0"),
            (scales, "changes of environment actions that correspond to 1"),
        ]
        self._struct("PufferAgent", "agent_spec", parts)

    def array(self, key: str, numbers: Array) -> str:
        """Add an array of constants and return its name.

        Arrays of float64, and bounds, which may be infinite, become doubles.
        """
        kinds = {"f4": "float", "f8": "double", "i4": "int32_t"}
        numbers = np.ravel(numbers)
        kind = kinds["f8" if key in ("low", "high") else numbers.dtype.str[1:]]
        self.lines.append(array_text(kind, f"{self._name}_{key}", numbers))
        return f"{self._name}_{key}"

    def _matrix(self, key: str, spec: MatrixSpec | None) -> str:
        """Add a matrix and return its ``PufferMatrix``. Weights are in panels of 16 outputs, with a line per input."""
        if spec is None:
            return NO_MATRIX
        outputs, inputs = len(spec.weight), len(spec.places)
        bias = sum((each.detach().numpy() for each in spec.biases), np.zeros(outputs, np.float32))
        bias = np.pad(bias, (0, padded(outputs) - outputs)).astype(np.float32)
        packed = "NULL"
        if inputs:
            extent = (outputs, int(spec.places.max()) + 1)
            weights = torch.as_strided(spec.weight.detach(), extent, (spec.weight.stride(0), 1)).numpy()
            weights = np.pad(weights[:, spec.places], ((0, padded(outputs) - outputs), (0, 0)))
            packed = self.array(f"{key}_weights", weights.reshape(-1, LANES, inputs).transpose(0, 2, 1))
        return f"{{{inputs}, {outputs}, {packed}, {self.array(f'{key}_bias', bias)}}}"

    def _trunk(self, key: str, spec: TrunkSpec) -> str:
        """Add the weights of a trunk and return its ``PufferTrunk``."""
        memory = spec.memory
        gates = [] if memory is None else [memory.gates, *memory.upper]
        parts = [
            self._matrix(f"{key}labels", spec.labels),
            _braces((self._layer(f"{key}layer{i}", each) for i, each in enumerate(spec.layers)), NO_LAYER),
            str(len(spec.layers)),
            _braces((self._matrix(f"{key}gates{i}", each) for i, each in enumerate(gates)), NO_MATRIX),
            self._matrix(f"{key}recurrent", memory.recurrent if memory else None),
            self._matrix(f"{key}decoder", spec.decoder),
        ]
        return f"{{{', '.join(parts)}}}"

    def _layer(self, key: str, spec: LayerSpec) -> str:
        scale, shift = ("NULL", "NULL") if spec.norm is None else self._norm(key, spec.norm)
        return f"{{{self._matrix(key, spec.matrix)}, PUFFER_{spec.activation.upper()}, {scale}, {shift}}}"

    def _norm(self, key: str, spec: NormSpec) -> tuple[str, str]:
        size = len(spec.weight)
        scale, shift = (np.pad(each.detach().numpy(), (0, padded(size) - size)) for each in spec)
        return self.array(f"{key}_scale", scale), self.array(f"{key}_shift", shift)

    def _convolution(self, index: int, spec: Any) -> str:
        numbers = (len(spec.offsets), spec.length, spec.step, spec.line_step, spec.out_height, spec.out_width)
        offsets = self.array(f"convolution{index}_offsets", spec.offsets)
        return f"{{{self._matrix(f'convolution{index}', spec.matrix)}, {offsets}, {', '.join(map(str, numbers))}}}"

    def _field(self, field: Any, index: int) -> str:
        means = scales = "NULL"
        if field.means is not None:
            means, scales = self.array(f"means{index}", field.means), self.array(f"scales{index}", field.scales)
        numbers = (field.dtype.itemsize, field.size, field.offset, field.row_offset)
        return f"{{'{LETTERS[field.dtype.str[1:]]}', {', '.join(map(str, numbers))}, {means}, {scales}}}"

    def _structs(self, kind: str, key: str, structs: Iterable[str]) -> str:
        """Add an array of structs and return its name, or "NULL" if there are no structs."""
        lines = [f"    {each}," for each in structs]
        if not lines:
            return "NULL"
        self.lines += [f"static const {kind} {self._name}_{key}[] = {{", *lines, "};"]
        return f"{self._name}_{key}"

    def _struct(self, kind: str, key: str, parts: Sequence[tuple[str, str]]) -> None:
        lines = [f"    {value}, /* {about} */" for value, about in parts]
        self.lines += [f"static const {kind} {self._name}_{key} = {{", *lines, "};"]


def padded(floats: int) -> int:
    """Round up to whole panels."""
    return -(-floats // LANES) * LANES


def row_width(spec: NetworkSpec) -> int:
    """Return the number of floats in a buffer row between layers, as computed by ``puffer_network_init``."""
    image = 0 if spec.image_layer is None else len(spec.image_layer.weight)
    width = image + sum(each.size for each in spec.inputs if each.encoding != "labels")
    for trunk in spec.trunks:
        gates = 0 if trunk.memory is None else len(trunk.memory.gates.weight)
        width = max(width, gates, len(trunk.decoder.weight), *(len(each.matrix.weight) for each in trunk.layers))
    return padded(width)


def _input(spec: InputSpec | None) -> str:
    if spec is None:
        return NO_INPUT
    numbers = (spec.offset, spec.size, literal(np.float32(spec.scale), "float"), spec.low, spec.values)
    return f"{{{ENCODINGS[spec.encoding]}, '{spec.type}', {', '.join(map(str, numbers))}}}"


def _braces(texts: Iterable[str], none: str) -> str:
    """Return an array initializer, with ``none`` as its only element if there are no others."""
    return f"{{{', '.join(texts) or none}}}"
