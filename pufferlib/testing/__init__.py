"""Checks that an environment meets the contract, for use in your own tests.

from pufferlib.testing import check_env

def test_my_env():
    check_env(MyEnv)

``contract`` lists the lines of the contract. ``check`` tests them by random play (``play``): ``arrays`` and ``values``
check each step, ``copies`` compares several environments, and ``leaks`` and ``output`` check for leaks and output.
"""

from pufferlib.testing.check import CheckResult, check_env, examine
from pufferlib.testing.contract import CONTRACT, ContractError

__all__ = ["CONTRACT", "CheckResult", "ContractError", "check_env", "examine"]
