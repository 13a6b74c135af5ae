"""Lock between test processes that use images of the same Docker engine."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

BUILDING_MODULES = ("test_cluster", "test_gpu", "test_services")  # Compose builds before each run


@pytest.fixture(autouse=True)
def _image_keeps_its_tag(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no other process build an image while a test uses it. A build takes the tag away for a moment."""
    name = request.path.stem
    with (Path(tempfile.gettempdir()) / f"puffertank-images-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if name in BUILDING_MODULES else fcntl.LOCK_SH)
        yield
