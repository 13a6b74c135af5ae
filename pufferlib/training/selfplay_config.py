"""Settings of self-play, ``[selfplay]``."""

from dataclasses import dataclass
from typing import Literal

from pufferlib.training.kinds import Count, Natural, NotNegative, Share

__all__ = ["SelfplayConfig"]


@dataclass(frozen=True)
class SelfplayConfig:
    """Self-play against a pool of earlier policies; it needs games both of whose sides are agents.

    Attributes:
        opponents: Frozen policies that play at the same time; 0 is no pool: whatever agents there are, the policy plays
            all of them.
        share: Share of the games in which one of them has a side, which is drawn; in the others the policy plays both.
        snapshot_interval: Updates between two policies that join the pool; the first joins after the first rollout.
        pool_size: Policies that the pool keeps; the oldest goes.
        draw: Which of them play during the next rollout: the "newest", any ("uniform"), or "elo": with the probability
            that they are expected to score against the policy, so that those near it or above it play most.
        elo_k: K of the Elo ratings: points that a game against an equal moves, times two.
    """

    opponents: Natural = 0
    share: Share = 0.5
    snapshot_interval: Count = 10
    pool_size: Count = 16
    draw: Literal["elo", "newest", "uniform"] = "elo"
    elo_k: NotNegative = 4.0
