"""Wrappers of single environments. Wrappers of whole batches are in ``pufferlib.wrappers.vector``.

Apply single-environment wrappers before emulation. They are defined in the module ``single``.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
