"""scripts/tank and scripts/test: the choice between Docker and .venv, arguments, variables, and signals.

`docker`, `python3.11` and similar programs are fakes here. CI also runs the real scripts, with Docker and without.
"""

import os
import pty
import re
import signal
import subprocess

import pytest

import pufferlib
from tests.static.sandbox import FAKE_PYTHON, Sandbox
from tests.tiers import once

# A job that writes a checkpoint when `docker stop` stops it, like a training run.
LONG_RUN = 'sleep 20 & trap "kill $!; echo checkpoint written; exit 143" TERM; echo $$ >"$FAKE_LOG.client"; wait'


# Choice between Docker and .venv, arguments and variables


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "tank train breakout"),
        (["train", "atari/pong", "--train.seed", "3"], "tank train atari/pong --train.seed 3"),
        (["--docker", "eval", "a b"], "tank eval a b"),
        (["shell", "-c", "ls"], "tank bash -c ls"),
    ],
)
def test_tank_runs_the_compose_service_if_an_engine_answers(
    sandbox: Sandbox, arguments: list[str], expected: str
) -> None:
    status, output = sandbox.docker().run("tank", *arguments)
    assert status == 0
    assert sandbox.compose_run() == f"docker compose --progress quiet run --rm -T {expected}"
    assert output.count("\n") == 2
    assert "using the Docker engine: docker compose run --rm tank (.venv instead: --local)" in output


@pytest.mark.parametrize(("verb", "default"), [("view", 6080), ("board", 6006)])
def test_page_is_published_on_this_machine(sandbox: Sandbox, verb: str, default: int) -> None:
    sandbox.docker()
    for port, next_line in (
        (default, "7000"),
        (7000, '"7001"'),
        (7001, "7002 # mine"),
        (7002, ""),
        (default, ""),
    ):
        assert sandbox.run("tank", verb, "breakout")[0] == 0
        assert sandbox.compose_run() == (
            f"docker compose --progress quiet run --rm --publish 127.0.0.1:{port}:{port} -T "
            f"tank {verb} --host 0.0.0.0 --port {port} breakout"
        )
        (sandbox.root / ".env").write_text(f"TANK_{verb.upper()}_PORT={next_line}\n")


def test_board_that_writes_files_publishes_no_port(sandbox: Sandbox) -> None:
    assert sandbox.docker().run("tank", "board", "--export", "site")[0] == 0
    assert sandbox.compose_run() == "docker compose --progress quiet run --rm -T tank board --export site"


def test_other_system_is_told_to_use_the_image(sandbox: Sandbox) -> None:
    status, output = sandbox.run("tank", OSTYPE="darwin23")
    assert status == 2
    assert output == (
        "tank: the scripts need Linux, got darwin23; use the image there: docker compose run --rm tank train breakout\n"
    )


def test_moved_checkout_gets_a_new_venv(sandbox: Sandbox) -> None:
    sandbox.python()
    assert sandbox.run("tank", "--local")[0] == 0
    stamp = sandbox.root / ".venv/tank-stamp"
    assert stamp.read_text().split()[-1] == str(sandbox.root)
    stamp.write_text(stamp.read_text().replace(str(sandbox.root), "/old place"))
    (sandbox.root / ".venv/old").touch()
    status, output = sandbox.run("tank", "--local")
    assert status == 0
    assert ".venv was made in /old place, whose paths it contains: making a new one" in output
    assert not (sandbox.root / ".venv/old").exists()


def test_compiler_with_options_is_found(sandbox: Sandbox) -> None:
    assert sandbox.python().run("tank", "--local", CC="cc -m64")[0] == 0


def test_test_passes_pytest_arguments_to_its_compose_service(sandbox: Sandbox) -> None:
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
def test_test_runs_tiers_on_all_cores_and_selected_tests_in_one_process(
    sandbox: Sandbox, arguments: list[str], expected: str
) -> None:
    assert sandbox.docker().run("test", *arguments)[0] == 0
    assert sandbox.compose_run() == f"docker compose --progress quiet run --rm -T test {expected}"


@pytest.mark.parametrize(
    ("arguments", "printed", "expected"),
    [
        (["--changed"], "everything", "-n auto"),
        (["--changed", "--all"], "everything", "--all -n auto"),
        (["--changed"], "tests/vector\\ntests/docs/test_docs.py", "--default tests/vector tests/docs/test_docs.py"),
        (["-x", "--changed", "--nightly"], "tests/vector", "--nightly -x tests/vector"),
    ],
)
def test_changed_runs_the_selected_tests(sandbox: Sandbox, arguments: list[str], printed: str, expected: str) -> None:
    sandbox.docker().fake("python3", f"printf '{printed}\\n'")
    assert sandbox.run("test", *arguments)[0] == 0
    assert sandbox.compose_run() == f"docker compose --progress quiet run --rm -T test {expected}"


@pytest.mark.parametrize(
    ("selection", "status", "sentence"), [("true", 0, "nothing changed, so no test runs"), ("exit 2", 2, "")]
)
def test_changed_runs_no_tests_without_a_selection(
    sandbox: Sandbox, selection: str, status: int, sentence: str
) -> None:
    sandbox.python().fake("python3", selection)
    found, output = sandbox.run("test", "--local", "--changed")
    assert found == status
    assert sentence in output
    assert not any(call.startswith("pytest") for call in sandbox.calls())


def test_scripts_set_up_a_venv_once_without_an_engine(sandbox: Sandbox) -> None:
    status, output = sandbox.python().run("tank")
    assert status == 0, output
    assert "no Docker engine answers, so using .venv" in output
    assert sandbox.calls()[-1] == "puffer train breakout"
    status, output = sandbox.run("tank", "--local", "list", "--json")
    assert status == 0
    assert output.count("\n") == 1
    assert sandbox.calls()[-1] == "puffer list --json"
    assert sum("pip -m pip" in call for call in sandbox.calls()) == 3, "the second run installed again"


def test_gallery_sets_up_the_venv_and_passes_its_arguments_on(sandbox: Sandbox) -> None:
    status, output = sandbox.python().run("gallery", "--check", "breakout")
    assert status == 0, output
    assert sandbox.calls()[-1] == f"python {sandbox.root}/scripts/lib/gallery.py --check breakout"


def test_nothing_is_installed_inside_our_containers(sandbox: Sandbox) -> None:
    sandbox.fake("tank-entrypoint", "true")
    sandbox.fake("tank-develop", 'echo tank-develop >>"$FAKE_LOG"')
    sandbox.fake("python", FAKE_PYTHON)
    status, output = sandbox.run("test", "-x")
    assert status == 0, output
    assert "using what this container has" in output
    assert sandbox.calls() == ["tank-develop", "pytest -x"]


def test_test_adds_its_extras_to_the_installed_ones(sandbox: Sandbox) -> None:
    sandbox.python().run("tank", "--local")
    status, output = sandbox.run("test", "--local", "-x")
    assert status == 0, output
    assert sandbox.calls()[-2].endswith("[atari,dm,export,render,sweep,test,track,train]")
    assert sandbox.calls()[-1] == "pytest -x"
    assert "3 passed" in output


@pytest.mark.parametrize("changed", ["pyproject.toml", "CMakeLists.txt", "pufferlib/new.py", "pufferlib/new.pyx"])
def test_changed_build_files_or_sources_are_installed_again(sandbox: Sandbox, changed: str) -> None:
    sandbox.python().run("tank", "--local")
    before = len(sandbox.calls())
    with (sandbox.root / changed).open("a") as file:
        file.write("\n")
    sandbox.run("tank", "--local")
    assert len(sandbox.calls()) > before + 1


def test_cpu_build_of_torch_is_tried_first(sandbox: Sandbox) -> None:
    status, output = sandbox.python().run("tank", FAKE_PIP='[[ "$*" != *+cpu* && "$*" != *uv ]]')
    assert status == 0, output
    installs = [call.split()[-1] for call in sandbox.calls() if "torch==" in call or call.endswith("uv")]
    version = installs[0].removesuffix("+cpu")
    assert installs == [f"{version}+cpu", "uv", version]


def test_gpu_selects_cuda_build_and_compose_override(sandbox: Sandbox) -> None:
    sandbox.python().docker().fake("nvidia-smi", "echo 580.65.06")
    sandbox.run("tank", "--local")
    assert not any("+cpu" in call for call in sandbox.calls())
    _, output = sandbox.run("tank")
    assert "compose.gpu.yaml" in output
    assert sandbox.compose_run().startswith("docker compose -f compose.yaml -f compose.gpu.yaml --progress quiet run")


@pytest.mark.parametrize("way", ["--docker", "--local"])
def test_gpu_with_old_driver_is_reported_and_not_used(sandbox: Sandbox, way: str) -> None:
    sandbox.python().docker().fake("nvidia-smi", "echo 535.104.05")
    status, output = sandbox.run("tank", way)
    assert status == 0, output
    assert "the NVIDIA driver here is 535.104.05, and CUDA 13 needs 580 or newer" in output
    assert ("compose.gpu.yaml" if way == "--docker" else "for the NVIDIA GPU") not in output


def test_gpu_without_container_toolkit_is_reported_and_not_used(sandbox: Sandbox) -> None:
    sandbox.docker().fake("nvidia-smi", "echo 580.65.06")
    status, output = sandbox.run("tank", FAKE_INFO="echo runc")
    assert status == 0, output
    assert "an NVIDIA GPU was found, but the Docker engine has no NVIDIA container toolkit: using the CPU" in output
    assert "compose.gpu.yaml" not in output


def test_build_gets_the_certificates_of_the_host(sandbox: Sandbox) -> None:
    bundle = sandbox.home / "bundle.pem"
    bundle.touch()
    sandbox.docker().run("tank", SSL_CERT_FILE=str(bundle), FAKE_BUILD='echo "$TANK_CA" >>"$FAKE_LOG"')
    assert str(bundle) in sandbox.calls()


def test_failed_build_is_retried_with_a_wheel_from_pip_settings(sandbox: Sandbox) -> None:
    wheel = f"{sandbox.root}/docker/wheels/cpu/torch.whl"
    (sandbox.root / "docker/wheels/cpu").mkdir(parents=True)
    status, output = sandbox.docker().run("tank", FAKE_BUILD=f"[ -e {wheel} ]", FAKE_WHEELS=f"touch {wheel}")
    assert status == 0, output
    assert sum(" build " in call for call in sandbox.calls()) == 2


def test_device_chosen_by_the_user_is_kept(sandbox: Sandbox) -> None:
    sandbox.docker().fake("nvidia-smi", "echo 580.65.06")
    (sandbox.root / ".env").write_text("TANK_DEVICE=cpu\n")
    sandbox.run("tank")
    assert sandbox.compose_run() == "docker compose --progress quiet run --rm -T tank train breakout"


@pytest.mark.parametrize(
    ("arguments", "command"), [([], "{}"), (["--docker", "list"], "{} --docker"), (["shell"], None)], ids=str
)
def test_docker_run_sets_puffer_command(sandbox: Sandbox, arguments: list[str], command: str | None) -> None:
    sandbox.docker().run("tank", *arguments, FAKE_RUN='echo "as: ${PUFFER_COMMAND:-}" >>"$FAKE_LOG"')
    assert sandbox.calls()[-1] == f"as: {(command or '').format(sandbox.root / 'scripts/tank')}"
    assert ("--env PUFFER_COMMAND" in sandbox.calls()[-2]) == (command is not None)


def test_tracker_hub_and_e_variables_are_passed_to_the_container(sandbox: Sandbox) -> None:
    settings = {"WANDB_TAGS": "a", "HF_TOKEN": "b", "HF_HOME": "/of/the/host", "OTHER": "c"}
    shows = 'echo "$HF_TOKEN $MINE" >>"$FAKE_LOG"'
    status, output = sandbox.docker().run("tank", "-e", "MINE=1 2", "-e", "OTHER", "list", FAKE_RUN=shows, **settings)
    assert status == 0, output
    call = re.sub(r"--env PUFFER_COMMAND | --name \S+", "", sandbox.calls()[-2])
    flags, _, command = call.partition("run --rm ")[2].partition(" -T ")
    assert flags == "--env HF_TOKEN --env WANDB_TAGS --env MINE --env OTHER"
    assert command == "tank list"
    assert sandbox.calls()[-1] == "b 1 2"


def test_e_sets_a_variable_in_local_runs(sandbox: Sandbox) -> None:
    sandbox.python().fake("python3.11", FAKE_PYTHON.replace("} $*", "} $*, ${MINE:-}"))
    assert sandbox.run("tank", "--local", "-e", "MINE=3", "list")[0] == 0
    assert sandbox.calls()[-1] == "puffer list, 3"


@pytest.mark.parametrize("given", [[], ["=1"], ["a-b=1"]], ids=str)
def test_e_rejects_invalid_names(sandbox: Sandbox, given: list[str]) -> None:
    status, output = sandbox.run("tank", "-e", *given)
    assert status == 2
    assert output.startswith(f"tank: -e takes NAME or NAME=VALUE, got '{''.join(given)}'")


def test_local_run_sets_puffer_command(sandbox: Sandbox) -> None:
    sandbox.python().fake("python3.11", FAKE_PYTHON.replace("} $*", "} $*, as ${PUFFER_COMMAND:-}"))
    sandbox.run("tank", "--local", "list")
    assert sandbox.calls()[-1] == f"puffer list, as {sandbox.root}/scripts/tank --local"


@pytest.mark.parametrize(("device", "disk"), [("cpu", "about 5 minutes and 8 GB"), ("cuda", "about 10 minutes and 16")])
def test_first_build_prints_its_expected_time_and_size(sandbox: Sandbox, device: str, disk: str) -> None:
    _, output = sandbox.docker().run("tank", FAKE_IMAGE="false", TANK_DEVICE=device, FAKE_BUILD="echo the build")
    assert disk in output.partition("the build")[0]


def test_image_is_built_with_its_commit_as_label(sandbox: Sandbox) -> None:
    sandbox.docker().fake("git", "[ $1 = ls-files ] || echo 0123abc")
    sandbox.run("tank", FAKE_BUILD='echo "built from $TANK_REVISION" >>"$FAKE_LOG"')
    assert "built from 0123abc" in sandbox.calls()


@pytest.mark.parametrize(
    ("revision", "pull", "message", "builds"),
    [
        ("0123456789" * 4, "true", "using the published image {version}-012345678901-", False),
        ("0123456789" * 4, "exit 1", "TANK_REGISTRY has no image of this commit", True),
        ("0123456789" * 4 + "-dirty", "true", "files have changed since the last commit", True),
    ],
)
def test_registry_is_used_if_it_has_the_image_of_the_commit(
    sandbox: Sandbox, revision: str, pull: str, message: str, builds: bool
) -> None:
    sandbox.docker().fake("git", f"[ $1 = ls-files ] || echo {revision}")
    registry = {"TANK_REGISTRY": "registry.example/tank", "FAKE_PULL": pull}
    status, output = sandbox.run("tank", **registry, FAKE_RUN='echo "${TANK_PULL:-build} $TANK_TAG" >>"$FAKE_LOG"')
    assert status == 0, output
    assert message.format(version=pufferlib.__version__) in output
    assert any(" build " in call for call in sandbox.calls()) == builds
    pulled = re.fullmatch(r"missing \S+-012345678901-[0-9a-f]{12}-cpu", sandbox.calls()[-1])
    assert bool(pulled) != builds


def test_nothing_is_built_if_compose_pulls(sandbox: Sandbox) -> None:
    (sandbox.root / ".env").write_text("TANK_PULL=missing\nTANK_REGISTRY=registry.example/tank\nTANK_TAG=0.3.0\n")
    status, output = sandbox.docker().run("tank")
    assert status == 0, output
    assert not any(" build " in call or " pull " in call for call in sandbox.calls())


def test_only_our_dangling_images_are_pruned(sandbox: Sandbox) -> None:
    sandbox.docker().run("tank")
    assert [call for call in sandbox.calls() if "prune" in call] == [
        "docker image prune --force --filter label=tank.target"
    ]


# Signals without a terminal


@pytest.mark.parametrize("name", once(["HUP", "INT", "TERM"], ["INT"]))
@pytest.mark.parametrize("to", ["the script", "all that run in front"])
def test_signal_stops_the_container_and_shows_its_remaining_output(sandbox: Sandbox, name: str, to: str) -> None:
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


def test_container_is_stopped_if_compose_was_killed(sandbox: Sandbox) -> None:
    status, _ = sandbox.docker().run("tank", FAKE_RUN="kill -KILL $$")
    assert status == 137
    assert sandbox.calls()[-1].startswith("docker stop puffertank-tank-")


def test_each_run_has_its_own_container_name(sandbox: Sandbox) -> None:
    sandbox.docker().run("tank")
    sandbox.run("tank")
    names = [call.partition("--name ")[2].split()[0] for call in sandbox.calls() if " run " in call]
    assert len(set(names)) == len(names) == 2


@pytest.mark.parametrize("piped", [False, True])
def test_script_is_replaced_by_compose_in_a_terminal(sandbox: Sandbox, piped: bool) -> None:
    command = f"'{sandbox.root}/scripts/tank' {'| cat' if piped else ''}"
    environment = {"PATH": str(sandbox.docker().bin), "HOME": str(sandbox.home), "FAKE_LOG": str(sandbox.log)}
    terminal, ours = pty.openpty()
    subprocess.run(["bash", "-c", command], env=environment, stdin=ours, stdout=ours, stderr=ours, timeout=30)
    os.close(ours), os.close(terminal)
    # If the output is piped, Ctrl-C arrives as a signal, which would leave the container running.
    assert (" -T --name " in sandbox.calls()[-1]) == piped
