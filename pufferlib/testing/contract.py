"""Lines of the contract, and the error for an environment that breaks one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pufferlib.errors import PufferError

__all__ = ["CONTRACT", "ContractError", "broken"]

#: Lines of the contract by name. docs/contract.md numbers them in this order.
CONTRACT: Mapping[str, str] = MappingProxyType(
    {
        "spaces": "The environment defines single_observation_space (a Box), single_action_space (a Discrete, "
        "MultiDiscrete or Box) and num_agents.",
        "arrays": "The environment uses the arrays in buf, writes them in place, and returns them from reset and step.",
        "observations": "Observations are within their space, use its declared range, and fill the whole row of every "
        "present agent.",
        "rewards": "Rewards are finite. A reset within a step does not change the rewards of that step.",
        "ends": "An episode ends with either a terminal or a truncation, which is set in its last step.",
        "autoreset": "The steps after an end follow the autoreset mode. With same_step, a truncation leaves the last "
        "observation in final_observations.",
        "absent": "An absent agent has reward 0, no terminal or truncation, and a row that does not change.",
        "infos": "Infos are dicts.",
        "seed": "reset accepts a seed. The same seed and actions give the same bytes.",
        "reset": "A reset leaves no state of earlier episodes.",
        "copies": "Copies of an environment share no state.",
        "batch": "The environments in a batch behave the same for any batch size.",
        "leaks": "Episodes leak no memory, open files, threads or processes. close releases all files, threads and "
        "processes.",
        "silence": "reset and step write nothing to the terminal.",
    }
)


class ContractError(PufferError, AssertionError):
    """Error: an environment breaks the contract.

    The message includes the problem, how to fix it, and the number of the line in docs/contract.md.

    Attributes:
        line: Name of the broken line in ``CONTRACT``.
    """

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(message)
        self.line = line

    @classmethod
    def of(cls, line: str, message: str) -> "ContractError":
        """Return the error for a broken ``line``, with the number of the line at the end of the message."""
        return cls(f"{message} (line {list(CONTRACT).index(line) + 1} of the contract)", line)


def broken(env: Any, line: str, problem: str, advice: str) -> ContractError:
    """Return the error for ``env``, which breaks ``line``."""
    return ContractError.of(line, f"{type(env).__name__}: {problem}; {advice}")
