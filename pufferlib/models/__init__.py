"""Policies: networks that turn observations into action distributions and value estimates.

``policies`` and ``image_policies`` contain the networks, ``recurrent`` adds a memory to them, and ``factory`` makes
them by name.
``encoders`` converts observations of any structure to floats, and ``distributions`` converts network outputs to
actions.
"""

from pufferlib.models.factory import make_policy, materialize
from pufferlib.models.image_policies import MixedCNN, NatureCNN, ResNet
from pufferlib.models.linear import layer_init
from pufferlib.models.policies import Default, Policy, State
from pufferlib.models.recurrent import GRUWrapper, LSTMWrapper, MemoryWrapper, MinGRUWrapper

__all__ = [
    "Default",
    "GRUWrapper",
    "LSTMWrapper",
    "MemoryWrapper",
    "MinGRUWrapper",
    "MixedCNN",
    "NatureCNN",
    "Policy",
    "ResNet",
    "State",
    "layer_init",
    "make_policy",
    "materialize",
]
