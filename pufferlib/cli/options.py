"""Options of the verbs: flags, parsed by argparse, and settings such as ``--train.seed 7``, parsed by tyro."""

import dataclasses
import itertools
import re
from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin

from pufferlib import ocean, registry
from pufferlib.cli.values import keyword_value, whole_number
from pufferlib.errors import PufferError, UnknownNameError, UsageError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.ocean.env import type_of
from pufferlib.ocean.files import is_c_file
from pufferlib.ocean.types import env_types
from pufferlib.render.video import check_video_path
from pufferlib.settings.config import Config, Counts, setting_names
from pufferlib.settings.suggestions import PUFFERLIB_3, RENAMED, suggest

if TYPE_CHECKING:
    from tyro import _errors
    from tyro.constructors import ConstructorRegistry, PrimitiveTypeInfo

__all__ = [
    "NO_VIDEO",
    "Parser",
    "check_video",
    "parse_config",
    "parse_settings",
    "split_env",
    "split_flags",
    "tracker_flags",
    "typed",
    "with_commands",
    "with_switch_values",
]

ENV = "--env."
NO_VIDEO = "none, because no frames were rendered or the file could not be written"
UNNAMED = ("ENV", "RUN")  # env_name of the settings that --help shows if no environment is named
SECTIONS = [field for field in dataclasses.fields(Config) if field.name not in ("env_name", "env")]
SPELLING = """Settings are flags: --section.name VALUE. A true/false setting needs no value:
--train.normalize-observations turns it on, --train.no-normalize-observations turns it off."""
SWITCHES = {
    f"{section.name}.{setting.name}"
    for section in SECTIONS
    for setting in dataclasses.fields(section.type)  # type: ignore[arg-type]  # a class
    if setting.type in (bool, bool | None)
}
SWITCH = re.compile(r"--(?P<no>no[-_])?(?P<section>\w+)\.(?P<off>no[-_])?(?P<name>[\w-]+)")


class _Paragraphs(HelpFormatter):
    """Formatter that wraps each paragraph of a description, and keeps paragraphs that start with a space."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(
            each if each.startswith(" ") else super(_Paragraphs, self)._fill_text(each, width, indent)
            for each in paragraphs
        )


class Parser(ArgumentParser):
    """``ArgumentParser`` that raises an error instead of printing its usage and exiting.

    Args:
        command: Command that it parses, such as "puffer list".
        description: Description of the command. Paragraphs that start with a space are not wrapped.
        add_help: Whether ``--help`` prints the flags.
    """

    def __init__(self, command: str, description: str = "", add_help: bool = True) -> None:
        super().__init__(
            as_typed(command),
            description=with_commands(description),
            formatter_class=_Paragraphs,
            add_help=add_help,
            allow_abbrev=False,
        )
        self._command = command
        self.register("type", Path, user_path)

    def parse(self, argv: list[str]) -> Namespace:
        """Parse all of ``argv``.

        Raises:
            UnknownNameError: A flag does not exist. The message suggests the nearest ones.
            UsageError: A value is missing or wrong, or there are too many arguments.
        """
        namespace, unknown = self.parse_known_args(argv)
        if unknown:
            if not unknown[0].startswith("-"):
                raise UsageError(f"{self._command}: takes no argument {unknown[0]!r}; see {self.prog} --help")
            raise UnknownNameError.of(self._command, "flag", unknown[0], self.flags)
        return namespace

    @property
    def flags(self) -> list[str]:
        """Return all flags that start with ``--``."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Raise UsageError for a value that argparse finds missing or wrong."""
        raise UsageError(f"{self._command}: {message}; see {self.prog} --help")


def with_commands(text: str) -> str:
    """Return a help text with each ``puffer VERB`` as it is typed here."""
    return text.replace("puffer ", as_typed("puffer "))


def check_video(prog: str, video: Path | None) -> None:
    """Raise unless ``--video`` was not given or names a file NAME.mp4 in a folder that exists."""
    if video is None:
        return
    if video.is_dir() or not video.parent.is_dir():
        raise UsageError(f"{prog}: --video must be a file in a folder that exists, got {video}")
    check_video_path(f"{prog}: --video", video)


def split_env(prog: str, argv: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the texts of the keywords of the environment, for ``typed``, and the other flags.

    Raises:
        UsageError: A keyword has no value.
    """
    return split_flags(prog, argv, ENV)


def typed(env_name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return keywords of an environment with the types that it declares. It checks their values itself."""
    if not texts:
        return {}
    try:
        kinds = registry.keyword_kinds(env_name)
    except PufferError:  # there is no such environment, which is reported where it is made
        kinds = {}
    return {key: keyword_value(text, kinds.get(key, frozenset())) for key, text in texts.items()}


def split_flags(prog: str, argv: list[str], prefix: str) -> tuple[dict[str, str], list[str]]:
    """Return the texts of all flags that begin with ``prefix``, by the rest of their names, and the other flags.

    Raises:
        UsageError: A flag has no value.
    """
    values: dict[str, str] = {}
    rest: list[str] = []
    tokens = iter(argv)
    for token in tokens:
        if not token.startswith(prefix):
            rest.append(token)
            continue
        key, equals, text = token.removeprefix(prefix).partition("=")
        if not equals:
            text = next(tokens, "")
        if not key or (not equals and (not text or text.startswith("--"))):
            raise UsageError(f"{prog}: {token}: expected a value; write {prefix}{key or 'name'} VALUE")
        values[key.replace("-", "_")] = text
    return values, rest


def tracker_flags(track: str | None) -> list[str]:
    """Return the flags of the setting that ``--track LIST`` stands for."""
    return [] if track is None else ["--track.loggers", *track.split(",")]


def with_switch_values(prog: str, argv: Sequence[str]) -> list[str]:
    """Return ``argv`` with a value for each true/false setting.

    ``--train.norm-adv`` alone becomes ``--train.norm-adv=True``. ``--train.no-norm-adv`` and ``--no-train.norm-adv``
    become ``--train.norm-adv=False``.

    Raises:
        UsageError: A flag with ``no-`` has a value.
    """
    found: list[str] = []
    for token, following in itertools.zip_longest(argv, argv[1:], fillvalue=""):
        flag, equals, value = token.partition("=")
        match = SWITCH.fullmatch(flag)
        setting = f"{match['section']}.{match['name'].replace('-', '_')}" if match else ""
        is_alone = not equals and (not following or following.startswith("-"))
        if not match or setting not in SWITCHES or (match["no"] and match["off"]):
            found.append(token)
            continue
        positive = "--" + setting.replace("_", "-")
        if not (match["no"] or match["off"]):
            found.append(f"{positive}=True" if is_alone else token)
        elif is_alone:
            found.append(f"{positive}=False")
        else:
            value = value if equals else following
            raise UsageError(f"{prog}: {flag}: expected no value, got {value!r}; write {flag}, or {positive} {value}")
    return found


def parse_config(prog: str, base: Config, argv: list[str], about: str = "", others: Sequence[str] = ()) -> Config:
    """Return ``base`` with the settings of ``parse_settings``, which has the same arguments and errors."""
    return base.override(parse_settings(prog, base, argv, about, others))


def parse_settings(
    prog: str, base: Config, argv: list[str], about: str = "", others: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the settings that flags set, by dotted name, such as ``{"train.seed": 7}``.

    Args:
        prog: Command for messages, such as "puffer train".
        base: Settings of the files. Its values are the defaults that ``--help`` shows.
        argv: Flags such as ``--section.name VALUE``. True/false settings take a value, none, or ``no-``.
        about: Text above the list of flags in the help.
        others: Flags of the command that are not settings, for suggestions.

    Raises:
        UnknownNameError: A flag does not exist. The message suggests the nearest ones.
        UsageError: The value of a flag is missing, out of range, or has the wrong type.
        SystemExit: After ``--help``.
    """
    texts, flags = split_flags(prog, with_switch_values(prog, argv), ENV)
    keywords = {f"env.{key}": value for key, value in typed(base.env_name, texts).items()}
    if not flags:
        return keywords
    import tyro  # comes with the training packages, which other verbs do without
    from tyro import _errors  # private, as tyro says itself: its version is pinned, and tests watch this

    names = [flag.partition("=")[0].removeprefix("--").replace("-", "_") for flag in flags if flag.startswith("--")]
    wants_help = not {"--help", "-h"}.isdisjoint(flags)
    named = {name.partition(".")[0] for name in names}  # tyro takes 45 ms for all sections
    sections: list[Any] = [
        (each.name, each.type, dataclasses.field(default=getattr(base, each.name)))
        for each in SECTIONS
        if wants_help or each.name in named
    ]

    def refuse(event: _errors.ParseErrorEvent) -> None:
        raise _refusal(prog, base, event, others)

    with _errors.on_parse_error(refuse):
        chosen: Any = tyro.cli(
            dataclasses.make_dataclass("Flags", sections, frozen=True),
            prog=as_typed(f"{prog} {base.env_name}"),
            description=_help(base, about) if wants_help else "",
            args=flags,
            config=(tyro.conf.FlagConversionOff,),  # with_switch_values gives every switch a value
            registry=_as_written(),
        )
    return keywords | {name: attrgetter(name)(chosen) for name in names}


def _as_written() -> "ConstructorRegistry":
    """Return rules for 1e6 as an int, true as a bool, and 64,64 or a,b as a tuple.

    Help shows ``INT|None`` if None is valid.
    """
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    registry = ConstructorRegistry()

    @registry.primitive_rule
    def whole_numbers(info: "PrimitiveTypeInfo") -> PrimitiveConstructorSpec[int | None] | None:
        if info.type not in (int, int | None):
            return None
        unset = info.type is not int
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="INT|None" if unset else "INT",
            instance_from_str=lambda words: None if unset and words[0] == "None" else whole_number(words[0]),
            is_instance=lambda value: isinstance(value, int) or (unset and value is None),
            str_from_instance=lambda value: [str(value)],
        )

    @registry.primitive_rule
    def several_whole_numbers(info: "PrimitiveTypeInfo") -> PrimitiveConstructorSpec[tuple[int, ...]] | None:
        if get_origin(info.type) is not tuple or get_args(info.type) != get_args(Counts):
            return None
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar="INT,INT,...",
            instance_from_str=_whole_numbers,
            is_instance=lambda value: isinstance(value, tuple) and all(isinstance(each, int) for each in value),
            str_from_instance=lambda value: [str(each) for each in value],
        )

    @registry.primitive_rule
    def several_words(info: "PrimitiveTypeInfo") -> PrimitiveConstructorSpec[tuple[str, ...]] | None:
        if info.type != tuple[str, ...]:
            return None
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar="STR,STR,...",
            instance_from_str=lambda words: tuple(filter(None, ",".join(words).split(","))),
            is_instance=lambda value: isinstance(value, tuple) and all(isinstance(each, str) for each in value),
            str_from_instance=lambda value: list(value),
        )

    @registry.primitive_rule
    def switch(info: "PrimitiveTypeInfo") -> PrimitiveConstructorSpec[bool | None] | None:
        if info.type not in (bool, bool | None):
            return None
        unset = info.type is not bool
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="[true|false|None]" if unset else "[true|false]",
            instance_from_str=lambda words: None if unset and words[0] == "None" else _switch(words[0]),
            is_instance=lambda value: isinstance(value, bool) or (unset and value is None),
            str_from_instance=lambda value: [str(value) if value is None else str(value).lower()],
        )

    return registry


def _whole_numbers(words: Sequence[str]) -> tuple[int, ...]:
    """Return the ints of ``64,64``, ``64 64`` or ``[64, 64]``."""
    numbers = ",".join(words).strip("[]()").split(",")
    return tuple(whole_number(number) for number in numbers if number.strip())


def _switch(text: str) -> bool:
    """Return the bool for true or false, in upper or lower case."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"got {text!r}")
    return text.lower() == "true"


def _refusal(
    prog: str, base: Config, event: "_errors.ParseErrorEvent", others: Sequence[str]
) -> UsageError | UnknownNameError:
    """Return the error for what tyro could not parse."""
    from tyro import _errors

    see = "see " + as_typed(f"{prog} {base.env_name} --help")
    match event:
        case _errors.UnrecognizedArgs(tokens=[token, *_]) if token.startswith("-"):
            return _unknown_flag(prog, base, token.partition("=")[0], others)
        case _errors.UnrecognizedArgs(tokens=[token, *_]):
            return UsageError(f"{prog}: {token!r} belongs to no flag; {see}")
        case _errors.BadValue(argument=argument):
            return UsageError(f"{prog}: {argument.display_name()}: expected a value; {see}")
        case _errors.InvalidChoice(argument=argument, value=value, choices=choices):
            return UsageError(
                f"{prog}: {argument.display_name()}: expected {' or '.join(choices)}, got {value!r}; {see}"
            )
        case _errors.InstantiationFailure(argument=argument, message=message) if argument is not None:
            kind = (argument.lowered.metavar or "").strip("[]").replace("|", " or ")
            return UsageError(f"{prog}: {argument.display_name()}: expected {kind}: {message}; {see}")
        case _errors.InstantiationFailure(message=message):  # of a section, which checks its ranges
            return UsageError(message)
    return UsageError(f"{prog}: the flags could not be understood; {see}")


def _unknown_flag(prog: str, base: Config, flag: str, others: Sequence[str]) -> UnknownNameError:
    """Return the error for ``flag``, with suggestions."""
    setting = flag.lstrip("-").replace("-", "_")
    if setting in RENAMED:
        return UnknownNameError(f"{prog}: {RENAMED[setting].as_flag()}")
    if setting in PUFFERLIB_3 and setting not in setting_names():
        here = with_commands(PUFFERLIB_3[setting])
        return UnknownNameError(f"{prog}: {flag} is a flag of PufferLib 3; type here: {here}")
    known = [*setting_names(), *("env." + name for name in [*base.env, *_defaults(base.env_name)])]
    close = nearest(flag, others, count=1, cutoff=0.8) or [
        "--" + name.replace("_", "-") for name in suggest(setting, known)
    ]
    if not close:
        see = as_typed(f"{prog} {base.env_name} --help")
        return UnknownNameError(f"{prog}: unknown flag {flag!r}; see {see}")
    return UnknownNameError.of(prog, "flag", flag, [], close)


def _parameters(env_name: str) -> tuple[Any, ...]:
    source = registry.c_file(env_name) or env_name
    return type_of(source).parameters if is_c_file(source) or source in env_types() else ()


def _defaults(env_name: str) -> dict[str, Any]:
    """Return the known keywords of an environment with their defaults."""
    if registry.is_inside(env_name) or registry.c_file(env_name):
        return {p.name: p.default for p in _parameters(env_name)}
    return registry.own_keywords(env_name)


def _help(base: Config, about: str) -> str:
    lines = [with_commands(about), "", SPELLING, ""]
    if base.env_name in UNNAMED:
        lines.append(f"Keywords of the environment are flags too: {ENV}NAME VALUE. Name an environment to list them.")
        return "\n".join(lines)
    lines.append(f"Keywords of the environment ({ENV}NAME VALUE):")
    parameters = {p.name: p for p in _parameters(base.env_name)}
    defaults = _defaults(base.env_name)
    for name in [*base.env, *(name for name in defaults if name not in base.env)]:
        value = f"now {base.env[name]!r}" if name in base.env else f"default {defaults[name]}"
        p = parameters.get(name)
        lines.append(f"  {ENV}{name.replace('_', '-')}: " + (f"{p.about} ({p.domain}; {value})" if p else value))
    if parameters:
        lines.append(
            "  num-threads, pixels and others of every environment in C: python -m pydoc pufferlib.ocean.OceanEnv"
        )
    if source := registry.c_file(base.env_name):
        lines.append(f"  more: {source}")
    elif "/" in base.env_name and registry.is_inside(base.env_name):
        lines.append(f"  more: python -m pydoc pufferlib.bindings.{base.env_name.partition('/')[0]}")
    elif base.env_name in ocean.python_names():
        lines.append(f"  more: python -m pydoc pufferlib.ocean.{base.env_name}")
    return "\n".join(lines)
