"""The contract of an environment, as a test for your own.

from pufferlib.testing import check_env

def test_my_env():
    check_env(MyEnv)

``contract`` has its lines; ``check`` looks at one after the other, by random play (``play``): ``arrays`` and ``values``
at each step, ``copies`` at several environments, ``leaks`` and ``output`` at what episodes leave behind.
"""

from pufferlib.testing.check import CheckResult, check_env, examine
from pufferlib.testing.contract import CONTRACT, ContractError

__all__ = ["CONTRACT", "CheckResult", "ContractError", "check_env", "examine"]
