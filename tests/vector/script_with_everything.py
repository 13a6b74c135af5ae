"""Script that uses in a worker what users define in scripts and notebooks. Its argument is the name of a backend."""

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import logging
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, NewType, ParamSpec, Protocol, TypeVar, TypeVarTuple, runtime_checkable

import gymnasium
import numpy as np

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
Reward = NewType("Reward", float)

LOCK, RLOCK, CONDITION, BARRIER = threading.Lock(), threading.RLock(), threading.Condition(), threading.Barrier(1)
EVENT, SEMAPHORE, LOCAL = threading.Event(), threading.Semaphore(2), threading.local()
EVENT.set()
log = logging.getLogger(__name__)


class Move(enum.Enum):
    UP = (0, 1)
    DOWN = (0, -1)
    TOP = UP

    def __init__(self, x, y):
        self.x, self._y = x, y

    @property
    def y(self):
        return self._y


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    BOTH = READ | WRITE


class Color(enum.StrEnum):
    RED = enum.auto()


@dataclasses.dataclass
class Config:
    size: int = 3
    names: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Position:
    x: int
    y: int = 0


class Pair(NamedTuple):
    a: int
    b: float = 0.5


Point = collections.namedtuple("Point", "x y")


class Stack(Generic[T]):
    def __init__(self):
        self.items: list[T] = []

    def put(self, item: T) -> list[T]:
        return [*self.items, item]


class Numbers(Stack[int]):
    pass


class Many(Generic[*Ts]):
    pass


@runtime_checkable
class HasSize(Protocol):
    @property
    def size(self) -> int: ...


def decorated(function: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    return inner


@functools.lru_cache(maxsize=99)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


row = functools.partial(functools.cache(lambda n: tuple(range(n))), 4)


@functools.singledispatch
def area(shape):
    return 0


@area.register
def _(shape: int):
    return shape + area("nothing")


@area.register(Position)
def _(shape):
    return 10 * area(shape.x)


class Base(abc.ABC):
    @property
    @abc.abstractmethod
    def size(self): ...

    @staticmethod
    @functools.cache
    def double(n):
        return 2 * n


class Piece(Base):
    lock = threading.Lock()

    class Inner:
        @functools.lru_cache  # noqa: B019 - as users write it
        def name(self):
            return type(self).__name__

    def __init__(self):
        super().__init__()

    @property
    def size(self):
        return 3

    @functools.cached_property
    def area(self):
        return self.size**2

    @functools.singledispatchmethod
    def kind(self, value):
        return "any"

    @kind.register
    def _(self, value: int):
        return "int"


@contextlib.contextmanager
def opened():
    yield 5


def exit_with_five():
    sys.exit(5)


def exit_code_of_a_child():
    # The default of Python 3.14 starts children that cannot import functions of a script.
    child = multiprocessing.get_context("fork").Process(target=exit_with_five)
    child.start()
    child.join()
    return child.exitcode


@decorated
def use_everything() -> Reward:
    with LOCK, RLOCK, CONDITION, SEMAPHORE, Piece.lock, opened() as five:
        assert five == 5
    assert EVENT.is_set()
    LOCAL.here = True
    assert BARRIER.wait() == 0
    log.debug("all well")
    assert (Move.UP.x, Move.UP.y, Move["TOP"], Move((0, -1))) == (0, 1, Move.UP, Move.DOWN)
    assert Access.READ | Access.WRITE is Access["BOTH"] is Access.BOTH
    assert Color.RED == "red"
    assert Config().names == []
    assert dataclasses.replace(Position(1), y=2) == Position(1, 2)
    assert (Pair(1).b, Point(1, 2).y) == (0.5, 2)
    assert Stack[int]().put(3) == Numbers().put(3) == [3]
    assert Many[int, str]()
    assert (fibonacci(50), fibonacci.cache_parameters()["maxsize"]) == (12586269025, 99)
    assert row() == (0, 1, 2, 3)
    assert (area(3), area(Position(2))) == (3, 20)
    piece = Piece()
    assert (piece.area, piece.kind(1), piece.kind("a"), Piece.double(4)) == (9, "int", "any", 8)
    assert Piece.Inner().name() == "Inner"
    assert isinstance(piece, HasSize)
    assert exit_code_of_a_child() == 5
    return Reward(1.0)


def local_class():
    bonus = 7

    class Local(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,))
        action_space = gymnasium.spaces.Discrete(3)

        @functools.cache  # noqa: B019 - as users write it
        def worth(self, action):
            return int(action) + bonus

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            use_everything()
            info = {"move": Move.TOP, "access": Access.BOTH, "color": Color.RED, "config": Config()}
            return np.zeros(2, np.float32), {**info, "position": Position(1), "pair": Pair(1), "point": Point(1, 2)}

        def step(self, action):
            return np.zeros(2, np.float32), self.worth(action), False, False, {"name": __class__.__name__}

    return Local


def pickle_all_the_time(failures, stop):
    while not stop.is_set():
        try:
            pickle.loads(pickle.dumps(Config()))
        except Exception as error:
            failures.append(error)


failures, stop = [], threading.Event()
thread = threading.Thread(target=pickle_all_the_time, args=(failures, stop))
thread.start()
try:
    envs = pufferlib.vector.make(
        functools.partial(GymnasiumPufferEnv, env_creator=local_class()),
        num_envs=2,
        num_workers=2,
        overwork=True,
        backend=sys.argv[1],
    )
finally:
    stop.set()
    thread.join()
assert not failures, failures[0]
(info, _) = envs.reset()[1]
assert info["move"] is Move.UP
assert info["access"] is Access.BOTH
assert (info["config"], info["position"], info["pair"], info["point"]) == (Config(), Position(1), Pair(1), Point(1, 2))
*_, rewards, _, _, infos = envs.step([0, 1])
assert (rewards.tolist(), infos) == ([7, 8], [{"name": "Local"}] * 2)
envs.close()
print("everything works")
