"""Checks of the built site that Sphinx does not do: page titles, links between HTML files, and the search index."""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SEARCHED = ("pufferlib.vector.make", "pufferlib.PufferEnv", "pufferlib.testing.check_env", "pufferlib.ocean.Breakout")


class Page(HTMLParser):
    """Title, links and anchors of one HTML file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.title = ""
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self._in_title = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the links and the anchor of a tag."""
        given = dict(attrs)
        self._in_title = tag == "title" and not self.title
        self.anchors.add(given.get("id") or "")
        self.links += [value for name in ("href", "src") if (value := given.get(name))]

    def handle_data(self, data: str) -> None:
        """Collect the title."""
        if self._in_title:
            self.title += data
            self._in_title = False


def problems(site: Path) -> list[str]:
    """Return a message for each page without a title, each dead link, and each name missing from the search index."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        if not page.title.strip():
            found.append(f"{name}: no title")
        found += [f"{name}: dead link {link}" for link in sorted({*page.links}) if _is_dead(path, link, pages)]
    indexed = _indexed_names(site / "searchindex.js")
    return found + [f"searchindex.js: {name} is missing" for name in SEARCHED if name not in indexed]


def _is_dead(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target in pages:
        return bool(parts.fragment) and unquote(parts.fragment) not in pages[target].anchors
    return not target.is_file()


def _indexed_names(index: Path) -> set[str]:
    """Return the full names of all objects in the search index."""
    if not index.exists():
        return set()
    text = index.read_text(encoding="utf-8")
    objects = json.loads(text[text.index("(") + 1 : text.rindex(")")])["objects"]
    return {f"{prefix}.{name}" for prefix, members in objects.items() for *_, name in members}


def main() -> int:
    """Check the site in the folder given on the command line, and print the problems."""
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines), file=sys.stderr, end="\n" if lines else "")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
