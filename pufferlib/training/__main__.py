"""``python -m pufferlib.training ENV [flags]``: ``puffer train`` in each process that ``torchrun`` starts."""

import os
import sys
from collections.abc import Sequence

from pufferlib.cli import main as puffer
from pufferlib.cli.console import complain
from pufferlib.errors import PufferError
from pufferlib.settings.config import DEFAULT_TIMEOUT_S
from pufferlib.training.distributed.place import Place, place_of_this_process

FLAGS = ("--train.processes-timeout", "--train.processes_timeout")


def main(argv: Sequence[str]) -> int:
    """Run ``puffer train`` with these arguments in rank 0, and follow rank 0 in all other ranks."""
    try:
        place = place_of_this_process()
    except PufferError:
        place = None  # puffer train reports the error
    if place is None:
        return puffer(["train", *argv])
    return _lead(place, argv) if place.rank == 0 else _follow(place, argv)


def _lead(place: Place, argv: Sequence[str]) -> int:
    from pufferlib.training.distributed.local import stop_waiting_ranks

    code = puffer(["train", *argv])
    stop_waiting_ranks(place, code)
    return code


def _follow(place: Place, argv: Sequence[str]) -> int:
    from pufferlib.training.distributed.launch import follow
    from pufferlib.training.distributed.ranks import RankLostError

    try:
        return follow(place, _timeout(argv))
    except RankLostError as error:
        if "saved" in str(error):  # rank 0 is lost and cannot report it
            complain(str(error))
    except PufferError as error:
        complain(f"rank {place.rank}: {error}")
    except KeyboardInterrupt:
        return 130
    return 1


def _timeout(argv: Sequence[str]) -> float:
    """Return how many seconds to wait for rank 0, which alone parses all flags."""
    from pufferlib.training.distributed.local import TIMEOUT

    text = os.environ.get(TIMEOUT, "")
    for word, following in zip(argv, [*argv[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name in FLAGS:
            text = value if equals else following
    try:
        return float(text)
    except ValueError:
        return DEFAULT_TIMEOUT_S


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
