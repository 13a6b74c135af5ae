"""Tests of the page of ``puffer view`` in a browser: what it draws, and what its keys and buttons do."""

import base64
import contextlib
import io
import threading
import time

import numpy as np
import pytest
from PIL import Image

from pufferlib.play.loop import play
from pufferlib.play.session import Session
from pufferlib.web.view import Page
from tests.browser import Browser

pytestmark = [pytest.mark.all, pytest.mark.browser]

STEP = "document.querySelectorAll('#state span')[1]?.textContent"


@contextlib.contextmanager
def played(folder, name, **options):
    """Yield a session that is played in a page, and a browser with the page."""
    session, page = Session(name, {}, seed=1), Page(folder)
    loop = threading.Thread(target=play, args=(session, page, session.fps, folder))
    loop.start()
    try:
        with Browser(**options) as browser:
            browser.open(page.url)
            browser.wait_for(STEP)
            yield session, browser
            assert browser.console == []
    finally:
        page.close()
        loop.join(10)
        session.close()


def drawn(browser):
    data = browser.evaluate("document.querySelector('canvas').toDataURL('image/png')")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB"))


def test_page_shows_the_image_and_plays_with_keys_buttons_and_clicks(tmp_path):
    with played(tmp_path, "connect4") as (session, browser):
        np.testing.assert_array_equal(drawn(browser), session.picture())
        browser.press("4")
        browser.wait_for(f"{STEP} === 'step 1'")
        browser.click("[data-key='1']")
        browser.wait_for(f"{STEP} === 'step 2'")
        browser.click("canvas")  # the fourth of seven columns
        browser.wait_for(f"{STEP} === 'step 3'")
        assert (drawn(browser) != 0).any()
        browser.click("[data-key=r]")
        browser.wait_for(f"{STEP} === 'step 0'")
        browser.press("Tab")  # to the first button, which Enter presses
        assert browser.evaluate("document.activeElement.dataset.key") == "1"


def paddle(browser):
    """Return the middle column of the paddle, in px of the image."""
    return float(np.flatnonzero((drawn(browser)[-16] == (0, 187, 187)).all(1)).mean())


def test_held_key_moves_the_paddle_until_it_is_released(tmp_path):
    with played(tmp_path, "breakout") as (_, browser):
        before = paddle(browser)
        browser.press("ArrowLeft", seconds=0.5)
        time.sleep(0.1)
        left = paddle(browser)
        time.sleep(0.2)
        assert paddle(browser) == left < before - 50


def test_pause_step_and_record_with_the_buttons(tmp_path):
    pytest.importorskip("av", reason="the train extra is not installed")
    with played(tmp_path, "pong", dark=True) as (session, browser):
        browser.wait_for(f"{STEP} > 'step 2'")
        browser.click("[data-key=',']")
        browser.wait_for("document.querySelector('#state').textContent.includes('paused')")
        steps = session.steps
        browser.click("[data-key=f9]")
        browser.click("[data-key='.']")
        browser.click("[data-key='.']")
        browser.wait_for(f"{STEP} === 'step {steps + 2}'")
        assert session.steps == steps + 2
        np.testing.assert_array_equal(drawn(browser), session.picture())
        browser.click("[data-key=f9]")
        link = browser.wait_for("document.querySelector('#state a')?.href")
        assert browser.evaluate(f"fetch({link!r}).then((reply) => reply.status)") == 200
        assert [path.name for path in tmp_path.iterdir()] == [link.rpartition("/")[2]]


def test_page_fits_on_a_phone(tmp_path):
    with played(tmp_path, "nmmo3", width=390, height=844, phone=True) as (_, browser):
        assert browser.evaluate("document.documentElement.scrollWidth") == 390
        width, height = (
            browser.evaluate(f"document.querySelector('canvas').client{side}") for side in ("Width", "Height")
        )
        assert 300 < width <= 390
        assert width / height == pytest.approx(736 / 512, rel=0.01)


def test_page_connects_again_after_the_session_was_restarted(tmp_path):
    page = Page(tmp_path)
    port = int(page.url.split(":")[2].strip("/"))
    with Browser() as browser:
        browser.open(page.url)
        page.show("first")
        browser.wait_for("document.querySelector('pre').textContent === 'first'")
        page.close()
        browser.wait_for("document.getElementById('note').textContent.includes('ended')")
        page = Page(tmp_path, port=port)
        page.show("second")
        browser.wait_for("document.querySelector('pre').textContent === 'second'")
        assert browser.evaluate("document.getElementById('note').textContent") == ""
    page.close()
