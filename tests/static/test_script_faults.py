"""scripts/tank and scripts/test under bad conditions: a message that says what to do, and a nonzero exit code."""

import contextlib
import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.static.sandbox import ROOT, Sandbox
from tests.tiers import once

SCRIPTS = sorted(
    path
    for folder in ("scripts", ".ci", "docker")
    for path in (ROOT / folder).glob("*")
    if path.is_file() and path.read_text().startswith("#!/usr/bin/env bash\n")
)


def test_unknown_flag_before_the_verb_is_an_error(sandbox: Sandbox) -> None:
    status, output = sandbox.docker().run("tank", "--gpu")
    assert status == 2
    assert (
        output
        == "tank: unknown flag --gpu; only --docker, --local and -e come before the verb, puffer's flags after it\n"
    )


DOCKER_FAULTS = {
    "denied": (
        [],
        {"FAKE_VERSION": "echo 'permission denied while trying to connect' >&2; exit 1"},
        ["may not use it", "usermod -aG docker", "--local"],
    ),
    "without Compose": ([], {"FAKE_COMPOSE": "exit 1"}, ["no Compose", "scripts/docker-engine", "--local"]),
    "not running": (["--docker"], {"FAKE_VERSION": "exit 1"}, ["no Docker engine answers", "scripts/docker-engine"]),
    "first build": (
        [],
        {"FAKE_IMAGE": "false", "FAKE_BUILD": "exit 17"},
        ["building the image failed", "docker system prune", "--local"],
    ),
    "later build": (
        [],
        {"FAKE_BUILD": "echo 'write /var: No space left on device'; exit 17"},
        ["bringing the image up to date failed: the disk is full; free some space"],
    ),
    "no base": (
        [],
        {"FAKE_IMAGE": "false", "FAKE_BASE": "false"},
        ["there is no base image", "sudo docker/bootstrap-base"],
    ),
}


@pytest.mark.parametrize(
    ("script", "fault"),
    once(
        [(script, fault) for script in ("tank", "test") for fault in DOCKER_FAULTS],
        [*(("tank", fault) for fault in DOCKER_FAULTS), ("test", "denied"), ("test", "first build")],
    ),
)
def test_engine_faults_are_explained(sandbox: Sandbox, script: str, fault: str) -> None:
    arguments, settings, sentences = DOCKER_FAULTS[fault]
    status, output = sandbox.python().docker().run(script, *arguments, **settings)
    assert status == 1, output
    assert all(sentence in output.splitlines()[-1] for sentence in sentences), output
    assert not any(" run " in call for call in sandbox.calls())


def test_unknown_device_lists_the_valid_ones(sandbox: Sandbox) -> None:
    status, output = sandbox.docker().run("tank", TANK_DEVICE="rocm")
    assert status == 2
    assert output.endswith("tank: TANK_DEVICE must be cpu or cuda, got rocm; change it in the environment or in .env\n")
    assert not any(" build " in call for call in sandbox.calls())


def test_docker_flag_without_a_client_is_explained(sandbox: Sandbox) -> None:
    status, output = sandbox.python().run("tank", "--docker")
    assert status == 1
    assert "scripts/docker-engine" in output


PIP_FAULTS = {
    "no network": ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "network"),
    "disk full": ("OSError: [Errno 28] No space left on device", "the disk is full"),
    "not writable": ("PermissionError: [Errno 13] Permission denied: '.venv'", "checkout that belongs to you"),
    "broken compiler": ("CMake Error: The CMAKE_C_COMPILER is not able to compile", "C compiler"),
    "anything else": ("segmentation fault", "the lines above say why"),
}


@pytest.mark.parametrize("fault", PIP_FAULTS)
def test_failed_installation_is_explained(sandbox: Sandbox, fault: str) -> None:
    printed, sentence = PIP_FAULTS[fault]
    status, output = sandbox.python().run("tank", "--local", FAKE_PIP=f'echo "{printed}" >&2; exit 1')
    assert status == 1
    assert printed in output
    assert sentence in output.splitlines()[-1]
    assert not (sandbox.root / ".venv/tank-stamp").exists()


def test_wrong_python_version_is_an_error(sandbox: Sandbox) -> None:
    sandbox.fake("cc", "true")
    sandbox.fake("python3", "[ $1 = --version ] && echo Python 3.12.1 || exit 1")
    status, output = sandbox.run("test", "--local")
    assert status == 1
    assert "no Python 3.11 was found (python3 is Python 3.12.1); install it" in output
    assert "--docker" in output


def test_only_scripts_with_the_flag_suggest_docker(sandbox: Sandbox) -> None:
    for name, body in {"uname": "echo Linux", "cc": "true"}.items():
        sandbox.fake(name, body)
    found = "no Python 3.11 was found (python3 is missing); install it (Debian 12: apt-get install python3.11 "
    for script, end in {"tank": "which has it: --docker\n", "wheels": "elsewhere: uv python install 3.11)\n"}.items():
        status, output = sandbox.run(script)
        assert status == 1
        assert found in output
        assert output.endswith(end)


@pytest.mark.parametrize("part", ["venv", "its C headers"])
def test_incomplete_python_is_an_error(sandbox: Sandbox, part: str) -> None:
    status, output = sandbox.python().run("tank", FAKE_PROBE=f"echo '{part}'")
    assert status == 1
    assert f"python3.11 is Python 3.11 but lacks {part}; install it" in output


def test_missing_compiler_is_reported_before_downloads(sandbox: Sandbox) -> None:
    sandbox.python().fake("cc", "true")
    (sandbox.bin / "cc").unlink()
    status, output = sandbox.run("tank", "--local")
    assert status == 1
    assert "no C compiler (cc)" in output
    assert "apt-get install gcc" in output
    assert sandbox.calls() == []


@pytest.fixture
def read_only(sandbox: Sandbox) -> Iterator[Sandbox]:
    """Make the checkout read-only. Root ignores permissions, so for root it is mounted read-only."""
    root = str(sandbox.root)
    if os.geteuid() != 0:
        sandbox.root.chmod(stat.S_IRUSR | stat.S_IXUSR)
        yield sandbox
        sandbox.root.chmod(stat.S_IRWXU)
        return
    if subprocess.run(["mount", "--bind", "-o", "ro", root, root], capture_output=True).returncode:
        pytest.skip("root here may not mount a read-only folder")
    yield sandbox
    subprocess.run(["umount", root], check=True)


def test_read_only_checkout_is_an_error(read_only: Sandbox) -> None:
    status, output = read_only.python().run("tank", "--local")
    assert status == 1
    assert "cannot be written; use a checkout that belongs to you" in output


@pytest.fixture
def full_disk(sandbox: Sandbox) -> Iterator[Sandbox]:
    """Mount a disk of 64 KiB at .venv."""
    venv = sandbox.root / ".venv"
    venv.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", venv], capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root with the right to mount")
    yield sandbox
    subprocess.run(["umount", venv], check=True)


def test_full_disk_is_reported(full_disk: Sandbox) -> None:
    fill = 'cat /dev/zero >"${0%/bin/*}/package"'
    status, output = full_disk.python().run("tank", "--local", FAKE_PIP=fill)
    assert status == 1
    assert "the disk is full; free some space" in output


@pytest.mark.parametrize("way", ["--local", "--docker"])
def test_ctrl_c_during_setup_exits_with_130(sandbox: Sandbox, way: str) -> None:
    wait = 'touch "$FAKE_LOG.waiting"; sleep 20; exit 1'
    process = sandbox.python().docker().start("tank", way, FAKE_PIP=wait, FAKE_BUILD=wait)
    sandbox.wait_for("waiting")
    output = None
    while output is None:
        # A shell can miss the signal between two programs, so send it again.
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            output, _ = process.communicate(timeout=2)
    assert process.returncode == 130, output
    assert "interrupted; finished steps are kept, run the same command again" in output


def test_unknown_argument_downloads_nothing() -> None:
    done = subprocess.run([ROOT / "docker/fill-wheels", "--cuda"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fill-wheels: error: it takes no arguments, got --cuda; see docker/fill-wheels --help\n"


# Rules for all scripts


def test_documented_commands_with_piped_output_are_quiet() -> None:
    # Compose writes the build log to stdout, in front of the output of the command.
    kept = re.compile(r"docker compose (?!--progress quiet)[^`#\n|]*\brun\b[^`#\n|>]*[|>]")
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("compose*.yaml")]
    assert pages
    assert not [line for page in pages for line in page.read_text().splitlines() if kept.search(line)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_script_is_short_and_strict_and_has_help(script: Path) -> None:
    text = script.read_text()
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in text
    assert len(text.splitlines()) <= 200
    help_text = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    assert help_text.returncode == 0, help_text.stderr
    assert help_text.stdout.lower().startswith("usage: ")
