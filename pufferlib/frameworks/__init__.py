"""Adapters to other libraries, one module per library.

``cleanrl``: policies for the scripts of CleanRL, and its agents as policies. ``rllib``, ``sb3`` and ``torchrl``: vector
environments for the algorithms of RLlib, Stable-Baselines3 and TorchRL. ``gymnasium`` and ``pettingzoo``: C
environments with the interfaces of these libraries.
"""

from pufferlib import imports

__getattr__, __dir__ = imports.open_door(__name__)
