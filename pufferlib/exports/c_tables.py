"""C constants of an agent: weights, and tables for the structs in ``native/puffer_network.h``."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pufferlib.exports.trained import TrainedPolicy
from pufferlib.models.network_spec import InputSpec, MatrixSpec, NetworkSpec

__all__ = ["LETTERS", "Constants", "padded", "row_width"]

Array = npt.NDArray[Any]

LANES = 16  # outputs in a panel, equal to PUFFER_LANES
PER_LINE = 16
ENCODINGS = {"scaled": "PUFFER_SCALED", "logarithms": "PUFFER_LOGARITHMS", "labels": "PUFFER_LABELS"}
# Type codes of dtypes, as in Python's struct module, equal on all platforms.
LETTERS = {
    **{"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"},
    **{"f2": "e", "f4": "f", "f8": "d"},
}
NO_MATRIX, NO_INPUT = "{0, 0, NULL, NULL}", "{PUFFER_SCALED, 'f', 0, 0, 0, 0, 0}"
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
        memory = spec.memory
        gates = [] if memory is None else [memory.gates, *memory.upper]
        log_std = None if spec.log_std is None else spec.log_std.detach().numpy()
        parts = [
            (str(row_bytes), "bytes of an observation"),
            (self._structs("PufferInput", "inputs", map(_input, spec.inputs)), "inputs"),
            (str(len(spec.inputs)), "number of inputs"),
            (_input(spec.image), "image"),
            (_braces(map(self._convolution, range(16), spec.convolutions), NO_CONVOLUTION), "convolutions"),
            (str(len(spec.convolutions)), "number of convolutions"),
            (self._matrix("image_layer", spec.image_layer), "layer after the image"),
            (self._matrix("labels", spec.labels), "columns of the first layer, selected by labels"),
            (_braces((self._matrix(f"layer{i}", each) for i, each in enumerate(spec.layers)), NO_MATRIX), "layers"),
            (str(len(spec.layers)), "number of layers"),
            ("PUFFER_" + ("NO_MEMORY" if memory is None else memory.kind.upper()), "memory"),
            (str(len(gates)), "layers of the memory"),
            (_braces((self._matrix(f"gates{i}", each) for i, each in enumerate(gates)), NO_MATRIX), "gates"),
            (self._matrix("recurrent", memory.recurrent if memory else None), "recurrent gates"),
            (self._matrix("decoder", spec.decoder), "decoder"),
            ("NULL" if log_std is None else self.array("log_std", log_std), "log std of continuous actions"),
            (_input(spec.mask), "mask"),
            (str(row_width(spec)), "width"),
        ]
        self._struct("PufferNetwork", "network", parts)

    def agent(self, trained: TrainedPolicy, spec: NetworkSpec, space: Any) -> None:
        """Add the ``PufferAgent`` struct, with the processing of observations and actions."""
        distribution: Any = trained.policy.distribution
        count = int(np.prod(distribution.shape, dtype=np.int64))
        sizes = starts = low = high = "NULL"
        if trained.policy.is_continuous:
            bounds = (np.broadcast_to(each, distribution.shape) for each in (space.low, space.high))
            low, high = (self.array(key, each) for key, each in zip(("low", "high"), bounds, strict=True))
        else:
            sizes = self.array("sizes", np.array(distribution.sizes, np.int32))
            starts = self.array("starts", np.broadcast_to(distribution.start, distribution.shape).astype(np.int32))
        fields = list(map(self._field, trained.fields, range(len(trained.fields)))) if trained.limit else []
        parts = [
            (self._structs("PufferField", "fields", fields), "fields of normalized observations"),
            (str(len(fields)), "number of fields"),
            (repr(trained.limit), "limit of normalized values"),
            (str(0 if spec.memory is None else len(spec.memory.names)), "arrays of memory"),
            (str(count), "components of an action"),
            (sizes, "number of values of each"),
            (starts, "lowest value of each"),
            (low, "lower bounds of continuous actions"),
            (high, "upper bounds of continuous actions"),
        ]
        self._struct("PufferAgent", "agent_spec", parts)

    def array(self, key: str, numbers: Array) -> str:
        """Add an array of constants and return its name.

        Arrays of float64, and bounds, which may be infinite, become doubles.
        """
        kinds = {"f4": "float", "f8": "double", "i4": "int32_t"}
        numbers = np.ravel(numbers)
        kind = kinds["f8" if key in ("low", "high") else numbers.dtype.str[1:]]
        texts = [_number(number, kind) for number in numbers]
        lines = [", ".join(texts[i : i + PER_LINE]) for i in range(0, len(texts), PER_LINE)]
        self.lines += [
            f"static const {kind} {self._name}_{key}[{len(texts)}] PUFFER_ALIGNED = {{",
            *(f"    {line}," for line in lines),
            "};",
        ]
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
    gates = 0 if spec.memory is None else len(spec.memory.gates.weight)
    return padded(max(width, gates, len(spec.decoder.weight), *(len(each.weight) for each in spec.layers)))


def _input(spec: InputSpec | None) -> str:
    if spec is None:
        return NO_INPUT
    numbers = (spec.offset, spec.size, _number(np.float32(spec.scale), "float"), spec.low, spec.values)
    return f"{{{ENCODINGS[spec.encoding]}, '{spec.type}', {', '.join(map(str, numbers))}}}"


def _braces(texts: Iterable[str], none: str) -> str:
    """Return an array initializer, with ``none`` as its only element if there are no others."""
    return f"{{{', '.join(texts) or none}}}"


def _number(number: Any, kind: str) -> str:
    """Return the shortest literal that is read back as this number."""
    if kind == "int32_t":
        return str(int(number))
    if np.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return f"{number!s}f" if kind == "float" else str(float(number))
