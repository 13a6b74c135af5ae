"""Findings of ``puffer doctor`` on fake machines, made of files and fixed command outputs."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from pufferlib.cli import main
from pufferlib.installation import doctor, egl, extras
from pufferlib.installation.doctor import GIB, Finding

# The doctor imports all installed packages, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(600)

MEMINFO = "MemTotal: {total} kB\nMemFree: 1 kB\nMemAvailable: {free} kB\n"


def machine(root: Path, files: dict[str, str]) -> Path:
    """Create a root folder with ``files`` and a meminfo with 8 of 16 GiB free."""
    meminfo = MEMINFO.format(total=16 * GIB // 1024, free=8 * GIB // 1024)
    for name, text in {"proc/meminfo": meminfo, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def answer(monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]]) -> None:
    """Fake commands. A command returns the answer whose key it contains, and only these commands are installed."""

    def run(*command: str, timeout_s: float = 0) -> tuple[int, str]:
        line = " ".join(command)
        return next((found for key, found in answers.items() if key in line), (127, f"{command[0]}: absent"))

    programs = {key.split()[0] for key in answers}
    monkeypatch.setattr(doctor, "_run", run)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}" if name in programs else None)


def test_python_outside_of_the_supported_range_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "python_range", lambda: ">=3.11,<3.15")
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.15.0rc1")
    found = doctor.python_version()
    assert (found.value, found.level) == ("3.15.0rc1", "problem")
    assert found.advice == "use Python <3.15,>=3.11, or the image: docker compose run --rm tank"
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.14.8")
    assert doctor.python_version().level == "ok"


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": f"{4 * GIB}\n"}, 4 * GIB),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, None),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/memory.max": f"{6 * GIB}\n",
                "sys/fs/cgroup/a/b/memory.max": f"{5 * GIB}\n",
            },
            5 * GIB,
        ),
        # cgroup v1: a container sees its own limit at the root, and a path that exists only on the host.
        (
            {
                "proc/self/cgroup": "5:memory:/docker/abc\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{3 * GIB}\n",
            },
            3 * GIB,
        ),
        (
            {"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"},
            None,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{64 * GIB}\n"}, None),
    ],
)
def test_memory_reports_cgroup_limit(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    finding = doctor.memory(machine(tmp_path, files))
    assert finding.level == "ok"
    assert finding.value.startswith("8.0 GiB free of 16.0 GiB")
    assert finding.data["limit_bytes"] == limit
    assert ("limited to" in finding.value) == (limit is not None)


def test_little_memory_gets_advice(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{GIB}\n"}
    finding = doctor.memory(machine(tmp_path, files))
    assert finding.level == "advice"
    assert "raise the container's limit" in finding.advice


def test_cores_distinguishes_quota_from_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(doctor, "usable_cpus", lambda: 2)
    assert doctor.cores().value == "2 usable of 8 (affinity allows 4, a container quota fewer)"
    monkeypatch.setattr(doctor, "usable_cpus", lambda: 4)
    assert doctor.cores().value == "4 usable of 8 (affinity allows 4)"


def test_missing_shared_memory_gets_advice(tmp_path: Path) -> None:
    assert doctor.shared_memory(tmp_path).level == "advice"
    (tmp_path / "dev/shm").mkdir(parents=True)
    assert doctor.shared_memory(tmp_path).data["total_bytes"] > 0


@pytest.mark.parametrize(("free", "level"), [(10 * GIB, "ok"), (GIB // 2, "advice")])
def test_disk_reports_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    usage = doctor.shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    finding = doctor.disk(tmp_path / "not" / "yet")
    assert finding.level == level
    assert finding.data == {"free_bytes": free, "folder": str(tmp_path)}
    assert not list(tmp_path.iterdir())


def test_unwritable_folder_is_a_problem() -> None:
    finding = doctor.disk(Path("/proc/runs"))  # not even root can write there
    assert finding.level == "problem"
    assert "--runs" in finding.advice


@pytest.mark.parametrize(
    ("answers", "value", "advice"),
    [
        ({}, "not installed", "scripts/docker-engine"),
        (
            {"docker version": (1, "permission denied while trying to connect")},
            "you have no permission",
            "usermod -aG docker",
        ),
        ({"docker version": (1, "Cannot connect to the Docker daemon")}, "engine does not respond", "systemctl start"),
        ({"docker version": (124, "docker did not answer within 10 s")}, "engine does not respond", "systemctl start"),
        ({"docker version": (0, "26.1.5"), "docker compose": (1, "not a docker command")}, "missing", "compose"),
        ({"docker version": (0, "26.1.5"), "docker compose": (0, "2.26.1")}, "2.26.1", ""),
    ],
)
def test_docker_reports_client_engine_and_compose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]], value: str, advice: str
) -> None:
    answer(monkeypatch, answers)
    last = doctor.docker(tmp_path)[-1]
    assert value in last.value
    assert advice in last.advice
    assert bool(advice) == bool(last.advice)


def test_docker_is_not_needed_in_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, {})
    (tmp_path / ".dockerenv").touch()
    assert doctor.docker(tmp_path) == [Finding("docker", "not needed: this is a container")]


MESA_DRIVERS = ("/usr/lib/x86_64-linux-gnu/dri", "/usr/lib/aarch64-linux-gnu/dri")
CARD = (0, "NVIDIA H200, 570.86.15, 143771 MiB")


@pytest.mark.parametrize(
    ("answers", "value", "level"),
    [
        ({}, "none found", "ok"),
        ({"nvidia-smi": (9, "NVIDIA-SMI has failed")}, "none found", "ok"),
        ({"nvidia-smi": CARD, "import torch": (1, "ModuleNotFoundError")}, "torch is not installed", "advice"),
        ({"nvidia-smi": CARD, "import torch": (0, "- False 0.0 0.0")}, "built for CPUs", "advice"),
        ({"nvidia-smi": CARD, "import torch": (0, "13.0 False 0.0 0.0")}, "cannot use it", "advice"),
        (
            {"nvidia-smi": CARD, "import torch": (0, "13.0 True 9.0 7.5")},
            "1 x NVIDIA H200, driver 570.86.15; torch uses it with CUDA 13.0",
            "ok",
        ),
    ],
)
def test_gpu_reports_card_driver_and_torch(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]], value: str, level: str
) -> None:
    answer(monkeypatch, answers)
    finding = doctor.gpu()
    assert value in finding.value
    assert finding.level == level
    assert bool(finding.advice) == (level != "ok")


@pytest.mark.parametrize(
    ("driver", "cuda", "advice"),
    [
        (
            "570.86.15",
            "13.0 False 0.0 0.0",
            "CUDA 13.0 needs driver 580 or newer: update the driver (with Docker, on the host)",
        ),
        ("580.65.06", "13.0 False 0.0 0.0", "whether CUDA_VISIBLE_DEVICES hides the GPU"),
        ("570.86.15", "12.8 False 0.0 0.0", "whether CUDA_VISIBLE_DEVICES hides the GPU"),
        ("580.65.06", "13.0 True 7.0 7.5", "its compute capability is 7, and torch for CUDA 13.0 needs at least 7.5"),
    ],
)
def test_gpu_explains_why_torch_cannot_use_it(
    monkeypatch: pytest.MonkeyPatch, driver: str, cuda: str, advice: str
) -> None:
    answer(monkeypatch, {"nvidia-smi": (0, f"Tesla V100, {driver}, 32768 MiB"), "import torch": (0, cuda)})
    finding = doctor.gpu()
    assert finding.level == "advice"
    assert advice in finding.advice
    assert finding.data["usable"] is False


def test_gpu_names_the_device_on_which_a_kernel_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = "cuda:1: CUDA error: out of memory"
    answer(monkeypatch, {"nvidia-smi": CARD, "torch.ones": (0, failure), "import torch": (0, "13.0 True 9.0 7.5")})
    finding = doctor.gpu()
    assert f"a kernel fails on {failure}" in finding.value
    assert finding.level == "advice"
    assert finding.data["usable"] is False
    assert main(["doctor", "--gpu"]) == 1
    assert failure in capsys.readouterr().out.replace("\n", " ").replace("  ", "")


def test_kernel_probe_runs_on_every_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Eights:
        def __init__(self, device: str) -> None:
            self.value = 1
            if device == "cuda:1":
                raise RuntimeError("CUDA error: busy\nmore")

        def __mul__(self, factor: int) -> "Eights":
            self.value = factor
            return self

        def sum(self) -> "Eights":
            return self

        def item(self) -> int:
            return 8 * self.value

    torch = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: 3), ones=lambda _, device: Eights(device))
    monkeypatch.setitem(sys.modules, "torch", torch)
    exec(doctor.KERNEL_PROBE, {})
    assert capsys.readouterr().out == "cuda:1: CUDA error: busy\n"


@pytest.mark.parametrize(
    ("answers", "value", "advice"),
    [
        (
            {"egl": (1, "libEGL.so.1: cannot open shared object file")},
            "no image: libEGL.so.1",
            "apt-get install libegl1",
        ),
        ({"egl": (0, "")}, "no image: no device draws", "apt-get install libegl1"),
        ({"egl": (0, "llvmpipe (LLVM 15)")}, "drew an image with llvmpipe (LLVM 15)", ""),
        ({"nvidia-smi": CARD, "egl": (0, "llvmpipe (LLVM 15)")}, "drew an image with", "drawn on the CPU"),
        ({"nvidia-smi": CARD, "egl": (0, "NVIDIA H200\nllvmpipe")}, "drew an image with NVIDIA H200, llvmpipe", ""),
    ],
)
def test_rendering_reports_what_draws(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]], value: str, advice: str
) -> None:
    monkeypatch.setattr(doctor, "in_image", lambda: False)
    answer(monkeypatch, answers)
    finding = doctor.rendering()
    assert value in finding.value
    assert advice in finding.advice
    assert bool(advice) == bool(finding.advice)


def test_image_is_drawn_with_the_egl_of_this_machine() -> None:
    try:
        found = [*egl.renderers()]
    except OSError as error:
        pytest.skip(str(error))
    if not any(Path(folder, "swrast_dri.so").exists() for folder in MESA_DRIVERS):
        pytest.skip("Mesa's driver for the CPU is not installed (Debian: apt-get install libgl1-mesa-dri)")
    assert any(name.startswith(doctor.SOFTWARE_RENDERERS) for name in found)


def test_cuda_probe_prints_capability_and_oldest_supported_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: True,
        get_device_capability=lambda: (9, 0),
        get_arch_list=lambda: ["sm_120", "sm_75", "sm_90a", "compute_120"],
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="13.0")))
    exec(doctor._CUDA_PROBE, {})
    monkeypatch.setattr(doctor, "_python", lambda code: (0, capsys.readouterr().out.strip()))
    assert doctor._torch_cuda() == ("13.0", True, 9.0, 7.5)


def test_required_expands_other_extras_and_removes_markers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requirements = [
        "numpy<3,>=1.26",
        'Wing_Tip==1.2; extra == "fly"',
        "pufferlib[fly,swim] ; extra == 'all'",
        'fin; extra == "swim"',
    ]
    monkeypatch.setattr(extras.importlib.metadata, "requires", lambda _: requirements)
    assert list(map(str, extras.required())) == ["numpy<3,>=1.26"]
    assert list(map(str, extras.required("all"))) == ["Wing_Tip==1.2", "fin"]
    assert list(map(extras.pin_of, extras.required("all"))) == ["1.2", ""]


def extra(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], import_error: str = "") -> Finding:
    """Return the finding for an extra that requires wing==1.2 and tail, with these installed ``versions``."""
    monkeypatch.setattr(extras, "version_of", lambda name: versions.get(name, ""))
    monkeypatch.setattr(doctor, "_import_error", lambda *_: import_error)
    wanted = [Requirement("wing==1.2"), Requirement("tail")]
    monkeypatch.setattr(extras, "required", lambda _: wanted)
    return doctor.extra("fly", {"wing": "wing"})


def test_extra_reports_complete_missing_and_broken_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = extra(monkeypatch, {"wing": "1.2+cpu", "tail": "9"})
    assert (complete.level, complete.value, complete.advice) == ("ok", "wing 1.2+cpu, tail 9", "")
    missing = extra(monkeypatch, {"wing": "1.2"})
    assert (missing.level, missing.value, missing.advice) == ("absent", "not installed: tail", "puffer install fly")
    moved = extra(monkeypatch, {"wing": "1.3", "tail": "9"})
    assert moved.level == "advice"
    assert moved.advice == "tested with wing 1.2: puffer install fly"
    broken = extra(monkeypatch, {"wing": "1.2", "tail": "9"}, "ImportError: libGL.so.1")
    assert (broken.level, broken.value) == ("advice", "ImportError: libGL.so.1")
    assert broken.advice == "pip install --force-reinstall wing==1.2 tail"  # without pufferlib itself


def test_missing_extras_are_one_finding_without_developer_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "version_of", lambda name: "" if name in ("ziglang", "pyboy", "uv", "pytest") else "1")
    monkeypatch.setattr(doctor, "in_image", lambda: False)
    monkeypatch.setattr(doctor, "_import_error", lambda *_: "")
    modules = {"torch": ["torch"], "left_behind": [None]}  # the second is a broken installation without metadata
    monkeypatch.setattr(doctor.importlib.metadata, "packages_distributions", lambda: modules)
    found = {finding.name: finding for finding in doctor.packages()}
    assert found["extras"].level == "absent"
    assert found["extras"].value == "2 not installed: compiler, pokemon-red"
    assert found["extras"].advice.startswith("puffer install NAME installs one")
    assert found["extras"].data == {
        "compiler": {"versions": {"ziglang": ""}},
        "pokemon-red": {"versions": {"pyboy": ""}},
    }
    assert {"extra [train]", "extra [atari]"} <= found.keys()
    assert not found.keys() & {f"extra [{name}]" for name in ("compiler", "pokemon-red", "test", "lint", "lock", "dev")}
    monkeypatch.setattr(doctor, "in_image", lambda: True)
    assert doctor.packages()[-1].advice == "the images tank and tank-full have more"


def test_imports_are_tested_in_another_process() -> None:
    assert doctor._import_error("json", "pufferlib.ocean._ocean") == ""
    assert "No module named 'absent_module'" in doctor._import_error("absent_module")
    assert doctor._import_error("os; os.abort()").startswith("import ended with exit code")


def test_run_handles_missing_programs_and_timeouts() -> None:
    assert doctor._run("/absent/program")[0] == 127
    code, output = doctor._run(sys.executable, "-c", "import time; time.sleep(9)", timeout_s=0.05)
    assert code == 124
    assert "did not answer" in output


def test_c_compiler_finds_compiler_or_gives_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("pufferlib.native.compiler.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = doctor.c_compiler()
    assert (finding.value, finding.level) == ("none", "absent")
    assert "install one (Debian: apt-get install gcc libc6-dev)" in finding.advice
    program = tmp_path / "gcc"
    program.touch(0o755)
    assert doctor.c_compiler() == Finding("C compiler", str(program))
    monkeypatch.setenv("CC", "icc -O3")
    assert doctor.c_compiler().value == "CC='icc -O3' is not a compiler"


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """Return all findings of this machine. Slow, because each package is imported."""
    return doctor.examine(tmp_path_factory.mktemp("runs"))


@pytest.mark.all
def test_examine_finds_this_machine_usable(findings: list[Finding]) -> None:
    assert doctor.usable(findings), [finding for finding in findings if finding.level == "problem"]
    names = [finding.name for finding in findings]
    assert len(names) == len(set(names))
    assert {"python", "C compiler", "cores", "memory", "docker", "GPU", "numpy", "extra [train]"} <= set(names)
    assert all(finding.advice for finding in findings if finding.level != "ok")


def test_problem_makes_the_machine_unusable() -> None:
    assert doctor.usable([Finding("a", "b", "advice", "c")])
    assert not doctor.usable([Finding("a", "b", "problem", "c")])


@pytest.mark.all
def test_extras_that_only_combine_extras_are_not_listed(findings: list[Finding]) -> None:
    assert all(finding.value for finding in findings)
    names = {finding.name for finding in findings}
    assert "extra [train]" in names
    assert "extra [common]" not in names
