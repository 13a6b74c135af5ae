"""Policy as a traced program without Python, for export with ``torch.export`` and to ONNX."""

import copy
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export.passes import move_to_device_pass

from pufferlib import __version__
from pufferlib.errors import APIUsageError, BindingMissing, PufferError
from pufferlib.exports.recording import Outputs, Recording
from pufferlib.exports.trained import Field, TrainedPolicy, in_env_units
from pufferlib.machine.commands import way_to_install
from pufferlib.models.linear import Linear
from pufferlib.pytorch import GIVEN_LEAVES, TORCH_DTYPES

__all__ = ["Graph", "facts", "play", "play_onnx", "play_program", "quietly", "traced", "write_onnx", "write_program"]


MEMORY, NEXT = "memory_", "next_memory_"


class Graph(nn.Module):
    """One step of a trained policy.

    Args:
        trained: Policy, which is copied.

    Attributes:
        input_names: Names of the arguments: the arrays of the observation, then ``memory_...``.
        output_names: Names of the results: "action", "logits" or "mean" and "std", or all three for mixed actions,
            "value", then ``next_memory_...``.
    """

    def __init__(self, trained: TrainedPolicy) -> None:
        super().__init__()
        self.policy = copy.deepcopy(trained.policy)
        for module in self.policy.modules():
            if type(module) is Linear:
                module.__class__ = nn.Linear  # type: ignore[assignment]  # since Linear depends on the number of rows
        memories = list(self.policy.initial_state(1))
        self.fields, self._limit = trained.fields, trained.limit
        self._num_logits = self.policy.distribution.num_logits
        self._is_continuous = self.policy.is_continuous
        heads = ["logits"] * (self._num_logits > 0) + ["mean", "std"] * self._is_continuous
        self.input_names = [*(field.name for field in self.fields), *(MEMORY + name for name in memories)]
        self.output_names = ["action", *heads, "value", *(NEXT + name for name in memories)]
        self._memories = memories
        for index, field in enumerate(self.fields):
            for name in ("means", "scales"):
                if (numbers := getattr(field, name)) is not None:
                    self.register_buffer(f"{name}{index}", torch.from_numpy(numbers.reshape(field.shape)))
        self._open_actions(trained.vecenv.single_action_space)

    def _open_actions(self, space: Any) -> None:
        distribution: Any = self.policy.distribution
        reals = getattr(distribution, "reals", distribution)
        if self._is_continuous:
            for name in ("low", "high"):
                bound = np.broadcast_to(getattr(space, name), distribution.shape).astype(np.float32)
                self.register_buffer(name, torch.from_numpy(bound.copy()))
            self._is_rescaled = getattr(distribution, "is_rescaled", False)
            if self._is_rescaled:
                for name in ("start", "scale"):
                    self.register_buffer(name, torch.from_numpy(getattr(reals, name).ravel()))
        if self._num_logits:
            lowest = np.where(getattr(distribution, "is_integer", True), distribution.start, 0)
            lowest = np.broadcast_to(lowest, distribution.shape).astype(np.int64)
            self.register_buffer("lowest", torch.from_numpy(lowest.copy()))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute the results ``output_names`` from ``input_names``. The first dimension of each is the batch."""
        given, memories = inputs[: len(self.fields)], inputs[len(self.fields) :]
        arrays = [self._normalized(index, array) for index, array in enumerate(given)]
        state = {name: memory.clone() for name, memory in zip(self._memories, memories, strict=True)}
        params, value = self.policy.forward_eval(self._row(arrays), state)
        return (*self._actions(params), value, *(state[name] for name in self._memories))

    def _normalized(self, index: int, array: Tensor) -> Tensor:
        if self.fields[index].means is None:
            return array
        means, scales = self.get_buffer(f"means{index}"), self.get_buffer(f"scales{index}")
        return ((array.double() - means) * scales).clamp(-self._limit, self._limit).float()

    def _row(self, arrays: list[Tensor]) -> Tensor:
        """Return the observation in the form of the policy. Several arrays are attached to it as leaves."""
        if not self.fields[0].path:
            return arrays[0]
        dtype = self.policy.observation_dtype
        leaves = [
            (array.dtype, field.shape, field.row_offset // array.dtype.itemsize, field.size)
            for array, field in zip(arrays, self.fields, strict=True)
        ]
        if all(array.dtype == dtype for array in arrays):
            flat = [array.reshape(array.shape[0], field.size) for array, field in zip(arrays, self.fields, strict=True)]
            row = torch.cat(flat, 1)
        else:
            row = arrays[0].new_zeros((arrays[0].shape[0], *self.policy.observation_shape), dtype=dtype)
        setattr(row, GIVEN_LEAVES, dict(zip(leaves, arrays, strict=True)))
        return row

    def _actions(self, params: Tensor) -> tuple[Tensor, ...]:
        if self._is_continuous and self._is_rescaled:
            params = in_env_units(params, self._num_logits, self.get_buffer("start"), self.get_buffer("scale"))
        action = self.policy.distribution.mode(params)
        if self._num_logits:
            action = action + self.get_buffer("lowest")
        if not self._is_continuous:
            return action.to(torch.int32), params
        logits, rest = params[..., : self._num_logits], params[..., self._num_logits :]
        mean, log_std = rest.chunk(2, -1)
        heads = ([logits] if self._num_logits else []) + [mean, log_std.exp()]
        return (action.clamp(self.get_buffer("low"), self.get_buffer("high")), *heads)

    def examples(self, rows: int = 2) -> tuple[Tensor, ...]:
        """Return example arguments with valid shapes and dtypes."""
        observed = [torch.zeros(rows, *field.shape, dtype=TORCH_DTYPES[field.dtype]) for field in self.fields]
        return (*observed, *self.policy.initial_state(rows).values())


@torch.inference_mode(False)
@torch.no_grad()
def traced(graph: Graph) -> Any:
    """Trace a graph to a ``torch.export.ExportedProgram`` with a dynamic number of rows.

    Raises:
        APIUsageError: The policy cannot be traced.
    """
    rows = torch.export.Dim("rows", min=1)
    shapes = {"inputs": tuple({0: rows} for _ in graph.input_names)}
    try:
        with quietly():
            return torch.export.export(graph.eval(), graph.examples(), dynamic_shapes=shapes, strict=False)
    except Exception as error:  # the user's policy may raise anything
        first = next(iter(str(error).strip().splitlines()), "")
        policy = type(getattr(graph.policy, "policy", graph.policy)).__name__
        raise APIUsageError(
            f"export: the policy {policy} cannot be traced ({type(error).__name__}: {first}); use only torch "
            "operations, observations.shape[0] instead of len(observations), and no Python control flow that depends "
            "on tensor values"
        ) from error


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings and log messages of torch's exporters."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def play(step: Any, graph: Graph, recording: Recording) -> Outputs:
    """Run an exported policy on the observations of a recording, and return its outputs.

    Args:
        step: Function from a list of arrays in the order of ``input_names`` to a list in the order of ``output_names``.
        graph: Graph with the names of arguments and results.
        recording: Recording with the observations.
    """
    policy = graph.policy
    state = [memory.numpy() for memory in policy.initial_state(recording.begins.shape[1]).values()]
    kept = []
    for observations, begins in recording:
        for memory in state:
            memory[begins] = 0
        action, *heads, value = (outputs := step([*_arrays(graph.fields, observations), *state]))[
            : len(graph.output_names) - len(state)
        ]
        state = [memory.copy() for memory in outputs[len(outputs) - len(state) :]]
        if policy.is_continuous:
            heads = [*heads[:-1], np.log(heads[-1])]
        kept.append((np.concatenate(heads, -1), value, action))
    return Outputs(*(np.stack(each) for each in zip(*kept, strict=True)))


def _arrays(fields: tuple[Field, ...], rows: Any) -> list[Any]:
    """Split rows of observations into arrays, each with its own dtype."""
    if not fields[0].path:
        return [rows]
    data = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    found = []
    for field in fields:
        end = field.offset + field.size * field.dtype.itemsize
        part = np.ascontiguousarray(data[:, field.offset : end])
        found.append(
            part.view(field.dtype).reshape(len(rows), *field.shape)
            if field.size
            else np.zeros((len(rows), *field.shape), field.dtype)
        )
    return found


def facts(trained: TrainedPolicy, graph: Graph) -> dict[str, str]:
    """Return the metadata of an exported policy as strings: environment, spaces, score, and how to sample."""
    distribution: Any = trained.policy.distribution
    integers = getattr(distribution, "integers", distribution)
    steps = []
    if distribution.num_logits:
        steps.append(
            f"split logits into consecutive groups of sizes {integers.sizes}: from each group draw value v with "
            f"probability softmax(logits)[v], and add the start of its action, {np.ravel(integers.start).tolist()}"
        )
    if distribution.num_log_stds:
        steps.append("draw from a normal distribution with mean and std, and clip to the bounds of the action space")
    if len(steps) > 1:
        places = np.flatnonzero(distribution.is_integer).tolist()
        steps.append(f"put the drawn values at the elements {places} of the action, and the numbers at the others")
    how = "; ".join(steps)
    return {
        "env_name": trained.env_name,
        "observation_space": str(_own_space(trained.vecenv.driver_env)),
        "action_space": str(trained.vecenv.single_action_space),
        "score": "unknown" if trained.score is None else repr(trained.score),
        "sampling": how,
        "memory": "zeros at the start of an episode; pass each next_memory_* as memory_* in the next step"
        if len(graph.input_names) > len(graph.fields)
        else "none",
        "inputs": json.dumps(graph.input_names),
        "outputs": json.dumps(graph.output_names),
        "pufferlib": __version__,
    }


def _own_space(env: Any) -> Any:
    """Return the observation space before emulation."""
    layout = env.observation_layout if env.emulated else None
    return env.single_observation_space if layout is None else layout.space


def write_program(path: Path, trained: TrainedPolicy, device: torch.device) -> None:
    """Write the policy as a program for ``device``. Its inputs must be on the same device.

    Raises:
        APIUsageError: The policy cannot be traced.
    """
    made = Graph(trained)
    program = traced(made)
    with quietly():
        if device.type != "cpu":
            program = move_to_device_pass(program, str(device))
        torch.export.save(program, path, extra_files=facts(trained, made))


def play_program(path: Path, trained: TrainedPolicy, device: torch.device, recording: Recording) -> Outputs:
    """Run the program on the observations of a recording, and return its outputs."""
    with quietly():
        module = torch.export.load(path).module()

    def step(inputs: list[Any]) -> list[Any]:
        with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):  # TF32 rounds to 10 bits
            outputs = module(*(torch.from_numpy(array).to(device) for array in inputs))
        return [output.numpy(force=True) for output in outputs]

    return play(step, Graph(trained), recording)


def write_onnx(path: Path, trained: TrainedPolicy, opset: int | None = None) -> None:
    """Write the policy as an ONNX model.

    Args:
        path: Path of the file.
        trained: Policy to write.
        opset: Opset version, by default the version that torch writes.

    Raises:
        APIUsageError: The policy cannot be traced, or it needs operators that this opset version lacks.
        BindingMissing: onnx is not installed.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401 - fail before the work, not after it
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise BindingMissing(f"export: ONNX needs the package {error.name}; {way_to_install('export')}") from error
    _check_opset(opset)
    made = Graph(trained)
    program = traced(made)
    model = _model(program, made, opset)
    if opset is not None and _opset_of(model) != opset:  # the exporter could not convert it
        for version in range(_opset_of(model) - 1, opset, -1):
            lower = _model(program, made, version)
            if _opset_of(lower) != version:
                break
            model = lower
        raise _lacks_operator(model, opset)
    onnx.helper.set_model_props(model, facts(trained, made))
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _model(program: Any, made: Graph, opset: int | None) -> Any:
    """Convert a program to a model. If the opset lacks an operator, the model has another opset."""
    with quietly():
        exported = torch.onnx.export(
            program,
            (),
            dynamo=True,
            verbose=False,
            opset_version=opset,
            input_names=made.input_names,
            output_names=made.output_names,
        )
    assert exported is not None  # with dynamo
    return exported.model_proto


def _check_opset(opset: int | None) -> None:
    import onnx

    most = onnx.defs.onnx_opset_version()
    if opset is not None and not 1 <= opset <= most:
        raise APIUsageError(
            f"export: opset must be from 1 to {most}, the latest of onnx {onnx.__version__}, got {opset}"
        )


def _opset_of(model: Any) -> int:
    """Return the version of the standard opset of a model."""
    return max(int(entry.version) for entry in model.opset_import if not entry.domain)


def _lacks_operator(model: Any, opset: int) -> APIUsageError:
    """Return the error for an ``opset`` below the opset of ``model``, which is the lowest that works."""
    import onnx

    lowest = _opset_of(model)
    kinds = {node.op_type for node in model.graph.node if not node.domain}
    since = {kind: onnx.defs.get_schema(kind, max_inclusive_version=lowest).since_version for kind in kinds}
    newest = max(sorted(since), key=lambda kind: since[kind])
    return APIUsageError(
        f"export: opset {opset} lacks the version of operator {newest} that this policy needs, which was added in "
        f"opset {since[newest]}; the lowest that works is --opset {lowest}"
    )


def play_onnx(path: Path, trained: TrainedPolicy, recording: Recording) -> Outputs:
    """Run the model with ONNX Runtime on the observations of a recording, and return its outputs."""
    import onnxruntime

    made = Graph(trained)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base class
        raise PufferError(
            f"export: ONNX Runtime {onnxruntime.__version__} cannot load the model: {error}; choose another --opset"
        ) from error

    def step(inputs: list[Any]) -> list[Any]:
        return list(session.run(made.output_names, dict(zip(made.input_names, inputs, strict=True))))

    return play(step, made, recording)
