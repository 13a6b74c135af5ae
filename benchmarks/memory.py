"""Scores of two MinGRU layers and one LSTM after the same number of training steps.

    python benchmarks/memory.py                         # memory, password and nmmo3 with three seeds: over an hour
    python benchmarks/memory.py --only nmmo3 --seeds 1  # one environment, one seed
    python benchmarks/memory.py --steps 100_000         # quick check

The network of nmmo3 does not support recurrent layers, so here they follow its features.
"""

import argparse
import math
import statistics
import tempfile
from contextlib import closing

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.models import layer_init
from pufferlib.ocean.nmmo3.policy import NMMO3
from pufferlib.training import Trainer, evaluate, load_config

MEMORIES = {"LSTM": 1, "MinGRU": 2}  # number of layers
SETTINGS = {
    "memory": {"train.learning_rate": 2e-3, "eval.episodes": 256},
    "password": {"train.learning_rate": 2e-3, "eval.episodes": 256},
    "nmmo3": {"train.total_timesteps": 20e6, "train.update_epochs": 1, "policy.name": f"{__file__}:Features"},
}


class Features(NMMO3):
    """Encoder of nmmo3's own network with a plain linear decoder for all actions, including the inventory."""

    takes_memory = True

    def __init__(self, env: PufferEnv, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        self.hidden_size = hidden_size
        self.decoder = layer_init(nn.Linear(hidden_size, self.distribution.num_params + 1), std=1.0)
        with torch.no_grad():
            self.decoder.weight[:-1] *= 0.01

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode observations."""
        encoded: Tensor = self.encoder(torch.cat([*self._seen(observations), *self._own(observations)], -1))
        return encoded

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Compute action parameters and values."""
        outputs = self.decoder(hidden)
        return outputs[..., :-1], outputs[..., -1]


def score_of(env: str, memory: str, seed: int, steps: int | None) -> float:
    """Train one run and return its mean score."""
    chosen = {"policy.memory": memory, "policy.memory_layers": MEMORIES[memory], "train.seed": seed}
    limit = {"train.total_timesteps": steps} if steps else {}
    config = load_config(env, {"train.device": "cpu", "train.num_threads": 1, **SETTINGS[env], **chosen, **limit})
    with tempfile.TemporaryDirectory() as folder, closing(Trainer(config, folder)) as trainer:
        while trainer.agent_steps < config.train.total_timesteps:
            trainer.step()
        return evaluate(trainer.config, trainer.policy, episodes=config.eval.episodes).score_mean


def main() -> None:
    """Parse the command line, train, and print a row for each environment and memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[*SETTINGS], choices=[*SETTINGS], metavar="ENV")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, help="steps of each run (default: from the environment's settings)")
    options = parser.parse_args()
    print("| environment | memory | mean score | standard error | scores of the seeds |\n|---|---|---|---|---|")
    for env in options.only:
        for memory in MEMORIES:
            scores = [score_of(env, memory, seed, options.steps) for seed in options.seeds]
            error = statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan
            each = ", ".join(f"{score:.3g}" for score in scores)
            print(f"| {env} | {memory} | {statistics.fmean(scores):.3g} | {error:.2g} | {each} |", flush=True)


if __name__ == "__main__":
    main()
