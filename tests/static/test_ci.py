"""Tiers of tests, and the programs of CI that count and choose tests."""

import http.server
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pufferlib.registry.facts import all_facts
from tests.tiers import as_all

ROOT = Path(__file__).parents[2]
THREE_TIERS = "tests/vector/test_never_hangs.py"  # has tests of each tier


def program(name: str) -> ModuleType:
    """Import a program of CI. Its file has no suffix."""
    path = str(ROOT / ".ci" / name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look up their module here
    loader.exec_module(module)
    return module


# Tiers


def collected(*arguments: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", f"testpaths={THREE_TIERS}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.all
def test_tiers_add_tests_and_selected_tests_run_in_any_tier() -> None:
    once, tier_all, nightly = collected(), collected("--all"), collected("--nightly")
    assert once < tier_all < nightly
    (longest,) = nightly - tier_all
    assert collected(THREE_TIERS) == nightly
    assert collected("-k", longest) == {longest}


@pytest.mark.all
def test_without_bindings_skips_long_tests_of_a_binding() -> None:
    matrix = "tests/learning/test_bindings.py"
    every, rest = collected("--all", matrix), collected("--all", matrix, "--without-bindings", "nethack")
    assert every - rest == {test for test in every if "[nethack/" in test} != set()


CRASHES_ONCE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(20))
def test_before(number): pass

def test_crash():
    flag = pathlib.Path(__file__).with_name("crashed")
    if not flag.exists():
        flag.touch()
        os._exit(1)

@pytest.mark.parametrize("number", range(20))
def test_after(number): pass
"""


@pytest.mark.all
def test_run_ends_and_names_the_test_after_a_worker_crash(tmp_path: Path) -> None:
    file = tmp_path / "test_crashes_once.py"
    file.write_text(CRASHES_ONCE)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-n", "2", file]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert re.search(r"worker 'gw\d' crashed while running '.*::test_crash'", done.stdout), done.stdout + done.stderr
    assert "1 failed, 41 passed" in done.stdout


def test_without_bindings_rejects_unknown_names() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "--without-bindings", "atari,nothing", THREE_TIERS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 4
    assert "--without-bindings: there is no binding nothing" in done.stderr


# Advisories


class Index(http.server.BaseHTTPRequestHandler):
    """Package index that knows two packages."""

    def do_GET(self) -> None:
        old = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fixed_in": ["1.1"], "link": "https://a.example"}
        known = {"/pypi/old/1.0/json": [old, {**old, "id": "X", "withdrawn": "2026"}], "/pypi/new/2.0/json": []}
        self.send_response(200 if self.path in known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"vulnerabilities": known.get(self.path)}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


LOCKS = {
    "docker/locks/a.txt": "old==1.0 \\\n    --hash=sha256:00\nnew==2.0+cpu\n",
    "bindings/b/lock.txt": "old==1.0 ; python_version < '3.12'\nother[extra]==3\n",
}


def listed(root: Path, index: str) -> list[str]:
    """List the advisories of a checkout with two locks."""
    for name, text in LOCKS.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    command = [ROOT / ".ci/advisories", "--index", index, "--root", root]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_advisories_are_listed_with_their_locks(tmp_path: Path, index: str) -> None:
    assert listed(tmp_path, index) == [
        "advisories: 1 packages have known advisories, of 2 checked and 3 locked",
        "old 1.0, in bindings/b/lock.txt, docker/locks/a.txt",
        "    PYSEC-1, CVE-1: fixed in 1.1. https://a.example",
        "advisories: not checked, because the index has no answer: other 3",
    ]


def test_index_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9"
    assert listed(tmp_path, closed) == [f"advisories: {closed} does not answer, so no package was checked"]


# JUnit files

REPORT = """<testsuites><testsuite>
    <testcase classname="tests.vector.test_make" name="test_a[x|y]" time="1.6"/>
    <testcase classname="tests.vector.test_make" name="test_b" time="30"><failure/></testcase>
    <testcase classname="tests.test_env" name="test_c" time="0.1"><error/></testcase>
    <testcase classname="" name="tests.cluster.test_ray" time="0.2"><skipped/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    return path


def junit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / ".ci/junit", *arguments], capture_output=True, text=True, timeout=20)


def test_counts_adds_up_all_reports(report: Path) -> None:
    assert junit("counts", report, report).stdout == "2 4 2\n"
    assert junit("counts").stdout == "0 0 0\n"


def test_counts_rejects_a_truncated_report(report: Path) -> None:
    report.write_text(REPORT[:200])
    assert junit("counts", report).returncode != 0


def test_slowest_writes_table_into_page(report: Path) -> None:
    page = report.with_name("page.md")
    marks = program("junit")
    page.write_text(f"before\n{marks.BEGIN}\nan older table\n{marks.END}\nafter\n")
    assert junit("slowest", "--number", "2", "--into", page, report).returncode == 0
    assert page.read_text().splitlines() == [
        "before",
        marks.BEGIN,
        "| Seconds | Test, in `tests/` |",
        "| ---: | --- |",
        "| 30 | `vector/test_make.py::test_b` |",
        r"| 2 | `vector/test_make.py::test_a[x\|y]` |",
        marks.END,
        "after",
    ]


def test_contributing_has_markers_for_slowest_tests() -> None:
    marks, text = program("junit"), (ROOT / "CONTRIBUTING.md").read_text()
    assert text.index(marks.BEGIN) < text.index(marks.END)


# Choosing bindings and steps


@pytest.mark.parametrize(
    ("changed", "tested"),
    [
        (["docs/vectorize.md", "pufferlib/cli/__init__.py", "tests/vector/test_make.py"], []),
        (["bindings/nethack/lock.txt", "README.md"], ["nethack"]),
        (["tests/bindings/test_crafter.py", "bindings/retro/env.py"], ["crafter", "retro"]),
        (["bindings/_shared/nle/env.py"], None),
        (["pufferlib/vector/serial.py"], None),
        (["bindings/nethack/lock.txt", "Dockerfile"], None),
        (["tests/a_new_module.py"], None),
        (["an-unknown-file"], None),
    ],
)
def test_choose_leaves_out_bindings_that_changes_cannot_break(changed: list[str], tested: list[str] | None) -> None:
    bindings = set(all_facts())
    names, culprit = program("choose").left_out(changed, bindings)
    assert bindings - names == (bindings if tested is None else set(tested))
    assert culprit == ("" if tested is not None else changed[-1])


class Checkout:
    """Git repository with two bindings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("nethack", "retro"):
            self.write(f"bindings/{name}/binding.toml")
        self.write(".ci/choose", (ROOT / ".ci/choose").read_text())
        self.git("init", "-q")

    def write(self, name: str, text: str = "") -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def git(self, *arguments: str, day: int = 1) -> str:
        date = f"2026-01-{day:02}T12:00:00Z"
        author = {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@example.org", "GIT_AUTHOR_DATE": date}
        settings = {**author, **{key.replace("AUTHOR", "COMMITTER"): value for key, value in author.items()}}
        environment = {**os.environ, **settings}
        command = ["git", "-C", self.root, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self, day: int = 1) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"day {day}", day=day)
        return self.git("rev-parse", "HEAD")

    def choose(self, *arguments: str, **settings: str) -> tuple[str, str]:
        """Run .ci/choose and return the bindings that are left out, and the messages."""
        command = [sys.executable, self.root / ".ci/choose", *arguments]
        environment = {**os.environ, **settings}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return done.stdout.splitlines()[0], done.stderr.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    if shutil.which("git") is None:
        pytest.skip("git is not here; CI runs this outside the image")
    return Checkout(tmp_path)


@pytest.mark.place
def test_choose_leaves_out_nothing_without_a_recorded_commit(checkout: Checkout) -> None:
    checkout.commit()
    assert checkout.choose() == ("", "the long tests of all 2 bindings: no commit is known to have passed")
    assert checkout.choose("--since", "0123456789") == checkout.choose()


@pytest.mark.place
def test_choose_considers_committed_and_uncommitted_changes(checkout: Checkout) -> None:
    base = checkout.commit()
    checkout.write("bindings/retro/env.py", "pass")
    assert checkout.choose("--since", base)[1].endswith(f": no full run of {base[:9]} is recorded")
    checkout.git("update-ref", "refs/tank/ci-passed", base)
    checkout.commit(day=2)
    names, sentence = checkout.choose(TANK_CI_BASE=base)
    assert names == "nethack"
    assert sentence.startswith("left out: the long tests of 1 of 2 bindings; nothing that they depend on changed since")
    assert sentence.splitlines()[0].endswith(": nethack")
    assert checkout.choose("--since", base)[0] == "nethack"
    assert checkout.choose()[0] == "nethack"
    checkout.write("pufferlib/env.py", "pass")
    names, sentence = checkout.choose()
    why = sentence.splitlines()[0].partition(": ")[2]
    assert (names, why) == ("", f"pufferlib/env.py changed since {base[:9]}, which passed")


@pytest.mark.place
def test_choose_ignores_old_commits_and_commits_of_other_branches(checkout: Checkout) -> None:
    base = checkout.commit()
    checkout.git("update-ref", "refs/tank/ci-passed", base)
    checkout.commit(day=10)
    assert checkout.choose("--since", base) == (
        "",
        f"the long tests of all 2 bindings: {base[:9]}, which passed, is 9 days older than this commit",
    )
    checkout.git("checkout", "-q", "--orphan", "other")
    checkout.commit(day=2)
    assert "is not an ancestor of this commit" in checkout.choose("--since", base)[1]


@pytest.mark.place
def test_choose_leaves_out_nothing_at_the_recorded_commit_and_31_commits_later(checkout: Checkout) -> None:
    base = checkout.commit()
    checkout.git("update-ref", "refs/tank/ci-passed", base)
    checkout.write(".ci/passed", f"{base}\n")
    assert checkout.choose() == ("", f"the long tests of all 2 bindings: {base[:9]} is this commit itself")
    for _ in range(30):
        checkout.commit(day=2)
    assert checkout.choose()[0] == "nethack,retro"
    checkout.commit(day=2)
    assert checkout.choose()[1].endswith(f"{base[:9]}, which passed, is 31 commits older than this commit")


def test_parts_imported_by_binding_tests_are_not_apart() -> None:
    tests = [*ROOT.glob("tests/bindings/*.py"), *ROOT.glob("tests/*/test_bindings.py"), *ROOT.glob("bindings/**/*.py")]
    text = "".join(path.read_text() for path in tests)
    parts = set(re.findall(r"(?m)^ *(?:from|import) pufferlib\.(\w+)", text))
    parts |= {name for line in re.findall(r"(?m)^ *from pufferlib import (.+)$", text) for name in line.split(", ")}
    assert "play" in parts
    assert not {part for part in parts if program("choose").is_apart(f"pufferlib/{part}/x.py")}


@pytest.mark.parametrize(
    ("changed", "left_out"),
    [
        (["pufferlib/vector/serial.py", "docs/vectorize.md"], ["dev-container", "cuda-image", "bindings-outside"]),
        (["docker/apt/dev.txt"], ["bindings-outside"]),
        (["bindings/nethack/env.py"], ["dev-container", "cuda-image"]),
        (["README.md", "pyproject.toml"], ["cuda-image"]),
    ],
)
def test_choose_leaves_out_steps_that_changes_cannot_affect(changed: list[str], left_out: list[str]) -> None:
    assert program("choose").steps_left_out(changed) == left_out


def test_every_path_in_choose_exists() -> None:
    choose = program("choose")
    prefixes = {*choose.APART, *(prefix for rests_on in choose.STEPS.values() for prefix in rests_on)}
    assert not {prefix for prefix in prefixes if not [*ROOT.glob(f"{prefix}*")]}


@pytest.mark.place
def test_choose_reads_the_committed_record_in_a_fresh_clone(checkout: Checkout) -> None:
    base = checkout.commit()
    checkout.write(".ci/passed", f"{base}\n")
    checkout.write("bindings/retro/env.py", "pass")
    assert checkout.choose()[0] == "", "the record is not committed"
    checkout.commit(day=2)
    names, sentence = checkout.choose()
    assert names == "nethack"
    assert sentence.endswith(
        f"left out: dev-container, cuda-image; nothing that they depend on changed since {base[:9]}"
    )


# Steps of CI


def steps(folder: Path, *lines: str) -> tuple[int, list[str]]:
    """Run a script of steps and return its exit code, the lines about failures, and the total."""
    (folder / ".ci").symlink_to(ROOT / ".ci")
    script = "\n".join(["set -euo pipefail", ". .ci/lib/steps.sh", "start_rows", *lines])
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    first = next(number for number, line in enumerate(done.stdout.splitlines()) if line.startswith("total "))
    return done.returncode, [
        *(line for line in done.stdout.splitlines()[:first] if line.startswith("failed: ")),
        *done.stdout.splitlines()[first + 1 :],
    ]


WRITES = 'writes() { cp "$1" "$report.xml"; }'


def one_report(folder: Path, *outcomes: str) -> Path:
    path = folder / f"{'-'.join(outcomes)}.xml"
    tests = "".join(f'<testcase name="x">{"" if what == "passed" else f"<{what}/>"}</testcase>' for what in outcomes)
    path.write_text(f"<testsuites>{tests}</testsuites>")
    return path


def test_ci_adds_up_the_reports_of_both_rows(tmp_path: Path) -> None:
    report = one_report(tmp_path, "passed", "passed", "skipped")
    lines = [
        WRITES,
        f'row() {{ tests "other tests" writes {report}; }}',
        "in_parallel row",
        f"tests some writes {report}",
    ]
    assert steps(tmp_path, *lines, "step lint true", "join") == (0, ["4 passed, 0 failed, 2 skipped"])


@pytest.mark.parametrize(
    ("outcomes", "command", "expected"),
    [
        (["passed", "failure"], "writes", ["failed: some (failed tests)", "2 passed, 1 failed, 0 skipped"]),
        as_all((["skipped"], "writes", ["failed: some (no test passed)", "1 passed, 1 failed, 1 skipped"])),
        ([], "true", ["failed: some (no test passed)", "1 passed, 1 failed, 0 skipped"]),
        (["passed"], "stops_after", ["failed: some (exit code 1)", "2 passed, 1 failed, 0 skipped"]),
    ],
)
def test_ci_fails_if_a_step_fails_or_runs_no_test(
    tmp_path: Path, outcomes: list[str], command: str, expected: list[str]
) -> None:
    good, report = one_report(tmp_path, "passed"), one_report(tmp_path, *outcomes)
    lines = [WRITES, 'stops_after() { writes "$1"; false; true; }', f"tests some {command} {report}"]
    assert steps(tmp_path, *lines, f"tests more writes {good}") == (1, expected)


def test_ci_fails_if_no_test_passed(tmp_path: Path) -> None:
    assert steps(tmp_path, "step lint true") == (1, ["0 passed, 0 failed, 0 skipped"])


def test_ci_counts_a_truncated_report_as_failure(tmp_path: Path) -> None:
    report = one_report(tmp_path, "passed")
    report.write_text(report.read_text()[:20])
    status, lines = steps(tmp_path, WRITES, f"tests some writes {report} 2>/dev/null")
    assert (status, lines[-1]) == (1, "0 passed, 2 failed, 0 skipped")
