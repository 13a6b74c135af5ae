from pufferlib.settings.config import (
    Config as Config,
    EvalConfig as EvalConfig,
    PolicyConfig as PolicyConfig,
    SelfplayConfig as SelfplayConfig,
    StopConfig as StopConfig,
    TrackConfig as TrackConfig,
    TrainConfig as TrainConfig,
    VecConfig as VecConfig,
    load_config as load_config,
)
from pufferlib.training.advantage import (
    Estimates as Estimates,
    generalized_advantage as generalized_advantage,
    vtrace as vtrace,
)
from pufferlib.training.agent import Agent as Agent, load as load, load_policy as load_policy
from pufferlib.training.build import build_policy as build_policy, build_vecenv as build_vecenv
from pufferlib.training.callbacks import (
    Callback as Callback,
    CallbackFunction as CallbackFunction,
    TrainerView as TrainerView,
)
from pufferlib.training.distributed.ranks import RankLostError as RankLostError
from pufferlib.training.evaluation import EvalResult as EvalResult, evaluate as evaluate
from pufferlib.training.launch import train as train
from pufferlib.training.lifecycle import TrainedRun as TrainedRun
from pufferlib.training.loggers import (
    CsvLogger as CsvLogger,
    JsonlLogger as JsonlLogger,
    Logger as Logger,
    TensorBoardLogger as TensorBoardLogger,
    WandbLogger as WandbLogger,
    open_tracking as open_tracking,
)
from pufferlib.training.normalization import with_moments as with_moments
from pufferlib.training.opponent_pool import OpponentPool as OpponentPool
from pufferlib.training.opponents import Opponents as Opponents
from pufferlib.training.ppo import Loss as Loss, Losses as Losses, ppo_loss as ppo_loss
from pufferlib.training.result import Comparison as Comparison, compare as compare, finish_run as finish_run
from pufferlib.training.rollout import Minibatch as Minibatch, Rollout as Rollout
from pufferlib.training.standard_callbacks import (
    PeriodicEvaluation as PeriodicEvaluation,
    StopAfterSeconds as StopAfterSeconds,
    StopAtScore as StopAtScore,
)
from pufferlib.training.trainer import Trainer as Trainer
