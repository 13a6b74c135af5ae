"""Random numbers of torch that belong to a run: those that a network draws itself, as dropout does."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

__all__ = ["TorchRandom"]


class TorchRandom:
    """State of torch's default generators in a run, apart from the state that the rest of the program has.

    Networks that draw while another thread acts (``train.overlap = "learning"``) share it in an order that may change.

    Args:
        seed: Seed of the generators.
        device: Device of the policy.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generators = [torch.default_generator]
        if device.type == "cuda":
            torch.cuda.init()  # type: ignore[no-untyped-call]
            index = torch.cuda.current_device() if device.index is None else device.index
            self._generators.append(torch.cuda.default_generators[index])
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start from ``seed``."""
        self.states: list[Tensor] = [
            torch.Generator(generator.device).manual_seed(seed % 2**63).get_state() for generator in self._generators
        ]

    def load(self, states: Sequence[Tensor]) -> bool:
        """Continue from ``states`` of another object; returns False if they are of another kind of device."""
        sizes = [len(state) for state in states]
        if sizes != [len(state) for state in self.states]:
            return False
        self.states = [state.cpu() for state in states]
        return True

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Context in which torch draws from these states. Afterwards it draws from those of before."""
        outer = self._exchange(self.states)
        try:
            yield
        finally:
            self.states = self._exchange(outer)

    def _exchange(self, states: Sequence[Tensor]) -> list[Tensor]:
        """Set the states of the generators; returns the states that they had."""
        before = [generator.get_state() for generator in self._generators]
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)
        return before
