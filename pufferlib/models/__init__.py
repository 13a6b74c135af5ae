"""Policies: networks that turn observations into action distributions and value estimates.

``policies`` has the networks, ``recurrent`` the LSTM over segments, ``encoders`` what feeds observations of any
structure into them, ``distributions`` what their outputs become: actions.
"""

from pufferlib.models.policies import (
    Default,
    LSTMWrapper,
    MixedCNN,
    NatureCNN,
    Policy,
    State,
    layer_init,
    make_policy,
)

__all__ = ["Default", "LSTMWrapper", "MixedCNN", "NatureCNN", "Policy", "State", "layer_init", "make_policy"]
