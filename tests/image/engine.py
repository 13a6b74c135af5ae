"""The Docker engine as tests use it: its command, and the images that are built here."""

import functools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__all__ = ["LIMIT_S", "ROOT", "Image", "container_of", "docker", "each_image", "image_of", "images", "run"]

ROOT = Path(__file__).parents[2]
WITH_PUFFERLIB = ("runtime", "tank", "tank-full", "test", "dev")
LIMIT_S = 600


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout, whatever comes of it."""
    return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


def docker(*arguments: str | Path) -> str:
    """Return what a docker command prints, and fail with its last lines where it fails."""
    done = run("docker", *arguments)
    last = " | ".join((done.stderr or done.stdout).splitlines()[-3:])
    assert done.returncode == 0, f"docker {arguments[0]}: exit code {done.returncode}: {last}"
    return done.stdout.strip()


def container_of(image: str, *command: str, options: tuple[str, ...] = ()) -> str:
    """Return what a command prints in a fresh container."""
    return docker("run", "--rm", *options, image, *command)


def image_of(service: str) -> str:
    """Name of a service's image; TANK_TAG and TANK_DEVICE choose its tag."""
    return run("docker", "compose", "--profile", "*", "config", "--images", service).stdout.strip()


@dataclass(frozen=True)
class Image:
    """A built image.

    Attributes:
        name: With its tag.
        target: The stage of the Dockerfile, as the label `tank.target` says; "" without that.
        device: "cpu" or "cuda": the build of torch; "" without one.
        facts: What the engine says of it.
    """

    name: str
    target: str
    device: str
    facts: dict[str, Any]

    @classmethod
    def of(cls, name: str, facts: dict[str, Any]) -> "Image":
        """Read what `docker image inspect` says."""
        variables = dict(line.split("=", 1) for line in facts["Config"]["Env"] or [])
        labels = facts["Config"]["Labels"] or {}
        return cls(name, labels.get("tank.target", ""), variables.get("TANK_DEVICE", ""), facts)

    def run(self, *command: str, options: tuple[str, ...] = ()) -> str:
        """Return what a command prints in a fresh container."""
        return container_of(self.name, *command, options=options)

    def python(self, code: str, *options: str) -> str:
        """Return what a piece of Python prints in a fresh container."""
        return self.run("python", "-c", code, options=options)


@functools.cache
def images() -> list[Image]:
    """Look up the images of TANK_IMAGES, or of the services of Compose as far as they are built."""
    chosen = os.environ.get("TANK_IMAGES", "").split()
    try:
        names = chosen or run("docker", "compose", "--profile", "*", "config", "--images").stdout.split()
        inspected = json.loads(run("docker", "image", "inspect", *sorted(names)).stdout or "[]")
    except FileNotFoundError:  # there is no docker program
        return []
    built = [Image.of(name, facts) for facts in inspected for name in facts["RepoTags"] if name in names]
    ours = [image for image in built if image.target]
    assert ours or not chosen, f"none of {', '.join(chosen)} has a label tank.target, as images of this Dockerfile have"
    return ours


def each_image(*targets: str) -> pytest.MarkDecorator:
    """Give a test each built image of these targets as ``image``, by default of all that hold pufferlib."""
    wanted = targets or WITH_PUFFERLIB
    chosen = [pytest.param(image, id=image.name) for image in images() if image.target in wanted]
    lacks = f"image tests: of {', '.join(wanted)} none is built, or no Docker engine answers"
    return pytest.mark.parametrize("image", chosen or [pytest.param(None, marks=pytest.mark.skip(reason=lacks))])
