"""Export to ONNX."""

from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError, BindingMissing, PufferError
from pufferlib.exports import graph
from pufferlib.exports.recording import Outputs, Recording
from pufferlib.exports.trained import TrainedPolicy
from pufferlib.machine.commands import way_to_install

__all__ = ["play", "write"]


def write(path: Path, trained: TrainedPolicy, opset: int | None = None) -> None:
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
    made = graph.Graph(trained)
    program = graph.traced(made)
    model = _model(program, made, opset)
    if opset is not None and _opset_of(model) != opset:  # the exporter could not convert it
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
    """Convert a program to a model. If the opset lacks an operator, the model has another opset."""
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


def play(path: Path, trained: TrainedPolicy, recording: Recording) -> Outputs:
    """Run the model with ONNX Runtime on the observations of a recording, and return its outputs."""
    import onnxruntime

    made = graph.Graph(trained)
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

    return graph.play(step, made, recording)
