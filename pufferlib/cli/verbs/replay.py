"""``puffer replay``: replay a bundle from an error or a recording."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib import registry
from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser, check_video, split_env, typed
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.machine.signals import signals_exit
from pufferlib.render.motion import Motion
from pufferlib.render.pace import Pace
from pufferlib.render.video import Frame, VideoWriter
from pufferlib.render.viewer import Viewer, choose_viewer
from pufferlib.vector import Bundle, replay

__all__ = ["run"]

PROG = "puffer replay"
ABOUT = """Replay the steps of an environment from a bundle. Every error in a worker names a bundle, and
pufferlib.vector.make(..., record=FOLDER) writes one for each environment. A bundle contains code, like any pickle, so
only replay bundles that you trust."""


def run(argv: list[str]) -> int:
    """Replay the bundle in ``argv``. Return 1 if the outcome differs."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("bundle", nargs="?", type=Path, help="bundle file, such as env3-seed7.npz")
    parser.add_argument("--env", help="name of an environment to use instead of the one in the bundle")
    parser.add_argument("--show", action="store_true", help="show the replay in a window or the terminal")
    parser.add_argument(
        "--terminal", action="store_true", help="show the replay in the terminal even if windows can be opened"
    )
    parser.add_argument("--video", type=Path, help="record the replay as an mp4 video")
    parser.add_argument("--fps", type=float, help="steps per second (default: the rate of the environment)")
    options = parser.parse(argv)
    if options.bundle is None:
        raise UsageError(
            f"{PROG}: name a bundle, for example: puffer replay env3-seed7.npz; errors in workers name their bundle"
        )
    if options.fps is not None and not 1 <= options.fps <= 1000:
        raise UsageError(f"{PROG}: --fps must be from 1 to 1000, got {options.fps:g}")
    check_video(PROG, options.video)
    bundle = Bundle.load(options.bundle)
    _print_description(bundle)
    keywords = typed(options.env or "", texts)
    creator = functools.partial(
        registry.env_creator(options.env, PROG) if options.env else bundle.creator(), **keywords
    )
    is_shown = options.show or options.terminal
    if is_shown or options.video:
        viewer = choose_viewer(PROG, options.terminal, "record it with --video")(PROG) if is_shown else None
        with _FrameOutput(viewer, options.video, options.fps) as output, signals_exit():
            outcome = replay(bundle, _with_rendering(creator), output.show)
    else:
        outcome = replay(bundle, creator)
    say(style(outcome.text, "good" if outcome.is_same else "bad"))
    if options.video and options.video.exists():
        say(f"video: {options.video}")
    return 0 if outcome.is_same else 1


def _print_description(bundle: Bundle) -> None:
    say(style(bundle.env, "bold"))
    steps = len(bundle.actions)
    has = f"all {steps} steps" if bundle.is_complete else f"its last {steps} steps only"
    say(f"environment {bundle.index}, seed {bundle.seed}, {has}, {len(bundle.ends)} finished episodes")
    for difference in bundle.differences():
        note(f"version differs: {difference}")


def _with_rendering(creator: functools.partial[Any]) -> functools.partial[Any]:
    """Add ``render_mode="rgb_array"`` to the keywords of ``creator``, if it accepts that."""
    keywords = dict(creator.keywords)  # nested partials are flattened, so these are all keywords
    inner = keywords.get("env_creator")
    if inner is not None:
        if _accepts_render_mode(inner):
            keywords["env_kwargs"] = {**(keywords.get("env_kwargs") or {}), "render_mode": "rgb_array"}
        return functools.partial(creator, **keywords)
    return functools.partial(creator, render_mode="rgb_array") if _accepts_render_mode(creator) else creator


def _accepts_render_mode(creator: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(creator).parameters
    except (TypeError, ValueError):
        return False
    return "render_mode" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


class _FrameOutput:
    """Output of rendered frames to a viewer, a video, or both."""

    def __init__(self, viewer: Viewer | None, path: Path | None, fps: float | None) -> None:
        self._viewer, self._path, self._fps = viewer, path, fps
        self._writer: VideoWriter | None = None
        self._pace: Pace | None = None
        self._steps = 0

    def __enter__(self) -> "_FrameOutput":
        return self

    def __exit__(self, *_: object) -> None:
        for part in (self._viewer, self._writer):
            if part is not None:
                part.close()

    def show(self, vecenv: Any) -> None:
        """Render and output the current frame."""
        picture = vecenv.driver_env.render()
        if not isinstance(picture, np.ndarray) or picture.ndim != 3:
            raise APIUsageError(f"{PROG}: the environment cannot be rendered; remove --show and --video")
        fps = self._fps or max(1.0, Motion(vecenv.driver_env).fps)
        if self._path:
            self._writer = self._writer or VideoWriter(self._path, fps)
            self._writer.write(picture)
        if self._viewer and not self._viewer.closed:
            self._show(picture, fps)
        self._steps += 1

    def _show(self, picture: Frame, fps: float) -> None:
        assert self._viewer is not None
        self._pace = self._pace or Pace(fps)
        self._viewer.show(picture, [f"replay   step {self._steps}"])
        self._viewer.pressed()  # process events, so that the window stays responsive
        self._pace.wait()
