"""Rules that the Dockerfile, the Compose files and the locks keep, read from the files: no engine is needed."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
# A line that ends in a backslash goes on in the next one; comments may stand between.
INSTRUCTIONS = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", DOCKERFILE)).splitlines()
FINAL = ("runtime", "tank", "tank-full", "test", "dev")
LOCKS = sorted((ROOT / "docker" / "locks").glob("*.txt"))
ALL_LOCKS = [
    *LOCKS,
    *(path for name in ("build", "lock") for path in sorted((ROOT / "bindings").glob(f"*/{name}.txt"))),
]
APT_LISTS = sorted((ROOT / "docker" / "apt").glob("*.txt"))
SCRIPTS = sorted(
    path
    for folder in ("docker", "docker/bin")
    for path in (ROOT / folder).iterdir()
    if path.is_file() and not path.suffix
)


def stages() -> dict[str, tuple[str, list[str]]]:
    """Name -> (parent, instructions) of every stage, in order."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in INSTRUCTIONS:
        if match := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            found[match[2]] = (match[1], [])
        elif found and line.strip():
            found[list(found)[-1]][1].append(line)
    return found


def compose(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text())


def ancestors(stage: str) -> list[str]:
    """A stage and everything below it."""
    chain = [stage]
    while chain[-1] in stages():
        chain.append(stages()[chain[-1]][0])
    return chain


def packages(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)", lock.read_text()))


def test_dockerfile_needs_no_downloaded_frontend() -> None:
    assert "syntax=" not in DOCKERFILE.splitlines()[0]
    # Newer than version 1.2 of the language, which engine 20.10 speaks.
    assert not re.search(r"<<-?['\"]?EOF|COPY --link|RUN --network|--parents|--exclude", DOCKERFILE)


@pytest.mark.parametrize("stage", FINAL)
def test_final_user_is_not_root(stage: str) -> None:
    users = [line.split()[1] for line in stages()[stage][1] if line.startswith("USER ")]
    assert users == ["1000"], "numeric, so that an orchestrator can see that it is not root"


@pytest.mark.parametrize("stage", FINAL)
def test_final_stages_say_what_they_are(stage: str) -> None:
    assert f'LABEL tank.target="{stage}"' in stages()[stage][1]


@pytest.mark.parametrize("stage", ["runtime", "tank", "tank-full"])
def test_no_compilers_in_what_is_only_run(stage: str) -> None:
    below = [line for name in ancestors(stage) if name in stages() for line in stages()[name][1]]
    assert not [line for line in below if re.search(r"apt-install (.* )?(build|tools|dev)\b", line)]


def test_sources_come_after_everything_that_is_downloaded() -> None:
    for name in ("runtime", "tank", "tank-full", "test"):
        own = stages()[name][1]
        assert "COPY --from=build /package /opt/venv" in own
        assert not [line for line in own if line.startswith("RUN")]


def test_every_install_checks_hashes() -> None:
    text = "\n".join([*INSTRUCTIONS, (ROOT / "docker/bin/pip-install").read_text().replace("\\\n", " ")])
    installs = [line for line in text.splitlines() if re.search(r"\bpip install\b", line)]
    assert len(installs) == 3
    for line in installs:
        ours = "--no-index --no-deps --find-links /dist " in line
        assert ours or ("--require-hashes" in line and "--no-deps" in line), line


def test_every_apt_and_pip_layer_uses_a_listed_file() -> None:
    instructions = "\n".join(INSTRUCTIONS).replace("pip-install envs ray", "pip-install envs")  # ray: made slim
    installs = re.findall(r"(?<=[ ])(apt|pip)-install ((?:[\w\"$\{\}-]+ ?)+)", instructions)
    used = {(kind, name.strip('"')) for kind, names in installs for name in names.split()}
    lists = {("apt", path.stem) for path in APT_LISTS}
    locks = {("pip", path.stem) for path in LOCKS if path.stem != "uv" and not path.stem.startswith("torch-")}
    assert used == lists | locks | {("pip", "torch-${DEVICE}")}


def test_images_leave_out_only_what_nobody_runs(tmp_path: Path) -> None:
    kept = (
        "nvidia/cu13/lib/libcusolver.so.13",
        "numpy/lib/libnpymath.a",
        "torch/testing/a.py",
        "triton/a.so",
        "ray/a.py",
        "torch/bin/torch_shm_manager",
    )
    left = (
        "nvidia/cu13/lib/libcusolverMg.so.13",
        "nvidia/cu13/lib/a.a",
        "triton/a.a",
        "torch/tests/a.py",
        "ray/jars/a",
        "torch/test/cpp/test_api",
        "torch/bin/protoc",
    )
    for name in kept + left:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["sh", ROOT / "docker/bin/slim", tmp_path], check=True)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)


@pytest.mark.parametrize("path", APT_LISTS, ids=lambda path: path.name)
def test_every_apt_package_has_a_reason(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert lines == sorted(lines)
    for line in lines:
        assert re.fullmatch(r"[a-z0-9.+-]+ +# .{10,}", line), line


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_can_be_run_by_linux(path: Path) -> None:
    assert b"\r" not in path.read_bytes(), "a CR in the first line hides the interpreter"
    assert path.read_text().startswith("#!/")
    assert path.stat().st_mode & 0o100, "not executable"


def test_nothing_is_sent_to_the_engine_by_default() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    copied = {word for line in INSTRUCTIONS if re.match(r"COPY (?!--from)", line) for word in line.split()[1:-1]}
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    for source in copied:
        assert any(source == name or source.startswith(f"{name}/") for name in allowed), source


@pytest.mark.parametrize("path", ALL_LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_locks_pin_with_hashes_and_name_no_host(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    blocks = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert blocks or path not in LOCKS  # a binding may need nothing of its own
    for block in blocks:
        assert re.match(r"[a-z0-9.-]+==\S+", block), block
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block


def test_locks_agree_with_pyproject() -> None:
    done = lock(ROOT, "--check")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy of everything that scripts/lock reads."""
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


def lock(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, root / "scripts/lock", *arguments], capture_output=True, text=True)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_version_changed_only_in_pyproject_is_noticed(copied: Path) -> None:
    edit(copied / "pyproject.toml", "torch==", "torch>=")
    done = lock(copied, "--check")
    assert done.returncode == 1
    assert done.stderr.startswith("lock: error: docker/locks/torch-cpu.txt, docker/locks/torch-cuda.txt, ")
    assert done.stderr.endswith(": not made from today's pyproject.toml and binding.toml; run scripts/lock\n")


def test_a_version_changed_only_in_a_binding_is_noticed(copied: Path) -> None:
    edit(copied / "bindings/atari/binding.toml", "ale-py==", "ale-py==9")
    done = lock(copied, "--check")
    assert (done.returncode, done.stderr) == (
        1,
        "lock: error: pyproject.toml: not made from today's binding.toml files; run scripts/lock --extras\n",
    )
    done = lock(copied, "--extras")
    assert (done.returncode, done.stdout) == (0, "lock: pyproject.toml, the part about bindings\n")
    assert '\natari = ["ale-py==9' in (copied / "pyproject.toml").read_text()
    assert "bindings/atari/lock.txt" in lock(copied, "--check").stderr


def test_the_docs_show_what_a_binding_says_of_itself(copied: Path) -> None:
    edit(copied / "bindings/atari/binding.toml", "GPL-2.0-only", "LGPL-9")
    assert "docs/bindings.md: not made from today's binding.toml files" in lock(copied, "--check").stderr
    lock(copied, "--extras")
    assert "| LGPL-9 | `puffer install atari` |" in (copied / "docs/bindings.md").read_text()


def test_the_layer_of_a_new_binding_comes_after_all_others(copied: Path) -> None:
    (copied / "bindings/aardvark").mkdir()
    text = (copied / "bindings/atari/binding.toml").read_text().replace("Atari 2600", "Aardvark")
    (copied / "bindings/aardvark/binding.toml").write_text(text)
    before = re.findall(r"binding install (\w+)", DOCKERFILE)
    assert "Dockerfile: not made from today's binding.toml files" in lock(copied, "--check").stderr
    lock(copied, "--extras")
    after = re.findall(r"binding install (\w+)", (copied / "Dockerfile").read_text())
    assert [name for name in after if name != "aardvark"] == before
    common = [name for name in after if after.index(name) <= after.index("aardvark")]
    assert common[-1] == "aardvark"
    assert "FROM common AS full" in (copied / "Dockerfile").read_text().partition("binding install aardvark\n")[2][:30]


def test_every_binding_is_installed_by_its_lock_with_hashes() -> None:
    text = (ROOT / "docker/bin/binding").read_text()
    assert text.count("--require-hashes") == 2, "of the wheels from the index, and of all that is compiled"
    assert text.count("--no-index") == 1, "only what was compiled here is installed without a hash"


def test_two_versions_of_one_package_are_noticed(copied: Path) -> None:
    edit(copied / "bindings/atari/lock.txt", "ale-py==", "ale-py==9")
    assert "the locks hold two versions of ale-py" in lock(copied, "--check").stderr


def test_a_mistake_in_a_binding_toml_is_a_sentence(copied: Path) -> None:
    edit(copied / "bindings/atari/binding.toml", "licence", "license")
    assert lock(copied, "--check").stderr == (
        "lock: error: atari/binding.toml: unknown key 'license'; did you mean 'licence'?\n"
    )


def test_locks_hold_every_version_that_an_extra_pins() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    locked = {name: version.split("+")[0] for path in ALL_LOCKS for name, version in packages(path).items()}
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


def test_both_builds_of_torch_need_the_same_versions() -> None:
    cpu, cuda = (packages(ROOT / "docker" / "locks" / f"torch-{device}.txt") for device in ("cpu", "cuda"))
    assert cpu.pop("torch") == cuda["torch"] + "+cpu"
    assert cpu.items() <= cuda.items()


def test_a_gpu_is_asked_for_only_in_the_override() -> None:
    base, override = compose("compose.yaml"), compose("compose.gpu.yaml")
    assert not re.search(r"(?m)^\s*(gpus|runtime: nvidia|devices|deploy):?", (ROOT / "compose.yaml").read_text())
    assert set(override["services"]) == set(base["services"])
    for service in override["services"].values():
        assert list(service) == ["deploy"]
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"]


@pytest.mark.parametrize("name", FINAL)
def test_services(name: str) -> None:
    service = compose("compose.yaml")["services"][name]
    assert service["build"]["target"] == name
    assert service["image"] == f"puffertank/{name}:${{TANK_TAG:-${{TANK_DEVICE:-cpu}}}}"
    assert service["platform"] == "linux/amd64"
    # Never taken from a registry, where the name could belong to anybody.
    assert service["pull_policy"] == "build"
    assert service["user"] == "root", "the entrypoint gives it up for the checkout's owner"
    assert service["init"] is True
    assert "shm_size" in service
    assert ("profiles" in service) == (name != "tank")


def test_every_volume_has_a_folder_of_tanks_in_the_image() -> None:
    config = compose("compose.yaml")
    targets = {volume.split(":")[1] for service in config["services"].values() for volume in service["volumes"]}
    (install,) = (line for line in stages()["base"][1] if "install --directory" in line)
    folders = re.search(r"install --directory --owner=tank --group=0 --mode=0775 ((?:/\S+ ?)+)", install)
    assert folders is not None
    assert targets == set(folders[1].split())


def test_only_one_stage_takes_the_secret_and_hands_on_what_worked() -> None:
    takers = {name for name, (_, lines) in stages().items() if "type=secret" in "".join(lines)}
    assert takers == {"uv"}
    certificates = "--mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt"
    for line in (line for name, (_, lines) in stages().items() if name != "uv" for line in lines):
        assert (certificates in line) == bool(re.search(r" (pip-install|binding (compile|install)) ", line)), line


def test_the_build_goes_by_content_never_by_the_times_of_files() -> None:
    build = stages()["build"][1]
    assert not re.search(r"target=/src|SKBUILD_BUILD_DIR", "".join(build)), "a folder that outlives the build"
    assert "CMAKE_C_COMPILER_LAUNCHER=ccache" in "".join(build)
    assert "SOURCE_DATE_EPOCH=" in "".join(build)


def test_an_old_driver_is_refused_by_the_cuda_image_alone() -> None:
    cuda = packages(ROOT / "docker/locks/torch-cuda.txt")
    major, minor = cuda["nvidia-cuda-runtime"].split(".")[:2]
    (stage,) = (name for name in stages() if name.endswith("-is-cuda"))
    assert f"NVIDIA_REQUIRE_CUDA=cuda>={major}.{minor}" in "".join(stages()[stage][1])
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,video" in "".join(stages()[stage][1])
    others = [line for name, (_, lines) in stages().items() if name != stage for line in lines]
    assert not [line for line in others if "NVIDIA_" in line]


def test_labels_say_what_an_image_is_and_what_it_was_made_from() -> None:
    (label,) = (line for line in stages()["base"][1] if line.startswith("LABEL"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'org.opencontainers.image.version="{version}"' in label
    assert 'org.opencontainers.image.licenses="MIT AND LicenseRef-third-party"' in label
    for service in compose("compose.yaml")["services"].values():
        names = {name.removeprefix("org.opencontainers.image.") for name in service["build"]["labels"]}
        assert names == {"revision", "created", "source", "base.name", "base.digest"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here; in CI this runs outside the image")
def test_labels_name_the_commit_and_what_was_changed_since(tmp_path: Path) -> None:
    def labels(shell: str) -> list[str]:
        script = f". {ROOT}/scripts/lib/labels.sh; {shell}; label_images; printf '%s\\n' "
        script += '"$TANK_REVISION" "$TANK_CREATED" "$TANK_SOURCE"'
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert not done.stderr
        return done.stdout.split("\n")[:3]

    assert labels("true") == ["", "", ""]
    (tmp_path / "file").touch()
    author = "GIT_COMMITTER_DATE=2026-11-22T12:00:00Z git -c user.name=a -c user.email=a -c commit.gpgsign=false"
    commit = f"git init -q; git add .; {author} commit -qm x; git remote add origin"
    revision, created, source = labels(f"{commit} https://user:password@example.org/x.git")
    assert re.fullmatch("[0-9a-f]{40}", revision)
    assert created.startswith("2026-11-22T12:00:00")
    assert source == "https://example.org/x.git"
    (tmp_path / "file").write_text("changed")
    assert labels("git remote set-url origin /some/folder") == [f"{revision}-dirty", created, ""]


def test_secrets_are_neither_arguments_nor_values() -> None:
    assert not re.search(r"(?im)^\s*(ARG|ENV)\s+\S*(KEY|TOKEN|SECRET|PASSWORD)", DOCKERFILE)
    for service in compose("compose.yaml")["services"].values():
        for name, value in service.get("environment", {}).items():
            assert value is None, f"{name} has a value; name it only, then the host's own is passed on"


def test_example_settings_are_known_and_commented_out() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert all(not line or line.startswith("#") for line in lines)
    settings = {match[1] for line in lines if (match := re.match(r"#([A-Z_]+)=", line))}
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    used -= {"TANK_REVISION", "TANK_CREATED", "TANK_SOURCE", "TANK_BASE_DIGEST"}  # labels.sh sets them
    assert settings == used | {"COMPOSE_FILE"}
