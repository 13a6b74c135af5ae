"""Checkout with the real scripts and fake programs, so that a test of a fault takes milliseconds."""

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = """
    bash cat chmod cut dirname env find flock grep head id mkdir paste rm sed sha256sum sleep sort tail timeout touch
    tr xargs
"""

# `python -m venv DIR` creates a folder whose python is this file again. FAKE_PIP is the code that pip runs.
FAKE_PYTHON = """
case "$1 $2" in
"-m venv") mkdir -p "$3/bin"; cp_self() { cat "$0" >"$1"; chmod +x "$1"; }
    for name in python pip puffer; do cp_self "$3/bin/$name"; done ;;
"-m pip") echo "pip $*" >>"$FAKE_LOG"; eval "${FAKE_PIP:-true}" ;;
"-m pytest") echo "3 passed"; echo "pytest ${*:3}" >>"$FAKE_LOG" ;;
-c*) case $2 in
    *find_spec*) eval "${FAKE_PROBE:-true}" ;;
    *executable*) echo "$0" ;;
    *build-system*) echo "cython>=3.1 ninja" ;;
    *importlib.metadata*) exit 1 ;;
    *version_info*) ;;
    esac ;;
--version*) echo "Python 3.12.1" ;;
*) echo "${0##*/} $*" >>"$FAKE_LOG" ;;
esac
"""

FAKE_DOCKER = """
echo "docker $*" >>"$FAKE_LOG"
case $1 in
version) eval "${FAKE_VERSION:-echo 26.1.5}" ;;
info) eval "${FAKE_INFO:-echo nvidia runc}" ;;
image) eval "${FAKE_IMAGE:-true}" ;;
stop) kill "$(cat "$FAKE_LOG.client")" 2>/dev/null ;;
compose) case "$*" in
    *version) eval "${FAKE_COMPOSE:-true}" ;;
    *" config "*) printf '    image: puffertank/%s\n        DEVICE: %s\n' "${*: -1}" "${TANK_DEVICE:-cpu}" ;;
    *" build "*) eval "${FAKE_BUILD:-true}" ;;
    *" pull "*) eval "${FAKE_PULL:-true}" ;;
    *" run "*) eval "${FAKE_RUN:-true}" ;;
    esac ;;
esac
"""


class Sandbox:
    """Checkout with the real scripts, and a PATH with only the usual tools and the given fakes."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.home = folder / "home"
        for path in (self.root / "pufferlib", self.root / "bindings", self.root / "docker", self.bin, self.home):
            path.mkdir(parents=True)
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        for name in ("pyproject.toml", "CMakeLists.txt", "pufferlib/__init__.py"):
            shutil.copy(ROOT / name, self.root / name)
        for tool in TOOLS.split():
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.fake("bootstrap-base", 'eval "${FAKE_BASE:-true}"')
        self.fake("fill-wheels", 'echo fill-wheels >>"$FAKE_LOG"; eval "${FAKE_WHEELS:-exit 1}"')
        for name in ("bootstrap-base", "fill-wheels"):
            shutil.move(self.bin / name, self.root / "docker")
        self.log.touch()

    def fake(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def python(self) -> "Sandbox":
        self.fake("python3.11", FAKE_PYTHON)
        self.fake("cc", "true")
        return self

    def docker(self) -> "Sandbox":
        self.fake("docker", FAKE_DOCKER)
        return self

    def start(self, script: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.home), "FAKE_LOG": str(self.log), **settings}
        return subprocess.Popen(
            [self.root / "scripts" / script, *arguments],
            env=environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # Some environments in this process (NetHack) ignore hang-ups, which the script would inherit.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )

    def run(self, script: str, *arguments: str, **settings: str) -> tuple[int, str]:
        """Run a script and return its exit code and output."""
        process = self.start(script, *arguments, **settings)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def compose_run(self) -> str:
        """Return the last call of `docker compose ... run ...`, without the container name and PUFFER_COMMAND."""
        (*_, call) = (call for call in self.calls() if " run " in call)
        return re.sub(r" --env PUFFER_COMMAND| --name \S+", "", call)

    def wait_for(self, name: str) -> None:
        """Wait for a file that a fake writes next to the log."""
        deadline = time.monotonic() + 20
        while not Path(f"{self.log}.{name}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
