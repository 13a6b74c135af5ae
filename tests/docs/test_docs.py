"""Python code and links in the docs work, and all versions agree."""

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
IN_THE_DAY = [ROOT / name for name in ("README.md", "docs/emulate.md", "docs/envpool.md")]
TESTED_ELSEWHERE = ROOT / "docs" / "add-an-environment.md"  # tested by test_add_an_environment.py
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONTINUED = "# (continued)"
# Runs each program in its own module __main__, like in a new interpreter. Programs with a framework that issues
# warnings ignore them.
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
    return page != TESTED_ELSEWHERE and PYTHON.search(page.read_text(encoding="utf-8")) is not None


def programs_of(page: Path) -> list[str]:
    """Return the Python blocks of a page, joined with the blocks that continue them, with their original line numbers.

    Blocks for a framework that is not installed are left out.
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
    """Return the anchors of the headings of a page, as GitHub and similar sites derive them."""
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
    """On the package index, the name belongs to another project. Use ``puffer install NAME`` or a path instead."""
    folders = ("pufferlib", "bindings", "docs", "examples", "scripts", "docker", ".devcontainer")
    files = [
        file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md", ".sh", "")
    ]
    pages = [page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"]  # describes old versions
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
