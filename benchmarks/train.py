"""Training speed: agent-steps per second of PPO, and how they split into acting and learning.

python benchmarks/train.py                      breakout with its own settings
python benchmarks/train.py pong --seconds 30 --set train.num_threads=1
"""

import argparse
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import torch

from pufferlib.train.config import Config, load_config
from pufferlib.train.trainer import Trainer

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import machine, write

WARM_UP = 3  # updates


def measure(config: Config, seconds: float) -> dict[str, Any]:
    """Train for ``seconds`` after a warm-up; medians over the updates, and CPU time over all of them."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(config, Path(folder))
        try:
            for _ in range(WARM_UP):
                trainer.step()
            updates = []
            cpu, start = time.process_time(), time.perf_counter()
            while time.perf_counter() - start < seconds:
                updates.append(trainer.step())
            cpu = time.process_time() - cpu
        finally:
            trainer.close()
    steps = trainer.rollout.batch_size
    return {
        "steps_per_s": statistics.median(update["sps"] for update in updates),
        "steps_per_s_best": max(update["sps"] for update in updates),
        "collect_us_per_step": 1e6 * statistics.median(u["performance/collect_s"] for u in updates) / steps,
        "learn_us_per_step": 1e6 * statistics.median(u["performance/learn_s"] for u in updates) / steps,
        "cpu_us_per_step": 1e6 * cpu / (steps * len(updates)),
        "updates": len(updates),
        "steps_per_update": steps,
        "parameters": sum(parameter.numel() for parameter in trainer.policy.parameters()),
        "threads": torch.get_num_threads(),
        "device": str(trainer.device),
    }


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", nargs="?", default="breakout")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as in the TOML files")
    options = parser.parse_args()
    settings = dict(setting.split("=", 1) for setting in options.set)
    overrides = {key: tomllib.loads(f"value = {value}")["value"] for key, value in settings.items()}
    figures = {
        "env": options.env,
        "settings": overrides,
        **measure(load_config(options.env, overrides), options.seconds),
        "machine": {**machine(), "torch": torch.__version__},
    }
    for name, value in figures.items():
        print(f"{name:22} {value:,.2f}" if isinstance(value, float) else f"{name:22} {value}")
    if options.json:
        write(options.json, figures)


if __name__ == "__main__":
    main()
