"""The page of the board in a browser."""

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pufferlib.runs.curves import Curve, band_of
from pufferlib.runs.folder import Run
from pufferlib.runs.report import smooth
from pufferlib.runs.status import in_training
from pufferlib.web.board import Board
from pufferlib.web.server import Server
from tests.browser import Browser
from tests.web.boards import add_updates, make_run

pytestmark = [pytest.mark.all, pytest.mark.browser]

FAST = "runs/20260101-000002-squared-fast"


@pytest.fixture
def kept(here: Path) -> Path:
    """Write two seeds of a setting and a run with another one."""
    for seed in (1, 2):
        make_run(here / f"runs/20260101-000001-squared/seed-{seed}", [1, 2, 3 + seed], 4.0 * seed, train__seed=seed)
    make_run(here / FAST, [5, 6, 7], train__learning_rate=0.5, track__name="fast")
    return here


@pytest.fixture
def server(kept: Path) -> Iterator[Server]:
    with Server(Board(kept), port=0) as server:
        yield server


@pytest.fixture
def page(server: Server) -> Iterator[Browser]:
    with Browser() as page:
        page.open(server.url)
        page.wait_for("document.querySelectorAll('.legend li').length === 2")
        yield page
        assert not [line for line in page.console if "ERR_" not in line and "403" not in line]


def legend(page: Browser) -> list[str]:
    lines: list[str] = page.evaluate("[...document.querySelectorAll('.legend li')].map((line) => line.textContent)")
    return lines


def text(page: Browser, selector: str) -> str:
    found: str = page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
    return found


def fill(page: Browser, selector: str, value: Any, event: str = "input") -> None:
    page.evaluate(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)}; "
        f"e.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()"
    )


def test_seeds_are_one_line_with_an_interval(page: Browser) -> None:
    assert legend(page) == ["7 fast, learning_rate 0.5", "4.50 (4 to 5) learning_rate 0.004, 2 seeds"]
    page.click("#seeds")
    page.wait_for("document.querySelectorAll('.legend li').length === 3")
    assert sorted(legend(page))[:2] == ["4 learning_rate 0.004, seed-1", "5 learning_rate 0.004, seed-2"]


def test_chart_is_drawn(page: Browser) -> None:
    colors = page.evaluate(
        "(() => { const c = document.querySelector('.u-wrap canvas'); "
        "return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size; })()"
    )
    assert colors > 20


def test_new_point_and_new_run_appear(page: Browser, kept: Path) -> None:
    with in_training(Run.at(kept / FAST)):
        add_updates(kept / FAST, [90.0], first=4)
        page.wait_for("document.querySelector('.legend').innerText.includes('90 fast')", 10)
        assert text(page, "#live") == "1 run in training"
    make_run(kept / "runs/20260101-000003-squared-third", [8], track__name="third")
    page.wait_for("document.querySelectorAll('.legend li').length === 3", 10)


def test_filter_compares_columns(page: Browser) -> None:
    for words, count in (
        ("learning_rate>0.1", 1),
        ("squared score>=3", 3),
        ("name:fast state:finished", 0),
        ("nothing", 0),
    ):
        fill(page, "#find", words)
        assert text(page, "#count") == f"{count} of 3", words


def test_titles_sort(page: Browser) -> None:
    names = (
        "[...document.querySelectorAll('tbody [data-key^=\"name\"], tbody [data-open]')].map((e) => e.innerText).join()"
    )
    assert page.evaluate(names) == "fast,learning_rate 0.004"
    page.click("[data-sort='train.learning_rate']")
    assert page.evaluate(names) == "fast,learning_rate 0.004"
    page.click("[data-sort='train.learning_rate']")
    assert page.evaluate(names) == "learning_rate 0.004,fast"


def test_address_keeps_the_view(page: Browser, server: Server) -> None:
    fill(page, "#x", "seconds", "change")
    fill(page, ".metric", "losses/entropy", "change")
    page.click("#add")
    page.click(f"[data-key='{FAST}']")
    page.wait_for("document.querySelectorAll('.legend li').length === 2")
    url = page.evaluate("location.href")
    with Browser() as other:
        other.open(url)
        other.wait_for("document.querySelectorAll('.legend li').length === 2")
        assert legend(other) == legend(page)
        assert legend(other)[0] == "0.333 (0.333 to 0.333) learning_rate 0.004, 2 seeds"
        assert other.evaluate("[...document.querySelectorAll('.metric')].map((e) => e.value)") == [
            "losses/entropy", "environment/score",
        ]  # fmt: skip
        assert other.evaluate("document.querySelector('#x').value") == "seconds"


def test_details_of_a_run(page: Browser) -> None:
    page.click(f"[data-open='run {FAST}']")
    page.wait_for("document.querySelector('#details .facts') !== null")
    assert "7 in training" in text(page, "#details .facts")
    assert text(page, "#details tbody tr:last-child").split("\t") == ["train.learning_rate", "0.5", "0.004"]
    page.click("#details [data-open='']")
    assert page.evaluate("document.querySelector('#details').hidden")


def test_keyboard_reaches_the_filter_and_the_runs(page: Browser) -> None:
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.press("Tab")
    page.press("Tab")
    assert page.evaluate("document.activeElement.dataset.key") == "all squared "
    page.press(" ")
    page.wait_for("document.querySelectorAll('.legend li').length === 0", 5)
    assert page.evaluate("document.activeElement.dataset.key") == "all squared ", "drawing the table keeps the focus"


def test_deleted_run_leaves_the_page(page: Browser, kept: Path) -> None:
    shutil.rmtree(kept / FAST)
    page.wait_for("document.querySelectorAll('.legend li').length === 1", 10)
    assert text(page, "#problem") == ""


def test_damaged_lines_are_reported(page: Browser, kept: Path) -> None:
    with (kept / FAST / "metrics.jsonl").open("a") as file:
        file.write("half a li\n")
    add_updates(kept / FAST, [8.0], first=4)
    page.wait_for("document.querySelector('.note').innerText.includes('1 damaged line')", 10)


def test_page_says_that_the_board_has_stopped(page: Browser, server: Server) -> None:
    server.close()
    page.wait_for("document.querySelector('#problem').innerText.includes('Start it again: puffer board')", 10)


def test_wrong_token_is_explained(kept: Path) -> None:
    with Server(Board(kept), port=0, token="right") as server, Browser() as page:
        page.open(server.url)
        page.wait_for("document.querySelectorAll('.legend li').length === 2")
        page.open(server.url.replace("right", "wrong"))
        assert text(page, "h1") == "This token is wrong"


def test_empty_folder_says_what_to_type(here: Path) -> None:
    with Server(Board(here), port=0) as server, Browser() as page:
        page.open(server.url)
        page.wait_for("document.querySelector('.empty pre')?.innerText === 'puffer train breakout'")
        make_run(here / "runs/20260101-000001-squared")
        page.wait_for("document.querySelectorAll('.legend li').length === 1", 10)


def test_export_needs_only_a_web_server(kept: Path) -> None:
    Board(kept).export(kept / "page/here")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=kept / "page")
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, Browser() as page:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.open(f"http://127.0.0.1:{server.server_port}/here/")
        page.wait_for("document.querySelectorAll('.legend li').length === 2")
        assert legend(page) == ["7 fast, learning_rate 0.5", "4.50 (4 to 5) learning_rate 0.004, 2 seeds"]
        assert text(page, "#live") == "exported"
        page.click(f"[data-open='run {FAST}']")
        page.wait_for("document.querySelector('#details .facts') !== null")
        assert not page.console
        server.shutdown()


@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_a_phone(server: Server, dark: bool) -> None:
    with Browser(width=390, height=800, dark=dark, phone=True) as page:
        page.open(f"{server.url}#open=run+{FAST}")
        page.wait_for("document.querySelector('#details .facts') !== null")
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_bands_equal_those_of_a_plot(page: Browser) -> None:
    rng = np.random.default_rng(0)
    curves = [Curve(np.arange(300.0), rng.normal(i, 1, 300).cumsum()) for i in range(7)]
    expected = band_of(curves)
    code = f"""import('./static/statistics.js').then(({{ smooth, interpolate, band }}) => {{
        const x = {list(range(300))}, grid = {expected.x.tolist()};
        const curves = {[curve.score.tolist() for curve in curves]}.map((y) => interpolate(x, smooth(y, 0.05), grid));
        return {{ smooth: [...smooth({curves[0].score.tolist()}, 0.05)], ...band(curves, grid.length) }};
    }})"""
    found = page.evaluate(code)
    np.testing.assert_allclose(found["smooth"], smooth(curves[0].score), atol=1e-9)
    np.testing.assert_allclose(found["middle"], expected.middle, atol=1e-9)
    width = expected.high - expected.low
    assert np.mean(np.abs(found["low"] - expected.low)) < 0.1 * width.mean()
    assert np.mean(np.abs(found["high"] - expected.high)) < 0.1 * width.mean()
