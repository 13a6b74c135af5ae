"""The galleries in docs are up to date."""

import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pufferlib import ocean

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "lib"))
    yield importlib.import_module("gallery_pages")
    for name in ("gallery_pages", "gallery_pictures"):
        sys.modules.pop(name, None)


def decoded(png: bytes) -> np.ndarray:
    """Return the pixels of a PNG file, uint8 ``(height, width, 3)``."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_galleries_are_up_to_date(pages: Any) -> None:
    assert pages.problems() == []


@pytest.mark.all
def test_every_ocean_environment_has_a_small_image(pages: Any) -> None:
    for name in (*ocean.names(), *ocean.python_names()):
        path = pages.path_of(name)
        assert path.exists(), f"draw it: scripts/gallery {name}"
        assert len(np.unique(decoded(path.read_bytes()).reshape(-1, 3), axis=0)) >= 3
        assert path.stat().st_size < 200_000


def test_problems_lists_outdated_pages_and_missing_images(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ocean_names", lambda: ["squared"])
    monkeypatch.setattr(pages, "path_of", lambda name: ROOT / "docs" / "pictures" / "ocean" / f"no_{name}.png")
    problems = pages.problems()
    assert problems[0].startswith("docs/ocean.md is out of date; run scripts/gallery")
    assert "docs/pictures/ocean/no_squared.png is missing; run scripts/gallery squared" in problems[1]
    assert any("pong.png belongs to no environment" in problem for problem in problems)


@pytest.mark.parametrize("colours", [2, 256, 257, 5000])
def test_to_png_is_lossless(colours: int, pages: Any) -> None:
    palette = np.random.default_rng(0).integers(0, 256, (colours, 3), np.uint8)
    picture = palette[np.random.default_rng(1).integers(0, colours, (70, 90))]
    to_png = sys.modules["gallery_pictures"].to_png
    np.testing.assert_array_equal(decoded(to_png(picture)), picture)
