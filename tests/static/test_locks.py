"""scripts/lock: the committed locks, and how changes are detected and applied."""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = sorted((ROOT / "docker" / "locks").glob("*.txt"))
LOCKS = [*LAYERS, *(path for name in ("build", "lock") for path in sorted((ROOT / "bindings").glob(f"*/{name}.txt")))]


def packages(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)", lock.read_text()))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_locks_pin_with_hashes_and_name_no_host(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    blocks = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert blocks or path not in LAYERS  # a binding may have no packages
    for block in blocks:
        assert re.match(r"[a-z0-9.-]+==\S+", block), block
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block


def test_locks_agree_with_pyproject() -> None:
    done = lock(ROOT, "--check")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy all files that scripts/lock reads."""
    for part in (
        "docker/locks",
        "scripts/lib",
        "bindings",
        "pufferlib/errors.py",
        "scripts/lock",
        "pyproject.toml",
        "docs/bindings.md",
        "Dockerfile",
    ):
        target = tmp_path / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, target)
    return tmp_path


def lock(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, root / "scripts/lock", *arguments], capture_output=True, text=True)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_check_detects_a_version_changed_only_in_pyproject(copied: Path) -> None:
    edit(copied / "pyproject.toml", "torch==", "torch>=")
    done = lock(copied, "--check")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "lock: error: out of date with pyproject.toml and binding.toml: "
        "docker/locks/torch-cpu.txt, docker/locks/torch-cuda.txt, "
    )
    assert done.stderr.endswith("; run scripts/lock\n")


def test_check_detects_a_version_changed_only_in_a_binding(copied: Path) -> None:
    edit(copied / "bindings/atari/binding.toml", "ale-py==", "ale-py==9")
    done = lock(copied, "--check")
    assert (done.returncode, done.stderr) == (
        1,
        "lock: error: pyproject.toml does not match the binding.toml files; run scripts/lock --extras\n",
    )
    done = lock(copied, "--extras")
    assert (done.returncode, done.stdout) == (0, "lock: pyproject.toml, the part about bindings\n")
    assert '\natari = ["ale-py==9' in (copied / "pyproject.toml").read_text()
    assert "bindings/atari/lock.txt" in lock(copied, "--check").stderr


def test_docs_table_is_generated_from_binding_toml(copied: Path) -> None:
    edit(copied / "bindings/atari/binding.toml", "GPL-2.0-only", "LGPL-9")
    assert "docs/bindings.md does not match the binding.toml files" in lock(copied, "--check").stderr
    lock(copied, "--extras")
    assert "| LGPL-9 | `puffer install atari` |" in (copied / "docs/bindings.md").read_text()


def test_new_binding_gets_the_last_layer(copied: Path) -> None:
    (copied / "bindings/aardvark").mkdir()
    text = (copied / "bindings/atari/binding.toml").read_text().replace("Atari 2600", "Aardvark")
    (copied / "bindings/aardvark/binding.toml").write_text(text)
    before = re.findall(r"binding install (\w+)", (ROOT / "Dockerfile").read_text())
    assert "Dockerfile does not match the binding.toml files" in lock(copied, "--check").stderr
    lock(copied, "--extras")
    after = re.findall(r"binding install (\w+)", (copied / "Dockerfile").read_text())
    assert [name for name in after if name != "aardvark"] == before
    common = [name for name in after if after.index(name) <= after.index("aardvark")]
    assert common[-1] == "aardvark"
    assert "FROM common AS full" in (copied / "Dockerfile").read_text().partition("binding install aardvark\n")[2][:30]


FAKE_UV = """#!{python}
import re, sys
arguments = sys.argv[1:]
options = [arguments[i:i + 2] for i in range(len(arguments) - 1)]
open({log!r}, "a").write("".join(open(value).read() for name, value in options if name == "--constraints"))
left_out = [argument.partition("=")[2] for argument in arguments if argument.startswith("--no-emit-package")]
pins = [line for line in sys.stdin.read().split("\\n") if "==" in line]
pins = [pin.lower() for pin in pins if re.split("[=[]", pin)[0].lower() not in left_out]
text = "".join(f"{{pin}} \\\\\\n    --hash=sha256:{{'0' * 64}}\\n" for pin in pins)
(output,) = [value for name, value in options if name == "--output-file"] or [None]
print(text) if output is None else open(output, "w").write(text)
"""


@pytest.fixture
def constraints(copied: Path) -> Path:
    """Let a fake uv lock every package at the version that was asked for, and log its constraints in this file."""
    uv, log = copied / ".venv/bin/uv", copied / "constraints.txt"
    uv.parent.mkdir(parents=True)
    uv.write_text(FAKE_UV.format(python=sys.executable, log=str(log)))
    uv.chmod(0o755)
    return log


@pytest.mark.parametrize(
    ("name", "package", "other"),
    [("pokemon_red", "pyboy", "ale-py"), ("kinetix", "kinetix-env", "craftax")],
    ids=["shared", "isolated"],
)
def test_lock_with_a_name_changes_only_this_binding(
    copied: Path, constraints: Path, name: str, package: str, other: str
) -> None:
    before = {path: path.read_text() for path in copied.rglob("*.txt")}
    edit(copied / f"bindings/{name}/binding.toml", f"{package}==", f"{package}==99")
    done = lock(copied, name)
    assert done.returncode == 0, done.stderr
    changed = {path for path in before if path.read_text() != before[path]}
    folder = copied / "bindings" / name
    assert folder / "lock.txt" in changed <= {folder / "lock.txt", folder / "build.txt"}
    assert f"{package}==99" in (folder / "lock.txt").read_text()
    assert lock(copied, "--check").returncode == 0
    assert f"{other}==" in constraints.read_text()  # which stays at its version


def test_lock_rejects_names_without_a_lock(copied: Path) -> None:
    assert lock(copied, "atary").stderr.startswith("lock: error: there is no binding 'atary'; known: atari, ")
    assert lock(copied, "smac").stderr.startswith("lock: error: smac has no lock, because it is on no package index")
    assert "a NAME goes with no other option than --upgrade" in lock(copied, "--check", "atari").stderr


def test_lock_installs_the_locked_uv_if_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "lib"))
    resolver = importlib.import_module("resolver")
    monkeypatch.delitem(sys.modules, "resolver")
    commands = []

    def run(command: list[object], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append([str(part) for part in command])
        return subprocess.CompletedProcess(commands[-1], len(commands) - 1, "", "no network\n")

    monkeypatch.setattr(resolver, "ROOT", tmp_path)
    monkeypatch.setattr(resolver.shutil, "which", lambda *arguments, **options: None)
    monkeypatch.setattr(resolver.subprocess, "run", run)
    assert resolver.find_uv() == str(tmp_path / "build/uv/bin/uv")
    target = [*("--target", str(tmp_path / "build/uv")), "-r", str(ROOT / "docker/locks/uv.txt")]
    assert commands[0] == [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", *target]
    with pytest.raises(resolver.LockError, match="uv could not be installed; check the network and pip's settings"):
        resolver.find_uv()


def test_new_binding_is_known_to_mypy(copied: Path) -> None:
    edit(copied / "bindings/minigrid/binding.toml", 'modules = ["minigrid"', 'modules = ["aardvark"')
    lock(copied, "--extras")
    assert '    "aardvark.*",\n' in (copied / "pyproject.toml").read_text()


def test_check_detects_two_versions_of_a_package(copied: Path) -> None:
    edit(copied / "bindings/atari/lock.txt", "ale-py==", "ale-py==9")
    assert "the locks hold two versions of ale-py" in lock(copied, "--check").stderr


def test_unknown_key_in_binding_toml_is_a_short_error(copied: Path) -> None:
    edit(copied / "bindings/atari/binding.toml", "licence", "license")
    assert lock(copied, "--check").stderr == (
        "lock: error: atari/binding.toml: unknown key 'license'; did you mean 'licence'?\n"
    )


def test_locks_contain_every_version_that_extras_pin() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for tools_of_releases in ("release", "wheels"):  # not in the images
        del extras[tools_of_releases]
    locked = {name: version.split("+")[0] for path in LOCKS for name, version in packages(path).items()}
    for requirement in (requirement for extra in extras.values() for requirement in extra if "==" in requirement):
        name, version = requirement.split("==")
        assert locked[re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()] == version


def test_layers_of_one_image_share_no_package() -> None:
    for device in ("cpu", "cuda"):
        seen: dict[str, str] = {}
        for layer in (f"torch-{device}", "core", "envs", "tools"):
            for name in packages(ROOT / "docker" / "locks" / f"{layer}.txt"):
                assert name not in seen, f"{name} is in {seen[name]} and {layer}"
                seen[name] = layer


def test_cpu_and_cuda_builds_of_torch_need_the_same_versions() -> None:
    cpu, cuda = (packages(ROOT / "docker" / "locks" / f"torch-{device}.txt") for device in ("cpu", "cuda"))
    assert cpu.pop("torch") == cuda["torch"] + "+cpu"
    assert cpu.items() <= cuda.items()
