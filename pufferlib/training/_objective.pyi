from torch import Tensor

from pufferlib.settings.config import TrainConfig
from pufferlib.training.rollout import Minibatch

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
