"""Recurrent networks over segments in which an episode may start in any row at any step.

``wrappers`` inserts them between encoder and decoder. ``gated`` computes LSTM and GRU and ``mingru`` the minimal GRU,
with compiled kernels for the CPU (``_kernels``) and the GPU (``gpu_kernels``), or else with torch operations.
``segments`` has their helper functions.
"""

from pufferlib.models.recurrent.mingru import MinGRUCell
from pufferlib.models.recurrent.wrappers import (
    CRITIC,
    MEMORIES,
    GRUWrapper,
    LSTMWrapper,
    MemoryWrapper,
    MinGRUWrapper,
)

__all__ = ["CRITIC", "MEMORIES", "GRUWrapper", "LSTMWrapper", "MemoryWrapper", "MinGRUCell", "MinGRUWrapper"]
