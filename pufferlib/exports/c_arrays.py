"""Arrays and loops of generated C code.

An array is a buffer and the place of each element in it. NumPy computes the places, so a view costs nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["C_TYPES", "Arrays", "Buffer", "Places", "Value", "array_text", "literal", "pool"]

Places = npt.NDArray[np.int64]

PER_LINE = 16  # numbers of a constant array

C_TYPES = {
    torch.bool: "uint8_t",
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.float32: "float",
    torch.float64: "double",
}


@dataclass(frozen=True)
class Buffer:
    """Array in C: its name, the type of its elements and their number."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True, eq=False)
class Value:
    """Array whose elements are in a buffer, at these places, which have the shape of the array."""

    buffer: Buffer
    at: Places


@dataclass
class Statement:
    """A loop: its text, the buffer that it writes, and the buffers that it reads."""

    text: str
    to: Buffer
    read: list[Buffer]


@dataclass
class Arrays:
    """Constants, buffers and loops of a function in C.

    Attributes:
        name: Prefix of the C names.
    """

    name: str
    constants: list[str] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    known: dict[Any, Buffer] = field(default_factory=dict)  # constants, by their contents
    buffers: list[Buffer] = field(default_factory=list)

    def new(self, dtype: torch.dtype, shape: Iterable[int]) -> Value:
        """Return an array for the result of an operation."""
        shape = tuple(shape)
        size = int(np.prod(shape, dtype=np.int64))
        buffer = Buffer(f"v{len(self.buffers)}", C_TYPES[dtype], size)
        self.buffers.append(buffer)
        return Value(buffer, np.arange(size).reshape(shape))

    def table(self, kind: str, numbers: npt.NDArray[Any]) -> Buffer:
        """Return a constant array with these numbers."""
        key = (kind, numbers.tobytes())
        if key not in self.known:
            buffer = Buffer(f"{self.name}_table{len(self.known)}", kind, numbers.size)
            self.constants.append(array_text(kind, buffer.name, numbers))
            self.known[key] = buffer
        return self.known[key]

    def view(self, value: Any) -> Value:
        """Return a value as an array in C. A constant tensor becomes a table."""
        if isinstance(value, Value):
            return value
        assert isinstance(value, Tensor)
        numbers = value.contiguous().numpy()
        buffer = self.table(C_TYPES[value.dtype], numbers)
        return Value(buffer, np.arange(numbers.size).reshape(numbers.shape))

    def element(self, value: Any, shape: tuple[int, ...], kind: str = "") -> str:
        """Return the expression for element ``i`` of a tensor or number that is broadcast to ``shape``."""
        if not isinstance(value, Value | Tensor):
            return literal(value, kind or ("float" if isinstance(value, float) else "int32_t"))
        if isinstance(value, Tensor) and value.numel() and bool((value == value.flatten()[0]).all()):
            return literal(value.flatten()[0].item(), kind or C_TYPES[value.dtype])
        array = self.view(value)
        found = f"{array.buffer.name}[{self.place(np.broadcast_to(array.at, shape))}]"
        return f"({kind}){found}" if kind and kind != array.buffer.kind else found

    def place(self, at: Places) -> str:
        """Return the expression for the ``i``-th of these places."""
        flat = at.ravel()
        if flat.size < 2 or (flat == flat[0]).all():
            return str(flat[0]) if flat.size else "0"
        step = int(flat[1] - flat[0])
        if (np.diff(flat) == step).all():
            start = int(flat[0])
            product = "i" if step == 1 else f"{step} * i"
            return product if start == 0 else f"{start} + {product}"
        return f"{self.table('int32_t', flat.astype(np.int32)).name}[i]"

    def loop(self, to: Buffer, count: int, body: str, *read: Any) -> None:
        """Add a loop over ``count`` elements whose ``body`` writes to a buffer."""
        buffers = [each.buffer for each in read if isinstance(each, Value)]
        self.statements.append(Statement(f"    for (int i = 0; i < {count}; i++) {body}", to, buffers))

    def copy(self, to: Buffer, value: Value) -> None:
        """Copy an array to the start of a buffer."""
        self.loop(to, value.at.size, f"({to.name})[i] = {self.element(value, value.at.shape, to.kind)};", value)

    def dense(self, value: Value | Tensor) -> Value:
        """Return an array whose elements are in order from the start of a buffer."""
        if isinstance(value, Tensor):
            return self.view(value)
        if value.buffer.size == value.at.size and (value.at.ravel() == np.arange(value.at.size)).all():
            return value
        dtype = next(dtype for dtype, kind in C_TYPES.items() if kind == value.buffer.kind)
        made = self.new(dtype, value.at.shape)
        self.copy(made.buffer, value)
        return made

    def places(self) -> tuple[list[str], list[tuple[str, int]]]:
        """Place the buffers in one array for each type. A place is used again after the last use of a buffer."""
        last = {}
        for index, statement in enumerate(self.statements):
            for buffer in (statement.to, *statement.read):
                last[buffer] = index
        declared: list[str] = []
        free: dict[str, list[tuple[int, int]]] = {}  # places and sizes by type
        ends: dict[str, int] = {}
        placed: dict[Buffer, tuple[int, int]] = {}
        ours = set(self.buffers)
        for index, statement in enumerate(self.statements):
            buffer = statement.to
            if buffer in ours and buffer not in placed:
                size = max(16, -(-buffer.size // 16) * 16)
                slots = free.setdefault(buffer.kind, [])
                fitting = next((slot for slot in sorted(slots, key=lambda slot: slot[1]) if slot[1] >= size), None)
                if fitting:
                    slots.remove(fitting)
                else:
                    fitting = (ends.get(buffer.kind, 0), size)
                    ends[buffer.kind] = fitting[0] + size
                placed[buffer] = fitting
                declared.append(f"    {buffer.kind} *const {buffer.name} = agent->{pool(buffer.kind)} + {fitting[0]};")
            for each in {statement.to, *statement.read} & placed.keys():
                if last[each] == index:
                    free.setdefault(each.kind, []).append(placed[each])
        return declared, sorted(ends.items())

    def fill(self, made: Value, where: Places, value: Any) -> None:
        """Write a value to these places of a buffer."""
        target = f"{made.buffer.name}[{self.place(where)}]"
        body = f"{target} = {self.element(value, where.shape, made.buffer.kind)};"
        self.loop(made.buffer, where.size, body, value)

    def inner(self, rows: Places) -> str:
        """Return the expression for place ``j`` of row ``i``."""
        steps = np.diff(rows, axis=1)
        if rows.shape[1] == 1 or (steps == steps.flat[0]).all():
            step = int(steps.flat[0]) if steps.size else 0
            return f"{self.place(rows[:, 0])} + {step} * j"
        return f"{self.table('int32_t', rows.astype(np.int32)).name}[i * {rows.shape[1]} + j]"


def pool(kind: str) -> str:
    """Return the name of the field with intermediate results of a type."""
    return f"work_{kind.removesuffix('_t')}"


def array_text(kind: str, name: str, numbers: npt.NDArray[Any]) -> str:
    """Return the definition of a constant array."""
    texts = [literal(number, kind) for number in numbers.ravel()]
    lines = [f"    {', '.join(texts[i : i + PER_LINE])}," for i in range(0, len(texts), PER_LINE)]
    size = max(1, len(texts))
    return "\n".join([f"static const {kind} {name}[{size}] PUFFER_ALIGNED = {{", *lines, "};"])


def literal(number: Any, kind: str) -> str:
    """Return the shortest literal of a C type that is read back as this number."""
    if kind not in ("float", "double"):
        return str(int(number))
    if not np.isfinite(number):
        return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
    return f"{np.float32(number)!s}f" if kind == "float" else repr(float(number))
