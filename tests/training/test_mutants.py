"""Tests that the unit tests of the trainer fail for each mutant."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.mutants import MUTANTS

FOLDER = Path(__file__).parent


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_fails_a_test(name):
    tests = FOLDER / MUTANTS[name][-1]
    options = "-x", "-q", "-p", "tests.training.mutants", "-p", "no:cacheprovider"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tests)],
        cwd=FOLDER.parents[1],
        env={**os.environ, "MUTANT": name},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]  # tests ran, and one failed
