"""Two builds of one commit, which have the same layers. Takes minutes."""

import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.image.engine import ROOT, docker, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not images(), reason="image tests: no image is built, or no Docker engine answers"),
]

BASE_LAYERS = 2  # of the base images of this test
# Made by the engine for each container, and by the base images of this test.
OF_CONTAINER = (".dockerenv", "dev", "etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf", "etc/rebuilt")


def layers(image: str) -> list[str]:
    """Return the digests of an image's layers, without those of its base image."""
    return json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", image))[BASE_LAYERS:]


def files(image: str) -> dict[str, tuple[object, ...]]:
    """Return type, mode, owner, time and content of each file of an image."""
    container = docker("create", image)
    found = {}
    try:
        export = subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE)
        with export, tarfile.open(fileobj=export.stdout, mode="r|") as archive:
            for file in archive:
                data = archive.extractfile(file) if file.isreg() else None
                content = hashlib.sha256(data.read()).hexdigest() if data else file.linkname
                found[file.name] = (file.type, file.mode, file.uid, file.gid, file.mtime, content)
    finally:
        docker("rm", container)
    found.pop("etc")  # the engine changes its time when it puts files of the container there
    return {name: facts for name, facts in found.items() if not name.startswith(OF_CONTAINER)}


def test_two_builds_of_runtime_have_the_same_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # --no-cache would also download and compile everything again. A base image with one more file only makes the build
    # repeat all of its steps. The files of the second build come from a fresh clone, so they have other times.
    (tmp_path / "Dockerfile").write_text(
        "FROM debian:bookworm-slim\nARG BUILD\nRUN echo $BUILD >/etc/rebuilt && touch --date=@0 /etc /etc/rebuilt\n"
    )
    clone = tmp_path / "clone"
    assert run("git", "clone", "-q", ROOT, clone).returncode == 0
    for wheel in (ROOT / "docker/wheels/cpu").glob("*.whl"):
        shutil.copy(wheel, clone / "docker/wheels/cpu")
    built, bases = [], []
    try:
        for number, checkout in enumerate((ROOT, clone), 1):
            tag = f"test-{tmp_path.parent.name}-{number}"
            bases.append(f"puffertank-test-base:{number}")
            docker("build", "--network", "host", "--build-arg", f"BUILD={tag}", "--tag", bases[-1], tmp_path)
            monkeypatch.setenv("TANK_BASE_IMAGE", bases[-1])
            monkeypatch.setenv("TANK_TAG", tag)
            built.append(f"puffertank/runtime:{tag}")
            build = ["docker", "compose", "--profile", "*", "build", "--build-arg", "SOURCE_DATE_EPOCH=0", "runtime"]
            subprocess.run(build, cwd=checkout, check=True, capture_output=True)
        first, second = map(files, built)
        assert len(first) > 20000
        assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()
        assert layers(built[0]) == layers(built[1])
        created = [docker("image", "inspect", "--format", "{{.Created}}", name) for name in built]
        assert created == ["1970-01-01T00:00:00Z"] * 2
    finally:
        run("docker", "image", "rm", "--force", *built, *bases)
