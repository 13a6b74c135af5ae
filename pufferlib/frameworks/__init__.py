"""Environments and policies for the loops of other libraries, and theirs for our trainer; a module for each library.

``cleanrl``: policies in the single files of CleanRL. ``rllib``, ``sb3`` and ``torchrl``: environments for the
algorithms of RLlib, Stable-Baselines3 and TorchRL. ``gymnasium`` and ``pettingzoo``: C environments as these libraries
have them.
"""

from pufferlib import doors

__getattr__, __dir__ = doors.open_door(__name__, {}, ["cleanrl", "gymnasium", "pettingzoo", "rllib", "sb3", "torchrl"])
