"""Rules for the Dockerfile and the Compose files. The tests in tests/image check the built images."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import pufferlib
from pufferlib.native.source_hash import source_hash

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
# Joins lines that end in a backslash, after removing comments.
INSTRUCTIONS = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", DOCKERFILE)).splitlines()
FINAL = ("runtime", "tank", "tank-full", "test", "dev")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
APT_LISTS = sorted((ROOT / "docker" / "apt").glob("*.txt"))


def stages() -> dict[str, tuple[str, list[str]]]:
    """Return all stages in order, as a dict from name to parent and instructions."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in INSTRUCTIONS:
        if match := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            found[match[2]] = (match[1], [])
        elif found and line.strip():
            found[list(found)[-1]][1].append(line)
    return found


def compose(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text())


def test_dockerfile_needs_no_downloaded_frontend() -> None:
    assert "syntax=" not in DOCKERFILE.splitlines()[0]
    # Syntax that is newer than version 1.2, which engine 20.10 supports.
    assert not re.search(r"<<-?['\"]?EOF|COPY .*--(link|parents|exclude)|RUN --network", DOCKERFILE)


def test_sources_are_copied_after_all_downloads() -> None:
    for name in ("runtime", "tank", "tank-full", "test"):
        own = stages()[name][1]
        assert "COPY --from=build /package /opt/venv" in own
        # Each edit of the sources repeats these commands, so they may only touch files that are there.
        assert all(re.match("RUN find .* -exec touch", line) for line in own if line.startswith("RUN"))


def test_lock_comments_do_not_invalidate_layers() -> None:
    for name, (_, lines) in stages().items():
        for line in lines:
            assert name == "recipes" or not re.match(r"COPY (?!--from=recipes ).*(locks|lock\.txt|binding\.toml)", line)


def test_layers_of_published_images_have_no_times_of_the_checkout_or_the_build() -> None:
    for name in ("runtime", "tank", "tank-full"):
        while name in stages():
            name, lines = stages()[name]
            name = name.replace("${DEVICE}", "cpu")
            copied = [re.sub(" +", " ", line) for line in lines if line.startswith("COPY")]
            folders = r"COPY --from=(recipes( /recipes/\S+)+ /|uv /opt/image /|build /package /opt/venv)"
            assert all(re.fullmatch(folders, line) for line in copied), copied


def test_scripts_can_import_their_neighbors() -> None:
    assert "PYTHONSAFEPATH" not in DOCKERFILE


def bootstrap_base(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run docker/bootstrap-base with programs that only print their arguments."""
    for name, body in {"docker": "cat >/dev/null", "mmdebstrap": 'printf "%s\\n" "$@" >&2', "id": "echo 0"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    environ = {"PATH": f"{folder}:{os.environ['PATH']}"}
    command = [ROOT / "docker/bootstrap-base", *arguments]
    return subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)


def test_base_image_of_a_snapshot_has_only_its_sources(tmp_path: Path) -> None:
    done = bootstrap_base(tmp_path, "--snapshot", "20261128T000000Z")
    assert done.returncode == 0, done.stderr
    sources = [line.partition("] ")[2] for line in done.stderr.splitlines() if line.startswith("deb ")]
    assert sources == [
        "http://snapshot.debian.org/archive/debian/20261128T000000Z bookworm main",
        "http://snapshot.debian.org/archive/debian/20261128T000000Z bookworm-updates main",
        "http://snapshot.debian.org/archive/debian-security/20261128T000000Z bookworm-security main",
    ]


def test_invalid_snapshot_is_reported(tmp_path: Path) -> None:
    done = bootstrap_base(tmp_path, "--snapshot", "yesterday")
    message = "bootstrap-base: error: --snapshot takes a time such as 20261128T000000Z, got 'yesterday'\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_every_install_checks_hashes() -> None:
    text = "\n".join([*INSTRUCTIONS, (ROOT / "docker/bin/pip-install").read_text().replace("\\\n", " ")])
    installs = [line for line in text.splitlines() if re.search(r"\bpip install\b", line)]
    assert len(installs) == 4
    for line in installs:
        ours = "--no-index --no-deps --find-links /dist " in line
        assert ours or ("--require-hashes" in line and "--no-deps" in line), line
    binding = (ROOT / "docker/bin/binding").read_text()
    assert binding.count("--require-hashes") == 2, "for wheels from the index and for sources"
    assert binding.count("--no-index") == 1, "only wheels that were compiled here are installed without a hash"


def test_slim_removes_only_unneeded_files(tmp_path: Path) -> None:
    kept = (
        "nvidia/cu13/lib/libcusolver.so.13",
        "numpy/lib/libnpymath.a",
        "torch/testing/a.py",
        "triton/a.so",
        "ray/a.py",
        "torch/bin/torch_shm_manager",
        "nvidia/cu13/lib/libnvrtc.so.13",
        "triton/backends/nvidia/driver.c",
    )
    left = (
        "nvidia/cu13/lib/libcusolverMg.so.13",
        "nvidia/cu13/lib/a.a",
        "triton/a.a",
        "torch/tests/a.py",
        "ray/jars/a",
        "torch/test/cpp/test_api",
        "torch/bin/protoc",
        "nvidia/cu13/lib/libnvrtc.alt.so.13",
        "nvidia/nvshmem/lib/libnvshmem_device.bc",
        "triton/generated.c",
    )
    for name in kept + left:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "triton/generated.c").write_text("/* Generated by Cython 3.2.1 */\n")
    subprocess.run(["sh", ROOT / "docker/bin/slim", tmp_path, "triton"], check=True)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)


@pytest.mark.parametrize("path", APT_LISTS, ids=lambda path: path.name)
def test_every_apt_package_has_a_reason(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert lines == sorted(lines)
    for line in lines:
        assert re.fullmatch(r"[a-z0-9.+-]+ +# .{10,}", line), line


def test_nothing_is_sent_to_the_engine_by_default() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules[0] == "*"


def test_site_stage_copies_every_linked_file() -> None:
    copied = {name for line in stages()["site"][1] if line.startswith("COPY") for name in line.split()[1:-1]}
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines()}
    linked = {
        Path(name) for page in ROOT.glob("docs/*.md") for name in re.findall(r"\]\(\.\./([\w./-]+)", page.read_text())
    }
    for names in (copied, sent):
        assert {file for file in linked if not names & {str(file), *map(str, file.parents)}} == set()


def test_apptainer_file_is_made_from_the_default_image() -> None:
    image = compose("compose.yaml")["services"]["tank"]["image"]
    for _ in range(2):  # the default of the tag is another variable
        image = re.sub(r"\$\{\w+:-([^${}]*)\}", r"\1", image)
    lines = [line for line in (ROOT / "docker/apptainer.def").read_text().splitlines() if not line.startswith("#")]
    header, *sections = re.split(r"(?m)^%", "\n".join(lines))
    assert dict(re.findall(r"(?m)^(\w+): (\S+)$", header)) == {"Bootstrap": "docker-daemon", "From": image}
    scripts = dict(section.split("\n", 1) for section in sections)
    assert set(scripts) == {"runscript", "test", "help"}
    for name in ("runscript", "test"):
        done = subprocess.run(["sh", "-n"], input=scripts[name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_gpu_is_requested_only_in_the_override() -> None:
    base, override = compose("compose.yaml"), compose("compose.gpu.yaml")
    assert not re.search(r"(?m)^\s*(gpus|runtime: nvidia|devices|deploy):?", (ROOT / "compose.yaml").read_text())
    assert set(override["services"]) == set(base["services"]) - {"docs", "worker"}
    for service in override["services"].values():
        assert list(service) == ["deploy"]
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"]


@pytest.mark.parametrize("name", FINAL)
def test_services_have_the_common_settings(name: str) -> None:
    service = compose("compose.yaml")["services"][name]
    assert service["build"]["target"] == name
    assert service["image"] == f"${{TANK_REGISTRY:-puffertank}}/{name}:${{TANK_TAG:-${{TANK_DEVICE:-cpu}}}}"
    assert service["platform"] == "linux/amd64"
    # By default, images are never pulled from a registry, where the name could belong to someone else.
    assert service["pull_policy"] == "${TANK_PULL:-build}"
    assert service["user"] == "root", "the entrypoint switches to the checkout's owner"
    assert service["init"] is True
    assert "shm_size" in service
    assert {"WANDB_API_KEY", "HF_TOKEN", "OMP_NUM_THREADS", *PROXIES} <= set(service["environment"])
    assert all(service["build"]["args"][name] is None for name in PROXIES), "values come from the environment"
    assert ("profiles" in service) == (name != "tank")


def test_docs_service_listens_on_localhost_without_the_checkout() -> None:
    service = compose("compose.yaml")["services"]["docs"]
    assert service["build"]["target"] == "docs"
    assert (service["pull_policy"], service["profiles"]) == ("${TANK_PULL:-build}", ["docs"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert not {"volumes", "user"} & set(service)
    assert "USER 1000" in stages()["docs"][1]


def test_board_uses_the_default_image_and_listens_on_localhost() -> None:
    services = compose("compose.yaml")["services"]
    board = services["board"]
    assert (board["image"], board["build"]) == (services["tank"]["image"], services["tank"]["build"])
    assert board["profiles"] == ["board"]
    assert board["ports"] == ["127.0.0.1:${TANK_BOARD_PORT:-6006}:${TANK_BOARD_PORT:-6006}"]
    assert board["command"].split() == ["board", "--host", "0.0.0.0", "--port", "${TANK_BOARD_PORT:-6006}"]


def test_ray_cluster_uses_the_default_image_and_listens_on_localhost() -> None:
    services = compose("compose.yaml")["services"]
    head, worker = services["head"], services["worker"]
    assert head["image"] == worker["image"] == services["tank"]["image"]
    assert head["build"] == services["tank"]["build"]
    assert "build" not in worker, "two services that build one image would build it twice"
    assert head["profiles"] == worker["profiles"] == ["cluster"]
    assert worker["depends_on"] == {"head": {"condition": "service_healthy"}}
    assert "healthcheck" in worker
    assert all(port.startswith("127.0.0.1:") for port in head["ports"])
    assert "ports" not in worker, "several workers cannot have the same port"


def test_only_stage_uv_uses_the_secret() -> None:
    takers = {name for name, (_, lines) in stages().items() if "type=secret" in "".join(lines)}
    assert takers == {"uv"}
    certificates = "--mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt"
    for line in (line for name, (_, lines) in stages().items() if name != "uv" for line in lines):
        downloads = re.search(r" (pip-install|uv pip install .*--require-hashes|binding (compile|install)) ", line)
        assert (certificates in line) == bool(downloads), line


def leave_sources(folder: Path) -> None:
    """Copy the package, and remove everything that the stage ``sources`` removes."""
    shutil.copytree(ROOT / "pufferlib", folder / "pufferlib", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (command,) = (line.removeprefix("RUN ") for line in stages()["sources"][1] if line.startswith("RUN"))
    subprocess.run(["sh", "-euc", command.replace("/sources", str(folder))], check=True)


def test_only_c_and_cython_edits_compile_again(tmp_path: Path) -> None:
    copied = [line for line in stages()["native"][1] if line.startswith("COPY")]
    assert "COPY --from=sources /sources ./" in copied
    assert all(re.match(r"COPY --from=(sources|recipes|uv) ", line) for line in copied)
    assert "wheel.cmake=false" in "".join(stages()["build"][1])

    before = source_hash(ROOT / "pufferlib")
    leave_sources(tmp_path)
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.suffix for path in left} == {".c", ".h", ".in", ".pxd", ".pyx", ".py"}
    python = {path.name for path in left if path.suffix == ".py" and path.stat().st_size}
    assert python == {"cached_cython.py", "source_hash.py"}
    assert source_hash(tmp_path / "pufferlib") == before


@pytest.mark.all
def test_left_sources_are_enough_for_cython(tmp_path: Path) -> None:
    pytest.importorskip("Cython", reason="it comes with the extra dev")
    leave_sources(tmp_path)
    # This module has its types in a .pxd file, which Cython finds only inside a package.
    cython = [
        sys.executable,
        "-m",
        "cython",
        "-3",
        "--module-name",
        "pufferlib.emulation._rows",
        "-o",
        tmp_path / "a.c",
    ]
    subprocess.run([*cython, "pufferlib/emulation/_rows.pyx"], cwd=tmp_path, check=True)


def test_compile_caches_compare_contents() -> None:
    native = "".join(stages()["native"][1])
    assert not re.search(r"type=cache,target=(?!/var/)", native), "the build folder must not persist"
    assert "CMAKE_C_COMPILER_LAUNCHER=ccache" in native
    assert "CYTHON_CACHE_DIR=" in native
    assert "SOURCE_DATE_EPOCH=" in native


def test_dev_shares_the_compile_caches_of_native() -> None:
    def variables(stage: str) -> dict[str, str]:
        lines = (line for line in stages()[stage][1] if line.startswith("ENV "))
        return dict(re.findall(r"(\w+)=(\S+)", " ".join(lines)))

    shared = {"CMAKE_C_COMPILER_LAUNCHER", "CCACHE_DIR", "CCACHE_NOINODECACHE", "CYTHON_CACHE_DIR", "CC"}
    native, dev = variables("native"), variables("dev")
    assert {name: dev.get(name) for name in shared} == {name: native[name] for name in shared}
    assert "--mount=type=bind,from=native,source=/used,target=/mnt/used" in "".join(stages()["dev"][1])
    # ccache also compares the compiler command.
    assert f"-B {dev['SKBUILD_BUILD_DIR']} " in "".join(stages()["native"][1])


def test_only_the_cuda_image_requires_a_driver() -> None:
    lock = (ROOT / "docker/locks/torch-cuda.txt").read_text()
    major, minor = re.findall(r"(?m)^nvidia-cuda-runtime==(\d+)\.(\d+)", lock)[0]
    (stage,) = (name for name in stages() if name.endswith("-is-cuda"))
    assert f"NVIDIA_REQUIRE_CUDA=cuda>={major}.{minor}" in "".join(stages()[stage][1])
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,video" in "".join(stages()[stage][1])
    others = [line for name, (_, lines) in stages().items() if name != stage for line in lines]
    assert not [line for line in others if "NVIDIA_" in line]


def test_recipe_installs_the_compiler_of_the_locked_cuda() -> None:
    (locked,) = re.findall(r"(?m)^cuda-toolkit==(\S+)", (ROOT / "docker/locks/torch-cuda.txt").read_text())
    assert re.findall(r"'cuda-toolkit\[.*\]==(.*)'", (ROOT / "docs/recipes.md").read_text()) == [locked]


def test_images_have_oci_labels() -> None:
    (label,) = (line for line in stages()["base"][1] if line.startswith("LABEL"))
    assert 'org.opencontainers.image.licenses="MIT AND LicenseRef-third-party"' in label
    for service in (service for service in compose("compose.yaml")["services"].values() if "build" in service):
        names = {name.removeprefix("org.opencontainers.image.") for name in service["build"]["labels"]}
        assert names == {"version", "revision", "created", "source", "base.name", "base.digest", "tank.locks"}


@pytest.mark.place
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here; in CI this runs outside the image")
def test_labels_contain_the_commit_and_mark_local_changes(tmp_path: Path) -> None:
    def labels(shell: str) -> list[str]:
        script = f". {ROOT}/scripts/lib/labels.sh; {shell}; label_images; printf '%s\\n' "
        script += '"$TANK_VERSION" "$TANK_REVISION" "$TANK_CREATED" "$TANK_SOURCE"'
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert not done.stderr
        return done.stdout.split("\n")[:4]

    version = pufferlib.__version__
    assert labels("true") == [version, "", "", ""]
    (tmp_path / "file").touch()
    author = "GIT_COMMITTER_DATE=2026-11-22T12:00:00Z git -c user.name=a -c user.email=a -c commit.gpgsign=false"
    commit = f"git init -q; git add .; {author} commit -qm x; git remote add origin"
    _, revision, created, source = labels(f"{commit} https://user:password@example.org/x.git")
    assert re.fullmatch("[0-9a-f]{40}", revision)
    assert created.startswith("2026-11-22T12:00:00")
    assert source == "https://example.org/x.git"
    (tmp_path / "pufferlib").mkdir()
    (tmp_path / "pufferlib/new.c").touch()
    assert labels("true")[1] == f"{revision}-dirty", "the image would contain the new file"
    (tmp_path / "pufferlib/new.c").unlink()
    (tmp_path / "file").write_text("changed")
    assert labels("git remote set-url origin /some/folder") == [version, f"{revision}-dirty", created, ""]


def test_secrets_are_no_build_arguments_and_have_no_values() -> None:
    assert not re.search(r"(?im)^\s*(ARG|ENV)\s+\S*(KEY|TOKEN|SECRET|PASSWORD)", DOCKERFILE)
    for service in compose("compose.yaml")["services"].values():
        for name, value in service.get("environment", {}).items():
            assert value is None, f"{name} has a value; list only its name, so that the host's value is used"


def test_example_settings_are_known_and_commented_out() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert all(not line or line.startswith("#") for line in lines)
    settings = {match[1] for line in lines if (match := re.match(r"#([A-Z_]+)=", line))}
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    # labels.sh sets these
    used -= {"TANK_VERSION", "TANK_REVISION", "TANK_CREATED", "TANK_SOURCE", "TANK_BASE_DIGEST", "TANK_LOCKS"}
    assert settings == used | {"COMPOSE_FILE", "HF_TOKEN", "TANK_VIEW_PORT", "WANDB_API_KEY"}
