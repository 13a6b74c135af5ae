"""Time of an acting step of each network option in our C engine, compared with ReLU and with torch.

    python benchmarks/acting.py             # all activations and layer norm
    python benchmarks/acting.py --quick     # quick check

A step computes the action parameters and values of 64 observations of CartPole with two layers of 64 units. All
contestants process the same observations on one core, and take turns. Figures are CPU time. "our engine, ReLU" has the
same number of multiplications, so the ratio shows what an option costs beyond them. Also writes
benchmarks/results/acting.json.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import OURS, Row
from sides import Sides
from turns import Measure, main

import pufferlib
from pufferlib.models import make_policy
from pufferlib.models.engine import compile_policy

ROWS, UNITS = 64, 64
RELU, TORCH = "our engine, ReLU", "torch"
LEAST = 0.77  # an option costs at most 1.3 times as much as ReLU
OPTIONS: dict[str, dict[str, Any]] = {
    "ReLU": {"activation": "relu"},
    "tanh": {"activation": "tanh"},
    "SiLU": {"activation": "silu"},
    "ELU": {"activation": "elu"},
    "GELU": {"activation": "gelu"},
    "layer norm": {"activation": "relu", "layer_norm": True},
    "layer norm, GELU": {"activation": "gelu", "layer_norm": True},
}


def engine_and_torch(options: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return functions that process the observations once, in our engine and in torch."""
    torch.manual_seed(0)
    policy = make_policy(pufferlib.make("CartPole-v1"), "Default", hidden_size=UNITS, num_layers=2, **options).eval()
    engine = compile_policy(policy)
    assert engine is not None
    observations = np.random.default_rng(0).standard_normal((ROWS, 4), dtype=np.float32)
    params = np.empty((ROWS, policy.distribution.num_params), np.float32)
    values = np.empty(ROWS, np.float32)
    tensor = torch.from_numpy(observations)
    return lambda: engine.forward(observations, None, params, values), lambda: policy.forward_eval(tensor, {})


@torch.inference_mode()
def us_per_call(call: Callable[[], Any], seconds: float) -> float:
    """Return the CPU time of a call in microseconds."""
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        for _ in range(20):
            call()
        count += 20
    return 1e6 * spent / count


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield each row with the measurements of its contestants."""
    torch.set_num_threads(1)
    relu, _ = engine_and_torch(OPTIONS["ReLU"])
    for name, options in OPTIONS.items():
        ours, theirs = engine_and_torch(options)
        calls = {OURS: ours, TORCH: theirs} if name == "ReLU" else {OURS: ours, RELU: relu, TORCH: theirs}
        row = Row(
            f"acting on {ROWS} observations: {name}", "us", ratios={TORCH: 1.0} if name == "ReLU" else {RELU: LEAST}
        )
        yield row, {contestant: partial(us_per_call, call, sides.seconds) for contestant, call in calls.items()}


if __name__ == "__main__":
    main(__doc__, __file__, rows, (), minutes=1, rounds=15, seconds=0.1)
