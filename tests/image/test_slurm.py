"""Jobs of docker/slurm in a Slurm of two nodes, which runs in a container of the image."""

import re
import time
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.image.engine import ROOT, docker, image_of, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not any(image.target == "tank" for image in images()),
        reason="image tests: the image tank is not built, or no Docker engine answers",
    ),
]

# Both nodes are daemons in one container, so their names mean the same address.
SETUP = r"""
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends slurm-wlm munge >/dev/null
host=$(hostname -s)
echo "127.0.0.1 $host n1 n2" >>/etc/hosts
mkdir -p /etc/slurm /run/munge /var/spool/slurm/n1 /var/spool/slurm/n2 /jobs
cat >/etc/slurm/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17000
SlurmUser=root
StateSaveLocation=/var/spool/slurm
SlurmdSpoolDir=/var/spool/slurm/%n
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
MailProg=/bin/true
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=17001 CPUs=4 RealMemory=8000
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=17002 CPUs=4 RealMemory=8000
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
[ -s /etc/munge/munge.key ] || head -c 1024 /dev/urandom >/etc/munge/munge.key
chown munge: /etc/munge/munge.key /run/munge
chmod 400 /etc/munge/munge.key
runuser -u munge -- munged
slurmctld
slurmd -N n1
slurmd -N n2
timeout 30 bash -c 'until [ "$(sinfo -h -N -o %T | grep -c idle)" = 2 ]; do sleep 0.5; done'
"""
SHORT = ("--train.total-timesteps", "100000", "--eval.episodes", "4")
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


class Slurm:
    """Container in which Slurm runs."""

    def __init__(self, container: str) -> None:
        self.container = container

    def bash(self, command: str) -> str:
        return docker("exec", "--user", "root", "--workdir", "/jobs", self.container, "bash", "-c", command)

    def submit(self, options: str, *arguments: str) -> str:
        """Submit the job script and return the number of the job."""
        small = "--cpus-per-task=1 --mem=2000 --output=/jobs/%A.log"
        return self.bash(f"sbatch --parsable {small} {options} /slurm/puffer.sbatch {' '.join(arguments)}")

    def states(self, job: str) -> set[str]:
        """Return the states of a job, or of the tasks of an array."""
        return set(re.findall(r"JobState=(\w+)", self.bash(f"scontrol show job {job}")))

    def log(self, job: str) -> str:
        return self.bash(f"cat /jobs/{job}.log 2>/dev/null || true")

    def wait_for(self, job: str, text: str) -> None:
        """Wait until the log of a job contains a text."""
        for _ in range(240):
            if text in self.log(job):
                return
            time.sleep(0.5)
        raise AssertionError(f"job {job} did not write {text!r}: {self.log(job)}")

    def end(self, job: str) -> set[str]:
        """Wait for the end of a job and return its states."""
        for _ in range(240):
            if (states := self.states(job)) <= {*ENDED}:
                return states
            time.sleep(1)
        raise AssertionError(f"job {job} is {', '.join(states)}: {self.log(job)}")

    def runs(self) -> list[str]:
        """Return the names of all runs with a summary."""
        return [PurePosixPath(path).parent.name for path in self.bash("ls runs/*/summary.json").split()]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    # The network of the host, as for builds: packages come from its mirror.
    options = ["--network", "host", "--shm-size", "1g", "--user", "root", "-v", f"{ROOT}/docker/slurm:/slurm:ro"]
    name = docker("run", "--detach", "--rm", *options, "--entrypoint", "sleep", image_of("tank"), "3600")
    try:
        docker("exec", "--user", "root", name, "bash", "-c", SETUP)
        yield Slurm(name)
    finally:
        run("docker", "rm", "--force", "--volumes", name)


def test_job_resumes_after_its_time_limit(slurm: Slurm) -> None:
    # More than a minute of training, because Slurm may send the signal half a minute late.
    steps = ("--train.total-timesteps", "20000000", "--eval.episodes", "4")
    job = slurm.submit("--time=1 --signal=B:USR1@45", "train", "squared", "--train.checkpoint-interval", "5", *steps)
    slurm.wait_for(job, "the time limit is near")
    for _ in range(60):
        if "Restarts=1" in slurm.bash(f"scontrol show job {job}"):
            break
        time.sleep(0.5)
    slurm.bash(f"scontrol update jobid={job} starttime=now timelimit=10")
    assert slurm.end(job) == {"COMPLETED"}, slurm.log(job)
    assert "episodes continue where they were saved" in slurm.log(job)
    assert len([name for name in slurm.runs() if name.endswith(f"-slurm-{job}")]) == 1


def test_array_trains_each_seed(slurm: Slurm) -> None:
    job = slurm.submit("--array=1-2", "train", "squared", *SHORT)
    assert slurm.end(job) == {"COMPLETED"}, slurm.log(job)
    for seed in (1, 2):
        (name,) = (name for name in slurm.runs() if name.endswith(f"-slurm-{job}-{seed}"))
        assert f"seed = {seed}\n" in slurm.bash(f"sed -n '/^\\[train\\]/,/^\\[/p' runs/{name}/config.toml")


def test_array_works_on_one_sweep(slurm: Slurm) -> None:
    few = ("--env.num-envs", "64", "--sweep.trials", "4", "--sweep.workers", "1")
    job = slurm.submit("--array=1-2", "sweep", "squared", *few, *SHORT)
    assert slurm.end(job) == {"COMPLETED"}, slurm.log(job)
    assert f"sweeps/slurm-{job}: 4 finished" in slurm.log(job) or "pruned" in slurm.log(job)
    assert slurm.bash(f"ls sweeps/slurm-{job}/report.html")


def test_cancelled_job_saves_a_checkpoint(slurm: Slurm) -> None:
    job = slurm.submit("", "train", "squared", "--train.total-timesteps", "1000000000")
    slurm.wait_for(job, "steps/s")
    slurm.bash(f"scancel {job}")
    assert slurm.end(job) == {"CANCELLED"}
    slurm.wait_for(job, "stopped; the checkpoint is runs/")
    assert "the time limit" not in slurm.log(job)


def test_environments_step_on_two_nodes(slurm: Slurm) -> None:
    ray = ("--vec.backend", "Ray", "--vec.num-envs", "2", "--vec.num-workers", "2")
    job = slurm.submit("--nodes=2", "train", "squared", *ray, *SHORT)
    assert slurm.end(job) == {"COMPLETED"}, slurm.log(job) + slurm.bash(f"tail -n 40 slurm-{job}-ray.log")
    assert "score" in slurm.log(job)


def test_unknown_partition_is_reported(slurm: Slurm) -> None:
    done = run(
        "docker", "exec", slurm.container, "sbatch", "--partition=no", "/slurm/puffer.sbatch", "train", "squared"
    )
    assert done.returncode == 1
    assert "invalid partition specified: no" in done.stderr
