"""Environments of one process: built once, each on its own rows, and stepped one after the other.

Serial uses runners in the calling process, Multiprocessing one in each worker, and Ray one in each actor. The step loop
is compiled (``_env_loop.pyx``). Native environments without a backend and ``TwinEnvs`` step without a runner.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

from pufferlib.buffers import Buffers, HasBuffers, offer_buffers, slice_rows
from pufferlib.env import AutoresetMode, Infos, PufferEnv
from pufferlib.errors import APIUsageError, place_of
from pufferlib.machine.signals import is_requested
from pufferlib.spaces import compact_box
from pufferlib.vector._env_loop import EmulatedSlot, EnvLoop, EnvSlot, NativeSlot
from pufferlib.vector.specs import EnvDescription, EnvSpec, RowSpec

__all__ = [
    "EnvRunner",
    "Memory",
    "build_env",
    "env_rows",
    "exits_raise",
    "names_keyword",
    "own_autoreset",
    "raise_for_exit",
]

Memory = Callable[[RowSpec, int], Buffers]
P = ParamSpec("P")
R = TypeVar("R")

_HOW_TO_WRAP = (
    "call pufferlib.make(YourEnv, num_envs=...), or wrap a Gymnasium environment as "
    "functools.partial(pufferlib.emulation.GymnasiumPufferEnv, env_creator=...), a PettingZoo one with "
    "PettingZooPufferEnv"
)


def exits_raise(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that runs environments in this process, so that their ``sys.exit()`` raises an error.

    Such an exit would end the whole program, with exit code 0.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SystemExit as exited:
            raise_for_exit(exited)

    return call


def raise_for_exit(exited: SystemExit) -> NoReturn:
    """Raise an APIUsageError for an environment that called ``sys.exit()``. Raise a requested exit again."""
    if is_requested(exited):
        raise exited
    error = APIUsageError(
        f"the environment must not exit, got SystemExit({exited.code!r}) ({place_of(exited)}); to end an episode, "
        "return terminated=True from step; to report a failure, raise an exception"
    )
    for note in getattr(exited, "__notes__", ()):  # the environment, its seed and actions
        error.add_note(note)
    raise error from exited


class EnvRunner(EnvLoop):
    """Environments on adjacent rows.

    Args:
        specs: Specs of the environments to build.
        autoreset: Autoreset mode. None uses the default of the environments.
        memory: Function from a RowSpec and an environment index to the rows of this environment. It is called while
            an environment is built, as soon as its spaces are known. So the size of the batch is known from the first
            environment, and no extra environment has to be built.
        progress: Memory whose first element is set to the index of the environment being built.
    """

    def __init__(
        self,
        specs: Sequence[EnvSpec],
        autoreset: AutoresetMode | None,
        memory: Memory,
        progress: "list[int] | memoryview[int] | None" = None,
    ) -> None:
        self._slots: list[EnvSlot] = []
        progress = [0] if progress is None else progress
        made: set[int] = set()
        try:
            for position, spec in enumerate(specs):
                progress[0] = position
                self._slots.append(_make_slot(spec, autoreset, memory))
                autoreset = self._slots[-1].autoreset
                self._check_own(made)
        except BaseException as error:
            error.add_note(f"while building environment {spec.index}, seed {spec.seed}")
            self._close_quietly()
            raise
        super().__init__(self._slots)
        self.autoreset: AutoresetMode = self._slots[0].autoreset
        self.next_options: Sequence[dict[str, Any] | None] | None = None

    def _check_own(self, made: set[int]) -> None:
        """Raise if the last environment is, or wraps, one of those ``made`` before, which would be stepped twice."""
        env = getattr(self._slots[-1].env, "unwrapped", self._slots[-1].env)
        if id(env) in made:
            raise APIUsageError(
                f"vector.make: each environment must be one of its own, got {env} in two of them; "
                "give a class or function that makes it (env_creator), not one that is made already"
            )
        made.add(id(env))

    def reset(
        self,
        seeds: Sequence[int | None],
        options: Sequence[dict[str, Any] | None] | None = None,
        positions: Sequence[int] | None = None,
    ) -> Infos:
        """Start new episodes. A full reset without options uses ``next_options``. See ``EnvLoop.reset``."""
        if positions is None and options is None:
            options, self.next_options = self.next_options, None
        return super().reset(seeds, options, positions)

    @property
    def envs(self) -> list[Any]:
        """Environments of this runner."""
        return [slot.env for slot in self._slots]

    def describe(self) -> EnvDescription:
        """Return a description of the first environment. All others are alike."""
        env: Any = self._slots[0].env
        space = env.single_observation_space
        return EnvDescription(
            single_observation_space=compact_box(space),
            single_action_space=env.single_action_space,
            num_agents=int(env.num_agents),
            emulated=env.emulated,
            action_mask=None if env.emulated else env.action_mask,
            obs_dtype=env.obs_dtype,
            autoreset=self.autoreset,
            metadata=dict(getattr(env, "metadata", None) or {}),
            render_mode=getattr(env, "render_mode", None),
        )

    def close(self) -> None:
        """Close all environments, then raise the first error."""
        errors = self._close_quietly()
        if errors:
            raise errors[0]

    def _close_quietly(self) -> list[Exception]:
        errors = []
        for slot in self._slots:
            try:
                exits_raise(slot.env.close)()
            except Exception as error:
                error.add_note(f"while closing environment {slot.spec.index}")
                errors.append(error)
        self._slots.clear()
        return errors


def own_autoreset(env: PufferEnv, asked: AutoresetMode | None) -> AutoresetMode:
    """Return the autoreset mode of a native environment.

    Raises:
        APIUsageError: ``asked`` is a different mode.
    """
    if asked not in (None, env.autoreset):
        raise APIUsageError(
            f"vector.make: autoreset must be {env.autoreset!r}, which {type(env).__name__} does by itself, "
            f"got {asked!r}; leave it out, or let the environment take autoreset as a keyword"
        )
    return AutoresetMode(env.autoreset)


def build_env(spec: EnvSpec, buf: Any, autoreset: AutoresetMode | None) -> Any:
    """Call the creator of ``spec`` with ``buf``, and with ``seed`` and ``autoreset`` if it takes them.

    If the creator takes no ``buf``, the arrays are used by the first environment that it creates.

    Raises:
        APIUsageError: The class behind the creator takes no ``buf``, the positional arguments already set ``buf``, or
            the result is not a PufferEnv.
    """
    named, any_keyword, filled = _keywords(spec.creator, len(spec.args))
    if "buf" in filled:
        raise APIUsageError(
            f"vector.make: env_args must end before buf, got {len(spec.args)} arguments for environment {spec.index}, "
            "of which one falls on it; give those that come after it in env_kwargs"
        )
    kwargs = dict(spec.kwargs)
    if "seed" in named:
        kwargs.setdefault("seed", spec.seed)
    if "autoreset" in named and autoreset is not None and _takes_autoreset_mode(spec.creator):
        kwargs.setdefault("autoreset", str(autoreset))
    if "buf" not in named and not any_keyword:
        with offer_buffers(buf):
            env = spec.creator(*spec.args, **kwargs)
    else:
        try:
            env = spec.creator(*spec.args, buf=buf, **kwargs)
        except TypeError as error:
            if "keyword argument 'buf'" in str(error):
                raise _buf_error(spec) from error
            raise
    if not isinstance(env, PufferEnv) and not getattr(env, "emulated", False):
        raise APIUsageError(
            f"vector.make: environment {spec.index} must be a PufferEnv, got {type(env).__name__}; {_HOW_TO_WRAP}"
        )
    return env


def _make_slot(spec: EnvSpec, autoreset: AutoresetMode | None, memory: Memory) -> EnvSlot:
    adopted: list[tuple[HasBuffers, Buffers]] = []

    def rows(env: HasBuffers) -> Buffers:
        adopted.append((env, memory(RowSpec.of(env), spec.index)))
        return adopted[-1][1]

    env = build_env(spec, rows, autoreset)
    try:
        return _slot_of(env, spec, autoreset, adopted)
    except BaseException:
        with contextlib.suppress(Exception):  # the first error matters
            env.close()
        raise


def _slot_of(
    env: Any, spec: EnvSpec, autoreset: AutoresetMode | None, adopted: Sequence[tuple[HasBuffers, Buffers]]
) -> EnvSlot:
    """Return the slot of a new environment.

    Args:
        env: Environment.
        spec: Spec of the environment.
        autoreset: Autoreset mode, or None for the default of the environment.
        adopted: Environments that took arrays while it was made, with the arrays.
    """
    if not adopted:
        kind = type(env).__name__
        advice = f"let the function that makes it take buf=None and seed=0, and return {kind}(..., buf=buf, seed=seed)"
        if isinstance(env, PufferEnv) and not env.emulated:
            advice = "take buf=None and pass it on: super().__init__(buf)"
        raise APIUsageError(f"vector.make: environment {spec.index} ({kind}) ignores the arrays it is given; {advice}")
    taker, buffers = adopted[-1]
    if taker is not env and "buf" not in _keywords(spec.creator, len(spec.args))[0]:
        raise APIUsageError(
            f"vector.make: the creator of environment {spec.index} makes several, of which {type(taker).__name__} took "
            f"the arrays and {type(env).__name__} was returned; let it take buf=None and hand it to the one it returns"
        )
    if isinstance(env, PufferEnv) and not env.emulated:
        return NativeSlot(env, spec, buffers, own_autoreset(env, autoreset))
    return EmulatedSlot(env, spec, buffers, autoreset or AutoresetMode.NEXT_STEP)


def env_rows(buffers: Buffers, num_agents: int, position: int) -> Buffers:
    """Return the rows of the environment at ``position`` in ``buffers``."""
    return slice_rows(buffers, position * num_agents, (position + 1) * num_agents)


def names_keyword(spec: EnvSpec, name: str) -> bool:
    """Return whether the creator of ``spec`` names a keyword argument ``name``."""
    return name in _keywords(spec.creator, len(spec.args))[0]


def _keywords(creator: Callable[..., Any], num_args: int) -> tuple[set[str], bool, set[str]]:
    """Return the keyword names, whether other keywords are accepted, and the names filled by ``num_args`` arguments."""
    try:
        parameters = list(inspect.signature(creator).parameters.values())
    except (TypeError, ValueError):  # written in C: it raises its own error for unknown keywords
        return set(), True, set()
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    filled = {p.name for p in by_place[:num_args]}
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)} - filled
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters), filled


def _takes_autoreset_mode(creator: Callable[..., Any]) -> bool:
    """Return whether keyword ``autoreset`` takes one of these modes: its default is a mode, None or missing."""
    parameter = inspect.signature(creator).parameters.get("autoreset")
    return parameter is None or parameter.default in (*AutoresetMode, None, parameter.empty)


def _buf_error(spec: EnvSpec) -> APIUsageError:
    name = getattr(spec.creator, "__name__", None) or repr(spec.creator)
    return APIUsageError(
        f"vector.make: the creator of environment {spec.index} must take buf and hand it to the PufferEnv it makes, "
        f"got {name}, which does not; {_HOW_TO_WRAP}"
    )
