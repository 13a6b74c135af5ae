"""Draw the galleries in docs. scripts/gallery runs this in .venv and explains the arguments."""

import argparse
import multiprocessing
import sys

import gallery_pages as pages
import gallery_pictures as pictures


def main() -> int:
    """Parse the command line, then draw the images and write the pages, or check them."""
    parser = argparse.ArgumentParser(
        prog="scripts/gallery", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        problems = pages.problems()
        print("\n".join(problems) or "the galleries are up to date")
        return 1 if problems else 0
    paths = pages.paths()
    if unknown := {*options.names} - {path.stem for path in paths}:
        parser.error(f"no environment is called {', '.join(sorted(unknown))}")
    chosen = [path for path in paths if not options.names or path.stem in options.names]
    # One process per environment, because some bindings conflict in one process.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for line in pool.imap(pictures.draw, chosen):
            print(line, flush=True)
    pages.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
