"""The files and images of scripts/release, and a registry of this machine. Building takes minutes."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest

import pufferlib
from tests.container_registry import serve_registry

ROOT = Path(__file__).parents[2]
VERSION = pufferlib.__version__
TRAIN = ["puffer", "train", "squared", "--train.total-timesteps", "65536", "--eval.episodes", "1"]
pytestmark = [pytest.mark.nightly, pytest.mark.image, pytest.mark.timeout(3600)]


class Release(NamedTuple):
    """Folder of the files, name of the image with its tag, and the checkout that it was made from."""

    out: Path
    image: str
    checkout: Path


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a container registry on this machine."""
    if not shutil.which("docker"):
        pytest.skip("needs a Docker engine")
    with serve_registry(tmp_path_factory.mktemp("registry")) as port:
        yield f"127.0.0.1:{port}/tank"


@pytest.fixture(scope="module")
def release(registry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Yield a release of the current commit with the image runtime."""
    if not shutil.which("skopeo"):
        pytest.skip("needs skopeo (Debian: apt-get install skopeo)")
    folder = tmp_path_factory.mktemp("release")
    checkout, out = folder / "checkout", folder / "out"
    run("git", "clone", "-q", ROOT, checkout)
    run("git", "tag", "--force", f"v{VERSION}", cwd=checkout)
    for wheel in (ROOT / "docker/wheels/cpu").glob("*.whl"):
        shutil.copy(wheel, checkout / "docker/wheels/cpu")
    run(checkout / "scripts/release", "--registry", registry, "--image", "runtime:cpu", "--out", out, VERSION)
    image = json.loads((out / "runtime-cpu.provenance.json").read_text())["subject"][0]["name"]
    yield Release(out, image, checkout)
    subprocess.run(["docker", "image", "rm", "--force", image], capture_output=True)


def digest_of(release: Release) -> str:
    """Return the digest of the pushed image, as its provenance names it."""
    statement = json.loads((release.out / "runtime-cpu.provenance.json").read_text())
    return f"sha256:{statement['subject'][0]['digest']['sha256']}"


def test_release_describes_every_file_and_image(release: Release) -> None:
    artifacts = {path.name for path in release.out.iterdir() if path.suffix in {".whl", ".gz"}} | {"runtime-cpu"}
    assert len(artifacts) == 5
    described = {f"{name}.{kind}.json" for name in artifacts for kind in ("cdx", "provenance")}
    manifests = {"runtime-cpu.md", "runtime-cpu.json"}
    others = {"NOTES.md", "SHA256SUMS", "images.txt", "release.env"}
    assert {path.name for path in release.out.iterdir()} == {*artifacts, *described, *manifests, *others} - {
        "runtime-cpu"
    }
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=release.out)


def test_changed_file_is_found_by_its_checksum(release: Release, tmp_path: Path) -> None:
    copied = shutil.copytree(release.out, tmp_path / "out")
    with (copied / "NOTES.md").open("a") as file:
        file.write("changed")
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=copied, capture_output=True, text=True)
    assert done.returncode == 1
    assert "NOTES.md: FAILED" in done.stdout


def test_provenance_names_the_commit_and_the_digest(release: Release) -> None:
    commit = run("git", "rev-parse", "HEAD", cwd=release.checkout).strip()
    statements = {path.name: json.loads(path.read_text()) for path in release.out.glob("*.provenance.json")}
    for name, statement in statements.items():
        sources = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert sources[0]["digest"] == {"gitCommit": commit}
        file = release.out / name.removesuffix(".provenance.json")
        if file.exists():
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            assert statement["subject"] == [{"name": file.name, "digest": {"sha256": digest}}]
    assert commit[:12] in release.image
    assert release.image.rpartition(":")[2].startswith(f"{VERSION}-")
    assert release.image.endswith("-cpu")


def test_bill_of_materials_lists_python_and_debian_packages_with_licences(release: Release) -> None:
    document = json.loads((release.out / "runtime-cpu.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    found = {component["purl"].partition("@")[0]: component for component in document["components"]}
    assert found["pkg:pypi/numpy"]["licenses"]
    assert found["pkg:deb/debian/tini"]["licenses"]
    (wheel,) = (path for path in release.out.glob("*aarch64.whl.cdx.json"))
    assert {c["name"] for c in json.loads(wheel.read_text())["components"]} >= {"numpy", "gymnasium"}


def test_layers_of_the_pushed_image_are_small_and_compressed_with_zstd(release: Release) -> None:
    registry, _, name = release.image.rpartition(":")[0].partition("/")
    kind = "application/vnd.oci.image.manifest.v1+json"
    request = Request(f"http://{registry}/v2/{name}/manifests/{digest_of(release)}", headers={"Accept": kind})
    with urlopen(request, timeout=20) as answer:
        manifest = json.load(answer)
    assert {layer["mediaType"] for layer in manifest["layers"]} == {"application/vnd.oci.image.layer.v1.tar+zstd"}
    assert sum(layer["size"] for layer in manifest["layers"]) < 300e6


def test_pushed_image_is_dated_with_its_commit(release: Release) -> None:
    seconds = int(run("git", "log", "-1", "--format=%ct", cwd=release.checkout))
    created = run("docker", "image", "inspect", "--format", "{{.Created}}", release.image).strip()
    assert datetime.fromisoformat(created).timestamp() == seconds


def test_pushed_image_is_pulled_by_digest(release: Release) -> None:
    name = f"{release.image.rpartition(':')[0]}@{digest_of(release)}"
    assert name.partition("@")[2] in (release.out / "NOTES.md").read_text()
    run("docker", "image", "rm", "--force", release.image, name)
    try:
        printed = run("docker", "run", "--rm", "--pull", "always", "--network", "none", name, "puffer", "list")
        assert "squared" in printed
        labels = json.loads(run("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", name))
        assert labels["org.opencontainers.image.version"] == VERSION
        assert labels["tank.locks"] in release.image
    finally:
        run("docker", "image", "rm", "--force", name)


def test_settings_of_the_release_make_compose_pull(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TANK_PULL", "TANK_REGISTRY", "TANK_TAG"):  # Compose prefers the environment to the file
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["docker", "image", "rm", "--force", release.image], capture_output=True)
    compose = ["docker", "compose", "--env-file", release.out / "release.env", "--progress", "quiet"]
    printed = run(*compose, "run", "--rm", "-T", "runtime", "list", cwd=release.checkout)
    assert "squared" in printed
    assert run("docker", "image", "inspect", "--format", "{{.RepoDigests}}", release.image).find(digest_of(release)) > 0


def test_tank_registry_makes_scripts_pull_the_image_of_the_commit(release: Release, registry: str) -> None:
    subprocess.run(["docker", "image", "rm", "--force", release.image], capture_output=True)
    service = "runtime"  # scripts/tank runs the service tank, and only runtime was released
    code = f". scripts/lib/common.sh; . scripts/lib/docker.sh; compose=(docker compose); prepare_image {service}"
    settings = {**os.environ, "TANK_PULL": "", "TANK_TAG": "", "TANK_REGISTRY": registry}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], cwd=release.checkout, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"using the published image {release.image.rpartition(':')[2]}" in done.stderr


@pytest.fixture(scope="module")
def bundle(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the unpacked archive of scripts/bundle."""
    if not shutil.which("zstd"):
        pytest.skip("needs zstd (Debian: apt-get install zstd)")
    folder = tmp_path_factory.mktemp("bundle")
    run("docker", "pull", "--quiet", release.image)
    run(release.checkout / "scripts/bundle", "--out", folder / "bundle.tar", release.out)
    run("tar", "-xf", folder / "bundle.tar", "-C", folder)
    (folder / "bundle.tar").unlink()
    yield folder / f"puffertank-{VERSION}"
    shutil.rmtree(folder)  # images and wheels are large


def test_bundle_trains_without_a_network(release: Release, bundle: Path) -> None:
    run("docker", "image", "rm", "--force", release.image)
    assert "docker compose --env-file ../release/release.env run --rm tank" in run(bundle / "load")
    printed = run("docker", "run", "--rm", "--network", "none", release.image, *TRAIN, "--runs", "/tmp/runs")
    assert "squared" in printed
    assert (bundle / "checkout/docker/locks/core.txt").exists()


def test_wheels_of_the_bundle_are_enough_to_train(bundle: Path, tmp_path: Path) -> None:
    python = shutil.which("python3.11") or "python3"
    run(python, "-m", "venv", tmp_path / "venv")
    (wheel,) = (bundle / "release").glob("*-cp311-cp311-*.whl")
    offline = ["env", "-u", "PIP_FIND_LINKS", tmp_path / "venv/bin/pip", "install", "-q", "--no-index"]
    run(*offline, "--find-links", bundle / "wheels", f"{wheel}[train,atari]")
    assert "squared" in run(tmp_path / "venv/bin/puffer", *TRAIN[1:], cwd=tmp_path)


def test_damaged_bundle_is_not_loaded(bundle: Path) -> None:
    with (bundle / "release/NOTES.md").open("a") as file:
        file.write("changed")
    done = subprocess.run([bundle / "load"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "a file differs from SHA256SUMS, see above; copy the bundle again" in done.stderr
