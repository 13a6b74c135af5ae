"""Two builds of one commit, which install the same files. Takes minutes."""

import hashlib
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

# Made by the engine for each container, and by the base images of this test.
OF_CONTAINER = (".dockerenv", "dev", "etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf", "etc/rebuilt")


def files(image: str) -> dict[str, tuple[object, ...]]:
    """Return type, mode, owner, time and content of each file of an image. The time of folders is left out."""
    container = docker("create", image)
    found = {}
    try:
        export = subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE)
        with export, tarfile.open(fileobj=export.stdout, mode="r|") as archive:
            for file in archive:
                data = archive.extractfile(file) if file.isreg() else None
                content = hashlib.sha256(data.read()).hexdigest() if data else file.linkname
                time = None if file.isdir() else file.mtime
                found[file.name] = (file.type, file.mode, file.uid, file.gid, time, content)
    finally:
        docker("rm", container)
    return {name: facts for name, facts in found.items() if not name.startswith(OF_CONTAINER)}


def test_two_builds_of_runtime_install_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # --no-cache would also download and compile everything again. A base image with one more file only makes the build
    # repeat all of its steps.
    (tmp_path / "Dockerfile").write_text("FROM debian:bookworm-slim\nARG BUILD\nRUN echo $BUILD >/etc/rebuilt\n")
    monkeypatch.chdir(ROOT)
    built, bases = [], []
    try:
        for number in (1, 2):
            tag = f"test-{tmp_path.parent.name}-{number}"
            bases.append(f"puffertank-test-base:{number}")
            docker("build", "--build-arg", f"BUILD={tag}", "--tag", bases[-1], tmp_path)
            monkeypatch.setenv("TANK_BASE_IMAGE", bases[-1])
            monkeypatch.setenv("TANK_TAG", tag)
            built.append(f"puffertank/runtime:{tag}")
            subprocess.run(["docker", "compose", "--profile", "*", "build", "runtime"], check=True, capture_output=True)
        first, second = map(files, built)
        assert len(first) > 20000
        assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()
    finally:
        run("docker", "image", "rm", "--force", *built, *bases)
