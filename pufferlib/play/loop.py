"""Loop of interactive play: keys, speed, pause and recording, for every viewer."""

import itertools
import math
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib import registry
from pufferlib.errors import PufferError
from pufferlib.play.controls import Cursor
from pufferlib.play.session import Session
from pufferlib.render.pace import Pace
from pufferlib.render.text import ITEM_GAP, draw_text
from pufferlib.render.video import Frame, VideoWriter
from pufferlib.render.viewer import Viewer

__all__ = ["VIDEOS", "play"]

VIDEOS = Path("videos")  # default folder of recordings
MAX_VIDEO_S = 600.0

NEXT_AFTER_S = 1.5  # pause between episodes that are only watched
MIN_POLLS_PER_S = 30.0  # minimum keyboard polls per second
MAX_STEPS_PER_S = 1000.0
SLOWEST, FASTEST = 1 / 16, 16.0  # factors of the speed
# If the environment waits for a key:
REPEATS_AFTER_S = 0.3  # delay before a held key repeats
REPEATS_S = 0.12  # interval between repetitions


def play(session: Session, viewer: Viewer, fps: float, videos: Path = VIDEOS) -> None:
    """Play or watch at ``fps`` steps per second, until the user presses "q" or closes the viewer.

    Args:
        session: Environment and players.
        viewer: Window, terminal or page.
        fps: Steps per second at normal speed.
        videos: Folder of the videos that the user records. It is created when it is needed.
    """
    recorder = _Recorder(videos, registry.short_name(session.name), fps * session.pictures_per_step)
    try:
        _Loop(session, viewer, fps, recorder).run()
    finally:
        recorder.stop()


class _Loop:
    """State of ``play``."""

    def __init__(self, session: Session, viewer: Viewer, fps: float, recorder: "_Recorder") -> None:
        self._session, self._viewer, self._fps, self._recorder = session, viewer, fps, recorder
        self._user = _User(session)
        self._speed, self._paused, self._singles = 1.0, False, 0
        self._set_pace()

    def run(self) -> None:
        """Play until the user quits."""
        session, viewer = self._session, self._viewer
        polls = polls_over = 0  # since the last step, and since the end of the episode
        pressed: list[str] = []  # since the last step
        self._show_step()
        while not viewer.closed:
            self._pace.wait()
            now = viewer.pressed()
            if "q" in now:
                return
            self._obey(now)
            polls_over = polls_over + 1 if session.over and session.watched and not self._paused else 0
            if "r" in now or polls_over > NEXT_AFTER_S * self._polls_per_s:
                polls, pressed = 0, []
                session.reset()
                self._show_step()
                continue
            polls, pressed = polls + 1, [*pressed, *now]
            action = None
            is_due = self._singles > 0 or session.waits or (not self._paused and polls >= self._polls_per_step)
            if is_due:
                self._singles = max(0, self._singles - 1)
                action = None if session.watched else self._user.action(viewer, pressed)
                polls, pressed = 0, []
            if is_due and not session.over and (session.watched or action is not None):
                session.step(action, self._show_between)
                self._show_step()
            elif now:
                self._show(self._picture())

    def _obey(self, pressed: Sequence[str]) -> None:
        """Follow the keys of the loop."""
        session = self._session
        for key in pressed:
            if key == "f7":
                session.agent = (session.agent + 1) % session.num_agents
            elif key == "f8" and session.has_policy:
                session.watched = not session.watched
            elif key == "f9":
                self._recorder.toggle()
                self._recorder.write(self._picture())
            elif session.waits:
                continue
            elif key == ",":
                self._paused = not self._paused
            elif key == ".":
                self._paused = True
                self._singles += 1
            elif key in ("-", "+", "="):
                self._speed = min(max(self._speed * (0.5 if key == "-" else 2), SLOWEST), FASTEST)
        if pressed:
            self._set_pace()

    def _state(self) -> list[str]:
        """Return a description of the loop, as far as it is not as usual."""
        found = []
        if self._paused and not self._session.waits:
            found.append("paused")
        if self._speed != 1 and not self._session.waits:
            found.append(f"speed {self._speed:g}x")
        return [*found, self._recorder.state] if self._recorder.state else found

    def _keys(self) -> list[str]:
        """Return a description of each key of the loop."""
        session = self._session
        keys = ["r: restart"]
        if not session.waits:
            keys += [f",: {'continue' if self._paused else 'pause'}", ".: single step", "-: slower", "+: faster"]
        if session.num_agents > 1:
            keys.append("f7: next agent")
        if session.has_policy:
            keys.append(f"f8: {'take over' if session.watched else 'let the policy play'}")
        return [*keys, f"f9: {'stop recording' if self._recorder.is_on else 'record'}", "q: quit"]

    def _picture(self) -> Frame | str:
        return self._user.marked(self._session.picture())

    def _show(self, picture: Frame | str) -> None:
        session, viewer = self._session, self._viewer
        items = [*session.state(), *self._state()], session.keys(viewer.has_mouse), self._keys()
        viewer.show(picture, [ITEM_GAP.join(line) for line in items])

    def _show_step(self) -> None:
        """Show and record the frame after a step or reset."""
        picture = self._picture()
        self._recorder.write(picture)
        self._show(picture)

    def _show_between(self, picture: Frame) -> None:
        """Show and record a frame between two steps, and wait until the next one is due."""
        self._recorder.write(picture)
        self._show(picture)
        for _ in range(self._polls_per_step):
            self._pace.wait()

    def _set_pace(self) -> None:
        """Poll often enough for keys, and step every few polls."""
        frames_per_s = min(self._fps * self._speed, MAX_STEPS_PER_S) * self._session.pictures_per_step
        self._polls_per_step = math.ceil(MIN_POLLS_PER_S / frames_per_s)
        self._polls_per_s = frames_per_s * self._polls_per_step
        self._pace = Pace(self._polls_per_s)


class _User:
    """Actions of the user, from keyboard and mouse."""

    def __init__(self, session: Session) -> None:
        self._session, self._key_repeat, self._cursor = session, _KeyRepeat(), Cursor()

    def action(self, viewer: Viewer, pressed: Sequence[str]) -> Any:
        """Return the chosen action, or None if there is none yet."""
        keys, held, clicks = self._session.key_map, viewer.held, viewer.clicks()
        if not keys.waits:
            action = keys.action({*pressed, *held})
        elif keys.types:
            action = keys.read(pressed)
        else:
            action = keys.action(self._key_repeat(pressed, held))
        if action is None:
            action = self._cursor.choose(self._session.areas(), () if self._session.has_arrows else pressed, clicks)
        return action

    def marked(self, picture: Frame | str) -> Frame | str:
        """Return ``picture`` with a border around the selected area."""
        return picture if isinstance(picture, str) else self._cursor.marked(picture, self._session.areas())


class _KeyRepeat:
    """Key repetition for environments that wait for a key."""

    def __init__(self) -> None:
        self._down_since: dict[str, float] = {}
        self._last: Collection[str] = ()
        self._when = 0.0

    def __call__(self, pressed: Sequence[str], held: Collection[str]) -> set[str]:
        now = time.monotonic()
        self._down_since = {name: self._down_since.get(name, now) for name in held}
        wanted = {*pressed, *(name for name, since in self._down_since.items() if now - since > REPEATS_AFTER_S)}
        if wanted == self._last and now - self._when < REPEATS_S:
            return set()
        if wanted:
            self._last, self._when = wanted, now
        return wanted


class _Recorder:
    """Recording of the frames that are shown to videos, one at a time.

    Attributes:
        state: Description for the user: the video that is recorded, the last one, or why there is none.

    Args:
        folder: Folder of the videos.
        name: Start of the file names.
        fps: Frames per second.
    """

    def __init__(self, folder: Path, name: str, fps: float) -> None:
        self.state = ""
        self._folder, self._fps = folder, max(fps, 1.0)
        self._name = re.sub(r"[^\w.-]+", "-", name)
        self._writer: VideoWriter | None = None
        self._size: tuple[int, ...] | None = None

    @property
    def is_on(self) -> bool:
        """True during a recording."""
        return self._writer is not None

    def toggle(self) -> None:
        """Start or stop a recording."""
        if self._writer:
            self.stop()
            return
        start, numbers = f"{self._name}-{time.strftime('%Y%m%d-%H%M%S')}", itertools.count(2)
        path = self._folder / f"{start}.mp4"
        while path.exists():
            path = self._folder / f"{start}-{next(numbers)}.mp4"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._writer = VideoWriter(path, self._fps, MAX_VIDEO_S)
            self.state = f"recording {path}"
        except (PufferError, OSError) as error:
            self.state = f"no recording: {error}"

    def write(self, picture: Frame | str) -> None:
        """Append a frame to the recording, if there is one."""
        if self._writer is None:
            return
        frame = draw_text(picture) if isinstance(picture, str) else picture
        self._size = self._size or frame.shape[:2]
        try:
            self._writer.write(_cut(frame, *self._size))
        except (PufferError, OSError) as error:
            self._end(f"no recording: {error}")
        else:
            if self._writer.full:
                self.stop()

    def stop(self) -> None:
        """Finish the recording, if there is one."""
        if self._writer:
            self._end(f"saved {self._writer.path}")

    def _end(self, state: str) -> None:
        assert self._writer is not None
        writer, self._writer, self._size, self.state = self._writer, None, None, state
        try:
            writer.close()
        except (PufferError, OSError) as error:
            self.state = f"no recording: {error}"


def _cut(frame: Frame, height: int, width: int) -> Frame:
    """Return ``frame`` with this size, cut or padded with black, because a video has one size and text has many."""
    if frame.shape[:2] == (height, width):
        return frame
    found = np.zeros((height, width, 3), np.uint8)
    part = frame[:height, :width]
    found[: part.shape[0], : part.shape[1]] = part
    return found
