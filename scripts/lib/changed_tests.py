"""Choose the tests that a change can affect. Used by scripts/test --changed.

Prints one argument for pytest per line, and the reasons on stderr. The change is everything since a commit, including
uncommitted and new files. Each changed file selects tests:

- A test selects itself. A helper in tests/ selects the tests that import it, a conftest.py its folder.
- A module of pufferlib selects its folder of tests, the tests that import it, and the tests of modules that import it.
- A binding selects its own tests.
- A page selects its examples and links. Scripts, images, benchmarks and examples select the tests of these files.
- C, Cython and build files, and files without any of these tests, select the whole default suite.

Imports are followed one step, so tests that use a changed module only through other modules are not selected.
"""

import argparse
import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = {".c", ".h", ".pyx", ".pxd", ".pyi", ".in"}
# Tests of files outside the packages, by the first part of the path.
OTHERS = {
    **dict.fromkeys((".ci", ".devcontainer", ".github", "docker", "scripts", "Dockerfile"), "tests/static"),
    **dict.fromkeys(
        ("compose.yaml", "compose.display.yaml", "compose.gpu.yaml", "LICENSE", "CITATION.cff"), "tests/static"
    ),
    **dict.fromkeys((".clang-format", ".gitignore", ".pre-commit-config.yaml"), "tests/static"),
    **dict.fromkeys(("benchmarks", "docs", "examples"), "tests/docs"),
}
RULES = tuple(f"tests/static/test_{name}.py" for name in ("exports", "layers", "private_names"))
PAGES = "tests/docs/test_docs.py"


def git(*arguments: str) -> str:
    """Run git in the checkout and return its output, or "" if it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def base_of(commit: str) -> str:
    """Return the hash of the commit to compare with: `commit`, or else where this branch left main."""
    if commit:
        return git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    names = (git("merge-base", "HEAD", name) for name in ("main", "origin/main"))
    return next(filter(None, names), "")


def changed_since(base: str) -> list[str]:
    """List the files that differ from a commit, including uncommitted files. A rename counts as two files."""
    differ = git("diff", "--name-only", "--no-renames", base).splitlines()
    return sorted({*differ, *git("ls-files", "--others", "--exclude-standard").splitlines()})


@functools.cache
def imports() -> dict[str, set[str]]:
    """Return the names that each module and test imports, by path."""
    files = [file for folder in ("pufferlib", "bindings", "tests") for file in (ROOT / folder).rglob("*.py")]
    return {str(file.relative_to(ROOT)): set(imports_of(file)) for file in sorted(files)}


def imports_of(file: Path) -> Iterator[str]:
    """Yield the dotted names of everything that a file imports."""
    package = module_of(str(file.relative_to(ROOT))).split(".")
    package = package if file.name == "__init__.py" else package[:-1]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def module_of(path: str) -> str:
    """Return the dotted name of a module."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(["pufferlib", *parts] if parts[0] == "bindings" else parts)


def users_of(path: str) -> list[str]:
    """Return the modules and tests that import a module."""
    name = module_of(path)
    return [user for user, names in imports().items() if name in names and user != path]


def is_test(path: str) -> bool:
    """Return whether a file contains tests."""
    return path.startswith("tests/") and Path(path).name.startswith("test_") and path.endswith(".py")


def own_test(path: str) -> list[str]:
    """Return the test file of a module: `tests/x/test_y.py` for `pufferlib/x/y.py`."""
    parts = path.split("/")
    names = [f"tests/{'/'.join(parts[1:-1])}/test_{Path(path).stem}.py", f"tests/{parts[1]}/test_{Path(path).stem}.py"]
    return [name for name in dict.fromkeys(names) if (ROOT / name).exists()][:1]


def tests_of(path: str) -> list[str]:
    """Return the arguments for pytest that a changed file selects. An empty list means the whole suite."""
    top, *rest = path.split("/")
    suffix = Path(path).suffix
    if top != "tests" and suffix in EVERYTHING:
        return []
    if is_test(path):
        return [path] if (ROOT / path).exists() else [str(Path(path).parent)]
    if top == "tests":
        users = [user for user in users_of(path) if is_test(user)] if suffix == ".py" else []
        return users or ([str(Path(path).parent)] if len(rest) > 1 else [])
    if suffix == ".md" and (top == "docs" or not rest):
        return tests_of_page(path)
    if top == "bindings" and not rest[0].startswith("_"):
        own = [f"tests/bindings/test_{rest[0]}.py"] if (ROOT / f"tests/bindings/test_{rest[0]}.py").exists() else []
        return [f"--with-bindings={rest[0]}", "tests/conformance/test_bindings.py", *own, *RULES]
    if top in ("pufferlib", "bindings"):
        return tests_of_module(path, rest)
    return [OTHERS[top]] if top in OTHERS else []


def tests_of_module(path: str, rest: list[str]) -> list[str]:
    """Return the tests that a changed file of a package selects."""
    folder = f"tests/{rest[0]}" if len(rest) > 1 else f"tests/test_{rest[0]}"
    found = [folder] if (ROOT / folder).exists() else []
    for user in users_of(path) if path.endswith(".py") else []:
        found += [user] if is_test(user) else own_test(user) if user.startswith("pufferlib/") else []
    return [*found, *RULES] if found else []


def tests_of_page(path: str) -> list[str]:
    """Return the tests of a changed page."""
    if path == "docs/add-an-environment.md":
        return ["tests/docs/test_add_an_environment.py"]
    checks = [f"{PAGES}::test_links_have_targets", f"{PAGES}::test_index_links_to_every_page"]
    has_python = (ROOT / path).exists() and "\n```python\n" in (ROOT / path).read_text("utf-8")
    return [*checks, f"{PAGES}::test_python_blocks_run[{path}]"] if has_python else checks


def choose(changed: list[str]) -> list[str] | None:
    """Return the arguments for pytest, or None for the whole suite. Print each with the file that selects it first."""
    chosen: dict[str, str] = {}
    for path in changed:
        found = tests_of(path)
        if not found:
            print(f"test: everything, because of {path}", file=sys.stderr)
            return None
        for test in found:
            chosen.setdefault(test, path)
    folders = [test for test in chosen if (ROOT / test).is_dir()]
    for test in [test for test in chosen if any(test.startswith(f"{folder}/") for folder in folders)]:
        if "[" not in test:  # pytest would run it twice
            del chosen[test]
    for test, path in sorted(chosen.items()):
        print(f"test: {test}, because of {path}", file=sys.stderr)
    return sorted(chosen)


def main() -> int:
    """Print the arguments for pytest, "everything", or nothing if nothing changed."""
    parser = argparse.ArgumentParser(
        prog="scripts/test --changed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="", help="commit to compare with (default: where main was left)")
    commit = parser.parse_args().commit
    base = base_of(commit)
    if not base:
        wanted = f"--changed={commit} must be a commit" if commit else "there is no branch main"
        print(f"test: {wanted}; choose one: scripts/test --changed=COMMIT", file=sys.stderr)
        return 2
    changed = changed_since(base)
    print(f"test: {len(changed)} files differ from {base[:9]}", file=sys.stderr)
    chosen = choose(changed)
    print("\n".join(["everything"] if chosen is None else chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
