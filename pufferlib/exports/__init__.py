"""Export of trained policies to ONNX, C and ``torch.export``.

``exported`` has ``pufferlib.export``. ``trained`` loads a policy, and ``recording`` records its outputs, which exported
files must reproduce. ``c_source`` writes C, with the tables of ``c_tables`` or, for policies of your own, with the
operations of ``c_graph``. ``torch_formats`` writes ONNX and ``torch.export``.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
