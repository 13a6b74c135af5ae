"""Type checkers know the return types of public functions. User code passes mypy's strict mode."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER_CODE = Path(__file__).with_name("user_code.py")


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install -e '.[lint]'")
def test_user_code_passes_mypy_strict(tmp_path: Path) -> None:
    shutil.copy(USER_CODE, tmp_path)
    found = importlib.util.find_spec("pufferlib")
    assert found is not None
    assert found.origin is not None
    # Type checkers do not follow the import hook of an editable installation, so add the sources to their path.
    path = {} if "site-packages" in found.origin else {"MYPYPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        tmp_path / "cache",
        USER_CODE.name,
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
