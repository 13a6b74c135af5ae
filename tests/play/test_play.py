"""``puffer play``: keys become actions, in a window and in a terminal."""

import codecs
import dataclasses
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib import registry
from pufferlib.cli import main
from pufferlib.errors import APIUsageError
from pufferlib.ocean import OceanEnv
from pufferlib.ocean.types import Key
from pufferlib.play import session
from pufferlib.play.cursor import Cursor
from pufferlib.play.keys import Hands, keys_for
from pufferlib.play.meanings import keys_of_env, keys_of_meanings, keys_of_table
from pufferlib.play.session import Game, play
from pufferlib.render.window import Window
from pufferlib.train.config import Config
from pufferlib.train.runs import Run, find_run

WAITING = (Key("left", 0, 1, "go left"), Key("right", 0, 2, "go right"), Key("x", 0, 9, "no such action"))
REAL_TIME = (Key("", 0, 0, "stay"), Key("up", 0, 1, "up"), Key("up+right", 0, 2, "both"), Key("right", 0, 3, "right"))


# The pseudo-terminal becomes the one whose Ctrl-C interrupts the process.
PUFFER = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pufferlib.cli import main
sys.exit(main())
"""


# ---- Keys -----------------------------------------------------------------------------------------------


def test_declared_keys_are_taken_where_the_space_has_their_actions():
    assert keys_for(Discrete(3), WAITING) == WAITING[:2]
    assert [key.name for key in keys_for(Discrete(2), ())] == ["0", "1"]
    assert keys_for(Discrete(11), ()) == ()
    assert keys_for(MultiDiscrete([3, 3]), ()) == ()


def test_a_game_without_an_idle_action_waits_for_a_key():
    hands = Hands(Discrete(3), keys_for(Discrete(3), WAITING))
    assert hands.waits
    assert hands.action(set()) is None
    assert hands.action({"z"}) is None
    assert hands.action({"left"}) == 1
    assert hands.help() == ["left: go left", "right: go right"]


def test_keys_that_are_down_together_come_first():
    hands = Hands(Discrete(4), keys_for(Discrete(4), REAL_TIME))
    assert not hands.waits
    assert [hands.action(down) for down in ((), {"up"}, {"right"}, {"up", "right"})] == [0, 1, 3, 2]
    assert hands.help() == ["up: up", "right: right"]


def test_each_number_of_an_action_has_its_keys():
    keys = (Key("", 1, 2, "rest"), Key("a", 0, 1, "grab"), Key("b", 1, 0, "run"))
    hands = Hands(MultiDiscrete([2, 3]), keys_for(MultiDiscrete([2, 3]), keys))
    assert [hands.action(down).tolist() for down in ((), {"a"}, {"b"}, {"a", "b"})] == [[0, 2], [1, 2], [0, 0], [1, 0]]


def test_pairs_of_keys_move_real_numbers():
    space = Box(np.array([-2, 0], np.float32), np.array([1, 5], np.float32))
    hands = Hands(space, keys_for(space, WAITING))
    assert not hands.waits
    cases = {(): [0, 0], ("left",): [-2, 0], ("right", "up"): [1, 5], ("down",): [0, 0]}
    for down, expected in cases.items():
        action = hands.action(down)
        assert action.dtype == np.float32
        assert action.tolist() == expected


def test_actions_without_keys_are_typed():
    hands = Hands(Discrete(82), keys_for(Discrete(82), ()))
    assert hands.types
    assert hands.read(["4", "x"]) is None
    assert hands.typed == "4"
    assert hands.read(["0", "1", "backspace", "enter"]) == 40
    assert hands.typed == ""
    assert hands.read(["8", "2", "enter"]) is None
    assert hands.read(["enter"]) is None
    pairs = Hands(MultiDiscrete([5, 20]), ())
    assert pairs.read(["4", "space", "1", "9", "enter"]).tolist() == [4, 19]
    assert pairs.read(["5", "space", "1", "enter"]) is None


def test_actions_that_have_names_get_arrows_space_and_letters():
    atari = keys_of_meanings(["NOOP", "FIRE", "UP", "RIGHT", "UPRIGHT", "DOWNLEFTFIRE"])
    assert [(key.name, key.value) for key in atari] == [
        ("", 0), ("space", 1), ("up", 2), ("right", 3), ("up+right", 4), ("down+left+space", 5)
    ]  # fmt: skip
    hands = Hands(Discrete(6), keys_for(Discrete(6), atari))
    assert [hands.action(down) for down in ((), {"up"}, {"up", "right"}, {"left"})] == [0, 2, 4, 0]
    assert hands.help() == ["space: fire", "up: up", "right: right"]
    grid = keys_of_meanings(["left", "right", "forward", "pickup", "drop", "toggle", "done"])
    assert [key.name for key in grid] == ["left", "right", "up", "p", "d", "space", "o"]
    words = keys_of_meanings(["noop", "move_left", "left engine", "queue", "none"])
    assert [(key.name, key.value, key.about) for key in words] == [
        ("", 0, "noop"), ("left", 1, "move left"), ("l", 2, "left engine"), ("u", 3, "queue"), ("n", 4, "none")
    ]  # fmt: skip


def test_tables_of_keys_as_gymnasium_has_them_are_read():
    env = gymnasium.make("MountainCar-v0")
    keys = {key.name: key.value for key in keys_of_env(env)}
    assert (keys[""], keys["left"], keys["right"]) == (1, 0, 2)
    assert [key.name for key in keys_of_table({("w", " "): 1, "a": 2, 1073741903: 3, ("q",): 4})] == [
        "w+space", "a", "right"
    ]  # fmt: skip
    assert keys_of_env(gymnasium.make("CartPole-v1")) == ()


# ---- Places -----------------------------------------------------------------------------------------------

GRID = {3 * row + column: (40 * column, 40 * row, 30, 30) for row in range(3) for column in range(3)}


def test_a_cursor_moves_from_place_to_place():
    cursor = Cursor()
    assert cursor.choose({}, ["enter"], []) is None
    for moves, action in (("", 0), ("right right", 2), ("right", 2), ("down", 5), ("left down", 7), ("up up up", 1)):
        assert cursor.choose(GRID, moves.split(), []) is None
        assert cursor.choose(GRID, ["enter"], []) == cursor.action == action
    del (rest := dict(GRID))[1]
    assert cursor.choose(rest, ["enter"], []) in (0, 2, 4), "its place is gone: the nearest"


def test_a_click_chooses_what_is_there():
    cursor = Cursor()
    assert cursor.choose(GRID, [], [(35, 35)]) is None
    assert cursor.choose(GRID, [], [(45.5, 29.5)]) == 1
    assert cursor.choose(GRID, ["down", "enter"], []) == 4


def test_the_cursor_is_marked_in_a_copy_of_the_picture():
    cursor, picture = Cursor(), np.zeros((120, 120, 3), np.uint8)
    cursor.choose(GRID, ["down", "right"], [])
    marked = cursor.marked(picture, GRID)
    assert not picture.any()
    rows, columns = np.nonzero(marked.any(axis=2))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (40, 69, 40, 69)
    assert not marked[41:69, 41:69].any()


# ---- Games ----------------------------------------------------------------------------------------------


def test_a_batch_of_training_is_played_as_one_game(monkeypatch):
    made = []

    class Squared(OceanEnv):
        def __init__(self, num_envs=8, render_mode=None, autoreset="same_step", buf=None, seed=0):
            made.append(num_envs)
            super().__init__("squared", num_envs, seed, render_mode, autoreset=autoreset, buf=buf)

    monkeypatch.setattr(registry, "env_creator", lambda _name: Squared)
    Game("games/squared", {"num_envs": 32}).close()
    assert made == [1]


def test_a_game_counts_what_happens_and_stands_still_at_its_end():
    game = Game("squared", {"size": 5}, seed=1)
    while not game.over:
        before = game.picture()
        game.step(1)
    assert game.scores == [game.total]
    assert "over; press r" in game.lines()[0]
    assert f"last score {game.total:g}" in game.lines()[0]
    steps, last = game.steps, game.picture()
    assert not np.array_equal(before, last) or steps > 1
    game.step(1)
    assert game.steps == steps
    np.testing.assert_array_equal(game.picture(), last)
    game.reset()
    assert (game.steps, game.total, game.over) == (0, 0, False)
    assert "best score" in game.sentence()
    game.close()


def test_the_others_act_at_random_and_the_same_for_the_same_seed():
    def played(seed):
        game = Game("multiagent", {}, seed=seed, agent=1)
        actions = []
        act = game._others.act
        game._others.act = lambda observations: actions.append(act(observations)) or actions[-1]
        for _ in range(5):
            game.reset()
            game.step(1)
        game.close()
        return np.array(actions).tolist()

    assert played(1) == played(1) != played(2)


def test_the_memory_of_trained_others_ends_with_a_life(tmp_path):
    pytest.importorskip("torch", reason="the train extra is not installed")
    tiny = ["--env.num-envs=1", "--train.horizon=4", "--train.minibatch-size=64", "--train.total-timesteps=64"]
    more = ["--policy.recurrent=True", "--policy.hidden-size=8", "--eval.episodes=1", f"--runs={tmp_path}"]
    assert main(["train", "snake", *tiny, *more, "--train.device=cpu"]) == 0
    game = Game("snake", {}, seed=1, files=find_run("test", "snake", tmp_path))
    step, ends = game._env.step, []

    def watched(actions):
        outcome = step(actions)
        ends.append(outcome[2] | outcome[3])
        return outcome

    game._env.step = watched
    while not ends or not ends[-1].any():
        game.step(1)
    forgotten = (game._others._state["lstm_h"] == 0).all(-1).numpy()
    assert (forgotten == ends[-1]).all()
    game.close()


def test_scores_are_those_of_the_person():
    game, ended = Game("snake", {}, seed=1), []
    step = game._env.step

    def watched(actions):
        outcome = step(actions)
        ended.append(outcome[2] | outcome[3])
        return outcome

    game._env.step = watched
    for _ in range(100):
        game.step(1)
    ended = np.array(ended)
    assert ended[:, 1:].sum() > 3, "others end too"
    assert 0 < ended[:, 0].sum() == len(game.scores)
    game.close()


def test_other_environments_with_pictures_can_be_played_too():
    game = Game("spaces", {}, seed=1)
    assert game.picture().dtype == np.uint8
    assert game.hands.help()
    game.close()


@pytest.fixture
def untrained_run(tmp_path):
    """A run of squared, whose policy is as it was made."""
    pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.train.config import load_config
    from pufferlib.train.trainer import Trainer

    config = load_config(
        "squared", {"env.num_envs": 1, "env.size": 3, "train.minibatch_size": 64, "train.device": "cpu"}
    )
    config.save(tmp_path / "config.toml")
    trainer = Trainer(config, tmp_path)
    trainer.save()
    trainer.close()
    return Run.at(tmp_path)


def test_the_agent_that_is_watched_acts_as_its_evaluation_says(untrained_run):
    config = Config.load(untrained_run.config)
    played = []
    for greedy in (True, True, False):
        dataclasses.replace(config, eval=dataclasses.replace(config.eval, greedy=greedy)).save(untrained_run.config)
        game = Game("squared", {}, seed=1, files=untrained_run, watched=True)
        observations = np.random.default_rng(0).integers(0, 3, (64, *game._observations.shape), np.uint8)
        played.append([game._others.act(observation).tolist() for observation in observations])
        game.close()
    assert played[0] == played[1] != played[2]


def test_a_run_that_could_only_play_you_can_be_watched(untrained_run):
    with pytest.raises(APIUsageError, match=r"one agent, which is you; .* watch it play: puffer play --watch"):
        Game("squared", {}, files=untrained_run)


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["play"], 2, "puffer play: name an environment first, for example: puffer play breakout"),
        (
            ["play", "--watch", "a", "--checkpoint", "b"],
            2,
            "--watch lets one run play all agents; leave out --checkpoint",
        ),
        (["play", "--watch", "none"], 2, "'none' is no run, no checkpoint and no environment"),
        (["play", "squard"], 2, "puffer play: unknown environment 'squard'; did you mean 'squared'?"),
        (["play", "squared", "--fps", "0"], 2, "puffer play: --fps must be from 0.1 to 1000, got 0"),
        (["play", "squared", "--env.siz", "5"], 2, "unknown keyword 'siz'; did you mean 'size'?"),
        (["play", "squared", "--agent", "1"], 1, "--agent must be at least 0 and below 1"),
        (["play", "squared", "--checkpoint", "none"], 2, "'none' is no run, no checkpoint and no environment"),
    ],
)
def test_what_cannot_be_played_gets_a_sentence(argv, code, sentence, monkeypatch, capsys):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert main(argv) == code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_without_display_and_terminal_it_says_what_to_do(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    assert main(["play", "squared"]) == 2
    assert "there is neither a display nor a terminal to play in" in capsys.readouterr().err


# ---- In a window ----------------------------------------------------------------------------------------


class Scripted(Window):
    """A window whose keys go down and up by a script: names, "" for none; what it shows is kept."""

    def __init__(self, script):
        super().__init__("test")
        self.script, self.shown = list(script), []

    def pressed(self):
        import pygame

        for name in self.held:
            pygame.event.post(pygame.event.Event(pygame.KEYUP, key=pygame.key.key_code(name), window=self._window))
        name = self.script.pop(0)
        if name:
            code = pygame.key.key_code(name)
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=code, window=self._window))
        return super().pressed()

    def show(self, frame, lines=()):
        self.shown.append((frame, tuple(lines)))
        super().show(frame, lines)


def play_in_window(name, script, monkeypatch, **keywords):
    pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game, window = Game(name, keywords, seed=1), Scripted(script)
    play(game, window, 1000)
    window.close()
    game.close()
    return game, window.shown


def test_a_game_that_waits_steps_once_for_each_key(monkeypatch):
    game, shown = play_in_window("squared", ["", "right", "", "", "down", "", "r", "left", "", "q"], monkeypatch)
    assert game.steps == 1
    assert [lines[0].split("   ")[1] for _, lines in shown] == ["step 0", "step 1", "step 2", "step 0", "step 1"]
    assert "right: move right" in shown[0][1][1]
    assert "q: quit" in shown[0][1][1]


def test_a_game_in_real_time_goes_on_without_keys(monkeypatch):
    game, shown = play_in_window("pong", ["", "up", "", "", "q"], monkeypatch)
    assert game.steps == 4
    assert len(shown) == 5


def test_atari_is_played_by_arrows_and_space_in_real_time(monkeypatch):
    pytest.importorskip("ale_py", reason="the atari extra is not installed")
    done = []
    step = Game.step
    monkeypatch.setattr(Game, "step", lambda game, action, show: done.append(action) or step(game, action, show))
    game, shown = play_in_window("atari/pong", ["", "space", "right", "left", "q"], monkeypatch)
    assert done == [0, 1, 2, 3]  # NOOP FIRE RIGHT LEFT
    assert game.steps == 4
    assert shown[0][1][1].startswith("space: fire   right: right   left: left")


def test_the_frames_that_a_step_plays_are_shown(monkeypatch):
    game, shown = play_in_window("pong", ["", "up", "q"], monkeypatch, frameskip=8)
    assert game.steps == 2
    assert game.fps == 7.5
    assert len(shown) == 1 + 2 * 4
    assert len({frame.tobytes() for frame, _ in shown}) == len(shown)


def test_a_trained_agent_is_watched_episode_after_episode(untrained_run, monkeypatch):
    pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(session, "NEXT_AFTER_S", 0.01)
    game, window = Game("squared", {}, seed=1, files=untrained_run, watched=True), Scripted(["right"] * 150 + ["q"])
    play(game, window, 2000)
    texts = [lines for _, lines in window.shown]
    assert len(game.scores) > 1, "the next episode begins by itself"
    assert texts[0][0] == f"squared, played by {untrained_run.folder}   step 0   reward 0   return 0"
    assert texts[0][1] == "r: begin again   q: quit"
    assert any("   over" in lines[0] for lines in texts)
    window.close()
    game.close()


def test_closing_the_window_ends_the_game(monkeypatch):
    class Closing(Scripted):
        def pressed(self):
            self.closed = True
            return []

    pytest.importorskip("pygame", reason="the render extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game, window = Game("squared", {}), Closing([])
    play(game, window, 1000)
    assert game.steps == 0
    window.close()
    game.close()


def test_a_click_plays_what_it_is_on(monkeypatch):
    pygame = pytest.importorskip("pygame", reason="the render extra is not installed")

    class Clicking(Scripted):
        def clicks(self):
            at = (int(area[0] * self._scale) + 20, int(area[1] * self._scale) + 20)
            if not self.script:
                pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=at, window=self._window))
                self.script.append("q")
            return super().clicks()

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game = Game("connect4", {}, seed=1)
    area = game.areas()[4]
    window = Clicking([""])
    play(game, window, 1000)
    assert game.steps == 1
    assert "click on a place   choose a place by arrows and enter   1:" in window.shown[0][1][1]
    assert game.lines(has_mouse=False)[1].startswith("choose a place by arrows and enter   1:")
    window.close()
    game.close()


# ---- In a terminal ----------------------------------------------------------------------------------------


class Terminal:
    """``puffer play`` in a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *argv):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        # Ctrl-C makes the terminal drop what is on its way, which may cut a character in two.
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.output = ""
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-c", PUFFER, "play", *argv, "--terminal"]
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), self.slave)
        self.process = subprocess.Popen(command, env=environment, start_new_session=True, **ends)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def expect(self, pattern):
        """Wait until what was shown since the last call has ``pattern``; returns the match."""
        deadline = time.monotonic() + 60
        while not (found := re.search(pattern, self.output)):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.output[-2000:]!r}"
            if select.select([self.master], [], [], 1)[0]:
                self.output += self.decode(os.read(self.master, 65536))
        self.output = self.output[found.end() :]
        return found

    def send(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """The exit code, and whether the terminal is as it was."""
        return self.process.wait(60), termios.tcgetattr(self.slave) == self.before


def test_a_person_plays_in_a_terminal():
    with Terminal("squared", "--env.size", "5") as terminal:
        picture = terminal.expect(r"(?s)\x1b\[H(.*?)squared   step 0")[1]
        assert picture.count("▀") == 42 * 21  # of 24 lines, three for text
        terminal.expect("(?s)left: move left.*q: quit")
        terminal.send("\x1b[C")
        terminal.expect("step 1")
        terminal.send(" ")
        terminal.expect("step 2")
        terminal.send("r")
        terminal.expect("step 0")
        terminal.send("q")
        terminal.expect("squared: no episode was finished; return 0 after 0 steps")
        assert terminal.end() == (0, True)


def test_ctrl_c_gives_the_terminal_back():
    with Terminal("pong") as terminal:
        terminal.expect("pong   step 3")  # it goes on by itself
        terminal.send("\x03")
        terminal.expect(r"\x1b\[\?1049l")
        terminal.expect("stopped")
        assert terminal.end() == (130, True)


def test_a_trained_agent_is_watched_in_a_terminal(untrained_run):
    with Terminal("--watch", str(untrained_run.folder)) as terminal:
        terminal.expect("squared, played by")
        terminal.expect("step 2")  # it goes on by itself
        terminal.send("q")
        terminal.expect("squared: ")
        assert terminal.end() == (0, True)
