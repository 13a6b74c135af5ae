"""Policies: networks that turn observations into action distributions and value estimates.

``policies`` has the networks, ``recurrent`` the LSTM around them, ``factory`` makes them by name, ``encoders`` feeds
observations of any structure into them, ``distributions`` turns their outputs into actions.
"""

from pufferlib.models.factory import make_policy
from pufferlib.models.policies import Default, MixedCNN, NatureCNN, Policy, ResNet, State, layer_init
from pufferlib.models.recurrent import LSTMWrapper

__all__ = [
    "Default",
    "LSTMWrapper",
    "MixedCNN",
    "NatureCNN",
    "Policy",
    "ResNet",
    "State",
    "layer_init",
    "make_policy",
]
