"""scripts/test --changed: the tests that each kind of changed file selects."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "pufferlib/errors.py": "",
    "pufferlib/ocean/pong/pong.c": "",
    "pufferlib/vector/__init__.py": "from pufferlib.vector.serial import Serial",
    "pufferlib/vector/serial.py": "from pufferlib.errors import PufferError\nclass Serial: ...",
    "pufferlib/vector/default.toml": "",
    "bindings/atari/env.py": "from .._shared.options import switch",
    "bindings/_shared/options.py": "",
    "tests/envs.py": "",
    "tests/test_errors.py": "import pufferlib.errors",
    "tests/bindings/test_atari.py": "",
    "tests/conformance/test_bindings.py": "",
    "tests/docs/test_docs.py": "",
    "tests/envpool/test_pools.py": "from pufferlib.vector.serial import Serial",
    "tests/native/rules.c": "",
    "tests/static/test_layers.py": "",
    "tests/vector/conftest.py": "",
    "tests/vector/test_make.py": "from pufferlib import vector\nfrom tests.envs import X",
    "tests/vector/test_serial.py": "",
    "docs/train.md": "\n```python\nprint(1)\n```\n",
    "docs/speed.md": "",
    "scripts/lint": "",
    "pyproject.toml": "",
}
RULES = {f"tests/static/test_{name}.py" for name in ("exports", "layers", "private_names")}
LINKS = {f"tests/docs/test_docs.py::test_{name}" for name in ("links_have_targets", "index_links_to_every_page")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not here; CI runs this outside the image")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    return tmp_path


@pytest.fixture
def changed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "lib"))
    module = importlib.import_module("changed_tests")
    monkeypatch.setattr(module, "ROOT", repository)
    yield module
    sys.modules.pop("changed_tests")


def git(folder: Path, *arguments: str) -> str:
    person = ("-c", "user.name=x", "-c", "user.email=x@x")
    return subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "change")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/vector/test_make.py", {"tests/vector/test_make.py"}),
        ("tests/vector/test_removed.py", {"tests/vector"}),
        ("tests/vector/conftest.py", {"tests/vector"}),
        ("tests/envs.py", {"tests/vector/test_make.py"}),
        ("tests/native/rules.c", {"tests/native"}),
        ("pufferlib/vector/serial.py", {"tests/vector", "tests/envpool/test_pools.py", *RULES}),
        ("pufferlib/vector/default.toml", {"tests/vector", *RULES}),
        ("pufferlib/errors.py", {"tests/test_errors.py", "tests/vector/test_serial.py", *RULES}),
        ("bindings/atari/env.py", {"--with-bindings=atari", "tests/conformance/test_bindings.py",
                                   "tests/bindings/test_atari.py", *RULES}),
        ("docs/speed.md", LINKS),
        ("docs/train.md", {*LINKS, "tests/docs/test_docs.py::test_python_blocks_run[docs/train.md]"}),
        ("docs/add-an-environment.md", {"tests/docs/test_add_an_environment.py"}),
        ("benchmarks/train.py", {"tests/docs"}),
        ("scripts/lint", {"tests/static"}),
    ],
)  # fmt: skip
def test_changed_file_selects_its_tests(changed: Any, path: str, expected: set[str], capsys: Any) -> None:
    assert set(changed.choose([path])) == expected
    assert f"because of {path}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path",
    ["pufferlib/ocean/pong/pong.c", "pyproject.toml", "tests/conftest.py", "pufferlib/unknown.py", "unknown/file"],
)
def test_file_that_can_affect_everything_selects_the_whole_suite(changed: Any, path: str, capsys: Any) -> None:
    assert changed.choose(["docs/train.md", path]) is None
    assert f"test: everything, because of {path}\n" in capsys.readouterr().err


def test_file_in_a_selected_folder_is_not_selected_twice(changed: Any) -> None:
    assert changed.choose(["tests/vector/conftest.py", "tests/vector/test_make.py"]) == ["tests/vector"]


def test_change_is_what_differs_from_the_commit_where_the_branch_left_main(changed: Any, repository: Path) -> None:
    git(repository, "checkout", "-qb", "mine")
    (repository / "docs/train.md").write_text("committed")
    commit(repository)
    (repository / "docs/speed.md").write_text("uncommitted")
    (repository / "docs/new.md").write_text("untracked")
    git(repository, "branch", "-f", "main", "HEAD~1")
    assert changed.changed_since(changed.base_of("")) == ["docs/new.md", "docs/speed.md", "docs/train.md"]
    assert changed.changed_since(changed.base_of("HEAD")) == ["docs/new.md", "docs/speed.md"]
    assert changed.base_of("no-commit") == ""


def test_changed_needs_a_commit(changed: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["changed_tests", "nothing"])
    assert changed.main() == 2
    assert "--changed=nothing must be a commit; choose one: scripts/test --changed=COMMIT" in capsys.readouterr().err
