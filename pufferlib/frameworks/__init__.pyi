from . import (
    cleanrl as cleanrl,
    gymnasium as gymnasium,
    pettingzoo as pettingzoo,
    rllib as rllib,
    sb3 as sb3,
    torchrl as torchrl,
)
