"""Tests of the loop of interactive play, with a viewer that follows a script."""

from types import SimpleNamespace

import pytest

from pufferlib.errors import BindingMissing
from pufferlib.play import loop
from pufferlib.play.loop import play
from pufferlib.play.session import Session
from tests.tiny_runs import untrained_run


class ScriptedViewer:
    """Viewer that keeps what it shows.

    Args:
        script: Key that is pressed in each call of ``pressed``, "" for none, or a list of several. "q" is added.

    Attributes:
        shown: Frames with the items of their lines.
    """

    has_mouse, closed, held = True, False, frozenset()

    def __init__(self, *script):
        self.script, self.shown = [*script, "q"], []

    def pressed(self):
        keys = self.script.pop(0)
        return keys if isinstance(keys, list) else [keys] * bool(keys)

    def clicks(self):
        return []

    def show(self, frame, lines=()):
        self.shown.append((frame, [line.split("   ") for line in lines]))

    def states(self, word):
        """Return the items of the state that start with ``word``, one for each frame that has one."""
        return [item for _, lines in self.shown for item in lines[0] if item.startswith(word)]


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the loop by one that advances only in sleep, without waiting."""
    now = SimpleNamespace(s=100.0)

    def sleep(seconds):
        now.s += seconds

    monkeypatch.setattr("pufferlib.render.pace.time", SimpleNamespace(monotonic=lambda: now.s, sleep=sleep))
    return now


def played(session, *script, fps=1000.0, **folder):
    viewer = ScriptedViewer(*script)
    play(session, viewer, fps, **folder)
    session.close()
    return viewer


def test_pause_stops_steps_and_single_steps_go_on(clock):
    viewer = played(Session("pong", {}), "", ",", "", "", ".", "", ",", "")
    assert viewer.states("step") == ["step 0", "step 1", "step 1", "step 2", "step 3", "step 4"]
    assert len(viewer.states("paused")) == 2
    controls = [lines[2] for _, lines in viewer.shown]
    assert [",: continue" in keys for keys in controls] == [False, False, True, True, False, False]


def test_a_single_step_pauses_and_uses_the_keys_pressed_since_the_last_step(clock, monkeypatch):
    actions, step = [], Session.step
    monkeypatch.setattr(Session, "step", lambda session, *args: actions.append(args[0]) or step(session, *args))
    played(Session("pong", {}), ".", "", "up", "", ".", [".", "."], "", "")
    assert actions == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("keys", "steps_per_s", "state"),
    [("", 40, []), ("-", 20, ["speed 0.5x"]), ("+=", 160, ["speed 4x"]), ("-" * 9, 2.5, ["speed 0.0625x"])],
)
def test_speed_keys_change_the_rate(keys, steps_per_s, state, clock):
    session = Session("pong", {})
    viewer = ScriptedViewer(*keys, *[""] * 100)
    marks = []
    monitor = viewer.show
    viewer.show = lambda *args: marks.append((clock.s, session.steps)) or monitor(*args)
    play(session, viewer, 40)
    session.close()
    (start, first), (end, last) = [mark for mark in marks if mark[1] > 0][-2:]
    assert (last - first) / (end - start) == pytest.approx(steps_per_s)
    assert viewer.states("speed")[-1:] == state


def test_slow_environments_poll_keys_often_and_keep_them_until_the_next_step(clock, monkeypatch):
    actions, step = [], Session.step
    monkeypatch.setattr(Session, "step", lambda session, *args: actions.append(args[0]) or step(session, *args))
    played(Session("pong", {}), *[""] * 10, "up", *[""] * 29, fps=1)
    assert clock.s == pytest.approx(100 + 39 / 30)
    assert actions == [1]


def test_next_agent_is_followed_and_played(clock):
    session = Session("snake", {})
    viewer = played(session, "", "f7", "f7")
    assert [*dict.fromkeys(viewer.states("agent"))] == [f"agent {index} of 16" for index in range(3)]
    assert session.agent == 2


def test_user_takes_over_from_the_policy_and_gives_back(tmp_path, clock):
    run = untrained_run(tmp_path)
    viewer = played(Session("squared", {}, run=run, watched=True), "", "f8", "", "right", "", "f8", "")
    assert viewer.states("step") == ["step 0", "step 1", "step 1", "step 2", "step 3", "step 4"]
    titles = [lines[0][0] for _, lines in viewer.shown]
    assert [title == "squared" for title in titles] == [False, False, True, True, False, False]
    assert ["left: move left" in lines[1] for _, lines in viewer.shown] == [False, False, True, True, False, False]


def test_f8_is_ignored_without_a_policy(clock):
    session = Session("pong", {})
    viewer = played(session, "f8", "")
    assert not session.watched
    assert not any("f8" in item for _, lines in viewer.shown for item in lines[2])


def test_recording_has_the_frames_that_were_shown(tmp_path, clock):
    av = pytest.importorskip("av", reason="the train extra is not installed")
    viewer = played(Session("squared", {}), "right", "f9", "left", "up", "f9", "down", videos=tmp_path / "new")
    (video,) = (tmp_path / "new").iterdir()
    assert video.name.startswith("squared-")
    assert viewer.states("recording") == [f"recording {video}"] * 3
    assert viewer.states("saved") == [f"saved {video}"] * 2
    with av.open(video) as container:
        assert sum(1 for _ in container.decode(video=0)) == 3


def test_recording_ends_with_the_session_and_at_its_longest_duration(tmp_path, clock, monkeypatch):
    pytest.importorskip("av", reason="the train extra is not installed")
    played(Session("pong", {}), "f9", "", videos=tmp_path)
    monkeypatch.setattr(loop, "MAX_VIDEO_S", 3 / 60)
    viewer = played(Session("pong", {}), "f9", "", "", "", fps=60, videos=tmp_path)
    assert len(viewer.states("saved")) == 3
    assert len(list(tmp_path.glob("pong-*.mp4"))) == 2


def test_recording_that_fails_is_reported_and_play_continues(tmp_path, clock, monkeypatch):
    (tmp_path / "file").touch()
    viewer = played(Session("pong", {}), "f9", "", videos=tmp_path / "file")
    assert "no recording: [Errno 17] File exists" in viewer.states("no recording")[0]

    def writer(*_):
        raise BindingMissing("videos need PyAV")

    monkeypatch.setattr(loop, "VideoWriter", writer)
    viewer = played(Session("pong", {}), "f9", "", videos=tmp_path / "new")
    assert viewer.states("step")[-1] == "step 2"
    assert viewer.states("no recording") == ["no recording: videos need PyAV"] * 2
