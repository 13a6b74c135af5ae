"""Tests of sessions, in which a person plays or watches a game, and of the window."""

import dataclasses
import io
from typing import ClassVar

import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, MultiBinary

import pufferlib
from pufferlib import make, registry, vector
from pufferlib.errors import APIUsageError
from pufferlib.models.players import PolicyPlayer, RandomPlayer
from pufferlib.ocean import OceanEnv
from pufferlib.play import loop, session
from pufferlib.play.loop import play
from pufferlib.play.session import Session
from pufferlib.render.window import Window
from pufferlib.settings.config import Config
from tests.envs import FunctionEnv
from tests.tiny_runs import untrained_run


def test_session_makes_one_env(monkeypatch):
    made = []

    class Squared(OceanEnv):
        def __init__(self, num_envs=8, render_mode=None, autoreset="same_step", buf=None, seed=0):
            made.append(num_envs)
            super().__init__("squared", num_envs, seed, render_mode, autoreset=autoreset, buf=buf)

    monkeypatch.setattr(registry, "env_creator", lambda _name: Squared)
    Session("games/squared", {"num_envs": 32}).close()
    assert made == [1]


def test_session_counts_steps_and_stops_at_episode_end():
    game = Session("squared", {"size": 5}, seed=1)
    while not game.over:
        before = game.picture()
        game.step(1)
    assert game.scores == [game.total]
    assert "over; press r" in game.state()
    assert f"last score {game.total:g}" in game.state()
    steps, last = game.steps, game.picture()
    assert not np.array_equal(before, last) or steps > 1
    game.step(1)
    assert game.steps == steps
    np.testing.assert_array_equal(game.picture(), last)
    game.reset()
    assert (game.steps, game.total, game.over) == (0, 0, False)
    assert "best score" in game.result()
    game.close()


def watch(monkeypatch, owner, method, keep=np.array):
    """Patch a method so that ``keep`` of each result is appended to the returned list."""
    kept, original = [], getattr(owner, method)

    def patched(*args):
        outcome = original(*args)
        kept.append(keep(outcome))
        return outcome

    monkeypatch.setattr(owner, method, patched)
    return kept


def ended(outcome):
    return outcome[2] | outcome[3]


def test_random_opponents_depend_on_seed(monkeypatch):
    actions = watch(monkeypatch, RandomPlayer, "act")

    def played(seed):
        actions.clear()
        game = Session("multiagent", {}, seed=seed, agent=1)
        for _ in range(5):
            game.reset()
            game.step(1)
        game.close()
        return np.array(actions).tolist()

    assert played(1) == played(1) != played(2)


def test_memory_of_opponents_resets_with_their_episode(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.models import LSTMWrapper

    network = {"policy.name": "Default", "policy.memory": "LSTM", "policy.hidden_size": 8}
    run = untrained_run(tmp_path, "snake", {**network, "train.horizon": 4})
    monkeypatch.setattr("pufferlib.models.engine.compile_policy", lambda policy: None)  # so that torch runs the network
    game = Session("snake", {}, seed=1, run=run)
    ends, memory = watch(monkeypatch, vector.Serial, "step", ended), []
    forward = LSTMWrapper.forward_eval

    def watched_forward(policy, observations, state):
        memory.append(state["lstm_h"].clone())
        return forward(policy, observations, state)

    monkeypatch.setattr(LSTMWrapper, "forward_eval", watched_forward)
    while not ends or not ends[-1].any():
        game.step(1)
    game.step(1)
    assert ((memory[-1] == 0).all(-1).numpy() == ends[-2]).all()
    game.close()


def test_scores_count_only_the_players_agent(monkeypatch):
    ends = watch(monkeypatch, vector.Serial, "step", ended)
    game = Session("snake", {}, seed=1)
    for _ in range(100):
        game.step(1)
    ends = np.array(ends)
    assert ends[:, 1:].sum() > 3, "opponents end too"
    assert 0 < ends[:, 0].sum() == len(game.scores)
    game.close()


def test_python_env_with_render_is_playable():
    game = Session("spaces", {}, seed=1)
    assert game.picture().dtype == np.uint8
    assert game.key_map.help()
    game.close()


@pytest.mark.parametrize(("action", "stepped"), [(0, []), (2, [2])])
def test_masked_action_of_the_user_is_not_played(action, stepped):
    class Masked(FunctionEnv):
        metadata: ClassVar = {"render_modes": ["ansi"]}

        def __init__(self, render_mode=None):
            space = Dict(action_mask=MultiBinary(3), x=Discrete(2))
            super().__init__(
                space, Discrete(3), observe=lambda _: {"action_mask": np.array([0, 1, 1], np.int8), "x": 0}
            )

        def render(self):
            return str(self.actions)

    pufferlib.register("masked", Masked)
    game = Session("masked", {}, seed=1)
    game.step(action)
    assert (game.picture(), game.steps) == (str(stepped), len(stepped))
    game.close()


def drawing_env(modes, drawn):
    """Return a class of environments that declare ``modes``, and draw ``drawn[render_mode]``."""

    class Drawing(FunctionEnv):
        metadata: ClassVar = {"render_modes": modes, "render_fps": 4}

        def __init__(self, render_mode=None):
            assert render_mode is None or render_mode in modes
            super().__init__(observe=lambda _: 0, observation_space=Discrete(2), action_space=Discrete(2))
            self.render_mode = render_mode

        def render(self):
            return drawn.get(self.render_mode)

    return Drawing


@pytest.mark.parametrize(
    ("modes", "drawn", "expected"),
    [
        (["ansi"], {"ansi": "go"}, "go"),
        (["human", "ansi"], {"ansi": io.StringIO("go")}, "go"),
        (["rgb_array", "ansi"], {"rgb_array": np.ones((4, 3, 3), np.uint8), "ansi": "go"}, np.ones((4, 3, 3))),
        (["rgb_array", "ansi"], {"rgb_array": None, "ansi": "go"}, "go"),  # lacks a package for images
    ],
)
def test_text_is_shown_if_there_are_no_images(modes, drawn, expected):
    pufferlib.register("drawing", drawing_env(modes, drawn))
    game = Session("drawing", {})
    np.testing.assert_array_equal(game.picture(), expected)
    assert game.fps == 4
    game.close()


@pytest.mark.parametrize("modes", [[], ["human"], ["rgb_array"]])
def test_env_without_images_and_text_is_rejected(modes):
    pufferlib.register("drawing", drawing_env(modes, {}))
    with pytest.raises(APIUsageError, match=r"puffer view: drawing cannot be rendered; .* add one of these modes"):
        Session("drawing", {}, where="puffer view")


def test_watched_agent_follows_eval_greedy(tmp_path, monkeypatch):
    run, made = untrained_run(tmp_path), []
    monkeypatch.setattr(session, "PolicyPlayer", lambda *args: made.append(PolicyPlayer(*args)) or made[-1])
    config = Config.load(run.config)
    shape = make("squared", **config.env).observations.shape
    played = []
    for greedy in (True, True, False):
        dataclasses.replace(config, eval=dataclasses.replace(config.eval, greedy=greedy)).save(run.config)
        Session("squared", {}, seed=1, run=run, watched=True).close()
        observations = np.random.default_rng(0).integers(0, 3, (64, *shape), np.uint8)
        played.append([made[-1].act(observation).tolist() for observation in observations])
    assert played[0] == played[1] != played[2]


def test_single_agent_run_cannot_be_opponent(tmp_path):
    run = untrained_run(tmp_path)
    with pytest.raises(
        APIUsageError, match=r"one agent, which you play; .* watch the policy play: puffer play --watch"
    ):
        Session("squared", {}, run=run)


# ---- In a window ----------------------------------------------------------------------------------------


class ScriptedWindow(Window):
    """Window whose keys are pressed and released by a script. It keeps the frames and lines that it shows.

    Args:
        script: Name of the key pressed in each call of ``pressed``, or "".
    """

    def __init__(self, script):
        super().__init__("test")
        self.script, self.shown = list(script), []

    def pressed(self):
        import pygame

        for name in self.held:
            pygame.event.post(pygame.event.Event(pygame.KEYUP, key=pygame.key.key_code(name)))
        name = self.script.pop(0)
        if name:
            code = pygame.key.key_code(name)
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=code))
        return super().pressed()

    def show(self, frame, lines=()):
        self.shown.append((frame, tuple(lines)))
        super().show(frame, lines)


def play_in_window(name, script, monkeypatch, **keywords):
    pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game, window = Session(name, keywords, seed=1), ScriptedWindow(script)
    play(game, window, 1000)
    window.close()
    game.close()
    return game, window.shown


def test_waiting_game_steps_once_per_key(monkeypatch):
    game, shown = play_in_window("squared", ["", "right", "", "", "down", "", "r", "left", "", "q"], monkeypatch)
    assert game.steps == 1
    assert [lines[0].split("   ")[1] for _, lines in shown] == ["step 0", "step 1", "step 2", "step 0", "step 1"]
    assert "right: move right" in shown[0][1][1]
    assert shown[0][1][2] == "r: restart   f9: record   q: quit"


def test_real_time_game_steps_without_keys(monkeypatch):
    game, shown = play_in_window("pong", ["", "up", "", "", "q"], monkeypatch)
    assert game.steps == 4
    assert len(shown) == 5


def test_atari_is_played_with_arrows_and_space(monkeypatch):
    pytest.importorskip("ale_py", reason="the atari extra is not installed")
    done = []
    step = Session.step
    monkeypatch.setattr(Session, "step", lambda game, action, show: done.append(action) or step(game, action, show))
    game, shown = play_in_window("atari/pong", ["", "space", "right", "left", "q"], monkeypatch)
    assert done == [0, 1, 2, 3]  # NOOP FIRE RIGHT LEFT
    assert game.steps == 4
    assert shown[0][1][1].startswith("space: fire   right: right   left: left")


def test_frames_between_steps_are_shown(monkeypatch):
    game, shown = play_in_window("pong", ["", "up", "q"], monkeypatch, frameskip=8)
    assert game.steps == 2
    assert game.fps == 7.5
    assert len(shown) == 1 + 2 * 4
    assert len({frame.tobytes() for frame, _ in shown}) == len(shown)


def test_watch_restarts_after_each_episode(tmp_path, monkeypatch):
    pytest.importorskip("pygame", reason="the render extra is not installed")
    run = untrained_run(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(loop, "NEXT_AFTER_S", 0.01)
    game, window = Session("squared", {}, seed=1, run=run, watched=True), ScriptedWindow(["right"] * 150 + ["q"])
    play(game, window, 2000)
    texts = [lines for _, lines in window.shown]
    assert len(game.scores) > 1, "the next episode starts without a key"
    assert texts[0][0] == f"squared, played by {run.folder}   step 0   reward 0   return 0"
    assert texts[0][1] == ""
    assert texts[0][2].startswith("r: restart   ,: pause")
    assert any("   over" in lines[0] for lines in texts)
    window.close()
    game.close()


def test_closed_window_ends_play(monkeypatch):
    class Closing(ScriptedWindow):
        def pressed(self):
            self.closed = True
            return []

    pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game, window = Session("squared", {}), Closing([])
    play(game, window, 1000)
    assert game.steps == 0
    window.close()
    game.close()


def test_click_plays_action_at_position(monkeypatch):
    pygame = pytest.importorskip("pygame", reason="the render extra is not installed")

    class Clicking(ScriptedWindow):
        def clicks(self):
            at = (int(area[0] * self._scale) + 20, int(area[1] * self._scale) + 20)
            if not self.script:
                pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=at))
                self.script.append("q")
            return super().clicks()

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game = Session("connect4", {}, seed=1)
    area = game.areas()[4]
    window = Clicking([""])
    play(game, window, 1000)
    assert game.steps == 1
    assert "click on a place   choose a place with arrows and enter   1:" in window.shown[0][1][1]
    assert game.keys(has_mouse=False)[0] == "choose a place with arrows and enter"
    window.close()
    game.close()
