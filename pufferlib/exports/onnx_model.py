"""Models of ONNX, which ONNX Runtime and others run."""

from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError, BindingMissing, PufferError
from pufferlib.exports import graph
from pufferlib.exports.recording import Outputs, Recording
from pufferlib.exports.trained import TrainedPolicy
from pufferlib.machine.commands import way_to_install

__all__ = ["play", "write"]


def write(path: Path, trained: TrainedPolicy, opset: int | None = None) -> None:
    """Write the policy as a model.

    Args:
        path: The file.
        trained: The policy.
        opset: Version of the operators; None: the one that torch writes.

    Raises:
        APIUsageError: The policy does what cannot be traced, or the operators of that version do not suffice.
        BindingMissing: onnx is not installed.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401 - before the work, not after it
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise BindingMissing(f"export: ONNX needs the package {error.name}; {way_to_install('export')}") from error
    _check_opset(opset)
    made = graph.Graph(trained)
    program = graph.traced(made)
    model = _model(program, made, opset)
    if opset is not None and _opset_of(model) != opset:  # the exporter leaves it at another one
        for version in range(_opset_of(model) - 1, opset, -1):
            lower = _model(program, made, version)
            if _opset_of(lower) != version:
                break
            model = lower
        raise _lacks_operator(model, opset)
    onnx.helper.set_model_props(model, graph.facts(trained, made))
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _model(program: Any, made: graph.Graph, opset: int | None) -> Any:
    """The model of a program; of another version of the operators where they do not suffice."""
    import torch

    with graph.quietly():
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
    """Version of the standard operators of a model."""
    return max(int(entry.version) for entry in model.opset_import if not entry.domain)


def _lacks_operator(model: Any, opset: int) -> APIUsageError:
    """The error for an ``opset`` below that of ``model``, the lowest that works."""
    import onnx

    lowest = _opset_of(model)
    kinds = {node.op_type for node in model.graph.node if not node.domain}
    since = {kind: onnx.defs.get_schema(kind, max_inclusive_version=lowest).since_version for kind in kinds}
    newest = max(sorted(since), key=lambda kind: since[kind])
    return APIUsageError(
        f"export: opset {opset} lacks the operator {newest} in the form that this policy needs, which came with opset "
        f"{since[newest]}; the lowest that works is --opset {lowest}"
    )


def play(path: Path, trained: TrainedPolicy, recording: Recording) -> Outputs:
    """Let ONNX Runtime answer the observations of a recording."""
    import onnxruntime

    made = graph.Graph(trained)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class in common
        raise PufferError(
            f"export: ONNX Runtime {onnxruntime.__version__} cannot load the model: {error}; choose another --opset"
        ) from error

    def step(inputs: list[Any]) -> list[Any]:
        return list(session.run(made.output_names, dict(zip(made.input_names, inputs, strict=True))))

    return graph.play(step, made, recording)
