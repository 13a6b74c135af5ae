"""Compose services and their containers."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.image.engine import LIMIT_S, ROOT, build, image_of, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.timeout(LIMIT_S),
    pytest.mark.skipif(
        not any(image.target == "tank" for image in images()),
        reason="image tests: the image tank is not built, or no Docker engine answers",
    ),
]


def compose(service: str, *command: str) -> subprocess.CompletedProcess[str]:
    return run("docker", "compose", "--progress", "quiet", "run", "--rm", "-T", service, *command)


def test_check_names_an_image_that_is_not_built() -> None:
    done = run("docker/check", "puffertank/no-such-target:cpu")
    assert done.returncode == 2
    assert "no such image: puffertank/no-such-target:cpu" in done.stderr.lower()


def test_compose_sets_the_size_of_shared_memory() -> None:
    done = compose("tank", "df", "--output=size", "--block-size=1M", "/dev/shm")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == 2048


def test_host_variables_are_passed_to_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "HF_TOKEN", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    shows = "echo $WANDB_API_KEY $HF_TOKEN $OMP_NUM_THREADS ${HF_ENDPOINT-unset}"
    done = compose("tank", "bash", "-c", shows)
    assert done.stdout == "7 7 7 unset\n", done.stderr


def test_script_imports_its_neighbor_and_the_installed_package(tmp_path: Path) -> None:
    (tmp_path / "pufferlib").mkdir()
    (tmp_path / "pufferlib/__init__.py").touch()
    (tmp_path / "neighbour.py").write_text("VALUE = 3\n")
    (tmp_path / "main.py").write_text("import neighbour, pufferlib\nprint(neighbour.VALUE, pufferlib.__file__)\n")
    options = ["--user", "root", "-v", f"{tmp_path}:/workspace"]
    done = run("docker", "run", "--rm", *options, image_of("tank"), "python", "main.py")
    assert done.stdout.startswith("3 /opt/venv/"), done.stderr


def test_hardened_container_works_for_any_uid(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    options = ["--read-only", "--cap-drop", "ALL", "--user", "1000700000:0", "--tmpfs", "/tmp"]
    code = "import getpass, pathlib; pathlib.Path.home().joinpath('x').touch(); print(getpass.getuser())"
    command = ["python", "-c", f"{code}; open('left-behind', 'w').close()"]
    done = run("docker", "run", "--rm", *options, "-v", f"{tmp_path}:/workspace", image_of("tank"), *command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tank\n", "")
    assert (tmp_path / "left-behind").stat().st_uid == 1000700000


def test_read_only_container_switches_to_the_owner_of_the_checkout(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 23456)
    options = ["--read-only", "--user", "root", "--tmpfs", "/tmp", "-v", f"{tmp_path}:/workspace"]
    done = run("docker", "run", "--rm", *options, image_of("tank"), "bash", "-c", "echo $(id -u) $(id -g)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "12345 23456\n", "")


def test_documented_way_to_add_a_package_works(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"(?ms)^```dockerfile\n(.*?)^```$", (ROOT / "docs/images.md").read_text())
    recipe = recipe.replace("puffertank/tank:cpu", image_of("tank"))
    tag = "puffertank-test-derived"
    try:
        build(recipe, tag, tmp_path)
        done = run(
            "docker", "run", "--rm", "--network", "none", tag, "python", "-c", "import einops, os; print(os.getuid())"
        )
        assert done.stdout == "1000\n", done.stderr
    finally:
        run("docker", "image", "rm", "--force", tag)


def test_exit_codes_are_returned() -> None:
    done = compose("tank", "bash", "-c", "exit 42")
    assert done.returncode == 42, done.stderr


def test_terminated_run_without_a_terminal_leaves_no_container() -> None:
    waits = "trap 'echo stopped; exit 143' TERM; echo up; sleep 60 & wait"
    command = ["scripts/tank", "--docker", "bash", "-c", waits]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert len(containers(process.pid)) == 1
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (143, "stopped\n")
    assert not containers(process.pid)


def containers(pid: int) -> list[str]:
    """Return the names of all containers that process ``pid`` of scripts/tank created, running or not."""
    name = f"name=puffertank-tank-{pid}-"
    return run("docker", "ps", "--all", "--filter", name, "--format", "{{.Names}}").stdout.split()


def test_stdout_contains_only_the_output_of_the_command() -> None:
    done = compose("tank", "echo", "hello")
    assert done.stdout == "hello\n", done.stderr


def test_wrong_path_to_certificates_is_reported() -> None:
    command = ["env", "TANK_CA=/no/such/bundle.crt", "docker", "compose", "build", "tank"]
    done = run(*command)
    assert done.returncode != 0
    assert "/no/such/bundle.crt" in done.stderr


def test_cache_volume_is_usable_after_another_uid(tmp_path: Path) -> None:
    volume = "puffertank-test-cache"
    try:
        for uid in (2001, 2002):
            os.chown(tmp_path, uid, uid)
            options = ["--rm", "--user", "root", "-v", f"{tmp_path}:/workspace", "-v", f"{volume}:/home/tank/.cache"]
            done = run("docker", "run", *options, image_of("tank"), "touch", "/home/tank/.cache/x")
            assert done.returncode == 0, done.stderr
    finally:
        run("docker", "volume", "rm", "--force", volume)
