"""Flags of the verbs that need no training packages."""

from argparse import ArgumentParser, Namespace
from typing import NoReturn

from pufferlib.cli.errors import UsageError
from pufferlib.errors import UnknownNameError

__all__ = ["Parser"]


class Parser(ArgumentParser):
    """An ``ArgumentParser`` that raises a sentence instead of printing its usage and exiting."""

    def parse(self, argv: list[str]) -> Namespace:
        """Parse all of ``argv``.

        Raises:
            UnknownNameError: A flag that does not exist; the nearest are suggested.
            UsageError: Anything else that it cannot understand.
        """
        namespace, unknown = self.parse_known_args(argv)
        if unknown:
            if not unknown[0].startswith("-"):
                raise UsageError(f"{self.prog}: takes no argument {unknown[0]!r}; see {self.prog} --help")
            flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
            raise UnknownNameError.of(self.prog, "flag", unknown[0], flags)
        return namespace

    def error(self, message: str) -> NoReturn:
        """Called by argparse for a value that is missing or wrong."""
        raise UsageError(f"{self.prog}: {message}; see {self.prog} --help")
