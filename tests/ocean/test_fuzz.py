"""``fuzz_file``: finds defects of each class in C files."""

import shutil

import pytest

from pufferlib.ocean.files import TEMPLATES, write_template
from pufferlib.ocean.fuzz import CLASSES, fuzz_file

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")

SCORE = "    env->score ="
# By class: text of the template, its replacement, part of the reported message, and whether the line is reported.
DEFECTS = {
    "compiler": (SCORE, "    int32_t idle;\n" + SCORE, "unused variable", True),
    "memory": ("game.rewards[0] = 1", "game.rewards[env->length] = 1", "heap-buffer-overflow, write of 4", True),
    "undefined": (SCORE, "    env->score = (float)(1 / action);\n" + SCORE, "division by zero", True),
    "contract": ("(env->length - 1);", "(env->length - 2);", "number 0 of an observation is ", False),
    "seed": (SCORE, "    static int32_t turn;\n    env->position -= turn++ % 2;\n" + SCORE, " differ", False),
    "batch": (SCORE, "    env->position *= env->game.index != 3;\n" + SCORE, " differ", False),
    "reset": ("env->position = puffer_random_below(&env->game.rng, env->length - 1);", "", " differ", False),
    "state": (
        ("int32_t position;", "    env->position = puffer_random", "env->position += ("),
        ("int32_t position, *at;", "    env->at = &env->position;\n    env->position = puffer_random", "*env->at += ("),
        " differ",
        False,
    ),
    "output": (SCORE, '    puts("a step");\n' + SCORE, "prints 'a step", False),
    "exit": (SCORE, "    exit(0);\n" + SCORE, "ended with exit code 0", False),
    "hang": (SCORE, "    for (volatile int32_t idle = 1; action == 1 && idle;) {}\n" + SCORE, "not come back", True),
}


# Further defects, as above, with their class.
MORE = [
    (
        "reset",
        (
            "env->perf = env->position == door;",
            "if (env->position == door) env->perf = 1;",
            "metrics of finished",
            False,
        ),
    ),
    (
        "contract",
        (
            "    draw_clear(",
            "    ((Corridor *)(uintptr_t)env)->position = 0;\n    draw_clear(",
            "draw changes the game",
            False,
        ),
    ),
]


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    return write_template("corridor", tmp_path)[0]


def test_each_class_has_a_test():
    assert set(DEFECTS) == set(CLASSES)


@pytest.mark.all
@pytest.mark.parametrize(
    ("kind", "defect"), [*DEFECTS.items(), *MORE], ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.filterwarnings("ignore:unused variable")
def test_defect_is_found_with_its_class(kind, defect, source, monkeypatch):
    old, new, message, has_place = defect
    text = source.read_text()
    for before, after in [(old, new)] if isinstance(old, str) else zip(old, new, strict=True):
        assert before in text
        text = text.replace(before, after, 1)
    source.write_text("#include <stdio.h>\n#include <stdlib.h>\n" + text)
    if kind == "hang":
        shorten_step_timeout(monkeypatch, source.parent)
    report = fuzz_file(str(source), steps=20_000 if kind == "reset" else 1000)
    found = [defect for defect in report.defects if defect.kind == kind]
    assert found, report.defects
    assert message in found[0].message
    assert found[0].place.startswith(f"{source}:") == has_place


@pytest.mark.all
@pytest.mark.parametrize("template", TEMPLATES)
def test_template_has_no_defects(template, tmp_path, source):
    made, _ = write_template("own", tmp_path, template)
    assert fuzz_file(str(made), steps=1000).defects == ()


def test_compiler_without_sanitizers_finds_other_defects(source, tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *-fsanitize*) exit 1 ;; esac\nexec {shutil.which("cc")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    source.write_text(source.read_text().replace("(float)(env->length - 1);", "(float)(env->length - 2);"))
    report = fuzz_file(str(source), steps=1000)
    assert report.sanitizers == ""
    assert [defect.kind for defect in report.defects] == ["contract"]


def shorten_step_timeout(monkeypatch, folder):
    """Set the timeout of a step to one second instead of a minute."""
    from pufferlib.ocean import fuzz

    program = folder / "puffer_fuzz.c"
    program.write_text(fuzz.PROGRAM.read_text().replace("MAX_STEP_S = 60", "MAX_STEP_S = 1"))
    monkeypatch.setattr(fuzz, "PROGRAM", program)
