"""Games in the browser: what the page knows, and the equality of WebAssembly and native code."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.cli.verbs import web
from pufferlib.errors import APIUsageError, PufferError, UsageError
from pufferlib.machine.commands import way_to_install
from pufferlib.native import compiler
from pufferlib.ocean.files import write_template
from pufferlib.runs.find import shipped_agent
from pufferlib.web import games
from pufferlib.web.games import WebGame, build_game
from tests.browser import Browser
from tests.needs import missing_extra
from tests.ocean.helpers import actions_of
from tests.processes import in_fresh_process

needs_zig = pytest.mark.skipif(bool(missing_extra("compiler")), reason=missing_extra("compiler") or "it is there")

SAME_STEP, NEXT_STEP = 0, 1  # PufferAutoreset
SEED = 7
STEPS = 400
# One agent, several, agents that end, continuous actions, labels of areas, and a text parameter.
COMPILED = {"breakout", "nmmo3", "pendulum", "go"}
GAMES = [
    pytest.param(name, marks=pytest.mark.all if name in COMPILED else pytest.mark.nightly) for name in ocean.names()
]


class Instance:
    """A compiled game, run by wasmtime."""

    def __init__(self, game: WebGame, autoreset: int = SAME_STEP) -> None:
        import wasmtime

        self.facts = game.facts
        self._store = wasmtime.Store()
        module = wasmtime.Module(self._store.engine, game.code)
        assert [each.name for each in module.imports] == []
        self._exports = wasmtime.Instance(self._store, module, []).exports(self._store)
        self.call("_initialize")
        for i, value in enumerate(self.facts["parameters"]):
            if isinstance(value, str):
                self.write(self.call("text_of", i), value.encode())
            else:
                self.call("set_number", i, float(value))
        assert self.call("make", autoreset) == 0

    def call(self, name: str, *arguments: float) -> int:
        return self._exports[name](self._store, *arguments)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self._exports["memory"].read(self._store, address, address + size))

    def write(self, address: int, data: bytes) -> None:
        self._exports["memory"].write(self._store, data, address)

    def array(self, name: str, like: np.ndarray) -> np.ndarray:
        return np.frombuffer(self.read(self.call(name), like.nbytes), like.dtype).reshape(like.shape)

    def picture(self) -> np.ndarray:
        size = (self.facts["height"], self.facts["width"], 4)
        return np.frombuffer(self.read(self.call("pixels"), int(np.prod(size))), np.uint8).reshape(size)


def digest_of_native(env, seen, rewards, terminals, truncations) -> bytes:
    return hashlib.sha256(b"".join(map(bytes, (seen, rewards, terminals, truncations, env.masks)))).digest()


def digest_of_web(instance: Instance, env) -> bytes:
    arrays = ("observations", "rewards", "terminals", "truncations", "masks")
    parts = (instance.read(instance.call(name), getattr(env, name).nbytes) for name in arrays)
    return hashlib.sha256(b"".join(parts)).digest()


@needs_zig
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize(("mode", "autoreset"), [(SAME_STEP, "same_step"), (NEXT_STEP, "next_step")])
def test_frames_rewards_and_observations_equal_the_native_bytes(name, mode, autoreset):
    instance = Instance(build_game("test", name), mode)
    env = pufferlib.make(name, num_envs=1, seed=SEED, autoreset=autoreset)
    agent = 0 if env.num_agents > 1 else None
    rng = np.random.default_rng(1)
    env.reset()
    instance.call("reset", SEED)
    for step in range(STEPS):
        actions = actions_of(env, rng)
        *arrays, _ = env.step(actions)
        instance.write(instance.call("actions"), actions.tobytes())
        instance.call("step")
        assert digest_of_web(instance, env) == digest_of_native(env, *arrays), step
        if step % 40 == 0:
            instance.call("draw", -1 if agent is None else agent)
            picture = instance.picture()
            np.testing.assert_array_equal(picture[..., :3], env.render(agent=agent), err_msg=f"step {step}")
            assert (picture[..., 3] == 255).all()
    env.close()


@needs_zig
@pytest.mark.all
def test_frames_within_a_step_equal_the_native_ones():
    instance = Instance(build_game("test", "breakout"), NEXT_STEP)
    env = pufferlib.make("breakout", num_envs=1, seed=SEED, autoreset="next_step")
    rng = np.random.default_rng(1)
    env.reset()
    instance.call("reset", SEED)
    for _ in range(30):
        actions = actions_of(env, rng)
        instance.write(instance.call("actions"), actions.tobytes())
        for frames, expected in enumerate(env.frames(actions), start=1):
            instance.call("draw_between", -1, frames)
            np.testing.assert_array_equal(instance.picture()[..., :3], expected)
        env.step(actions)
        instance.call("step")
        np.testing.assert_array_equal(instance.array("observations", env.observations), env.observations)
    env.close()


@needs_zig
@pytest.mark.all
@pytest.mark.parametrize("name", ["connect4", "tactical"])
def test_actions_of_the_agent_equal_those_of_torch(name):
    """Both agents are greedy. Their observations stay equal as long as all actions are."""
    run = shipped_agent("test", name)
    instance = Instance(build_game("test", name, run=run))
    env, agent = pufferlib.make(name, num_envs=1, seed=SEED), pufferlib.load(name)
    observations, _ = env.reset()
    instance.call("reset", SEED)
    for step in range(200):
        instance.call("act")
        actions = agent(observations)
        assert instance.array("actions", env.actions).tolist() == np.ravel(actions).tolist(), step
        observations, *_ = env.step(actions)
        instance.call("step")
    env.close()


@needs_zig
@pytest.mark.all
def test_memory_of_the_agent_is_cleared_between_episodes():
    """The first episode of a seed and a later one with the same observations have the same actions."""
    instance = Instance(build_game("test", "memory", run=shipped_agent("test", "memory")), NEXT_STEP)
    env = pufferlib.make("memory", num_envs=1)
    instance.call("reset", SEED)
    scores = []
    for _ in range(2000):
        instance.call("act")
        instance.call("step")
        episodes, _, _, score = np.frombuffer(instance.read(instance.call("report"), 32))
        scores += [score] * int(episodes)
    env.close()
    assert len(scores) > 20
    assert np.mean(scores) > 0.9


@needs_zig
@pytest.mark.all
def test_parameters_reach_the_game():
    game = build_game("test", "frozen_lake", {"desc": "SF/FG"})
    instance = Instance(game)
    env = pufferlib.make("frozen_lake", num_envs=1, seed=SEED, desc="SF/FG")
    env.reset()
    instance.call("reset", SEED)
    instance.call("draw", -1)
    np.testing.assert_array_equal(instance.picture()[..., :3], env.render())
    env.close()


# ---- Pages ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def breakout_page(tmp_path_factory) -> str:
    """Address of the page of breakout with its agent."""
    path = tmp_path_factory.mktemp("web") / "breakout.html"
    path.write_text(build_game("test", "breakout", run=shipped_agent("test", "breakout")).page(), "utf-8")
    return path.as_uri()


PADDLE = "player.game.observations && new Float32Array(player.game.observations.slice(0, 4).buffer)[0]"
RECORD = "window.who = new Set(); setInterval(() => who.add(document.getElementById('who').textContent), 20)"


@pytest.mark.browser
@needs_zig
@pytest.mark.all
def test_agent_plays_and_shift_takes_over(breakout_page):
    with Browser() as page:
        page.open(breakout_page)
        page.wait_for("window.player?.steps > 5")
        page.evaluate(RECORD)
        page.press("Shift", "ArrowLeft", seconds=1.5)
        assert page.evaluate("[...who].includes('You play.')")
        page.evaluate("who.clear()")
        page.wait_for("who.has('The agent plays. Hold Shift to play.')")
        assert page.console == []


@pytest.mark.browser
@needs_zig
@pytest.mark.all
def test_keys_move_the_paddle(breakout_page):
    with Browser() as page:
        page.open(breakout_page)
        page.wait_for("window.player")
        page.click("#you")
        page.press("ArrowLeft", seconds=2)
        left = page.evaluate(PADDLE)
        page.press("ArrowRight", seconds=2)
        assert page.evaluate(PADDLE) > left + 0.3
        page.click("#pause")
        steps = page.evaluate("player.steps")
        page.click("#step")
        assert page.evaluate("player.steps") == steps + 1
        page.click("#restart")
        assert page.evaluate("player.steps") == 0
        assert page.console == []


@pytest.mark.browser
@needs_zig
@pytest.mark.all
def test_page_fits_a_phone_and_touch_takes_over(breakout_page):
    with Browser(width=390, height=844, phone=True) as page:
        page.open(breakout_page)
        page.wait_for("window.player?.steps > 5")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        picture = page.screenshot()
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 10
        page.click("#pad .left")
        page.wait_for("document.getElementById('who').textContent === 'You play.'")
        assert page.console == []


@pytest.mark.browser
@needs_zig
@pytest.mark.all
def test_page_explains_a_browser_without_simd(breakout_page, tmp_path):
    text = Path(breakout_page.removeprefix("file://")).read_text()
    path = tmp_path / "old.html"
    path.write_text(text.replace("<head>", "<head><script>WebAssembly.validate = () => false</script>"))
    with Browser() as page:
        page.open(path.as_uri())
        shown = page.wait_for("document.getElementById('problem').textContent")
    assert shown == "This page needs WebAssembly with SIMD, which this browser lacks. Update the browser."


def test_page_needs_no_other_file():
    facts = {"name": "a & b", "about": "a </script> b"}
    text = WebGame(facts, b"\0asm").page()
    assert not re.search(r"@\w+@", text)
    assert not re.search(r"""(src|href)=|https?://|@import|url\(""", text)
    assert "<h1>a &amp; b</h1>" in text
    assert json.loads(re.search(r'id="facts">(.*?)</script>', text)[1]) == facts
    assert 'id="code">AGFzbQ==</script>' in text


# ---- Facts and errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ocean.names())
def test_facts_describe_every_game(name, monkeypatch):
    compiled = []

    class Recorder:
        def run(self, arguments):
            compiled.extend(arguments)
            Path(arguments[-1]).write_bytes(b"")
            return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(games, "find_web_compiler", lambda where: Recorder())
    facts = json.loads(json.dumps(build_game("test", name).facts))
    env = pufferlib.make(name, num_envs=1)
    env.reset()
    assert (facts["agents"], facts["height"], facts["width"]) == (env.num_agents, *env.render().shape[:2])
    assert facts["framesPerStep"] % facts["picturesPerStep"] == 0
    assert facts["actions"]["count"] == env.actions[:1].size
    assert facts["keys"] or facts["areas"]
    assert f"-DPUFFER_PAGE_ENV={name}_env" in compiled
    env.close()


def test_environment_in_python_is_an_error():
    with pytest.raises(UsageError, match="expected an environment in C, got pymultiagent, which a browser cannot run"):
        build_game("puffer web", "pymultiagent")


def test_missing_compiler_is_an_error(monkeypatch):
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    way = way_to_install("compiler", image="dev")
    with pytest.raises(PufferError, match=f"compiling for the web needs the package ziglang; {re.escape(way)}"):
        build_game("puffer web", "breakout")


def test_run_of_another_environment_is_an_error(monkeypatch):
    monkeypatch.setattr(games, "find_web_compiler", lambda where: None)
    with pytest.raises(UsageError, match="is a run of pong, not of breakout"):
        build_game("puffer web", "breakout", run=shipped_agent("test", "pong"))


def test_unknown_keyword_suggests_the_nearest(monkeypatch):
    monkeypatch.setattr(games, "find_web_compiler", lambda where: None)
    with pytest.raises(APIUsageError, match="frameskip"):
        build_game("puffer web", "breakout", {"frameskp": 2})


def _build_with_any_compiler(source):
    games.find_web_compiler = lambda where: None
    build_game("puffer web", source)


@pytest.mark.all
def test_game_without_images_is_an_error(tmp_path):
    source, _ = write_template("blank", tmp_path)
    code = source.read_text()
    nothing = "void blank_draw(const Blank *env, PufferCanvas *canvas) { (void)env, (void)canvas; }"
    source.write_text(code.replace("PUFFER_ENV(", f"{nothing}\nPUFFER_ENV(").replace("blank_draw(", "other_draw(", 1))
    with pytest.raises(UsageError, match="blank has no images: the first one has a single color"):
        in_fresh_process(_build_with_any_compiler, str(source))


def test_agent_with_another_observation_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(games, "find_web_compiler", lambda where: None)
    monkeypatch.setattr(games, "c_files", _refuse)
    with pytest.raises(APIUsageError, match="cannot be compiled: the operation sort; --no-agent makes a page without"):
        build_game("puffer web", "breakout", run=shipped_agent("test", "breakout"))


def _refuse(trained):
    raise APIUsageError("export: no") from ValueError("the operation sort")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name an environment in C"),
        (["breakout", "--no-agent", "--best"], "remove RUN and --best"),
        (["breakout", "--out", "/nowhere/game.html"], "--out must be a file in a folder that can be written to"),
        (["breakout", "--out", "/"], "--out must be a file"),
    ],
)
def test_wrong_command_lines_are_errors(arguments, message, monkeypatch):
    monkeypatch.setattr(games, "build_game", lambda *_: WebGame({"name": "breakout", "about": ""}, b""))
    with pytest.raises(UsageError, match=message):
        web.run(arguments)


def test_command_writes_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(games, "build_game", lambda *_: WebGame({"name": "breakout", "about": ""}, b""))
    assert web.run(["breakout", "-o", str(tmp_path / "game.html")]) == 0
    assert (tmp_path / "game.html").read_text().startswith("<!doctype html>")
    assert "breakout, played by its shipped agent" in capsys.readouterr().out
