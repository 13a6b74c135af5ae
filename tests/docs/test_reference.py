"""The reference has every public name, decisions have reasons, and CONTRIBUTING has the tested floors."""

import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pufferlib
from pufferlib.settings.config import setting_names
from tests.needs import stub_absent_frameworks

ROOT = Path(__file__).parents[2]
DECISIONS = [page for page in sorted((ROOT / "docs/decisions").glob("*.md")) if page.name != "README.md"]
EXAMPLES = [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".md", ".ipynb")]
SHOWN = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *EXAMPLES]


def load(monkeypatch: pytest.MonkeyPatch, folder: str, name: str) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module(name)


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Any:
    stub_absent_frameworks(monkeypatch)
    return load(monkeypatch, "docs/_site", "public")


def reference_pages() -> list[Path]:
    return sorted((ROOT / "docs/api").glob("*.md"))


def modules_on_pages(public: Any) -> list[str]:
    blocks = (block for page in reference_pages() for block in public.BLOCK.finditer(page.read_text()))
    return [item for block in blocks if block["kind"] == "public-names" for item in block["items"].split()]


def test_every_public_module_is_on_one_page(public: Any) -> None:
    assert sorted(modules_on_pages(public)) == sorted(public.MODULES)


def test_modules_used_by_the_docs_are_public(public: Any) -> None:
    """A package without its own names, such as pufferlib.frameworks, is public if its modules are."""
    offered = {f"pufferlib.{name}" for name in dir(pufferlib) if name not in pufferlib.__all__}
    for page in SHOWN:
        offered |= set(re.findall(r'^[\s"]*(?:from|import) (pufferlib[\w.]*)', page.read_text(), re.MULTILINE))
    for module in offered:
        named = hasattr(importlib.import_module(module), "__all__")
        listed = module in public.MODULES if named else any(name.startswith(f"{module}.") for name in public.MODULES)
        assert listed, f"add {module} to MODULES of docs/_site/public.py, and to a page of docs/api"


def test_every_public_name_is_documented_once(public: Any) -> None:
    text = "\n".join(public.expand(page.read_text(), ROOT) for page in reference_pages())
    module, explained = "", []
    for line in text.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(rf"\.\. (?:{'|'.join(public.DIRECTIVES.values())}):: (\S+)", line):
            explained.append(f"{module}.{found[1]}")
    assert sorted(explained) == sorted(public.homes().values())
    assert {f"pufferlib.{name}" for name in pufferlib.__all__} <= {*explained}
    assert {"pufferlib.vector.make", "pufferlib.ocean.Breakout", "pufferlib.testing.check_env"} <= {*explained}


def test_settings_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    page = load(monkeypatch, "docs/_site", "settings_page")
    assert page.render() == page.PAGE.read_text("utf-8"), "run: python docs/_site/settings_page.py"


def test_every_setting_is_on_the_settings_page() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    for name in setting_names():
        assert f"| `--{name.replace('_', '-')}` |" in text


def test_c_reference_shows_the_whole_header(public: Any) -> None:
    page = public.expand((ROOT / "docs/api/c.md").read_text(), ROOT)
    header = (ROOT / "pufferlib/native/puffer_env.h").read_text()
    for name in re.findall(r"^(?:} |#define |PUFFER_INLINE void |static inline \w+ \*?)(\w+)", header, re.MULTILINE):
        assert name == "PUFFER_ENV_H" or re.search(rf"\b{name}\b", page), name


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_each_decision_has_reason_alternatives_and_date(page: Path) -> None:
    decisions = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]
    assert decisions
    form = r".+\n\n[^-#].+?\n- \*\*Why:\*\* .+?\n- \*\*Rejected:\*\* .+?\n- \*\*Decided:\*\* \d{4}-\d\d-\d\d\n+"
    for decision in decisions:
        assert re.fullmatch(form, decision, re.DOTALL), decision


def floors_in_contributing() -> Iterator[tuple[str, int]]:
    table = re.findall(r"^\| (\d) \| (.+?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    for floor, parts in table:
        yield from ((part, int(floor)) for part in re.findall(r"`(\w+)`", parts))


def test_contributing_lists_the_tested_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    floors = dict(load(monkeypatch, "tests/static", "test_layers").FLOORS)
    hidden = ("", "bindings")  # the package itself, and a part that is listed below the table
    assert dict(floors_in_contributing()) == {part: floor for part, floor in floors.items() if part not in hidden}


def test_site_check_finds_problems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check = load(monkeypatch, "scripts/lib", "site_check")
    (tmp_path / "good.html").write_text(
        '<title>Good</title><p id="here"><a href="#here">a</a><a href="https://x.org">b</a>'
    )
    (tmp_path / "bad.html").write_text('<title></title><a href="gone.html">c</a><a href="good.html#there">d</a>')
    objects = (
        '"pufferlib":[[0,0,1,"","PufferEnv"]],"pufferlib.testing":[[0,0,1,"","check_env"]],'
        '"pufferlib.ocean":[[0,0,1,"","Breakout"]]'
    )
    (tmp_path / "searchindex.js").write_text('Search.setIndex({"objects":{' + objects + "}})")
    assert check.problems(tmp_path) == [
        "bad.html: no title",
        "bad.html: dead link gone.html",
        "bad.html: dead link good.html#there",
        "searchindex.js: pufferlib.vector.make is missing",
    ]


def test_docs_script_rejects_unknown_arguments() -> None:
    done = subprocess.run([ROOT / "scripts/docs", "--sreve"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "docs: unknown argument --sreve; --check and --serve are known (--help)\n"
