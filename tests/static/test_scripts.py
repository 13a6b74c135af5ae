"""The front door under bad conditions: scripts/tank and scripts/test with fake programs around them.

What the scripts do when all is well is seen by running them, which CI does both ways. Here `docker`, `python3.11`
and their like are stand-ins, so that each fault costs milliseconds.
"""

import contextlib
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path
    for folder in ("scripts", ".ci", "docker")
    for path in (ROOT / folder).glob("*")
    if path.is_file() and path.read_text().startswith("#!/usr/bin/env bash\n")
)
TOOLS = """
    bash cat chmod cut dirname env find flock grep head id mkdir paste rm sed sha256sum sleep sort tail timeout touch
    tr xargs
"""

# `python -m venv DIR` makes a folder whose python is this file again; FAKE_PIP is what pip does.
FAKE_PYTHON = """
case "$1 $2" in
"-m venv") mkdir -p "$3/bin"; cp_self() { cat "$0" >"$1"; chmod +x "$1"; }
    for name in python pip puffer; do cp_self "$3/bin/$name"; done ;;
"-m pip") echo "pip $*" >>"$FAKE_LOG"; eval "${FAKE_PIP:-true}" ;;
"-m pytest") echo "3 passed"; echo "pytest ${*:3}" >>"$FAKE_LOG" ;;
-c*) case $2 in
    *find_spec*) eval "${FAKE_PROBE:-true}" ;;
    *executable*) echo "$0" ;;
    *build-system*) echo "cython>=3.1 ninja" ;;
    *importlib.metadata*) exit 1 ;;
    *version_info*) ;;
    esac ;;
--version*) echo "Python 3.12.1" ;;
*) echo "${0##*/} $*" >>"$FAKE_LOG" ;;
esac
"""

FAKE_DOCKER = """
echo "docker $*" >>"$FAKE_LOG"
case $1 in
version) eval "${FAKE_VERSION:-echo 26.1.5}" ;;
info) echo '{"nvidia":{},"runc":{}}' ;;
image) eval "${FAKE_IMAGE:-true}" ;;
stop) kill "$(cat "$FAKE_LOG.client")" 2>/dev/null ;;
compose) case "$*" in
    *version) eval "${FAKE_COMPOSE:-true}" ;;
    *" config "*) printf '    image: puffertank/%s\n        DEVICE: %s\n' "${*: -1}" "${TANK_DEVICE:-cpu}" ;;
    *" build "*) eval "${FAKE_BUILD:-true}" ;;
    *" run "*) eval "${FAKE_RUN:-true}" ;;
    esac ;;
esac
"""
# A job that `docker stop` ends, as it does a training, which then writes its checkpoint.
LONG_RUN = 'echo $$ >"$FAKE_LOG.client"; sleep 20 & trap "kill $!; echo checkpoint written; exit 143" TERM; wait'


class Sandbox:
    """A checkout with the real scripts, and a PATH on which only the usual tools and the given fakes stand."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.home = folder / "home"
        for path in (self.root / "pufferlib", self.root / "bindings", self.root / "docker", self.bin, self.home):
            path.mkdir(parents=True)
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        for name in ("pyproject.toml", "CMakeLists.txt"):
            shutil.copy(ROOT / name, self.root / name)
        for tool in TOOLS.split():
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.fake("bootstrap-base", 'eval "${FAKE_BASE:-true}"')
        self.fake("fill-wheels", 'echo fill-wheels >>"$FAKE_LOG"; eval "${FAKE_WHEELS:-exit 1}"')
        for name in ("bootstrap-base", "fill-wheels"):
            shutil.move(self.bin / name, self.root / "docker")
        self.log.touch()

    def fake(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def python(self) -> "Sandbox":
        self.fake("python3.11", FAKE_PYTHON)
        self.fake("cc", "true")
        return self

    def docker(self) -> "Sandbox":
        self.fake("docker", FAKE_DOCKER)
        return self

    def start(self, script: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.home), "FAKE_LOG": str(self.log), **settings}
        return subprocess.Popen(
            [self.root / "scripts" / script, *arguments],
            env=environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # Some environments in this process (NetHack) ignore hang-ups, which the script would inherit.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )

    def run(self, script: str, *arguments: str, **settings: str) -> tuple[int, str]:
        """Returns the exit code and everything printed."""
        process = self.start(script, *arguments, **settings)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def compose_run(self) -> str:
        """The last call of `docker compose ... run ...`, without the container's name and what is handed on to it."""
        (*_, call) = (call for call in self.calls() if " run " in call)
        return re.sub(r" --env PUFFER_COMMAND| --name \S+", "", call)

    def wait_for(self, name: str) -> None:
        """Wait for a file that a fake writes, beside the log."""
        deadline = time.monotonic() + 20
        while not Path(f"{self.log}.{name}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


# Which way is taken, and what passes through


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "tank train breakout"),
        (["train", "atari/pong", "--train.seed", "3"], "tank train atari/pong --train.seed 3"),
        (["--docker", "eval", "a b"], "tank eval a b"),
        (["shell", "-c", "ls"], "tank bash -c ls"),
    ],
)
def test_tank_runs_the_compose_service_where_an_engine_answers(
    sandbox: Sandbox, arguments: list[str], expected: str
) -> None:
    status, output = sandbox.docker().run("tank", *arguments)
    assert status == 0
    assert sandbox.compose_run() == f"docker compose --progress quiet run --rm -T {expected}"
    assert output.count("\n") == 2
    assert "using the Docker engine: docker compose run --rm tank (.venv instead: --local)" in output


def test_test_runs_its_compose_service_with_the_arguments_of_pytest(sandbox: Sandbox) -> None:
    assert sandbox.docker().run("test", "-k", "spaces")[0] == 0
    assert sandbox.compose_run() == "docker compose --progress quiet run --rm -T test -k spaces"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "-n auto"),
        (["--all"], "--all -n auto"),
        (["--docker", "--nightly"], "--nightly -n auto"),
        (["--all", "--docker", "-k", "spaces"], "--all -k spaces"),
    ],
    ids=str,
)
def test_test_runs_a_tier_on_all_cores_and_chosen_tests_in_one_process(
    sandbox: Sandbox, arguments: list[str], expected: str
) -> None:
    assert sandbox.docker().run("test", *arguments)[0] == 0
    assert sandbox.compose_run() == f"docker compose --progress quiet run --rm -T test {expected}"


def test_without_an_engine_the_scripts_set_up_a_venv_once_and_say_so(sandbox: Sandbox) -> None:
    status, output = sandbox.python().run("tank")
    assert status == 0, output
    assert "no Docker engine answers, so using .venv" in output
    assert sandbox.calls()[-1] == "puffer train breakout"
    status, output = sandbox.run("tank", "--local", "list", "--json")
    assert status == 0
    assert output.count("\n") == 1
    assert sandbox.calls()[-1] == "puffer list --json"
    assert sum("pip -m pip" in call for call in sandbox.calls()) == 3, "the second run installed again"


def test_inside_a_container_of_ours_nothing_is_installed(sandbox: Sandbox) -> None:
    sandbox.fake("tank-entrypoint", "true")
    sandbox.fake("tank-develop", 'echo tank-develop >>"$FAKE_LOG"')
    sandbox.fake("python", FAKE_PYTHON)
    status, output = sandbox.run("test", "-x")
    assert status == 0, output
    assert "using what this container has" in output
    assert sandbox.calls() == ["tank-develop", "pytest -x"]


def test_test_adds_its_extra_to_what_is_installed_already(sandbox: Sandbox) -> None:
    sandbox.python().run("tank", "--local")
    status, output = sandbox.run("test", "--local", "-x")
    assert status == 0, output
    assert sandbox.calls()[-2].endswith("[atari,render,test,train]")
    assert sandbox.calls()[-1] == "pytest -x"
    assert "3 passed" in output


@pytest.mark.parametrize("changed", ["pyproject.toml", "CMakeLists.txt", "pufferlib/new.py", "pufferlib/new.pyx"])
def test_a_change_of_the_build_or_the_sources_installs_again(sandbox: Sandbox, changed: str) -> None:
    sandbox.python().run("tank", "--local")
    before = len(sandbox.calls())
    with (sandbox.root / changed).open("a") as file:
        file.write("\n")
    sandbox.run("tank", "--local")
    assert len(sandbox.calls()) > before + 1


def test_the_cpu_build_of_torch_is_asked_for_first_and_any_other_build_last(sandbox: Sandbox) -> None:
    status, output = sandbox.python().run("tank", FAKE_PIP='[[ "$*" != *+cpu* && "$*" != *uv ]]')
    assert status == 0, output
    installs = [call.split()[-1] for call in sandbox.calls() if "torch==" in call or call.endswith("uv")]
    version = installs[0].removesuffix("+cpu")
    assert installs == [f"{version}+cpu", "uv", version]


def test_a_gpu_gets_the_cuda_build_and_the_compose_override(sandbox: Sandbox) -> None:
    sandbox.python().docker().fake("nvidia-smi", "echo 580.65.06")
    sandbox.run("tank", "--local")
    assert not any("+cpu" in call for call in sandbox.calls())
    _, output = sandbox.run("tank")
    assert "compose.gpu.yaml" in output
    assert sandbox.compose_run().startswith("docker compose -f compose.yaml -f compose.gpu.yaml --progress quiet run")


@pytest.mark.parametrize("way", ["--docker", "--local"])
def test_a_gpu_whose_driver_is_too_old_for_cuda_is_named_and_left_alone(sandbox: Sandbox, way: str) -> None:
    sandbox.python().docker().fake("nvidia-smi", "echo 535.104.05")
    status, output = sandbox.run("tank", way)
    assert status == 0, output
    assert "the NVIDIA driver here is 535.104.05, and CUDA 13 needs 580 or newer" in output
    assert ("compose.gpu.yaml" if way == "--docker" else "for the NVIDIA GPU") not in output


def test_the_authorities_that_this_machine_trusts_are_given_to_the_build(sandbox: Sandbox) -> None:
    bundle = sandbox.home / "bundle.pem"
    bundle.touch()
    sandbox.docker().run("tank", SSL_CERT_FILE=str(bundle), FAKE_BUILD='echo "$TANK_CA" >>"$FAKE_LOG"')
    assert str(bundle) in sandbox.calls()


def test_a_build_that_fails_is_tried_again_with_a_wheel_from_pip_s_settings(sandbox: Sandbox) -> None:
    wheel = f"{sandbox.root}/docker/wheels/cpu/torch.whl"
    (sandbox.root / "docker/wheels/cpu").mkdir(parents=True)
    status, output = sandbox.docker().run("tank", FAKE_BUILD=f"[ -e {wheel} ]", FAKE_WHEELS=f"touch {wheel}")
    assert status == 0, output
    assert sum(" build " in call for call in sandbox.calls()) == 2


def test_the_user_s_own_choice_of_device_is_kept(sandbox: Sandbox) -> None:
    sandbox.docker().fake("nvidia-smi", "echo 580.65.06")
    (sandbox.root / ".env").write_text("TANK_DEVICE=cpu\n")
    sandbox.run("tank")
    assert sandbox.compose_run() == "docker compose --progress quiet run --rm -T tank train breakout"


@pytest.mark.parametrize(
    ("arguments", "command"), [([], "{}"), (["--docker", "list"], "{} --docker"), (["shell"], None)], ids=str
)
def test_puffer_learns_by_which_command_it_was_run(sandbox: Sandbox, arguments: list[str], command: str | None) -> None:
    sandbox.docker().run("tank", *arguments, FAKE_RUN='echo "as: ${PUFFER_COMMAND:-}" >>"$FAKE_LOG"')
    assert sandbox.calls()[-1] == f"as: {(command or '').format(sandbox.root / 'scripts/tank')}"
    assert ("--env PUFFER_COMMAND" in sandbox.calls()[-2]) == (command is not None)


def test_the_local_way_tells_puffer_by_which_command_it_was_run(sandbox: Sandbox) -> None:
    sandbox.python().fake("python3.11", FAKE_PYTHON.replace("} $*", "} $*, as ${PUFFER_COMMAND:-}"))
    sandbox.run("tank", "--local", "list")
    assert sandbox.calls()[-1] == f"puffer list, as {sandbox.root}/scripts/tank --local"


@pytest.mark.parametrize(("device", "disk"), [("cpu", "about 5 minutes and 8 GB"), ("cuda", "about 10 minutes and 16")])
def test_the_first_build_says_before_how_long_it_takes_and_how_large_it_gets(
    sandbox: Sandbox, device: str, disk: str
) -> None:
    _, output = sandbox.docker().run("tank", FAKE_IMAGE="false", TANK_DEVICE=device, FAKE_BUILD="echo the build")
    assert disk in output.partition("the build")[0]


def test_an_image_is_built_with_labels_that_tell_its_commit(sandbox: Sandbox) -> None:
    sandbox.docker().fake("git", "echo 0123abc")
    sandbox.run("tank", FAKE_BUILD='echo "built from $TANK_REVISION" >>"$FAKE_LOG"')
    assert "built from 0123abc" in sandbox.calls()


def test_images_that_an_edit_leaves_without_a_name_are_removed_and_no_others(sandbox: Sandbox) -> None:
    sandbox.docker().run("tank")
    assert [call for call in sandbox.calls() if "prune" in call] == [
        "docker image prune --force --filter label=tank.target"
    ]


# Ends without a terminal: nothing is left running


@pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
@pytest.mark.parametrize("to", ["the script", "all that run in front"])
def test_a_signal_stops_the_container_and_shows_its_last_words(sandbox: Sandbox, name: str, to: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    process = sandbox.docker().start("tank", FAKE_RUN=LONG_RUN)
    sandbox.wait_for("client")
    os.kill(process.pid, number) if to == "the script" else os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number, output
    assert output.endswith("checkpoint written\n")
    calls = sandbox.calls()
    (run,) = (call for call in calls if " run " in call)
    assert set(calls[calls.index(run) + 1 :]) == {f"docker stop --time 30 {run.partition('--name ')[2].split()[0]}"}


def test_a_container_that_compose_left_behind_is_stopped(sandbox: Sandbox) -> None:
    status, _ = sandbox.docker().run("tank", FAKE_RUN="kill -KILL $$")
    assert status == 137
    assert sandbox.calls()[-1].startswith("docker stop puffertank-tank-")


def test_two_runs_at_once_have_containers_of_their_own(sandbox: Sandbox) -> None:
    sandbox.docker().run("tank")
    sandbox.run("tank")
    names = [call.partition("--name ")[2].split()[0] for call in sandbox.calls() if " run " in call]
    assert len(set(names)) == len(names) == 2


@pytest.mark.parametrize("piped", [False, True])
def test_with_a_terminal_compose_takes_the_place_of_the_script(sandbox: Sandbox, piped: bool) -> None:
    command = f"'{sandbox.root}/scripts/tank' {'| cat' if piped else ''}"
    environment = {"PATH": str(sandbox.docker().bin), "HOME": str(sandbox.home), "FAKE_LOG": str(sandbox.log)}
    terminal, ours = pty.openpty()
    subprocess.run(["bash", "-c", command], env=environment, stdin=ours, stdout=ours, stderr=ours, timeout=30)
    os.close(ours), os.close(terminal)
    # Where the output goes elsewhere, Ctrl-C comes as a signal, which would leave the container running.
    assert (" -T --name " in sandbox.calls()[-1]) == piped


# Faults: a sentence that says what to do, and an exit code other than 0


def test_an_unknown_flag_before_the_verb_is_named(sandbox: Sandbox) -> None:
    status, output = sandbox.docker().run("tank", "--gpu")
    assert status == 2
    assert (
        output == "tank: unknown flag --gpu; only --docker and --local come before the verb, puffer's flags after it\n"
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


@pytest.mark.parametrize("fault", DOCKER_FAULTS)
@pytest.mark.parametrize("script", ["tank", "test"])
def test_a_fault_of_the_engine_says_what_to_do(sandbox: Sandbox, script: str, fault: str) -> None:
    arguments, settings, sentences = DOCKER_FAULTS[fault]
    status, output = sandbox.python().docker().run(script, *arguments, **settings)
    assert status == 1, output
    assert all(sentence in output.splitlines()[-1] for sentence in sentences), output
    assert not any(" run " in call for call in sandbox.calls())


def test_a_device_that_no_image_is_for_is_answered_with_those_that_there_are(sandbox: Sandbox) -> None:
    status, output = sandbox.docker().run("tank", TANK_DEVICE="rocm")
    assert status == 2
    assert output.endswith("tank: TANK_DEVICE must be cpu or cuda, got rocm; change it in the environment or in .env\n")
    assert not any(" build " in call for call in sandbox.calls())


def test_asking_for_docker_without_a_client_says_how_to_get_one(sandbox: Sandbox) -> None:
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
def test_a_failed_installation_shows_the_reason_and_says_what_to_do(sandbox: Sandbox, fault: str) -> None:
    printed, sentence = PIP_FAULTS[fault]
    status, output = sandbox.python().run("tank", "--local", FAKE_PIP=f'echo "{printed}" >&2; exit 1')
    assert status == 1
    assert printed in output
    assert sentence in output.splitlines()[-1]
    assert not (sandbox.root / ".venv/tank-stamp").exists()


def test_a_wrong_python_is_named_with_the_one_that_is_needed(sandbox: Sandbox) -> None:
    sandbox.fake("cc", "true")
    sandbox.fake("python3", "[ $1 = --version ] && echo Python 3.12.1 || exit 1")
    status, output = sandbox.run("test", "--local")
    assert status == 1
    assert "no Python 3.11 was found (python3 is Python 3.12.1); install it" in output
    assert "--docker" in output


@pytest.mark.parametrize("part", ["venv", "its C headers"])
def test_a_python_that_lacks_a_part_is_named(sandbox: Sandbox, part: str) -> None:
    status, output = sandbox.python().run("tank", FAKE_PROBE=f"echo '{part}'")
    assert status == 1
    assert f"python3.11 is Python 3.11 but lacks {part}; install it" in output


def test_a_missing_compiler_is_named_before_anything_is_downloaded(sandbox: Sandbox) -> None:
    sandbox.python().fake("cc", "true")
    (sandbox.bin / "cc").unlink()
    status, output = sandbox.run("tank", "--local")
    assert status == 1
    assert "no C compiler (cc)" in output
    assert "apt-get install gcc" in output
    assert sandbox.calls() == []


@pytest.fixture
def read_only(sandbox: Sandbox) -> Iterator[Sandbox]:
    """Root may write wherever permissions forbid it, so for root the checkout is mounted read-only."""
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


def test_a_read_only_checkout_says_so(read_only: Sandbox) -> None:
    status, output = read_only.python().run("tank", "--local")
    assert status == 1
    assert "cannot be written; use a checkout that belongs to you" in output


@pytest.fixture
def full_disk(sandbox: Sandbox) -> Iterator[Sandbox]:
    """A checkout whose .venv lies on a disk of 64 KiB."""
    venv = sandbox.root / ".venv"
    venv.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", venv], capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root with the right to mount")
    yield sandbox
    subprocess.run(["umount", venv], check=True)


def test_a_full_disk_is_reported_as_one(full_disk: Sandbox) -> None:
    fill = 'cat /dev/zero >"${0%/bin/*}/package"'
    status, output = full_disk.python().run("tank", "--local", FAKE_PIP=fill)
    assert status == 1
    assert "the disk is full; free some space" in output


@pytest.mark.parametrize("way", ["--local", "--docker"])
def test_ctrl_c_during_the_set_up_says_what_to_do_and_exits_130(sandbox: Sandbox, way: str) -> None:
    wait = 'touch "$FAKE_LOG.waiting"; sleep 20; exit 1'
    process = sandbox.python().docker().start("tank", way, FAKE_PIP=wait, FAKE_BUILD=wait)
    sandbox.wait_for("waiting")
    output = None
    while output is None:
        # The fake may be just between two programs, where a shell does not hear the signal: then press again.
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            output, _ = process.communicate(timeout=2)
    assert process.returncode == 130, output
    assert "interrupted; finished steps are kept, run the same command again" in output


# Rules that every script keeps


def test_documented_commands_whose_output_is_kept_leave_the_log_of_the_build_out() -> None:
    # Compose writes that log to the standard output, in front of what the command prints.
    kept = re.compile(r"docker compose (?!--progress quiet)[^`#\n|]*\brun\b[^`#\n|>]*[|>]")
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("compose*.yaml")]
    assert pages
    assert not [line for page in pages for line in page.read_text().splitlines() if kept.search(line)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_script_is_short_strict_and_has_help(script: Path) -> None:
    text = script.read_text()
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in text
    assert len(text.splitlines()) <= 200
    help_text = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    assert help_text.returncode == 0, help_text.stderr
    assert help_text.stdout.lower().startswith("usage: ")
