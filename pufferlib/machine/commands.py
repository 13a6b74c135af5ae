"""Commands in messages, as they are typed where this runs."""

import os
import shlex
import shutil

__all__ = ["DISTRIBUTION", "as_typed", "in_image", "way_to_install"]

#: Of this package's metadata. No message hands it to pip: package indexes have another project of this name.
DISTRIBUTION = "pufferlib"


def as_typed(command: str, *words: object) -> str:
    """Return ``command`` with ``PUFFER_COMMAND``, where that is set, in place of the ``puffer`` that it begins with.

    ``scripts/tank`` sets it, because it runs a ``puffer`` that is not on the caller's PATH.

    Args:
        command: As in "puffer train breakout --train.seed 7".
        words: To follow it, such as paths, in quotes where a shell needs them.
    """
    typed = (os.environ.get("PUFFER_COMMAND") or "puffer") + command.removeprefix("puffer")
    return " ".join([typed, *(shlex.quote(str(word)) for word in words)])


def in_image() -> bool:
    """Return True in a container of ours, where nothing is installed any more."""
    return shutil.which("tank-entrypoint") is not None


def way_to_install(name: str, image: str = "tank", arguments: str = "") -> str:
    """Return the end of a message about what is not installed: the command that brings it.

    Args:
        name: A binding or an extra.
        image: The smallest that has it.
        arguments: What to run there instead, where this is an image.
    """
    if in_image():
        return f"this image does not have it, run outside: docker compose run --rm {image} {arguments}".rstrip()
    return f"run: {as_typed(f'puffer install {name}')}, or use the image {image}, which has it"
