"""``puffer board``: show runs in a web page, live while they train."""

import shlex
import webbrowser
from pathlib import Path

from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser
from pufferlib.text import plural

__all__ = ["run"]

PROG = "puffer board"
ABOUT = (
    "Show the runs in a folder in a web page, live while they train: table, curves, intervals over seeds, settings "
    "that differ, videos, sweeps, leagues and the load of this machine."
)
PORT = 6006


def run(argv: list[str]) -> int:
    """Serve or export the board that ``argv`` describes."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="RUNS",
        help="folder of runs, sweeps or leagues, or one that has runs/, sweeps/ and leagues/ (default: this folder)",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"port to listen on, 0 for a free one (default: {PORT})")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for every network")
    parser.add_argument("--token", help="secret in the address of the page; made if --host is not this machine")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="write the page and its data there, and exit")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    options = parser.parse(argv)
    from pufferlib.web.board import Board
    from pufferlib.web.server import Server

    board = Board(options.folder)
    if options.export:
        count = board.export(options.export)
        say(f"exported {plural(count, 'run')} to {options.export}; any web server can serve this folder, for example:")
        say(f"python -m http.server --directory {shlex.quote(str(options.export))}")
        return 0
    with Server(board, host=options.host, port=options.port, token=options.token) as server:
        say(f"board: {style(server.url, 'accent')}")
        note("Ctrl-C stops it")
        if options.open and not webbrowser.open(server.url):
            note("no browser could be opened; open the address yourself")
        server.wait()
    return 0
