"""Entrypoint of containers, tested with fake programs and files.

The tests in tests/image use real containers. They test that it switches to the owner of the checkout and works for any
user.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "id": '[ "$1" = -u ] && echo "$FAKE_UID" || [ "$FAKE_UID" = 1000 ]',
    "stat": 'echo "$FAKE_OWNER"',
    "mountpoint": '[ -n "${FAKE_MOUNTED:-}" ]',
    "setpriv": "exit 1",
    "puffer": 'echo "puffer $*, home $HOME, user ${USER:-}"',
}
NO_GPU = "tank: no GPU in this container, training runs on the CPU (compose.gpu.yaml gives it one)\n"


class Container:
    """Fake container with a workspace, devices and a driver for the entrypoint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entrypoint = folder / "tank-entrypoint"
        text = (ROOT / "docker/bin/tank-entrypoint").read_text()
        for path in ("/workspace", "/dev/", "/proc/driver/nvidia/", "/home/tank"):
            text = text.replace(path, f"{folder}{path}")
        self.entrypoint.write_text(text)
        for name in ("workspace", "dev", "proc/driver/nvidia", "home/tank", "tmp", "bin"):
            (folder / name).mkdir(parents=True)
        for name, body in PROGRAMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / "bin" / name).chmod(0o755)
        for name in ("bash", "mktemp", "sh"):
            (folder / "bin" / name).symlink_to(shutil.which(name) or name)

    def gpu(self, driver: str) -> None:
        (self.folder / "dev/nvidiactl").touch()
        (self.folder / "proc/driver/nvidia/version").write_text(driver)

    def enter(self, *command: str, uid: int = 1000, owner: str = "1000 1000", **settings: str) -> tuple[int, str, str]:
        """Run the entrypoint and return the exit code, the output of the command and the messages."""
        variables = {
            "PATH": f"{self.folder}/bin",
            "HOME": f"{self.folder}/home/tank",
            "TMPDIR": f"{self.folder}/tmp",
            "FAKE_UID": str(uid),
            "FAKE_OWNER": owner,
            "TANK_DEVICE": "cuda",
        }
        done = subprocess.run(
            [f"{self.folder}/bin/bash", self.entrypoint, *command],
            env=variables | settings,
            capture_output=True,
            text=True,
            timeout=30,
        )
        return done.returncode, done.stdout, done.stderr.replace(str(self.folder), "")

    def remove(self, *names: str) -> "Container":
        """Remove folders. Even root, which runs some of these tests, cannot write to a missing folder."""
        for name in names:
            shutil.rmtree(self.folder / name)
        return self


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_entrypoint_prints_nothing_without_problems(container: Container) -> None:
    home = container.folder / "home/tank"
    assert container.enter("list") == (0, f"puffer list, home {home}, user \n", "")


def test_missing_writable_folders_are_reported_and_the_command_runs(container: Container) -> None:
    status, _, messages = container.remove("tmp", "workspace", "home").enter("list")
    assert (status, messages) == (
        0,
        'tank: uid 1000 has no folder to write to; start the container with --tmpfs /tmp -v "$PWD":/workspace\n',
    )


@pytest.mark.parametrize(
    ("uid", "sentence"),
    [
        (1000, "/workspace is mounted read-only, so no run can be saved; mount it without :ro"),
        (0, "/workspace is mounted read-only, so no run can be saved; mount it without :ro"),
        (
            4242,
            "uid 4242 may not write to /workspace, which belongs to uid 1000; start the container "
            "with --user root (it becomes that uid) or --user 1000",
        ),
    ],
    ids=["one's own", "root's", "another's"],
)
def test_unwritable_mount_is_explained(container: Container, uid: int, sentence: str) -> None:
    owner = "1000 1000" if uid else "0 0"
    _, _, messages = container.remove("workspace").enter("list", uid=uid, owner=owner, FAKE_MOUNTED="yes")
    assert messages == f"tank: {sentence}\n"


def test_uid_without_home_and_name_gets_both(container: Container) -> None:
    _, printed, messages = container.remove("home").enter("list", uid=1000700000)
    assert messages == ""
    assert printed.startswith(f"puffer list, home {container.folder}/tmp/tmp.")
    assert printed.endswith("user tank\n")


def test_root_without_capabilities_is_explained(container: Container) -> None:
    status, printed, messages = container.enter("list", uid=0, owner="12345 23456")
    assert (status, printed) == (1, "")
    assert messages == (
        "tank: without its capabilities root cannot become uid 12345, the owner of /workspace; start the container "
        "with --user 12345:23456, or add --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add SETGID --cap-add SETUID\n"
    )


@pytest.mark.parametrize("command", ["pip", "apt-get"])
def test_pip_and_apt_point_to_the_images_page(container: Container, command: str) -> None:
    status, _, messages = container.enter(command, "install", "einops")
    assert status == 127
    assert 'build an image on this one: docs/images.md, "Building on the image"' in messages
    assert messages.count("\n") == 1


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (root@host)\nGCC version: 12.2.0\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Thu Oct 12 2023\nGCC version: gcc version 12.2.0\n"


@pytest.mark.parametrize("text", [OPEN, CLOSED], ids=["open", "closed"])
@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("580.65.06", ""),
        ("610.10", ""),
        (
            "535.104.05",
            "tank: CUDA 13 needs NVIDIA's driver 580 or newer, this machine has 535.104.05: "
            "training runs on the CPU until the driver is updated\n",
        ),
    ],
    ids=["oldest", "newer", "too old"],
)
def test_old_driver_is_reported_before_training(container: Container, text: str, driver: str, expected: str) -> None:
    container.gpu(text.format(driver))
    assert container.enter("train", "breakout")[2] == expected
    assert container.enter("list")[2] == "", "the other verbs need no GPU"


def test_cpu_image_reports_an_unused_gpu(container: Container) -> None:
    container.gpu(OPEN.format("580.65.06"))
    messages = container.enter("train", "breakout", TANK_DEVICE="cpu")[2]
    assert (
        messages
        == "tank: this image is for the CPU, training runs there (TANK_DEVICE=cuda chooses the one for the GPU)\n"
    )


def test_training_without_a_gpu_prints_a_hint(container: Container) -> None:
    assert container.enter("train", "breakout")[2] == NO_GPU
