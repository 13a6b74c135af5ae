from pufferlib.wrappers.single import (
    ClipAction as ClipAction,
    EpisodeStats as EpisodeStats,
    GymToGymnasium as GymToGymnasium,
    MeanOverAgents as MeanOverAgents,
    MultiagentEpisodeStats as MultiagentEpisodeStats,
    PadAgents as PadAgents,
    PettingZooTruncatedWrapper as PettingZooTruncatedWrapper,
    ResizeObservation as ResizeObservation,
)

from . import vector as vector
