"""Container registry on this machine, for tests."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["serve_registry"]


@contextlib.contextmanager
def serve_registry(folder: Path) -> Iterator[int]:
    """Serve an empty registry from a folder and yield its port. The folder is removed, because images are large."""
    if not shutil.which("docker-registry"):
        pytest.skip("needs a container registry (Debian: apt-get install docker-registry)")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    storage = f"storage: {{filesystem: {{rootdirectory: {folder}/data}}}}"
    (folder / "config.yml").write_text(f"version: 0.1\n{storage}\nhttp: {{addr: '127.0.0.1:{port}'}}\n")
    process = subprocess.Popen(
        ["docker-registry", "serve", folder / "config.yml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process accepts connections."""
    while process.poll() is None:
        with socket.socket() as client:
            if not client.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    pytest.fail(f"docker-registry ended with {process.returncode}")
