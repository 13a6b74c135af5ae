"""Checks of every built image, in new containers. docker/check runs these tests for the given images."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.image.engine import LIMIT_S, ROOT, WITH_PUFFERLIB, Image, container_of, docker, each_image, run

pytestmark = [pytest.mark.image, pytest.mark.all, pytest.mark.timeout(LIMIT_S)]

ONLY_RUN = ("runtime", "tank", "tank-full")
# Maximum sizes in GB, as reported by `docker images`. The CUDA libraries alone take 2.5 GB.
BUDGET_GB = {
    ("runtime", "cpu"): 1.1,
    ("tank", "cpu"): 3.1,
    ("tank-full", "cpu"): 6.0,
    ("runtime", "cuda"): 5.0,
    ("tank", "cuda"): 6.9,
    ("tank-full", "cuda"): 10.0,
}

ALL = (*WITH_PUFFERLIB, "docs")
# Options of a container that may do as little as possible. Only /tmp and the checkout are writable.
HARDENED = (
    *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "4242"),
    *("--network", "none", "--tmpfs", "/tmp"),
)
# Plays in a terminal until `q` is accepted. Each key is sent again, because keys before the first frame are lost.
PLAY = """
import os, pty
pid, terminal = pty.fork()
if not pid:
    os.execvp("puffer", ["puffer", "play", "squared", "--terminal"])
shown = b""
try:
    while chunk := os.read(terminal, 65536):
        shown += chunk
        os.write(terminal, b"q")
except OSError:  # the end of a terminal
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), b"squared" in shown)
"""
# Loads the CUDA libraries, also those that torch loads later, and compiles kernels. No part needs a GPU. The libraries
# that are left out need a driver or a network card.
CUDA = """
import ctypes, pathlib, torch, triton, triton.language as tl
from cuda.bindings import nvrtc
from triton.backends.compiler import GPUTarget

site = pathlib.Path(torch.__file__).parents[1]
for path in (*site.glob("nvidia/cu*/lib/*.so*"), *site.glob("torch/lib/*.so")):
    if path.name.partition(".")[0] not in ("libcufile_rdma", "libcaffe2_nvrtc"):
        ctypes.CDLL(str(path))

@triton.jit
def double(x, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(x + at, tl.load(x + at) * 2)

def compile_with_triton(architecture):
    source = triton.compiler.ASTSource(double, {"x": "*fp32", "n": "constexpr"}, {(1,): 64})
    return len(triton.compile(source, target=GPUTarget("cuda", architecture, 32)).asm["cubin"])

def compile_with_nvrtc(architecture):
    _, program = nvrtc.nvrtcCreateProgram(b"__global__ void f(float *x) { x[0] *= 2; }", b"f.cu", 0, [], [])
    nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{architecture}".encode()])
    return nvrtc.nvrtcGetCUBINSize(program)[1]

print(all(size for each in (75, 90, 100) for size in (compile_with_triton(each), compile_with_nvrtc(each))))
"""

Checkout = Callable[[Image, str], tuple[str, ...]]


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    """Return a function that mounts a folder of owner "uid:gid" as the checkout, and returns the docker options.

    A container changes the owner, because it runs as root.
    """
    given: list[Image] = []

    def give(image: Image, owner: str) -> None:
        options = ("--user", "root", "--entrypoint", "chown", "-v", f"{tmp_path}:/mnt")
        container_of(image.name, "-R", owner, "/mnt", options=options)

    def mount(image: Image, owner: str) -> tuple[str, ...]:
        given.append(image)
        give(image, owner)
        return ("--user", "root", "-v", f"{tmp_path}:/workspace")

    yield mount
    for image in given:
        give(image, f"{os.getuid()}:{os.getgid()}")


# Size and contents


@each_image(*ONLY_RUN)
def test_image_size_is_within_budget(image: Image) -> None:
    assert image.facts["Size"] / 1e9 <= BUDGET_GB[image.target, image.device], f"see docker history {image.name}"


@each_image()
def test_environment_contains_no_secret(image: Image) -> None:
    names = [line.split("=", 1)[0] for line in image.facts["Config"]["Env"]]
    assert not [name for name in names if re.search("KEY|TOKEN|SECRET|PASSWORD", name)]


@each_image(*ALL)
def test_no_file_is_setuid_setgid_or_writable_for_everyone(image: Image) -> None:
    find = "find / -xdev -type f \\( -perm /6000 -o -perm -0002 \\) -print -o -type d -perm -0002 ! -perm -1000 -print"
    assert image.run("sh", "-c", find, options=("--user", "root", "--entrypoint", "")) == ""


@each_image(*ALL)
def test_image_contains_no_certificate_credential_or_key_of_the_build(image: Image) -> None:
    script = """
cat /usr/share/ca-certificates/mozilla/*.crt | grep -c BEGIN
grep -c BEGIN /etc/ssl/certs/ca-certificates.crt
find /root /home /etc /opt/tank -xdev \\( -name .netrc -o -name pip.conf -o -name .npmrc -o -name .git-credentials \\
    -o -path '*/.docker/config.json' -o -path '*/.ssh/id_*' \\) -print
grep -rlE -- '-----BEGIN [A-Z ]*PRIVATE KEY|https?://[^/ @]+:[^/ @]+@' /root /home /etc /opt/tank /usr/local || true"""
    debian, ours, *found = image.run("sh", "-c", script, options=("--user", "root", "--entrypoint", "")).split("\n")
    assert (ours, found) == (debian, [])
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image.name)
    assert not re.search(r"https?://[^/ ]+:[^/ ]+@|_proxy=\S", history, re.IGNORECASE)


@each_image("tank", "docs")
def test_manifest_lists_the_packages_of_the_image(image: Image) -> None:
    done = run("docker/manifest", "--json", image.name)
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    debian = {f"{package['name']}.list" for package in manifest["debian"]}
    files = image.run("ls", "/var/lib/dpkg/info", options=("--entrypoint", "")).split()
    assert debian == {re.sub(r":\w+\.", ".", name) for name in files if name.endswith(".list")}
    locks = image.run("sh", "-c", "cat /opt/tank/locks/*.txt 2>/dev/null || true", options=("--entrypoint", ""))
    locked = dict(re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)", locks))
    python = {re.sub(r"[-_.]+", "-", p["name"]).lower(): p["version"] for p in manifest["python"]["/opt/venv"]}
    assert locked.items() <= python.items()
    assert bool(manifest["gpu_architectures"]) == (image.device == "cuda")
    assert len(manifest["layers"]) == len(image.facts["RootFS"]["Layers"])
    assert all(layer["made_by"] for layer in manifest["layers"])


@each_image()
def test_caches_are_empty(image: Image) -> None:
    over_2_mb = "du -sm /var/cache/apt /var/lib/apt /var/cache/uv /root/.cache 2>/dev/null | awk '$1 > 2'"
    assert image.run("bash", "-c", over_2_mb) == ""


@each_image()
def test_installed_packages_match_the_locks(image: Image) -> None:
    code = """
import importlib.metadata, json, pathlib, re, tomllib
normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
tank = pathlib.Path("/opt/tank")
shared = [path for path in tank.glob("bindings/*/binding.toml") if "isolated" not in tomllib.loads(path.read_text())]
locks = [*tank.glob("locks/*.txt"), *(path.with_name("lock.txt") for path in shared)]
text = "".join(path.read_text() for path in locks)
locked = dict(re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\\S+)", text))
site = importlib.metadata.distributions(path=["/opt/venv/lib/python3.11/site-packages"])
got = {normal(package.name): package.version for package in site}
got.pop("pufferlib")
print(json.dumps(sorted(set(locked.items()) ^ set(got.items()))))"""
    assert json.loads(image.python(code)) == []


@each_image(*ONLY_RUN)
def test_runtime_images_have_no_compiler(image: Image) -> None:
    assert image.run("bash", "-c", "type -P gcc cc g++ ld cython cmake || true") == ""


@each_image("test", "dev")
def test_compilers_and_sanitizers_work(image: Image) -> None:
    script = """
cd "$(mktemp -d)"
echo 'int main(int n, char **a) { (void)a; return n - 1; }' >a.c
for flags in -fsanitize=address,undefined -fsanitize=thread; do gcc -Wall -Wextra -Werror $flags a.c -o a; done
type -P cmake ninja cython >/dev/null
echo done"""
    assert image.run("bash", "-ec", script) == "done"


# Entrypoint and user


@each_image()
def test_container_runs_as_user_tank(image: Image) -> None:
    assert image.facts["Config"]["User"] == "1000", "numeric, so that orchestrators can check that it is not root"
    assert image.run("bash", "-c", "echo $(id -u) $(id -g) $(id -un)") == "1000 1000 tank"


@each_image()
def test_container_switches_to_the_owner_of_the_checkout(image: Image, checkout: Checkout) -> None:
    command = "touch left-behind ~/.cache/x && echo $(id -u) $(id -g) $(id -un) $(stat -c %u:%g left-behind)"
    printed = image.run("bash", "-c", command, options=checkout(image, "12345:23456"))
    assert printed == "12345 23456 tank 12345:23456"


@each_image()
def test_container_stays_root_if_root_owns_the_checkout(image: Image, checkout: Checkout) -> None:
    assert image.run("id", "-u", options=checkout(image, "0:0")) == "0"


@each_image()
def test_any_uid_has_a_writable_home(image: Image) -> None:
    code = "import os, pathlib; pathlib.Path.home().joinpath('x').touch(); print(os.getuid())"
    assert image.python(code, "--user", "4242:4242") == "4242"


@each_image()
def test_tini_is_pid_1_and_forwards_signals(image: Image) -> None:
    assert image.run("cat", "/proc/1/comm") == "tini"
    container = docker("run", "--detach", image.name, "bash", "-c", "echo up; exec sleep 60")
    try:
        while not docker("logs", container):  # until its handlers are set up, PID 1 ignores signals
            time.sleep(0.1)
        docker("stop", "--time", "30", container)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", container) == "143"
    finally:
        docker("rm", "--force", container)


@each_image(*ONLY_RUN, "dev")
def test_arguments_that_are_not_a_program_go_to_puffer(image: Image) -> None:
    assert "breakout" in image.run("list")
    assert "usage: puffer install" in image.run("install", "--help").lower(), "not the program install"


@each_image("test")
def test_arguments_that_are_not_a_program_go_to_pytest(image: Image) -> None:
    assert image.run("--version").startswith("pytest")


@each_image(*ONLY_RUN)
def test_training_reports_a_missing_gpu_first(image: Image) -> None:
    assert "no GPU" in run("docker", "run", "--rm", image.name, "train", "--help").stderr


@each_image("runtime")
def test_hardened_container_trains_evaluates_and_plays(image: Image, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    commands = [
        "puffer list >/tmp/list",
        "puffer doctor >/tmp/doctor || { cat /tmp/doctor; exit 1; }",
        "puffer train squared --train.total-timesteps 65536 --eval.episodes 1 >/tmp/train",
        "puffer eval squared --eval.episodes 1 >/tmp/eval",
        f"python -c '{PLAY}'",
    ]
    options = (*HARDENED, "-v", f"{tmp_path}:/workspace")
    assert image.run("bash", "-euo", "pipefail", "-c", "\n".join(commands), options=options) == "0 True"
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {4242}


@each_image("docs")
def test_hardened_documentation_server_is_healthy(image: Image) -> None:
    container = docker("run", "--detach", *HARDENED, image.name)
    try:
        until = time.monotonic() + 60
        command = ("exec", container, *image.facts["Config"]["Healthcheck"]["Test"][1:])
        while (done := run("docker", *command)).returncode and time.monotonic() < until:
            time.sleep(0.2)
        assert done.returncode == 0, done.stderr
    finally:
        docker("rm", "--force", container)


# The library


@each_image()
def test_python_is_3_11(image: Image) -> None:
    assert image.python("import sys; print('%d.%d' % sys.version_info[:2])") == "3.11"


@each_image()
def test_torch_build_matches_the_device_and_works_on_the_cpu(image: Image) -> None:
    code = "import torch; print(torch.version.cuda or 'cpu', torch.ones(2, 2).mm(torch.ones(2, 2)).sum().item())"
    build, total = image.python(code).split()
    assert ("cpu" if build == "cpu" else "cuda", total) == (image.device, "8.0")


@each_image(device="cuda")
def test_cuda_libraries_load_and_compile_kernels(image: Image, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "cuda.py").write_text(CUDA)  # Triton reads the source of a kernel from its file
    options = ("--network", "none", "-v", f"{tmp_path}:/mnt:ro")
    assert image.run("python", "-P", "/mnt/cuda.py", options=options) == "True"


@each_image()
def test_torch_and_triton_have_no_debug_symbols(image: Image) -> None:
    code = """
import pathlib, struct, torch

def has_symbols(path):
    data = path.read_bytes()
    (table,), (size, count) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HH", data, 58)
    return 2 in (struct.unpack_from("<I", data, table + number * size + 4)[0] for number in range(count))  # SHT_SYMTAB

site = pathlib.Path(torch.__file__).parents[1]
libraries = [*site.glob("torch/lib/libtorch*.so"), *site.glob("triton/_C/*.so")]
print(len(libraries) > 2, [path.name for path in libraries if has_symbols(path)])"""
    assert image.python(code) == "True []"


@each_image()
def test_importing_pufferlib_does_not_import_torch(image: Image) -> None:
    assert image.python("import sys, pufferlib; print('torch' in sys.modules)") == "False"


@each_image(*ONLY_RUN, "test")
def test_installed_pufferlib_is_imported_even_in_a_checkout(image: Image, tmp_path: Path) -> None:
    (tmp_path / "pufferlib").mkdir()
    (tmp_path / "pufferlib" / "__init__.py").write_text("raise ImportError('the sources of the checkout')")
    tmp_path.chmod(0o755)
    path = image.python("import pufferlib; print(pufferlib.__file__)", "-v", f"{tmp_path}:/workspace:ro")
    assert path == "/opt/venv/lib/python3.11/site-packages/pufferlib/__init__.py"


@each_image("dev")
def test_dev_package_is_editable_and_compiles_only_changes(image: Image, tmp_path: Path, checkout: Checkout) -> None:
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "pufferlib", "bindings"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    script = """
misses() { ccache --print-stats | awk '$1 == "cache_miss" { print $2 }'; }
c_files() { find "$CYTHON_CACHE_DIR" -type f | wc -l; }
before=$(c_files)
ccache --zero-stats >/dev/null
tank-develop
misses
echo 'typedef int changed;' >>pufferlib/ocean/breakout/breakout.h
tank-develop
misses
echo $(($(c_files) - before))
python -c 'import pufferlib, pufferlib.ocean._ocean as n; print(pufferlib.__file__)'"""
    unchanged, changed, c_files, path = image.run("bash", "-ec", script, options=checkout(image, "12345:23456")).split()
    assert unchanged == "0"
    assert changed == "2", "breakout.c and source_hash.c"
    assert c_files == "0"
    assert path == "/workspace/pufferlib/__init__.py"


@each_image()
def test_compiled_code_matches_the_sources(image: Image) -> None:
    code = """
import pathlib, pufferlib
from pufferlib.ocean import _ocean
from pufferlib.native.source_hash import source_hash
print(source_hash(pathlib.Path(pufferlib.__file__).parent), _ocean.source_hash)"""
    expected, got = image.python(code).split()
    assert got == expected


@each_image("test")
def test_outdated_bytecode_of_another_image_is_not_used(image: Image) -> None:
    """Bytecode in the cache volume is valid for a file of the same time and size."""
    code = "import os, pufferlib; print(os.path.getmtime(pufferlib.__file__) > 1577836800)"
    assert image.python(code) == "True"


@each_image()
def test_compiled_environments_run(image: Image) -> None:
    code = "import pufferlib; env = pufferlib.make('squared', num_envs=4); print(env.reset(seed=0)[0].shape[0])"
    assert image.python(code) == "4"


@each_image("tank", "tank-full")  # in `test`, the test suite covers this
def test_environments_run_in_a_ray_actor(image: Image) -> None:
    code = """
import pufferlib, pufferlib.vector
creator = pufferlib.env_creator("squared")
with pufferlib.vector.make(creator, num_envs=4, num_workers=1, backend="Ray") as envs:
    print(envs.reset(seed=0)[0].shape[0])"""
    assert image.python(code) == "4"


@each_image()
def test_image_has_the_expected_bindings(image: Image) -> None:
    code = """
import json
from pufferlib import registry
from pufferlib.installation import install
known = [facts for facts in registry.binding_facts().values() if not facts.unavailable]
wanted = {"runtime": [], "tank": [facts for facts in known if facts.common]}.get("TARGET", known)
wanted = {facts.name: "installed" for facts in wanted}
got = {facts.name: install.state(facts) for facts in known}
print(json.dumps(sorted(wanted.items() ^ {item for item in got.items() if item[1]})))"""
    assert json.loads(image.python(code.replace("TARGET", image.target))) == []


@each_image("tank-full", "test")
@pytest.mark.parametrize("name", ["atari/pong", "craftax/Craftax-Classic-Symbolic-v1"])
def test_bindings_can_be_reset(image: Image, name: str) -> None:
    code = f"import pufferlib; env = pufferlib.make('{name}'); print(env.reset(seed=0)[0].any()); env.close()"
    assert image.python(code) == "True"


@each_image("docs")
def test_documentation_is_complete(image: Image) -> None:
    files = ("index.html", "docs/README.html", "docs/api/vector.html", "searchindex.js")
    command = "import os; print(os.getuid(), *map(os.path.getsize, sys.argv[1:]))"
    user, *sizes = image.run("python3", "-c", f"import sys; {command}", *(f"/site/{file}" for file in files)).split()
    assert user == "1000"
    assert len(sizes) == len(files)
    assert all(int(size) > 100 for size in sizes)
