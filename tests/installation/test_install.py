"""``puffer install``: its plans, actions and errors, with a test package and a new environment."""

import base64
import hashlib
import importlib.metadata
import subprocess
import sys
import zipfile
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from pufferlib import registry
from pufferlib.cli import main
from pufferlib.errors import UnknownNameError
from pufferlib.installation import doctor, extras, install
from pufferlib.installation.doctor import Finding

needs_pip = pytest.mark.skipif(PathFinder.find_spec("pip") is None, reason="pip is not installed, as in the images")

WHEEL = "tinygame-1.0-py3-none-any.whl"


def make_wheel(folder: Path) -> str:
    """Create a wheel of the package tinygame, whose metadata requires a missing package, and return its hash."""
    files = {
        "tinygame.py": "ANSWER = 42\n",
        "tinygame-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tinygame\nVersion: 1.0\n"
        "Requires-Python: <3\nRequires-Dist: nowhere-to-be-found\n",
        "tinygame-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        for name, text in {**files, "tinygame-1.0.dist-info/RECORD": record}.items():
            wheel.writestr(name, text)
    return hashlib.sha256((folder / WHEEL).read_bytes()).hexdigest()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Register a binding that is installed only from this wheel."""
    made = replace(registry.binding_facts()["atari"], name="tiny", requires=("tinygame==1.0",), modules=("tinygame",))
    (tmp_path / "lock.txt").write_text(f"tinygame==1.0 \\\n    --hash=sha256:{make_wheel(tmp_path)}\n")
    monkeypatch.setattr(registry, "binding_facts", lambda: {"tiny": made})
    monkeypatch.setattr(registry, "folder", lambda name: tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return made


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return the interpreter of an empty environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    return tmp_path / "venv" / "bin" / "python"


@needs_pip
def test_locked_package_is_installed_regardless_of_its_metadata(facts: Any, scratch: Path) -> None:
    planned = install.plan("tiny", python=scratch)
    assert planned.changes == (("tinygame", "", "1.0"),)
    install.install(planned)
    subprocess.run([scratch, "-c", "import tinygame; assert tinygame.ANSWER == 42"], check=True)
    assert install.plan("tiny", python=scratch).changes == ()


@needs_pip
def test_install_rejects_a_wrong_hash(facts: Any, scratch: Path, tmp_path: Path) -> None:
    planned = install.plan("tiny", python=scratch)
    with zipfile.ZipFile(tmp_path / WHEEL, "a") as wheel:
        wheel.writestr("tinygame_more.py", "")
    with pytest.raises(
        install.InstallError, match=r"puffer install tiny: a command failed, see above: .*--require-hashes"
    ):
        install.install(planned)
    assert not list(scratch.parents[1].glob("lib/python3*/site-packages/tinygame*"))


@needs_pip
def test_sources_are_compiled_with_packages_of_the_build_lock(facts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = install.plan("tiny").commands[-1], replace(facts, build=("cython==3.3.1",))
    assert "--no-build-isolation" not in first
    monkeypatch.setattr(registry, "binding_facts", lambda: {"tiny": second})
    build, lock = install.plan("tiny").commands[-2:]
    assert build[-1].endswith("build.txt")
    assert "--no-build-isolation" in lock


@needs_pip
def test_plan_creates_a_helper_venv_if_pip_is_missing(
    facts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    here = {"ensurepip"}
    monkeypatch.setattr(install, "_has_module", lambda name: name in here)
    helper, lock = install.plan("tiny").commands
    assert helper == (sys.executable, "-P", "-m", "venv", str(tmp_path / "pufferlib/stacks/pip"))
    assert lock[:5] == (f"{helper[-1]}/bin/python", "-P", "-m", "pip", "--python")
    here.clear()
    with pytest.raises(install.InstallError, match="needs pip, and neither pip nor ensurepip is installed"):
        install.plan("tiny")


def test_install_is_refused_in_an_image(facts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "in_image", lambda: True)
    planned = install.plan("tiny")
    assert planned.changes == (("tinygame", "", "1.0"),)
    with pytest.raises(install.InstallError, match="run outside: docker compose run --rm tank train tiny/breakout"):
        install.install(planned)


def test_install_in_an_image_names_the_image_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "in_image", lambda: True)
    monkeypatch.setattr(install, "_installed", lambda python: {})
    with pytest.raises(install.InstallError, match=r"tank has it, run outside: docker compose run --rm tank$"):
        install.install(install.plan("ray"))


def test_plan_needs_no_pip_if_nothing_changes(facts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (registry.folder("tiny") / "lock.txt").write_text(f"numpy=={importlib.metadata.version('numpy')}\n")
    monkeypatch.setattr(install, "_has_module", lambda name: False)
    planned = install.plan("tiny")
    assert (planned.changes, planned.commands) == ((), ())
    install.install(planned)


@needs_pip
def test_isolated_stack_gets_its_own_environment(facts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(registry, "binding_facts", lambda: {"tiny": replace(facts, isolated="odd")})
    planned = install.plan("tiny")
    assert planned.python == tmp_path / "data/pufferlib/stacks/odd/bin/python"
    assert install.state(registry.binding_facts()["tiny"]) == ""
    install.install(planned)
    assert install.state(registry.binding_facts()["tiny"]) == "installed"


@needs_pip
def test_missing_debian_packages_are_reported_first(
    facts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dpkg = tmp_path / "dpkg-query"
    dpkg.write_text(
        "#!/bin/sh\nfor each; do case $each in libhere1) echo installed; echo installed ;; "
        "libnew1t64) echo installed ;; esac; done\n"
    )  # the first one for two architectures, the second one as Debian 13 names it
    dpkg.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    known = replace(facts, apt={"libhere1": "its pictures", "libnew1": "its text", "libabsent1": "its sounds"})
    monkeypatch.setattr(registry, "binding_facts", lambda: {"tiny": known})
    assert install.plan("tiny").libraries == ("libabsent1",)
    monkeypatch.setattr(
        registry, "binding_facts", lambda: {"tiny": replace(known, apt_build={"gcc-missing": "compiled"})}
    )
    with pytest.raises(install.InstallError, match=r"needs gcc-missing, .*run: sudo apt-get install gcc-missing"):
        install.plan("tiny")


@needs_pip
@pytest.mark.parametrize("name", extras.GENERAL)
def test_plan_of_an_extra_installs_its_requirements_but_not_pufferlib(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "_installed", lambda python: {})
    planned = install.plan(name)
    (command,) = planned.commands
    packages = command[command.index("--no-input") + 1 :]
    pins = [f"{package}=={version}" for package, _, version in planned.changes]
    assert pins
    assert packages == (*pins, *map(str, extras.required()))
    assert not any(package.startswith("pufferlib") for package in packages)


def test_every_extra_for_users_can_be_installed() -> None:
    assert {*extras.GENERAL, "atari", "pokemon-red"} <= {*extras.names()}
    assert not {"test", "lint", "lock", "wheels", "dev"} & {*extras.names()}
    assert install.plan("pokemon-red").name == "pokemon_red"  # a binding's extra is installed from its lock
    with pytest.raises(UnknownNameError, match="unknown binding or extra 'trian'; did you mean 'train'"):
        install.plan("trian")


def test_smoke_test_reports_an_extra_that_does_not_import(monkeypatch: pytest.MonkeyPatch) -> None:
    (planned, found) = (install.plan("train"), Finding("extra [train]", "torch 2"))
    monkeypatch.setattr(doctor, "extra", lambda name: found)
    assert install.smoke_test(planned) == "its packages were imported"
    found = Finding("extra [train]", "ImportError: libGL.so.1", "advice", "install it")
    with pytest.raises(install.InstallError, match=r"train is installed but does not work: ImportError: libGL"):
        install.smoke_test(planned)


def test_unavailable_binding_says_what_to_provide() -> None:
    with pytest.raises(install.InstallError, match=r"puffer install smac: .*Blizzard"):
        install.plan("smac")


def test_state_reports_other_versions(facts: Any) -> None:
    version = importlib.metadata.version("numpy")
    assert install.state(facts) == ""
    assert install.state(replace(facts, requires=(f"numpy=={version}",))) == "installed"
    assert install.state(replace(facts, requires=("NumPy==0.1",))) == f"installed (numpy {version}, tested: 0.1)"


@needs_pip
def test_dry_run_and_answer_no_change_nothing(
    facts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "install", lambda planned: pytest.fail("something was installed"))
    assert main(["install", "tiny", "--dry-run"]) == 0
    assert "tinygame  1.0" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    assert main(["install", "tiny"]) == 1
    assert "nothing was changed" in capsys.readouterr().err


@needs_pip
def test_install_without_a_terminal_does_not_ask_and_tests_the_example(
    facts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    monkeypatch.setattr(install, "install", lambda planned: done.append(planned.name))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    monkeypatch.setattr(install, "_play", done.append)
    assert main(["install", "tiny"]) == 0
    assert done == ["tiny", "tiny/breakout"]
    assert "tiny works: tiny/breakout was played for 10 steps" in capsys.readouterr().out


def test_smoke_test_reports_a_binding_that_does_not_work(facts: Any) -> None:
    with pytest.raises(install.InstallError, match=r"tiny/breakout is installed but does not work: .*unknown environm"):
        install.smoke_test(install.plan("tiny"))


def test_smoke_test_plays_a_working_binding() -> None:
    pytest.importorskip("ale_py", reason="the atari extra is not installed")
    assert install.smoke_test(install.plan("atari")) == "atari/breakout was played for 10 steps"
