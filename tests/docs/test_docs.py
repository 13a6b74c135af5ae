"""The docs are true: their Python runs, their links lead somewhere, and the version is one and the same."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.bindings import atari
from pufferlib.machine.commands import DISTRIBUTION
from tests.needs import absent_frameworks
from tests.tiers import once

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
IN_THE_DAY = [ROOT / name for name in ("README.md", "docs/emulate.md", "docs/vectorize.md", "docs/envpool.md")]
FOLLOWED_ELSEWHERE = ROOT / "docs" / "add-an-environment.md"  # test_add_an_environment.py builds what it adds
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONTINUED = "# (continued)"
# Each program in a module __main__ of its own, as if it had been pasted into a fresh interpreter. Where it imports a
# framework that warns of itself, warnings are no errors.
RUN_EACH = """
import sys, types, warnings
page, *programs = sys.argv[1:]
del sys.argv[1:]
for program in programs:
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    with warnings.catch_warnings():
        if "torchrl" in program or "rllib" in program:
            warnings.simplefilter("ignore")
        exec(compile(program, page, "exec"), vars(main))
"""
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def has_python(page: Path) -> bool:
    return page != FOLLOWED_ELSEWHERE and PYTHON.search(page.read_text(encoding="utf-8")) is not None


def programs_of(page: Path) -> list[str]:
    """The Python blocks of a page, each with those that continue it; each line where it stands in the page.

    Those for a framework that is not installed are left out.
    """
    text = page.read_text(encoding="utf-8")
    programs: list[str] = []
    for block in PYTHON.finditer(text):
        if not block[1].startswith(CONTINUED):
            programs.append("")
        before = text[: block.start(1)].count("\n") - programs[-1].count("\n")
        programs[-1] += "\n" * before + block[1]
    return [program for program in programs if not any(name in program for name in absent_frameworks())]


def anchors(page: Path) -> set[str]:
    """The names that links may use for the headings of a page, as GitHub and its kin derive them."""
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", once(filter(has_python, PAGES), IN_THE_DAY), ids=page_id)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", RUN_EACH, str(page), *programs_of(page)]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path, env=env)
    assert done.returncode == 0, f"{page_id(page)}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_have_targets(page: Path) -> None:
    for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page_id(page)}: {target}"
        assert not anchor or anchor in anchors(file), f"{page_id(page)}: {target}"


def test_docs_never_install_pufferlib_from_an_index() -> None:
    """There the name belongs to another project: hints say ``puffer install NAME``, or the checkout's path."""
    folders = ("pufferlib", "bindings", "docs", "examples", "scripts", "docker", ".devcontainer")
    files = [
        file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md", ".sh", "")
    ]
    pages = [page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"]  # what was so once, stays there
    for file in [*files, *pages]:
        if file.is_file():
            found = re.search(rf"pip install [^\n`]*\b{DISTRIBUTION}\b(\[|['\"`\s]|$)", file.read_text("utf-8"))
            assert not found, f"{page_id(file)}: {found[0]!r}"


def test_index_links_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in LINK.findall(index.read_text("utf-8"))}
    assert {page for page in PAGES if page.parent == index.parent} - linked - {index} == set()


def test_readme_lists_every_environment() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in (*ocean.names(), *ocean.python_names()):
        assert f"`{name}`" in text
    assert f"{len(atari.names())} games" in text


def test_newest_changelog_version_is_the_package_version() -> None:
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert versions[0] == pufferlib.__version__ == importlib.metadata.version("pufferlib")
