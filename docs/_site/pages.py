"""Sphinx extension that adds navigation to index pages, the examples to their page, and games to the page of Ocean."""

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

_CAPTION_OR_ITEM = re.compile(r"^(?:(?:\*\*|#{2,3} )(?P<caption>[^*\n]+)(?:\*\*)?|[*-] (?P<item>.+))$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[(?P<name>\w+)\]\(pictures/ocean/\w+\.png\)$", re.MULTILINE)
_PAGE = re.compile(r"\[([^\]]+)\]\(([^):#]+)\.md\)")


def with_toctree(page: str) -> str:
    """Return `page` with a hidden table of contents for each list of links, named after the heading above it."""
    lists: list[tuple[str, list[tuple[str, str]]]] = []
    for found in _CAPTION_OR_ITEM.finditer(page):
        if found["caption"]:
            lists.append((found["caption"], []))
        elif link := _PAGE.match(found["item"]):
            if not lists:
                lists.append(("", []))
            lists[-1][1].append((link[1], link[2]))
    return page + "".join(_toctree(caption, pages) for caption, pages in lists if pages)


def _toctree(caption: str, pages: list[tuple[str, str]]) -> str:
    options = f":hidden:\n:caption: {caption}" if caption else ":hidden:"
    entries = "\n".join(f"{title} <{posixpath.normpath(page)}>" for title, page in pages)
    return f"\n\n```{{toctree}}\n{options}\n\n{entries}\n```\n"


def with_code(page: str, folder: Path) -> str:
    """Return `page` with the code of each Python file in `folder`."""
    files = sorted(folder.glob("*.py"))
    return page + "".join(f"\n\n## {file.name}\n\n```python\n{file.read_text().strip()}\n```\n" for file in files)


def with_games(page: str, games: Path) -> str:
    """Return `page` with a game below each picture, if `games` contains a page of this name (see scripts/web)."""

    def embed(picture: re.Match[str]) -> str:
        name = picture["name"]
        if not (games / f"{name}.html").is_file():
            return picture[0]
        # A browser loads the page only after the reader opens it.
        return f"""{picture[0]}

<details class="game"><summary>Play {name} here</summary>
<iframe src="../games/{name}.html" title="{name}" loading="lazy"></iframe>
<a href="../games/{name}.html">Open as a page of its own</a>
</details>"""

    return _PICTURE.sub(embed, page)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    if re.fullmatch(r"docs/(.+/)?README", name):
        source[0] = with_toctree(source[0])
    elif name == "docs/ocean":
        source[0] = with_games(source[0], Path(app.srcdir, "build", "web", "games"))
    elif name == "examples/README":
        source[0] = with_code(source[0], Path(app.srcdir, "examples"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
