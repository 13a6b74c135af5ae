"""Job script for Slurm, with fake programs. tests/image/test_slurm.py runs it in Slurm itself."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docker/slurm/puffer.sbatch"
TOOLS = "bash env head hostname mkdir od sed sleep timeout tr"
# Stops at SIGTERM, as a training does. A second signal would stop a training without a checkpoint.
WAITS = """
trap 'signals=$((signals + 1))' TERM
echo started
until [ -n "$signals" ]; do sleep 0.05; done
sleep 0.2
echo "stopped by $signals signal"
exit 143
"""
LIMIT = "puffer.sbatch: the time limit is near; the job continues when it starts again"


class Node:
    """Node of a cluster, with a PATH of usual tools and fakes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS.split():
            if path := shutil.which(tool):
                (self.bin / tool).symlink_to(path)
        self.fake("puffer", 'echo "puffer $*"')
        self.fake("scontrol", 'case $1 in show) echo localhost ;; *) echo "scontrol $*" ;; esac')

    def fake(self, name: str, body: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
        (self.bin / name).chmod(0o755)

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        environment = {"PATH": str(self.bin), "SLURM_JOB_ID": "7", **settings}
        return subprocess.Popen(
            [shutil.which("bash") or "bash", SCRIPT, *arguments],
            cwd=self.folder,
            env={name: value for name, value in environment.items() if value},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **settings: str) -> tuple[int, str]:
        """Run the script and return its exit code and output."""
        process = self.start(*arguments, **settings)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


ARRAY = {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.mark.parametrize(
    ("arguments", "settings", "command"),
    [
        ("train pong --train.gamma 0.9", {}, "train pong --train.gamma 0.9 --name slurm-7"),
        ("train pong", ARRAY, "train pong --name slurm-7-3 --train.seed 3"),
        ("train --resume runs/a", {}, "train --resume runs/a"),
        ("train --resume=runs/a", {}, "train --resume=runs/a"),
        ("sweep pong", ARRAY, "sweep pong --sweep.storage sweeps/slurm-7.log --sweep.name slurm-7"),
    ],
)
def test_job_runs_puffer(node: Node, arguments: str, settings: dict[str, str], command: str) -> None:
    assert node.run(*arguments.split(), **settings) == (0, f"puffer {command}\n")


@pytest.mark.parametrize(("settings", "name"), [({}, "slurm-7"), (ARRAY, "slurm-7-3")])
def test_restarted_job_resumes_its_own_run(node: Node, settings: dict[str, str], name: str) -> None:
    for run in (f"1-pong-{name}/checkpoints/000002", f"2-pong-{name}", "3-pong-slurm-77-3/checkpoints/000005"):
        (node.folder / "runs" / run).mkdir(parents=True)
    assert node.run("train", "pong", **settings) == (0, f"puffer train --resume runs/1-pong-{name}\n")


@pytest.mark.parametrize("flags", [["--runs", "my runs"], ["--runs=my runs/", "--train.seeds=2"]])
def test_restarted_job_resumes_all_seeds_in_any_folder(node: Node, flags: list[str]) -> None:
    folder = "my runs/1-pong-slurm-7"
    seed = "seed-2/" if "--train.seeds=2" in flags else ""
    (node.folder / f"{folder}/{seed}checkpoints/000002").mkdir(parents=True)
    assert node.run("train", "pong", *flags) == (0, f"puffer train --resume {folder}\n")


def test_image_runs_in_apptainer(node: Node) -> None:
    (node.folder / "tank.sif").touch()
    node.fake("apptainer", 'echo "apptainer $*"')
    _, output = node.run("train", "pong", TANK_IMAGE="tank.sif", SLURM_JOB_GPUS="0")
    command = "puffer train pong --name slurm-7"
    assert output == f"apptainer exec --bind {node.folder} --nv tank.sif {command}\n"


def test_exit_code_is_returned(node: Node) -> None:
    node.fake("puffer", "exit 42")
    assert node.run("train", "pong") == (42, "")


def interrupted(node: Node, send: Callable[[int], None]) -> tuple[int, str]:
    """Call ``send`` with the id of the running script, and return its exit code and further output."""
    process = node.start("train", "pong")
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    send(process.pid)
    output, _ = process.communicate(timeout=30)
    return process.returncode, output


def test_termination_of_all_processes_stops_the_training_once(node: Node) -> None:
    node.fake("puffer", WAITS)
    code, output = interrupted(node, lambda pid: os.killpg(pid, signal.SIGTERM))
    assert (code, output.splitlines()[-1]) == (143, "stopped by 1 signal")


def test_time_limit_stops_the_training_and_requeues_the_job(node: Node) -> None:
    node.fake("puffer", WAITS)
    code, output = interrupted(node, lambda pid: os.kill(pid, signal.SIGUSR1))
    assert (code, output) == (143, f"stopped by 1 signal\n{LIMIT}\nscontrol requeue 7\n")


def test_time_limit_at_the_start_stops_the_training(node: Node) -> None:
    node.fake("puffer", WAITS.replace("echo started", "kill -USR1 $PPID"))
    assert node.run("train", "pong") == (143, f"stopped by 1 signal\n{LIMIT}\nscontrol requeue 7\n")


def test_finished_training_is_not_requeued(node: Node) -> None:
    node.fake("puffer", WAITS.replace("exit 143", "exit 0"))
    code, output = interrupted(node, lambda pid: os.kill(pid, signal.SIGUSR1))
    assert (code, output) == (0, "stopped by 1 signal\n")


def test_refused_requeue_is_reported(node: Node) -> None:
    node.fake("puffer", WAITS)
    node.fake("scontrol", "exit 1")
    code, output = interrupted(node, lambda pid: os.kill(pid, signal.SIGUSR1))
    assert code == 2
    assert "error: Slurm refused to put the job back into the queue; resume the run" in output


def test_missing_puffer_is_reported(node: Node) -> None:
    (node.bin / "puffer").unlink()
    code, output = node.run("train", "pong")
    assert code == 2
    assert "has no puffer; activate a .venv before sbatch, or set TANK_IMAGE to an Apptainer image\n" in output


def test_port_in_use_is_reported(node: Node) -> None:
    with socket.create_server(("localhost", 0)) as server:
        port = str(server.getsockname()[1])
        several = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_CPUS_PER_TASK": "1"}
        code, output = node.run("train", "pong", TANK_RAY_PORT=port, **several)
    message = f"port {port} of localhost is in use; set TANK_RAY_PORT to a free port"
    assert (code, output) == (2, f"puffer.sbatch: error: {message}\n")


def test_missing_ray_is_reported(node: Node) -> None:
    node.fake("python", "exit 1")
    several = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_CPUS_PER_TASK": "1"}
    code, output = node.run("train", "pong", TANK_RAY_PORT="1", **several)
    assert (code, output) == (2, "puffer.sbatch: error: Ray is not installed; run: puffer install ray\n")
