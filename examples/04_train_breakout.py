"""Train an agent from Python, like `puffer train breakout`, with your own logger.

Needs torch: puffer install train

Run it: python examples/04_train_breakout.py --timesteps 3000000
"""

import argparse
import tempfile
from pathlib import Path

from pufferlib.training import JsonlLogger, Trainer, evaluate, load_config


class ScoreLogger:
    """A logger is any object with the methods log and close. It receives the metrics of every update."""

    def log(self, metrics):
        # The score is missing if no episode ended during the update.
        if "environment/score" in metrics:
            done = metrics["agent_steps"] / metrics["total_agent_steps"]
            print(f"{done:4.0%}  {metrics['sps']:9,.0f} steps/s  score {metrics['environment/score']:6.1f}")

    def close(self):
        pass


def main(timesteps: int, run_dir: Path) -> None:
    # Settings come from the defaults, then from pufferlib/ocean/breakout/train.toml, then from these
    # overrides. An unknown key is an error that suggests the closest name.
    config = load_config("breakout", {"train.total_timesteps": timesteps, "train.seed": 1})
    config.save(run_dir / "config.toml")

    trainer = Trainer(config, run_dir, loggers=[ScoreLogger(), JsonlLogger(run_dir / "metrics.jsonl")])
    trainer.train()  # Ctrl-C stops after the current update and also saves a checkpoint

    # Compare the score with the score of random actions.
    trained = evaluate(config, trainer.policy, episodes=16, seed=1)
    chance = evaluate(config, None, episodes=16, seed=1)
    print(f"trained: {trained.score_mean:.1f} ± {trained.score_std:.1f}, random play: {chance.score_mean:.1f}")
    print(f"checkpoint: {trainer.checkpoint_path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timesteps", type=int, default=3_000_000, help="agent-steps to train for")
    parser.add_argument("--run-dir", type=Path, help="folder of the run (default: a temporary folder)")
    arguments = parser.parse_args()
    if arguments.run_dir:
        arguments.run_dir.mkdir(parents=True, exist_ok=True)
    main(arguments.timesteps, arguments.run_dir or Path(tempfile.mkdtemp(prefix="breakout-")))
