"""``puffer view``: play an environment, or watch an agent play it, in a browser."""

from pufferlib.cli.console import note, say
from pufferlib.cli.options import Parser, split_env
from pufferlib.cli.sessions import add_session_options, open_session
from pufferlib.play.loop import play
from pufferlib.web.view import Page

__all__ = ["run"]

PROG = "puffer view"
PORT = 6080
ABOUT = """Play an environment in a web page, or watch a trained agent: puffer view breakout --agent, or puffer view
RUN. The address is printed, and the page shows the keys. Everything of puffer play works. Press Ctrl-C to stop."""


def run(argv: list[str]) -> int:
    """Serve the environment in ``argv``, or a run, until Ctrl-C."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    add_session_options(parser)
    parser.add_argument("--port", type=int, default=PORT, help=f"port of the page, 0 for any (default: {PORT})")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on: 0.0.0.0 for all networks, which needs a token (default: this machine only)",
    )
    parser.add_argument("--token", help="secret in the address of the page (default: random, none for this machine)")
    options = parser.parse(argv)
    session = open_session(PROG, options, texts)
    try:
        page = Page(options.videos, options.host, options.port, options.token)
        say(f"{page.url}")
        note("press Ctrl-C to stop")
        try:
            play(session, page, options.fps or session.fps, options.videos)
        except KeyboardInterrupt:
            pass
        finally:
            page.close()
    finally:
        session.close()
    say(session.result())
    return 0
