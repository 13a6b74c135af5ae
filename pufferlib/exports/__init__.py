"""Export of trained policies to ONNX, C and ``torch.export``.

``exported`` has ``pufferlib.export``. ``trained`` loads a policy, and ``recording`` records its outputs, which exported
files must reproduce. ``c_source`` writes C. ``graph`` is the policy as a function of tensors, from which
``onnx_model`` and ``torch_program`` write their files.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
