"""C code of a traced policy, for policies that the engine does not support.

The graph of ``torch.export`` has constant shapes, so every operation becomes a loop over arrays of constant sizes.
Views cost nothing, as ``c_arrays`` explains.
"""

import copy
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pufferlib.exports.c_arrays import C_TYPES, Arrays, Buffer, Places, Value, pool
from pufferlib.exports.torch_formats import quietly
from pufferlib.exports.trained import TrainedPolicy
from pufferlib.models.engine import UnknownLayerError
from pufferlib.models.linear import Linear

__all__ = ["GraphCode", "graph_code"]

# Expressions of operations, element by element. The operands of arithmetic have the type of the result.
ARITHMETIC = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "minimum": "{0} < {1} ? {0} : {1}",
    "maximum": "{0} > {1} ? {0} : {1}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "__lshift__": "{0} << {1}",
    "__rshift__": "{0} >> {1}",
    "neg": "-{0}",
    "abs": "{0} < 0 ? -{0} : {0}",
    "relu": "{0} > 0 ? {0} : 0",
    "exp": "expf({0})",
    "log": "logf({0})",
    "sqrt": "sqrtf({0})",
    "tanh": "tanhf({0})",
    "sigmoid": "1 / (1 + expf(-{0}))",
    "_to_copy": "{0}",
    "clone": "{0}",
}
COMPARISONS = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "logical_not": "!{0}",
    "logical_and": "{0} && {1}",
    "logical_or": "{0} || {1}",
}
REDUCTIONS = {"sum": "{0} + {1}", "mean": "{0} + {1}", "amax": "{0} > {1} ? {0} : {1}", "amin": "{0} < {1} ? {0} : {1}"}
NO_EFFECT = {"_assert_tensor_metadata"}
CREATED = {"arange", "full", "full_like", "ones_like", "scalar_tensor", "zeros_like"}


@dataclass(frozen=True)
class GraphCode:
    """C code of one step of a policy.

    Attributes:
        constants: Definitions of the weights and tables.
        statements: Statements that compute ``agent->params`` and ``agent->value`` from ``seen``, and update the memory.
        fields: Fields of the agent's struct for the memory and for intermediate results.
        memory: Names of the fields with the memory.
        num_params: Number of parameters of the action distribution.
    """

    constants: list[str]
    statements: list[str]
    fields: list[str]
    memory: list[str]
    num_params: int


class _Step(nn.Module):
    """One step of a policy as a function of its observation and memory."""

    def __init__(self, trained: TrainedPolicy) -> None:
        super().__init__()
        self.policy = copy.deepcopy(trained.policy)
        for module in self.policy.modules():
            if type(module) is Linear:
                module.__class__ = nn.Linear  # type: ignore[assignment]  # since Linear depends on the number of rows

    def forward(self, observation: Tensor, memory: list[Tensor]) -> tuple[Tensor, ...]:
        names = list(self.policy.initial_state(1))
        state = {name: part.clone() for name, part in zip(names, memory, strict=True)}
        params, value = self.policy.forward_eval(observation, state)
        return params, value, *(state[name] for name in names)


@torch.inference_mode(False)
@torch.no_grad()
def graph_code(trained: TrainedPolicy) -> GraphCode:
    """Trace a policy and return its C code.

    Raises:
        UnknownLayerError: The policy cannot be traced, or has an operation that is not supported.
    """
    if trained.fields[0].path:
        raise UnknownLayerError("observations of several arrays")
    policy = trained.policy
    observation = torch.zeros(1, *policy.observation_shape, dtype=policy.observation_dtype)
    memory = list(policy.initial_state(1).values())
    try:
        with quietly():
            program = torch.export.export(_Step(trained).eval(), (observation, memory), strict=False)
            program = program.run_decompositions()
    except Exception as error:  # the user's policy may raise anything
        first = next(iter(str(error).strip().splitlines()), "")
        raise UnknownLayerError(f"the class {type(policy).__name__} cannot be traced: {first}") from error
    return _Writer(trained.name).write(program, [observation, *memory])


class _Writer(Arrays):
    """Translation of a graph."""

    def write(self, program: Any, inputs: list[Tensor]) -> GraphCode:
        """Return the code of a program with these example inputs."""
        signature = program.graph_signature
        stored = {**program.state_dict, **program.constants}
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        names |= signature.inputs_to_lifted_tensor_constants
        given = [Buffer("seen", C_TYPES[inputs[0].dtype], inputs[0].numel())]
        given += [Buffer(f"agent->memory{i}", C_TYPES[each.dtype], each.numel()) for i, each in enumerate(inputs[1:])]
        values: dict[Any, Any] = {}
        unread = iter(zip(given, inputs, strict=True))
        for node in program.graph.nodes:
            if node.op == "placeholder" and node.name in names:
                values[node] = stored[names[node.name]].detach()
            elif node.op == "placeholder":
                buffer, example = next(unread)
                values[node] = Value(buffer, np.arange(buffer.size).reshape(example.shape))
            elif node.op == "call_function":
                args = torch.fx.map_arg((node.args, dict(node.kwargs)), lambda each: values[each])
                values[node] = self.result(node, *args)
            elif node.op == "output":
                results = [values[each] for each in node.args[0]]
        params, value, *memory = results
        sizes = [self.view(each).at.size for each in results]
        targets = [Buffer("agent->params", "float", sizes[0]), Buffer("&agent->value", "float", 1)]
        for target, result in zip([*targets, *given[1:]], [params, value, *memory], strict=True):
            self.copy(target, self.view(result))
        fields = [f"    {each.kind} {each.name.removeprefix('agent->')}[{each.size}];" for each in given[1:]]
        declared, sizes_of = self.places()
        fields += [f"    {kind} {pool(kind)}[{size}]; /* buffer between the operations */" for kind, size in sizes_of]
        statements = [*declared, *(each.text for each in self.statements)]
        return GraphCode(self.constants, statements, fields, [each.name for each in given[1:]], sizes[0])

    def result(self, node: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return the result of a node for these arguments, as a ``Value``, a constant, or a list of them."""
        if node.target is operator.getitem:
            return args[0][args[1]]
        packet = str(node.target).removeprefix("aten.").partition(".")[0]
        if packet in NO_EFFECT:
            return None
        if packet in CREATED or not _has_value([args, kwargs]):
            return self.constant(node, packet, args, kwargs)
        if packet in VIEWS and not isinstance(args[0], Tensor):
            return VIEWS[packet](args[0], *args[1:])
        out = node.meta["val"]
        if packet == "div" and kwargs.get("rounding_mode") == "floor" and not out.dtype.is_floating_point:
            return self.elementwise("{0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0))", args, out)
        if kwargs.get("rounding_mode") or kwargs.get("alpha", 1) != 1:
            raise UnknownLayerError(f"the operation {node.target} with {kwargs}")
        if packet in ARITHMETIC:
            return self.elementwise(ARITHMETIC[packet], args, out)
        if packet in COMPARISONS:
            return self.elementwise(COMPARISONS[packet], args, out, compares=True)
        if packet in REDUCTIONS and isinstance(out, Tensor):
            return self.reduced(packet, *args, out=out, **kwargs)
        method: Callable[..., Value] | None = getattr(self, f"op_{packet}", None)
        if method is None:
            raise UnknownLayerError(f"the operation {node.target}")
        return method(out, *args, **kwargs)

    def constant(self, node: Any, packet: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return the result of an operation on constants."""
        if packet.endswith("_like"):
            out = node.meta["val"]
            fill = args[1] if packet == "full_like" else packet == "ones_like"
            return torch.full(out.shape, fill, dtype=out.dtype)
        return node.target(*args, **kwargs)

    def elementwise(self, text: str, operands: Any, out: Tensor, compares: bool = False) -> Value:
        made, shape = self.new(out.dtype, out.shape), tuple(out.shape)
        kind = made.buffer.kind
        if out.dtype is torch.bool or (not out.dtype.is_floating_point and out.dtype is not torch.int64):
            wanted = ""  # C computes in int, and the assignment wraps
        else:
            wanted = kind
        operands = [each for each in operands if not isinstance(each, torch.dtype | torch.memory_format)]
        parts = [self.element(each, shape, "" if compares else wanted) for each in operands]
        expression = text.format(*(f"({part})" for part in parts))
        if out.dtype is torch.bool and not compares:
            expression = f"({expression}) != 0"
        self.loop(made.buffer, made.at.size, f"{made.buffer.name}[i] = ({kind})({expression});", *operands)
        return made

    def op_bitwise_not(self, out: Tensor, value: Value) -> Value:
        return self.elementwise("!{0}" if out.dtype is torch.bool else "~{0}", [value], out)

    def op_where(self, out: Tensor, condition: Any, yes: Any, no: Any) -> Value:
        return self.elementwise("{0} ? {1} : {2}", [condition, yes, no], out, compares=True)

    def op_clamp(self, out: Tensor, value: Value, low: Any = None, high: Any = None) -> Value:
        for limit, text in ((low, ARITHMETIC["maximum"]), (high, ARITHMETIC["minimum"])):
            value = value if limit is None else self.elementwise(text, [value, limit], out)
        return value

    def op_copy(self, out: Tensor, into: Any, value: Any) -> Value:
        return self.elementwise("{0}", [value], out)

    def op_cat(self, out: Tensor, parts: list[Any], dim: int = 0) -> Value:
        made, start = self.new(out.dtype, out.shape), 0
        for part in map(self.view, parts):
            if part.at.size:
                where = made.at.take(range(start, start + part.at.shape[dim]), dim)
                self.fill(made, where, part)
                start += part.at.shape[dim]
        return made

    def op_slice_scatter(
        self, out: Tensor, into: Any, value: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
    ) -> Value:
        made = self.new(out.dtype, out.shape)
        self.copy(made.buffer, self.view(into))
        self.fill(made, _slice(made, dim, start, end, step).at, value)
        return made

    def op_select_scatter(self, out: Tensor, into: Any, value: Any, dim: int, index: int) -> Value:
        made = self.new(out.dtype, out.shape)
        self.copy(made.buffer, self.view(into))
        self.fill(made, np.asarray(made.at.take(index, dim)), value)
        return made

    def op_constant_pad_nd(self, out: Tensor, value: Value, pad: list[int], number: Any = 0) -> Value:
        made = self.new(out.dtype, out.shape)
        self.fill(made, made.at, number)
        before = [0] * (value.at.ndim - len(pad) // 2) + pad[-2::-2]  # torch lists the last dimension first
        inner = tuple(slice(low, low + size) for low, size in zip(before, value.at.shape, strict=True))
        self.fill(made, made.at[inner], value)
        return made

    def op_index(self, out: Tensor, value: Any, indices: list[Any]) -> Value:
        if not any(isinstance(each, Value) for each in indices):
            chosen = tuple(slice(None) if each is None else each.numpy() for each in indices)
            return Value(value.buffer, value.at[chosen])
        dim, *others = [place for place, each in enumerate(indices) if each is not None]
        if others or indices[dim].buffer.kind == C_TYPES[torch.bool]:
            raise UnknownLayerError("an index of several arrays, or a mask as an index")
        index, source = indices[dim], self.dense(value)
        shape = source.at.shape
        # The place of an element is the one for index 0, and the index times the stride of its dimension.
        rest = source.at.take(0, dim).reshape(*shape[:dim], *[1] * index.at.ndim, *shape[dim + 1 :])
        spread = index.at.reshape(*[1] * dim, *index.at.shape, *[1] * (len(shape) - dim - 1))
        return self.gathered(out, source, rest, Value(index.buffer, spread), dim)

    def op_gather(self, out: Tensor, value: Any, dim: int, index: Any) -> Value:
        source, chosen = self.dense(value), self.view(index)
        dim %= source.at.ndim
        rest = source.at[tuple(slice(0, size) for size in chosen.at.shape)].take([0], dim)
        return self.gathered(out, source, rest, chosen, dim)

    def gathered(self, out: Tensor, source: Value, rest: Places, index: Value, dim: int) -> Value:
        made, shape = self.new(out.dtype, out.shape), tuple(out.shape)
        stride = int(np.prod(source.at.shape[dim + 1 :], dtype=np.int64))
        start = self.place(np.broadcast_to(rest, shape))
        place = f"{start} + {stride} * (int)({self.element(index, shape)})"
        self.loop(made.buffer, made.at.size, f"{made.buffer.name}[i] = {source.buffer.name}[{place}];", source, index)
        return made

    def reduced(self, packet: str, value: Any, dims: Any = None, *_: Any, out: Tensor, **__: Any) -> Value:
        array = self.view(value)
        dims = range(array.at.ndim) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
        rows, count = _rows(array.at, dims)
        made = self.new(out.dtype, out.shape)
        kind, name = made.buffer.kind, made.buffer.name
        first, rest = self.place(rows[:, 0]), self.inner(rows)
        step = REDUCTIONS[packet].format("sum", "x")
        body = (
            f"{{\n        {kind} sum = ({kind}){array.buffer.name}[{first}];\n"
            f"        for (int j = 1; j < {count}; j++) {{\n"
            f"            const {kind} x = ({kind}){array.buffer.name}[{rest}];\n            sum = ({kind})({step});\n"
            f"        }}\n        {name}[i] = {'sum / ' + str(count) if packet == 'mean' else 'sum'};\n    }}"
        )
        self.loop(made.buffer, made.at.size, body, array)
        return made

    def op_argmax(self, out: Tensor, value: Any, dim: int | None = None, keepdim: bool = False) -> Value:
        array = self.view(value)
        rows, count = _rows(array.at, range(array.at.ndim) if dim is None else [dim])
        made, source = self.new(out.dtype, out.shape), array.buffer.name
        place = self.inner(rows)
        body = (
            f"{{\n        int best = 0;\n        {array.buffer.kind} most = {source}[{self.place(rows[:, 0])}];\n"
            f"        for (int j = 1; j < {count}; j++) {{\n            if ({source}[{place}] > most) {{\n"
            f"                most = {source}[{place}];\n                best = j;\n            }}\n        }}\n"
            f"        {made.buffer.name}[i] = best;\n    }}"
        )
        self.loop(made.buffer, made.at.size, body, array)
        return made

    def op_mm(self, out: Tensor, left: Any, right: Any) -> Value:
        return self.product(out, left, right, None)

    op_bmm = op_mm

    def op_addmm(self, out: Tensor, bias: Any, left: Any, right: Any) -> Value:
        return self.product(out, left, right, bias)

    def product(self, out: Tensor, left: Any, right: Any, bias: Any) -> Value:
        """Add the loops of a matrix product, whose inner loop runs over the columns of the result."""
        a, b = self.dense(left), self.dense(right)
        made = self.new(out.dtype, out.shape)
        rows, columns, depth = int(np.prod(out.shape[:-1])), out.shape[-1], a.at.shape[-1]
        height = out.shape[-2]
        kind, y = made.buffer.kind, made.buffer.name
        self.fill(made, made.at, 0 if bias is None else bias)
        shift = f" + i / {height} * {depth * columns}" if out.ndim == 3 else ""
        body = (
            f"{{\n        for (int k = 0; k < {depth}; k++) {{\n"
            f"            const {kind} x = {a.buffer.name}[i * {depth} + k];\n"
            f"            const {kind} *w = {b.buffer.name}{shift} + k * {columns};\n"
            f"            for (int j = 0; j < {columns}; j++) {y}[i * {columns} + j] += x * w[j];\n        }}\n    }}"
        )
        self.loop(made.buffer, rows, body, a, b, made)
        return made


def _rows(at: Places, dims: Iterable[int]) -> tuple[Places, int]:
    """Return the places of the elements of each result of a reduction, ``(results, elements)``."""
    dims = sorted(dim % at.ndim for dim in dims)
    moved = np.moveaxis(at, dims, range(at.ndim - len(dims), at.ndim))
    count = int(np.prod([at.shape[dim] for dim in dims], dtype=np.int64))
    return moved.reshape(-1, count), count


def _has_value(arguments: Any) -> bool:
    """Return True if there is a ``Value`` in nested lists, tuples and dicts."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    return any(map(_has_value, arguments)) if isinstance(arguments, list | tuple) else isinstance(arguments, Value)


def _slice(value: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    place = [slice(None)] * value.at.ndim
    place[dim] = slice(start, end, step)
    return Value(value.buffer, value.at[tuple(place)])


def _split(value: Value, sizes: list[int], dim: int = 0) -> list[Value]:
    parts = np.split(value.at, np.cumsum(sizes)[:-1], dim)
    return [Value(value.buffer, part) for part in parts]


def _expand(value: Value, sizes: list[int], **_: Any) -> Value:
    shape = list(value.at.shape)
    shape = [1] * (len(sizes) - len(shape)) + shape
    wanted = [old if new == -1 else new for old, new in zip(shape, sizes, strict=True)]
    return Value(value.buffer, np.broadcast_to(value.at, wanted))


# Operations that only choose elements.
VIEWS: dict[str, Callable[..., Any]] = {
    "slice": _slice,
    "split_with_sizes": _split,
    "expand": _expand,
    "view": lambda value, shape: Value(value.buffer, value.at.reshape(shape)),
    "unsqueeze": lambda value, dim: Value(value.buffer, np.expand_dims(value.at, dim)),
    "squeeze": lambda value, dims: Value(value.buffer, value.at.squeeze(tuple(np.atleast_1d(dims).tolist()))),
    "select": lambda value, dim, index: Value(value.buffer, value.at.take(index, dim)),
    "permute": lambda value, dims: Value(value.buffer, value.at.transpose(dims)),
    "alias": lambda value: value,
}
