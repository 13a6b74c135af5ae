"""``puffer check``: defects of an environment in a C file."""

from pufferlib.cli.fuzz import print_defects
from pufferlib.cli.options import Parser
from pufferlib.errors import UsageError
from pufferlib.ocean.files import is_c_file

__all__ = ["run"]

PROG = "puffer check"
ABOUT = """Play an environment with hostile actions under the sanitizers of the C compiler, compare seeds and
batches, and say in which class each defect falls: puffer check corridor.c."""


def run(argv: list[str]) -> int:
    """Check the environment that ``argv`` names; 1 if it has defects."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", help="a C file: corridor.c")
    parser.add_argument("--steps", type=int, default=50_000, help="of the hostile play (default: 50000)")
    parser.add_argument("--seed", type=int, default=1, help="of all choices (default: 1)")
    options = parser.parse(argv)
    if not is_c_file(options.env):
        raise UsageError(f"{PROG}: expected the path of a C file, as in ./corridor.c, got {options.env!r}")
    if options.steps < 1:
        raise UsageError(f"{PROG}: --steps must be at least 1, got {options.steps}")
    return 1 if print_defects(options.env, options.steps, options.seed) else 0
