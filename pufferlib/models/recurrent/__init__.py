"""Recurrent networks over segments in which any row may start anew at any step.

``wrappers`` puts them between encoder and decoder; ``lstm``, ``gru`` and ``mingru`` compute the cells, on a CPU by the
kernels of ``_kernels``, which ``segments`` prepares, and elsewhere by torch's own operations.
"""

from pufferlib.models.recurrent.mingru import MinGRUCell
from pufferlib.models.recurrent.wrappers import MEMORIES, GRUWrapper, LSTMWrapper, MemoryWrapper, MinGRUWrapper

__all__ = ["MEMORIES", "GRUWrapper", "LSTMWrapper", "MemoryWrapper", "MinGRUCell", "MinGRUWrapper"]
