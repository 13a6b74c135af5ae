"""scripts/release and scripts/bundle: mistakes that they report before they build anything."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.place,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not here; in CI this runs outside the image"),
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with the scripts, version 1.2.3 and its changelog, and the tags v1.2.3 and v1.2.4."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "pufferlib").mkdir()
    (tmp_path / "pufferlib/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.2]\n")
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm a", "tag v1.2.3", "tag v1.2.4"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("", 2, "the version must be three numbers such as 0.3.0, got ''"),
        ("v1.2.3", 2, "the version must be three numbers such as 0.3.0, got 'v1.2.3'"),
        ("--sign 1.2.3", 2, "unknown flag --sign"),
        ("--out", 2, "--out needs a value"),
        (
            "--image dev:cpu 1.2.3",
            2,
            "--image must be runtime, tank, tank-full or docs, then :cpu or :cuda, got dev:cpu",
        ),
        (
            "--previous scripts 1.2.3",
            2,
            "--previous must be the folder of a release, got scripts, which has no images.txt",
        ),
        ("1.2.3 1.2.4", 2, "expected one version, got 1.2.3 and 1.2.4"),
        ("--name My_Lib 1.2.3", 2, "--name must be words of lower-case letters and digits with hyphens between"),
        ("--registry https://ghcr.io/me 1.2.3", 2, "--registry must be a host with an optional port and path"),
        ("9.9.9", 1, "there is no tag v9.9.9; commit the version"),
        ("1.2.4", 1, "pufferlib/__init__.py of v1.2.4 has version 1.2.3"),
        ("1.2.3", 1, "CHANGELOG.md of v1.2.3 has no section [1.2.3]"),
    ],
)
def test_mistake_is_reported_before_anything_is_built(
    checkout: Path, arguments: str, status: int, message: str
) -> None:
    command = [checkout / "scripts/release", *arguments.split()]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def complete(checkout: Path) -> None:
    """Commit a long changelog of version 1.2.3, and move its tag."""
    (checkout / "CHANGELOG.md").write_text("## [1.2.3]\n" + "long\n" * 50_000)
    for command in ("add .", "-c user.name=a -c user.email=a@b commit -qm a", "tag -f v1.2.3"):
        subprocess.run(["git", *command.split()], cwd=checkout, check=True, capture_output=True)


def test_folder_with_files_is_not_overwritten(checkout: Path, tmp_path: Path) -> None:
    complete(checkout)
    command = [checkout / "scripts/release", "--out", tmp_path / "scripts", "1.2.3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "is not empty; remove it, or choose another with --out" in done.stderr


@pytest.mark.parametrize(
    "answer",
    [
        "unauthorized: authentication required",
        "denied: requested access to the resource is denied",
        "writing blob: initiating layer upload: denied: permission_denied: write_package",  # of GitHub
    ],
)
def test_refused_push_is_explained(answer: str) -> None:
    code = f". {ROOT}/scripts/lib/common.sh; advice '{answer}'"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "the container registry refused the push; log in with docker login, and check its name\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "My Lib"], "--name must be words of lower-case letters and digits with hyphens"),
        (["--python", "/nowhere"], "--python must name a Python, got /nowhere, which is not on the PATH"),
        (["--python", "bash"], "--python must name a Python, got bash, which does not run Python code"),
        (["--python", "./old"], "--python must be Python 3.11 to 3.14, got ./old, which is Python 3.10.1"),
        (["--python", "./new"], "--python must be Python 3.11 to 3.14, got ./new, which is Python 3.15.1"),
    ],
)
def test_wheels_check_arguments_before_tools_are_installed(tmp_path: Path, arguments: list[str], message: str) -> None:
    for name, minor in {"old": 10, "new": 15}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n[ $1 = -c ] && echo {minor} || echo Python 3.{minor}.1\n")
        (tmp_path / name).chmod(0o755)
    command = [ROOT / "scripts/wheels", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"wheels: {message}")
    assert done.stderr.count("\n") == 1


def bundle(*arguments: str | Path, path: str = os.environ["PATH"]) -> str:
    """Run scripts/bundle and return its error."""
    environment = {**os.environ, "PATH": path}
    command = [ROOT / "scripts/bundle", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2)
    return done.stderr


def test_bundle_needs_an_undamaged_release(tmp_path: Path) -> None:
    assert f"expected the folder of a release, got '{tmp_path}'; make one with scripts/release" in bundle(tmp_path)
    assert "expected the folder of one release, got a and b" in bundle("a", "b")
    (tmp_path / "release.env").touch()
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  release.env\n")
    assert f"a file of {tmp_path} differs from SHA256SUMS" in bundle(tmp_path)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("release", "--out must be a file, got the folder {0}/release; for example {0}/release/puffertank-1.2.3.tar"),
        ("absent/x.tar", "the folder {0}/absent does not exist; create it, or choose another with --out"),
        ("x.tar", "{0} has "),
        ("/x.tar", "/ has "),
    ],
)
def test_place_of_the_bundle_is_checked_first(tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "bin").mkdir()
    for name, body in {"docker": "echo 9000000000000000", "zstd": ""}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    release = tmp_path / "release"
    release.mkdir()
    wheel = "my_lib-1.2.3-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"  # made with --name my-lib
    for name in ("release.env", wheel):
        (release / name).touch()
    (release / "images.txt").write_text("runtime-cpu registry/runtime:1.2.3-cpu sha256:0\n")
    sums = subprocess.run(["sha256sum", *os.listdir(release)], cwd=release, capture_output=True, text=True).stdout
    (release / "SHA256SUMS").write_text(sums)
    error = bundle("--out", tmp_path / out, release, path=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert error.startswith(f"bundle: {message.format(tmp_path)}")
    assert error.count("\n") == 1


DENIED = "permission denied while trying to connect to the Docker daemon socket"


@pytest.mark.parametrize(
    ("fakes", "message"),
    [
        ({"sha256sum": "exit 1"}, "a file differs from SHA256SUMS, see above; copy the bundle again"),
        ({"uname": "echo aarch64"}, "the images are for x86_64, and this machine is aarch64"),
        (
            {"docker": f"echo {DENIED} >&2; exit 1"},
            f"the Docker engine cannot be used; install and start one: {DENIED}",
        ),
    ],
)
def test_load_explains_why_it_cannot_load(tmp_path: Path, fakes: dict[str, str], message: str) -> None:
    shutil.copy(ROOT / "docker/load", tmp_path)
    (tmp_path / "SHA256SUMS").write_text("")
    for name, body in {"uname": "echo x86_64", "sha256sum": "", **fakes}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([tmp_path / "load"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"load: error: {message}\n")


def test_user_without_rights_is_told_how_to_get_them(checkout: Path) -> None:
    complete(checkout)
    (checkout / "docker").write_text(f"#!/bin/sh\necho {DENIED} >&2\nexit 1\n")
    (checkout / "docker").chmod(0o755)
    environment = {**os.environ, "PATH": f"{checkout}:{os.environ['PATH']}"}
    command = [checkout / "scripts/release", "1.2.3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "may not use it; add yourself to its group (sudo usermod -aG docker" in done.stderr
    assert done.stderr.count("\n") == 1


def test_manifest_of_a_killed_container_is_one_line(tmp_path: Path) -> None:
    described = '[{"Config": {"Labels": {"tank.target": "runtime"}, "Env": []}}]'
    fake = f"#!/bin/sh\n[ $1 = image ] && echo '{described}' && exit\necho many facts\nexit 137\n"
    (tmp_path / "docker").write_text(fake)
    (tmp_path / "docker").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [ROOT / "docker/manifest", "puffertank/runtime:cpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "manifest: error: docker run failed: exit code 137\n")


def baked(*targets: str) -> dict[str, dict[str, Any]]:
    """Return what bake would build. This needs its plugin, but no engine."""
    command = ["docker", "buildx", "bake", "--print", *targets]
    names = {"DOCKER_HOST": "unix:///nowhere", "TANK_REGISTRY": "ghcr.io/me", "TANK_RELEASE": "1.2.3-"}
    if shutil.which("docker") is None or subprocess.run([*command[:2], "version"], capture_output=True).returncode:
        pytest.skip("docker buildx is not here")
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **names}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)["target"]
    return found


def test_bake_builds_each_image_for_each_device() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    built = sorted({service["build"]["target"] for service in services.values() if "build" in service})
    targets = baked(*(f"{service}-{device}" for service in built for device in ("cpu", "cuda")))
    for name, target in targets.items():
        service, _, device = name.rpartition("-")
        assert (target["target"], target["args"]["DEVICE"]) == (service, device)
        assert target["tags"] == [f"ghcr.io/me/{service}:1.2.3-{device}"]
        assert target["secret"]
        assert "tank.locks" in target["labels"]


def test_bake_pushes_layers_compressed_with_zstd() -> None:
    (target,) = baked("runtime-cpu", "--push").values()
    (output,) = target["output"]
    assert {"type=image", "push=true", "compression=zstd", "force-compression=true"} <= {*output.split(",")}
