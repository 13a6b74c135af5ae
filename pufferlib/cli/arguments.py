"""Flags of the verbs that need no training packages."""

import datetime
import tomllib
from argparse import ArgumentParser, Namespace
from typing import Any, NoReturn

from pufferlib.errors import UnknownNameError, UsageError
from pufferlib.machine.commands import as_typed

__all__ = ["ENV", "Parser", "split_env", "with_commands"]

ENV = "--env."


class Parser(ArgumentParser):
    """An ``ArgumentParser`` that raises a sentence instead of printing its usage and exiting.

    Args:
        command: Which it is for: "puffer list".
        description: Of the command.
        add_help: Let ``--help`` print the flags.
    """

    def __init__(self, command: str, description: str = "", add_help: bool = True) -> None:
        super().__init__(
            as_typed(command), description=with_commands(description), add_help=add_help, allow_abbrev=False
        )
        self._command = command

    def parse(self, argv: list[str]) -> Namespace:
        """Parse all of ``argv``.

        Raises:
            UnknownNameError: A flag that does not exist; the nearest are suggested.
            UsageError: Anything else that it cannot understand.
        """
        namespace, unknown = self.parse_known_args(argv)
        if unknown:
            if not unknown[0].startswith("-"):
                raise UsageError(f"{self._command}: takes no argument {unknown[0]!r}; see {self.prog} --help")
            raise UnknownNameError.of(self._command, "flag", unknown[0], self.flags)
        return namespace

    @property
    def flags(self) -> list[str]:
        """The long spelling of each."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Called by argparse for a value that is missing or wrong."""
        raise UsageError(f"{self._command}: {message}; see {self.prog} --help")


def with_commands(text: str) -> str:
    """A help text with each ``puffer VERB`` in it as it is typed here."""
    return text.replace("puffer ", as_typed("puffer "))


def split_env(prog: str, argv: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The keywords of the environment, and the other flags. The environment checks its own keywords.

    Raises:
        UsageError: A keyword has no value.
    """
    env: dict[str, Any] = {}
    rest: list[str] = []
    tokens = iter(argv)
    for token in tokens:
        if not token.startswith(ENV):
            rest.append(token)
            continue
        key, equals, text = token.removeprefix(ENV).partition("=")
        if not equals:
            text = next(tokens, "")
        if not key or not text or text.startswith("--"):
            raise UsageError(f"{prog}: {token}: expected a value; write {ENV}{key or 'name'} VALUE")
        env[key.replace("-", "_")] = _literal(text)
    return env, rest


def _literal(text: str) -> Any:
    """``text`` as TOML reads it (number, true, false, list), else as a string. A date is a string too."""
    text = text.lower() if text in ("True", "False") else text
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return text if isinstance(value, datetime.date | datetime.time) else value
