"""The lines of the contract, and the error for an environment that breaks one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pufferlib.errors import PufferError

__all__ = ["CONTRACT", "ContractError", "broken"]

#: The contract of an environment, by the name of each line; docs/contract.md numbers them in this order.
CONTRACT: Mapping[str, str] = MappingProxyType(
    {
        "spaces": "It defines single_observation_space, a Box; single_action_space, a Discrete, MultiDiscrete or Box; "
        "and num_agents.",
        "arrays": "It adopts the arrays of buf, writes them in place, and returns them from reset and step.",
        "observations": "Observations lie in their space, use the range that it declares, and fill the whole row of "
        "every agent that is present.",
        "rewards": "Rewards are finite, and a step's rewards outlive the reset that follows in it.",
        "ends": "An episode has one end, terminal or truncation, and shows it in the step in which it ends.",
        "autoreset": "What follows an end is what autoreset says; with same_step a truncation leaves its last "
        "observation in final_observations.",
        "absent": "An agent that is absent has reward 0, no end, and a row that stays as it is.",
        "infos": "Infos are dicts.",
        "seed": "reset takes a seed, and the same seed and actions give the same bytes.",
        "reset": "A reset leaves nothing of earlier episodes.",
        "copies": "Copies of an environment share nothing.",
        "batch": "Games of a batch play alike whatever its size.",
        "leaks": "An episode leaves no memory, open file, thread or process behind, and close none of the environment.",
        "silence": "reset and step write nothing to the terminal.",
    }
)


class ContractError(PufferError, AssertionError):
    """An environment breaks the contract; the message says how, how to mend it, and which line of docs/contract.md.

    Attributes:
        line: Name of that line in ``CONTRACT``.
    """

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(message)
        self.line = line

    @classmethod
    def of(cls, line: str, message: str) -> "ContractError":
        """Return the error for a broken ``line``, whose number stands at the end of the message."""
        return cls(f"{message} (line {list(CONTRACT).index(line) + 1} of the contract)", line)


def broken(env: Any, line: str, problem: str, advice: str) -> ContractError:
    """Return the error for ``env``, which breaks ``line``."""
    return ContractError.of(line, f"{type(env).__name__}: {problem}; {advice}")
