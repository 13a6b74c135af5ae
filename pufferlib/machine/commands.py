"""Commands for messages, in the form in which the user must type them."""

import os
import shlex
import shutil

__all__ = ["DISTRIBUTION", "as_typed", "in_image", "way_to_install"]

#: Name in this package's metadata. No message passes it to pip, because package indexes have another project so named.
DISTRIBUTION = "pufferlib"


def as_typed(command: str, *words: object) -> str:
    """Return ``command`` with its leading ``puffer`` replaced by ``PUFFER_COMMAND``, if that variable is set.

    ``scripts/tank`` sets it, because it runs a ``puffer`` that is not on the user's PATH.

    Args:
        command: Command such as "puffer train breakout --train.seed 7".
        words: Words to append, such as paths. They are quoted for the shell if necessary.
    """
    typed = (os.environ.get("PUFFER_COMMAND") or "puffer") + command.removeprefix("puffer")
    return " ".join([typed, *(shlex.quote(str(word)) for word in words)])


def in_image() -> bool:
    """Return True in a container of one of our images, which do not support installing more packages."""
    return shutil.which("tank-entrypoint") is not None


def way_to_install(name: str, image: str = "tank", arguments: str = "") -> str:
    """Return advice on how to install a missing binding or extra, as the end of an error message.

    Args:
        name: Name of the binding or extra.
        image: Smallest image that contains it.
        arguments: Command to suggest for that image if this process runs in an image.
    """
    if in_image():
        return f"this image does not have it, run outside: docker compose run --rm {image} {arguments}".rstrip()
    return f"run: {as_typed(f'puffer install {name}')}, or use the image {image}, which has it"
