"""Policies: networks that turn observations into action distributions and value estimates.

``policies`` has the networks, ``recurrent`` the memory around them, ``factory`` makes them by name, ``encoders`` feeds
observations of any structure into them, ``distributions`` turns their outputs into actions.
"""

from pufferlib.models.factory import make_policy, materialize
from pufferlib.models.policies import Default, MixedCNN, NatureCNN, Policy, ResNet, State, layer_init
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
