"""The Java virtual machine of this process, with MicroRTS in it."""

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
FOLDER = Path(_found.submodule_search_locations[0]) / "microrts"  # its Python is never imported

# No heap of a quarter of the memory, no thread of garbage collection per core, no files under /tmp, Ctrl-C
# stays Python's, and the seeds of java.util are ours to set.
_OPTIONS = (
    *("-Xmx1g", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xrs", "-Djava.awt.headless=true"),
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    # Java puts its guard at this depth into the stack of the thread that starts it too. At the 1 MiB that it takes by
    # itself, Procgen, which needs as much, would crash in this process, and so would deep recursion.
    "-Xss8m",
)
_APT = "openjdk-17-jre-headless"

# Class of each scripted player, and whether it is told the table of units.
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

_started_in: int | None = None  # process
_starting = threading.Lock()  # a process starts Java once, whatever the number of threads


def start(where: str) -> None:
    """Start Java, unless it runs.

    Raises:
        BindingMissing: There is no Java.
        APIUsageError: It was started by somebody else, or before this process was forked.
    """
    with _starting:
        if not jpype.isJVMStarted():
            _start(where)
        elif _started_in is None:
            raise APIUsageError(
                f"{where}: Java was started in this process without MicroRTS, and cannot be started twice; make the "
                "first environment before that, or play in other processes, with backend='Multiprocessing'"
            )
        elif _started_in != os.getpid():
            raise APIUsageError(
                f"{where}: Java was started in the process that this one was forked from, and does not live on in it; "
                "make the first environment after the fork, or start processes with the method 'forkserver'"
            )


def _start(where: str) -> None:
    global _started_in
    jars = [FOLDER / "microrts.jar", *sorted((FOLDER / "lib/bots").glob("*.jar"))]
    try:
        jpype.startJVM(*_OPTIONS, classpath=[str(jar) for jar in jars], convertStrings=False)
    except jpype.JVMNotFoundException as error:
        raise BindingMissing(
            f"{where}: needs a Java runtime, which is not there; run: sudo apt-get install {_APT}, "
            "or use the image tank-full, which has it: docker compose run --rm tank-full"
        ) from error
    _started_in = os.getpid()
    if threading.current_thread() is not threading.main_thread():
        # Java, which ends with the process, would wait for ever for the thread that started it. Detached, that is
        # attached again by its next call, as one that nobody waits for.
        jpype.JClass("java.lang.Thread").detach()
    _make_coac_seedable()


def _make_coac_seedable() -> None:
    """Load a class of coacAI with another generator in it.

    A soldier of its that finds no way to its target goes where a new ``Random`` says, which Java seeds by
    the clock. A new ``SplittableRandom`` has the same methods, and takes its seed from a counter
    that ``common_chance`` can set.
    """
    with zipfile.ZipFile(FOLDER / "lib/bots/Coac.jar") as jar:
        code = jar.read("ai/coac/CoacAttack.class")
    code = code.replace(_utf8("java/util/Random"), _utf8("java/util/SplittableRandom"))
    lookups = jpype.JClass("java.lang.invoke.MethodHandles")
    neighbour = jpype.JClass("ai.coac.AttackPosition").class_
    lookups.privateLookupIn(neighbour, lookups.lookup()).defineClass(jpype.JArray(jpype.JByte)(code))


def _utf8(text: str) -> bytes:
    """A name as it stands in a class file: its length and its letters."""
    return len(text).to_bytes(2, "big") + text.encode()


class _SplittableSeeds:
    """The counter from which Java seeds every new ``SplittableRandom``, with the one method of a generator we use."""

    def __init__(self) -> None:
        field = jpype.JClass("java.util.SplittableRandom").class_.getDeclaredField("defaultGen")
        field.setAccessible(True)
        self.setSeed = field.get(None).set


def opponent(name: str, units: Any) -> Any:
    """A new scripted player."""
    kind, takes_units = OPPONENTS[name]
    return jpype.JClass(kind)(*([units] if takes_units else []))


def common_chance() -> list[Any]:
    """The generators that all games of this process share."""
    kinds = [jpype.JClass(name).class_ for name in _WITH_CHANCE]
    return [_SplittableSeeds(), *(generator for kind in kinds for generator in _generators(kind, None))]


def own_chance(player: Any) -> list[Any]:
    """The generators of one scripted player."""
    found, kind = [], player.getClass()
    while kind is not None:
        found += _generators(kind, player)
        kind = kind.getSuperclass()
    return found


def _generators(kind: Any, owner: Any) -> list[Any]:
    """The values of fields of the type java.util.Random, of ``owner`` or, if None, of the class."""
    fields = [field for field in kind.getDeclaredFields() if str(field.getType().getName()) == "java.util.Random"]
    for field in fields:
        field.setAccessible(True)
    return [field.get(owner) for field in fields]


def shared_integers(shape: tuple[int, ...]) -> tuple[Any, npt.NDArray[np.int32]]:
    """Memory that Java sees as a buffer of integers, and we as an array."""
    from jpype.nio import convertToDirectBuffer

    order = jpype.JClass("java.nio.ByteOrder").nativeOrder()
    array = np.zeros(shape, np.int32)
    return convertToDirectBuffer(array.view(np.uint8).reshape(-1)).order(order).asIntBuffer(), array
