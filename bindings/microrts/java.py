"""The Java virtual machine of this process, with MicroRTS loaded."""

import importlib.util
import os
import threading
import zipfile
from pathlib import Path
from typing import Any

import jpype
import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError, BindingMissing

__all__ = ["FOLDER", "OPPONENTS", "common_chance", "opponent", "own_chance", "shared_integers", "start"]

_found = importlib.util.find_spec("gym_microrts")
if _found is None or not _found.submodule_search_locations:
    raise ModuleNotFoundError("No module named 'gym_microrts'", name="gym_microrts")
FOLDER = Path(_found.submodule_search_locations[0]) / "microrts"  # its Python code is never imported

# In this order: limit the heap (default: a quarter of the memory), use one garbage collection thread, write no files
# under /tmp, leave Ctrl-C to Python, run without a display, and give access to the seeds of java.util.
_OPTIONS = (
    *("-Xmx1g", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xrs", "-Djava.awt.headless=true"),
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    # Java places a guard page at this depth of the stack, even in the thread that starts it. With the default of
    # 1 MiB, Procgen, which needs as much, and deep recursion would crash this process.
    "-Xss8m",
)
_APT = "openjdk-17-jre-headless"

# Class of each scripted player, and whether its constructor takes the table of units.
OPPONENTS = {
    "coacAI": ("ai.coac.CoacAI", True),
    "lightRushAI": ("ai.abstraction.LightRush", True),
    "naiveMCTSAI": ("ai.mcts.naivemcts.NaiveMCTS", True),
    "passiveAI": ("ai.PassiveAI", False),
    "randomAI": ("ai.RandomBiasedSingleUnitAI", False),
    "randomBiasedAI": ("ai.RandomBiasedAI", False),
    "workerRushAI": ("ai.abstraction.WorkerRush", True),
}

_WITH_CHANCE = ("rts.GameState", "rts.PlayerActionGenerator", "rts.UnitAction", "util.Sampler")

_started_in: int | None = None  # process id
_starting = threading.Lock()  # ensures that only one thread starts Java


def start(where: str) -> None:
    """Start Java, unless it is already running.

    Raises:
        BindingMissing: Java is not installed.
        APIUsageError: Java was started by other code, or before this process was forked.
    """
    with _starting:
        if not jpype.isJVMStarted():
            _start(where)
        elif _started_in is None:
            raise APIUsageError(
                f"{where}: Java was started in this process without MicroRTS, and cannot be started twice; make the "
                "first environment before that, or use other processes, with backend='Multiprocessing'"
            )
        elif _started_in != os.getpid():
            raise APIUsageError(
                f"{where}: Java was started before this process was forked, and cannot be used in the fork; "
                "make the first environment after the fork, or start processes with the method 'forkserver'"
            )


def _start(where: str) -> None:
    global _started_in
    jars = [FOLDER / "microrts.jar", *sorted((FOLDER / "lib/bots").glob("*.jar"))]
    try:
        jpype.startJVM(*_OPTIONS, classpath=[str(jar) for jar in jars], convertStrings=False)
    except jpype.JVMNotFoundException as error:
        raise BindingMissing(
            f"{where}: needs a Java runtime, which is not installed; run: sudo apt-get install {_APT}, "
            "or use the image tank-full, which has it: docker compose run --rm tank-full"
        ) from error
    _started_in = os.getpid()
    if threading.current_thread() is not threading.main_thread():
        # At exit, Java would wait forever for the thread that started it. After detaching, the next call attaches the
        # thread again as a daemon, for which Java does not wait.
        jpype.JClass("java.lang.Thread").detach()
    _make_coac_seedable()


def _make_coac_seedable() -> None:
    """Load a class of coacAI with another random generator.

    If one of its soldiers finds no path to its target, it moves according to a new ``Random``, which Java seeds by the
    clock. ``SplittableRandom`` has the same methods, but seeds new objects from a counter that ``common_chance`` can
    set.
    """
    with zipfile.ZipFile(FOLDER / "lib/bots/Coac.jar") as jar:
        code = jar.read("ai/coac/CoacAttack.class")
    code = code.replace(_utf8("java/util/Random"), _utf8("java/util/SplittableRandom"))
    lookups = jpype.JClass("java.lang.invoke.MethodHandles")
    neighbour = jpype.JClass("ai.coac.AttackPosition").class_
    lookups.privateLookupIn(neighbour, lookups.lookup()).defineClass(jpype.JArray(jpype.JByte)(code))


def _utf8(text: str) -> bytes:
    """Encode a name as in a class file: its length, followed by its characters."""
    return len(text).to_bytes(2, "big") + text.encode()


class _SplittableSeeds:
    """The counter from which Java seeds every new ``SplittableRandom``, with the method ``setSeed`` of a generator."""

    def __init__(self) -> None:
        field = jpype.JClass("java.util.SplittableRandom").class_.getDeclaredField("defaultGen")
        field.setAccessible(True)
        self.setSeed = field.get(None).set


def opponent(name: str, units: Any) -> Any:
    """Return a new scripted player."""
    kind, takes_units = OPPONENTS[name]
    return jpype.JClass(kind)(*([units] if takes_units else []))


def common_chance() -> list[Any]:
    """Return the random generators that all games of this process share."""
    kinds = [jpype.JClass(name).class_ for name in _WITH_CHANCE]
    return [_SplittableSeeds(), *(generator for kind in kinds for generator in _generators(kind, None))]


def own_chance(player: Any) -> list[Any]:
    """Return the random generators of one scripted player."""
    found, kind = [], player.getClass()
    while kind is not None:
        found += _generators(kind, player)
        kind = kind.getSuperclass()
    return found


def _generators(kind: Any, owner: Any) -> list[Any]:
    """Return the values of all java.util.Random fields of ``owner``, or of the class if it is None."""
    fields = [field for field in kind.getDeclaredFields() if str(field.getType().getName()) == "java.util.Random"]
    for field in fields:
        field.setAccessible(True)
    return [field.get(owner) for field in fields]


def shared_integers(shape: tuple[int, ...]) -> tuple[Any, npt.NDArray[np.int32]]:
    """Return memory that Java accesses as an integer buffer, and Python as an array."""
    from jpype.nio import convertToDirectBuffer

    order = jpype.JClass("java.nio.ByteOrder").nativeOrder()
    array = np.zeros(shape, np.int32)
    return convertToDirectBuffer(array.view(np.uint8).reshape(-1)).order(order).asIntBuffer(), array
