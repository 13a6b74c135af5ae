"""Trained policies outside of this library: as ONNX, as one file of C, as a program of ``torch.export``.

``exported`` has the function; ``trained`` opens what is exported; ``recording`` is what the copies are checked against;
``c_source`` writes C, ``graph`` is the policy as a function of tensors, of which ``onnx_model`` and ``torch_program``
make their files.
"""

from pufferlib.export.exported import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
