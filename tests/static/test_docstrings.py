"""Docstrings open with a verb or a noun: what a thing is or does, in the words of the field."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUESTIONS = {"how", "of", "those", "what", "when", "where", "whether", "which", "who", "whose", "why"}
PARTS = (".ci", "benchmarks", "bindings", "docker", "docs", "examples", "pufferlib", "scripts", "tests")


def is_source(path):
    if path.suffix:
        return path.suffix in (".py", ".pyi", ".pyx", ".pxd")
    return path.is_file() and re.match(rb"#!.*python", path.read_bytes()[:80]) is not None


def docstrings(path):
    """Yield the line and the text of every docstring of a file in Python or Cython."""
    text = path.read_text()
    if path.suffix in (".pyx", ".pxd"):
        for opening in re.finditer(r'^ *"""(.*)', text, re.MULTILINE):
            yield text.count("\n", 0, opening.start()) + 1, opening[1]
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield getattr(node, "lineno", 1), docstring


def opens_with_a_question(docstring):
    first = re.match(r"\W*(\w+)", docstring)
    return first is not None and first[1].lower() in QUESTIONS


def questions(path):
    """Yield ``file:line: opening`` for every docstring of ``path`` that opens like a question or a remainder."""
    name = path.relative_to(ROOT).as_posix()
    for line, docstring in docstrings(path):
        if opens_with_a_question(docstring):
            yield f"{name}:{line}: {docstring.splitlines()[0]}"


def test_docstrings_open_with_a_verb_or_a_noun():
    sources = [path for part in PARTS for path in sorted((ROOT / part).rglob("*")) if is_source(path)]
    assert len(sources) > 300  # the search finds them
    found = [question for path in sources for question in questions(path)]
    assert not found, "\n".join(found)
