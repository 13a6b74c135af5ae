"""Fixtures for the tests of scripts."""

from pathlib import Path

import pytest

from tests.static.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)
