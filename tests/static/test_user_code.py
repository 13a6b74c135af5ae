"""Type checkers know the return types of public functions. User code passes the strict modes of mypy and pyright."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER_CODE = Path(__file__).with_name("user_code.py")
MYPY_CACHE = Path.home() / ".cache" / "pufferlib" / "mypy"  # its first run on torch takes a minute and a half


def skip_without(checker: str) -> pytest.MarkDecorator:
    is_missing = importlib.util.find_spec(checker) is None
    return pytest.mark.skipif(is_missing, reason=f"{checker} is not installed: pip install -e '.[lint]'")


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("checker", "arguments"),
    [
        pytest.param("mypy", ["--strict", "--config-file=", f"--cache-dir={MYPY_CACHE}"], marks=skip_without("mypy")),
        pytest.param("basedpyright", [f"--pythonpath={sys.executable}"], marks=skip_without("basedpyright")),
    ],
)
def test_user_code_passes_a_strict_type_checker(checker: str, arguments: list[str], tmp_path: Path) -> None:
    shutil.copy(USER_CODE, tmp_path)
    found = importlib.util.find_spec("pufferlib")
    assert found is not None
    assert found.origin is not None
    # Type checkers do not follow the import hook of an editable installation, so add the sources to their path.
    sources = [] if "site-packages" in found.origin else [str(ROOT)]
    settings = {"typeCheckingMode": "strict", "extraPaths": sources}  # of pyright, which basedpyright contains
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    environ = {**os.environ, **({"MYPYPATH": sources[0]} if sources else {})}
    command = [sys.executable, "-m", checker, *arguments, USER_CODE.name]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
