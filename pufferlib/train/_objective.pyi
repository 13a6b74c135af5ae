from torch import Tensor

from pufferlib.train.config import TrainConfig
from pufferlib.train.rollout import Minibatch

def objective(
    log_probs: Tensor,
    entropies: Tensor,
    values: Tensor,
    batch: Minibatch,
    config: TrainConfig,
    d_log_probs: Tensor,
    d_entropies: Tensor,
    d_values: Tensor,
) -> tuple[float, float, float, float, float, float]: ...
