"""Docker helpers for tests: running commands, and the images that are built on this machine."""

import functools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__all__ = [
    "LIMIT_S",
    "ROOT",
    "WITH_PUFFERLIB",
    "Image",
    "build",
    "container_of",
    "docker",
    "each_image",
    "image_of",
    "images",
    "run",
]

ROOT = Path(__file__).parents[2]
WITH_PUFFERLIB = ("runtime", "tank", "tank-full", "test", "dev")
LIMIT_S = 600


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout without checking its exit code."""
    return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


def docker(*arguments: str | Path) -> str:
    """Return the output of a docker command. If it fails, the test fails with its last lines."""
    done = run("docker", *arguments)
    last = " | ".join((done.stderr or done.stdout).splitlines()[-3:])
    assert done.returncode == 0, f"docker {arguments[0]}: exit code {done.returncode}: {last}"
    return done.stdout.strip()


def build(dockerfile: str, tag: str, folder: Path) -> None:
    """Build a documented Dockerfile beside the files of a folder. Its RUN steps get the certificates of TANK_CA."""
    secret: tuple[str, ...] = ()
    if certificates := os.environ.get("TANK_CA"):
        mount = "RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt "
        dockerfile, secret = dockerfile.replace("RUN ", mount), ("--secret", f"id=ca,src={certificates}")
    (folder / "Dockerfile").write_text(dockerfile)
    done = run("docker", "build", "--network", "host", "--tag", tag, *secret, folder)
    assert done.returncode == 0, done.stderr


def container_of(image: str, *command: str, options: tuple[str, ...] = ()) -> str:
    """Return the output of a command in a new container."""
    return docker("run", "--rm", *options, image, *command)


def image_of(service: str) -> str:
    """Return the name of a service's image. TANK_TAG and TANK_DEVICE choose its tag."""
    return run("docker", "compose", "--profile", "*", "config", "--images", service).stdout.strip()


@dataclass(frozen=True)
class Image:
    """Built image.

    Attributes:
        name: Name with tag.
        target: Stage of the Dockerfile from the label `tank.target`, or "" without the label.
        device: Build of torch, "cpu" or "cuda", or "" without torch.
        facts: Output of `docker image inspect`.
    """

    name: str
    target: str
    device: str
    facts: dict[str, Any]

    @classmethod
    def of(cls, name: str, facts: dict[str, Any]) -> "Image":
        """Create from the output of `docker image inspect`."""
        variables = dict(line.split("=", 1) for line in facts["Config"]["Env"] or [])
        labels = facts["Config"]["Labels"] or {}
        return cls(name, labels.get("tank.target", ""), variables.get("TANK_DEVICE", ""), facts)

    def run(self, *command: str, options: tuple[str, ...] = ()) -> str:
        """Return the output of a command in a new container."""
        return container_of(self.name, *command, options=options)

    def python(self, code: str, *options: str) -> str:
        """Return the output of Python code in a new container."""
        return self.run("python", "-c", code, options=options)


@functools.cache
def images() -> list[Image]:
    """Return the images in TANK_IMAGES, or all built images of Compose services."""
    chosen = os.environ.get("TANK_IMAGES", "").split()
    try:
        names = chosen or run("docker", "compose", "--profile", "*", "config", "--images").stdout.split()
        inspected = json.loads(run("docker", "image", "inspect", *sorted({*names})).stdout or "[]")
    except FileNotFoundError:  # Docker is not installed
        return []
    built = [Image.of(name, facts) for facts in inspected for name in facts["RepoTags"] if name in names]
    ours = [image for image in built if image.target]
    assert ours or not chosen, f"none of {', '.join(chosen)} has the label tank.target of images of this Dockerfile"
    return ours


def each_image(*targets: str, device: str = "") -> pytest.MarkDecorator:
    """Parametrize a test with ``image``, each built image of these targets (default: all with pufferlib) and device."""
    wanted = targets or WITH_PUFFERLIB
    found = [image for image in images() if image.target in wanted and device in ("", image.device)]
    chosen = [pytest.param(image, id=image.name) for image in found]
    lacks = (
        f"image tests: none of {', '.join(wanted)} is built{device and f' for {device}'}, or no Docker engine answers"
    )
    return pytest.mark.parametrize("image", chosen or [pytest.param(None, marks=pytest.mark.skip(reason=lacks))])
