"""Automatic settings learn small tasks of any scale, as ``puffer train my_env.py:Class`` starts them."""

from pathlib import Path

import pytest

from pufferlib.settings.config import load_config
from pufferlib.training.evaluation import evaluate
from pufferlib.training.trainer import Trainer
from tests.learning import strangers
from tests.learning.strangers import TASKS, Task

FILE = Path(strangers.__file__)

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.make.__name__)
def test_automatic_settings_learn(task: Task, tmp_path: Path) -> None:
    settings = {"vec.backend": "Serial", "train.device": "cpu", "train.total_timesteps": task.steps}
    trainer = Trainer(load_config(f"{FILE}:{task.make.__name__}", settings), tmp_path)
    try:
        while trainer.agent_steps < task.steps:
            trainer.step()
        result = evaluate(trainer.config, trainer.policy, episodes=32)
    finally:
        trainer.close()
    assert result.score_mean >= task.score > task.random
