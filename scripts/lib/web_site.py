"""Write a static site with every Ocean game in C. scripts/web and the image of the documentation run this."""

import html
import multiprocessing
import sys
from collections.abc import Iterable
from pathlib import Path

from pufferlib import ocean
from pufferlib.machine.cpus import usable_cpus
from pufferlib.runs.find import shipped_agent
from pufferlib.web.games import build_game
from pufferlib.web.server import read_static

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "ocean"
WHERE = "scripts/web"


def page_of(name: str) -> tuple[str, str]:
    """Return the name and the page of a game with the agent that ships with it."""
    return name, build_game(WHERE, name, run=shipped_agent(WHERE, name)).page()


def index(names: Iterable[str]) -> str:
    """Return the page that shows all games."""
    cards = [
        f'<li><a href="{name}.html"><img src="{name}.png" alt="" loading="lazy"><h2>{name}</h2></a>'
        f"<p>{html.escape(ocean.about(name))}</p></li>"
        for name in names
    ]
    page = read_static("games.html").decode()
    return page.replace("@style@", read_static("base.css").decode()).replace("@games@", "\n".join(cards))


def main(folder: Path) -> None:
    """Write the site into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ocean.names()
    with multiprocessing.get_context("spawn").Pool(min(usable_cpus(), len(names))) as pool:
        for name, page in pool.imap(page_of, names):
            (folder / f"{name}.html").write_text(page, "utf-8")
            (folder / f"{name}.png").write_bytes((PICTURES / f"{name}.png").read_bytes())
            print(f"{name}.html: {len(page) / 1000:,.0f} kB", flush=True)
        pool.close()
        pool.join()
    (folder / "index.html").write_text(index(names), "utf-8")
    print(f"built {folder / 'index.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
