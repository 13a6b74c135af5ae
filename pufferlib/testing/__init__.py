"""Checks that an environment meets the contract, and that a learner learns, for use in your own tests.

from pufferlib.testing import check_env

def test_my_env():
    check_env(MyEnv)

``contract`` lists the lines of the contract. ``check`` tests them by random play (``play``): ``arrays``, ``values``
and ``resets`` check each step, ``copies`` compares several environments, and ``leaks`` looks for leaks.
``learner`` trains in small environments, each of which fails for another class of bugs.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
