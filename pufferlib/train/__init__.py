"""Training: settings, rollouts, PPO, checkpoints and evaluation."""
