"""Trained policies outside of this library: as ONNX, as one file of C, as a program of ``torch.export``.

``pufferlib.export`` writes them. ``trained`` opens what is exported; ``recording`` is what the copies are checked
against; ``c_source`` writes C; ``graph`` is the policy as a function of tensors, of which ``onnx_model`` and
``torch_program`` make their files.
"""

from typing import TYPE_CHECKING

from pufferlib.doors import open_door

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
