"""Training by PPO: settings, trainer, loggers, callbacks and evaluation. ``pufferlib.train`` uses all of them.

The public names are imported from their modules on first use, because most modules load torch.
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

if TYPE_CHECKING:
    from pufferlib.settings.config import (
        Config,
        EvalConfig,
        PolicyConfig,
        SelfplayConfig,
        StopConfig,
        TrackConfig,
        TrainConfig,
        VecConfig,
        load_config,
    )
    from pufferlib.training.advantage import Estimates, generalized_advantage, vtrace
    from pufferlib.training.agent import Agent, load, load_policy
    from pufferlib.training.build import build_policy, build_vecenv
    from pufferlib.training.callbacks import Callback, CallbackFunction, TrainerView
    from pufferlib.training.distributed.ranks import RankLostError
    from pufferlib.training.evaluation import EvalResult, evaluate
    from pufferlib.training.launch import train
    from pufferlib.training.learner_suite import LearnerResult, check_learner
    from pufferlib.training.lifecycle import TrainedRun
    from pufferlib.training.loggers import CsvLogger, JsonlLogger, Logger, TensorBoardLogger, WandbLogger, open_tracking
    from pufferlib.training.normalization import with_moments
    from pufferlib.training.opponent_pool import OpponentPool
    from pufferlib.training.opponents import Opponents
    from pufferlib.training.ppo import Loss, Losses, ppo_loss
    from pufferlib.training.result import Comparison, compare, finish_run
    from pufferlib.training.rollout import Minibatch, Rollout
    from pufferlib.training.standard_callbacks import PeriodicEvaluation, StopAfterSeconds, StopAtScore
    from pufferlib.training.trainer import Trainer

__all__ = [
    "Agent",
    "Callback",
    "CallbackFunction",
    "Comparison",
    "Config",
    "CsvLogger",
    "Estimates",
    "EvalConfig",
    "EvalResult",
    "JsonlLogger",
    "LearnerResult",
    "Logger",
    "Loss",
    "Losses",
    "Minibatch",
    "OpponentPool",
    "Opponents",
    "PeriodicEvaluation",
    "PolicyConfig",
    "RankLostError",
    "Rollout",
    "SelfplayConfig",
    "StopAfterSeconds",
    "StopAtScore",
    "StopConfig",
    "TensorBoardLogger",
    "TrackConfig",
    "TrainConfig",
    "TrainedRun",
    "Trainer",
    "TrainerView",
    "VecConfig",
    "WandbLogger",
    "build_policy",
    "build_vecenv",
    "check_learner",
    "compare",
    "evaluate",
    "finish_run",
    "generalized_advantage",
    "load",
    "load_config",
    "load_policy",
    "open_tracking",
    "ppo_loss",
    "train",
    "vtrace",
    "with_moments",
]

_HOME = {
    "Agent": "training.agent",
    "Callback": "training.callbacks",
    "CallbackFunction": "training.callbacks",
    "Comparison": "training.result",
    "Config": "settings.config",
    "CsvLogger": "training.loggers",
    "Estimates": "training.advantage",
    "EvalConfig": "settings.config",
    "EvalResult": "training.evaluation",
    "JsonlLogger": "training.loggers",
    "LearnerResult": "training.learner_suite",
    "Logger": "training.loggers",
    "Loss": "training.ppo",
    "Losses": "training.ppo",
    "Minibatch": "training.rollout",
    "OpponentPool": "training.opponent_pool",
    "Opponents": "training.opponents",
    "PeriodicEvaluation": "training.standard_callbacks",
    "PolicyConfig": "settings.config",
    "RankLostError": "training.distributed.ranks",
    "Rollout": "training.rollout",
    "SelfplayConfig": "settings.config",
    "StopAfterSeconds": "training.standard_callbacks",
    "StopAtScore": "training.standard_callbacks",
    "StopConfig": "settings.config",
    "TensorBoardLogger": "training.loggers",
    "TrackConfig": "settings.config",
    "TrainConfig": "settings.config",
    "TrainedRun": "training.lifecycle",
    "Trainer": "training.trainer",
    "TrainerView": "training.callbacks",
    "VecConfig": "settings.config",
    "WandbLogger": "training.loggers",
    "build_policy": "training.build",
    "build_vecenv": "training.build",
    "check_learner": "training.learner_suite",
    "compare": "training.result",
    "evaluate": "training.evaluation",
    "finish_run": "training.result",
    "generalized_advantage": "training.advantage",
    "load": "training.agent",
    "load_config": "settings.config",
    "load_policy": "training.agent",
    "open_tracking": "training.loggers",
    "ppo_loss": "training.ppo",
    "train": "training.launch",
    "vtrace": "training.advantage",
    "with_moments": "training.normalization",
}

__getattr__, __dir__ = open_door(__name__, _HOME)
