from pufferlib.buffers import set_buffers as set_buffers
from pufferlib.env import PufferEnv as PufferEnv
from pufferlib.errors import (
    APIUsageError as APIUsageError,
    BindingMissing as BindingMissing,
    InvalidAgentError as InvalidAgentError,
    PufferError as PufferError,
    UnknownNameError as UnknownNameError,
    WorkerError as WorkerError,
)
from pufferlib.exports.exported import export as export
from pufferlib.registry import env_creator as env_creator, list_envs as list_envs, make as make, register as register
from pufferlib.replays.player import replay as replay
from pufferlib.sweeps.launch import sweep as sweep
from pufferlib.training.agent import load as load
from pufferlib.training.launch import train as train
from pufferlib.wrappers import (
    ClipAction as ClipAction,
    EpisodeStats as EpisodeStats,
    GymToGymnasium as GymToGymnasium,
    MeanOverAgents as MeanOverAgents,
    MultiagentEpisodeStats as MultiagentEpisodeStats,
    PettingZooTruncatedWrapper as PettingZooTruncatedWrapper,
    ResizeObservation as ResizeObservation,
)

from . import (
    emulation as emulation,
    envpool as envpool,
    exports as exports,
    frameworks as frameworks,
    models as models,
    ocean as ocean,
    pytorch as pytorch,
    render as render,
    replays as replays,
    runs as runs,
    selfplay as selfplay,
    spaces as spaces,
    sweeps as sweeps,
    testing as testing,
    training as training,
    vector as vector,
    vectorization as vectorization,
    wrappers as wrappers,
)

__version__: str
