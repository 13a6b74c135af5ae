"""Export of trained policies to ONNX, C and ``torch.export``.

``exported`` has ``pufferlib.export``. ``trained`` loads a policy, and ``recording`` records its outputs, which exported
files must reproduce. ``c_source`` writes C. ``graph`` is the policy as a function of tensors, from which
``onnx_model`` and ``torch_program`` write their files.
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

if TYPE_CHECKING:
    from pufferlib.exports.exported import Exported, export
    from pufferlib.exports.trained import TrainedPolicy, open_trained

__all__ = [
    "Exported",
    "TrainedPolicy",
    "export",
    "open_trained",
]

_HOME = {
    "Exported": "exports.exported",
    "TrainedPolicy": "exports.trained",
    "export": "exports.exported",
    "open_trained": "exports.trained",
}

__getattr__, __dir__ = open_door(__name__, _HOME)
