"""Tests of errors that must not stop a training, such as failing loggers, videos and evaluations."""

import json
import math
import os
import re
import resource
import shutil
import sys
import warnings
import zipfile

import numpy as np
import pytest
import torch

import pufferlib
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.ocean.files import write_template
from pufferlib.render.video import VideoWriter
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.runs.report import read_metrics
from pufferlib.runs.versions import CODE, versions_of
from pufferlib.settings.config import load_config
from pufferlib.training.callbacks import Callback
from pufferlib.training.loggers import JsonlLogger
from pufferlib.training.result import EpisodeVideo
from pufferlib.training.standard_callbacks import PeriodicEvaluation
from pufferlib.training.trainer import Trainer
from tests.envs import FunctionEnv, MaskedEnv
from tests.tiers import once

pytestmark = pytest.mark.usefixtures("blank_curves")

SMALL = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 256,
    "train.horizon": 16,
    "train.minibatch_size": 128,
    "policy.hidden_size": 8,
    "eval.episodes": 2,
}
FRAME = np.zeros((61, 47, 3), np.uint8)


class Short(FunctionEnv):
    """Environment with rendering and episodes of 8 steps. Subclasses add one failure each."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, render_mode=None):
        super().__init__(length=8)
        self.render_mode = render_mode

    def render(self):
        return FRAME


class NoDisplay(Short):
    def __init__(self, render_mode=None):
        if render_mode:
            raise OSError("no display")
        super().__init__(render_mode)


class BreaksWhileRendering(Short):
    def render(self):
        if self.count == 3:
            raise ValueError("the window is gone")
        return FRAME


class DrawsNothing(Short):
    def render(self):
        return None


class NeedsRenderMode(Short):
    def __init__(self):
        super().__init__(None)

    def render(self):
        raise AttributeError("Unexpected mode: None")  # as Gymnasium's robots do


class ChangesSize(Short):
    def render(self):
        return FRAME[: 61 - 5 * self.count]


class OddRate(Short):
    metadata = {"render_modes": ["rgb_array"], "render_fps": "fast"}  # noqa: RUF012


class SlowRate(Short):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 0.5}  # noqa: RUF012


class BreaksWhileClosing(Short):
    def close(self):
        raise OSError("the simulator is gone")


class ChangesFolder(Short):
    def step(self, action):
        os.chdir("/")
        return super().step(action)


def train(env, folder, **settings):
    settings = {**SMALL, "vec.backend": "Serial", "vec.num_envs": 2, **settings}
    return pufferlib.train(env, settings, runs=folder)


def test_error_in_close_of_env_warns(tmp_path):
    with pytest.warns(UserWarning, match="the environments raised in close: OSError: the simulator is gone"):
        done = train(BreaksWhileClosing, tmp_path)
    assert done.run.summary.exists()
    with pytest.warns(UserWarning, match="the environments raised in close"):
        pufferlib.load(done.run.folder)


def test_run_keeps_its_folder_if_env_changes_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = train(ChangesFolder, "runs")
    files = {"config.toml", "metrics.jsonl", "checkpoints", "learning_curve.png", "evaluation.mp4", "summary.json"}
    assert {path.name for path in done.run.folder.iterdir()} == files
    assert os.getcwd() == str(tmp_path)


class StartsElsewhere(Short):
    def __init__(self):
        super().__init__()
        os.chdir("/")


def test_run_of_relative_folder_is_resumed_if_env_changes_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = train(StartsElsewhere, "runs")
    steps = done.config.train.total_timesteps
    again = pufferlib.train(resume=done.run.folder, settings={"train.total_timesteps": 2 * steps}, runs="runs")
    assert again.run.about().agent_steps == 2 * steps
    assert not done.run.folder.is_absolute()


class BreaksLater(Short):
    """Environment that fails in the step whose number is in the environment variable BREAKS."""

    steps = 0

    def step(self, action):
        type(self).steps += 1
        if type(self).steps == int(os.environ["BREAKS"]):
            raise RuntimeError("the server is gone")
        return super().step(action)


@pytest.mark.parametrize("overlap", ["none", "learning"])
@pytest.mark.parametrize("backend", once(["Serial", "Multiprocessing"], ["Serial"]))
def test_failing_env_keeps_latest_update(backend, overlap, tmp_path, monkeypatch):
    monkeypatch.setattr(BreaksLater, "steps", 0)
    monkeypatch.setenv("BREAKS", "40")  # in the third update
    settings = {"vec.backend": backend, "vec.num_envs": 1, "train.overlap": overlap, "train.minibatch_size": 16}
    expected = r"a checkpoint of update 2 was saved; to resume: \S+ train --resume "
    with pytest.raises((RuntimeError, WorkerError), match="the server is gone") as raised:
        train(BreaksLater, tmp_path, **settings)
    assert re.match(expected, raised.value.__notes__[-1])
    (folder,) = tmp_path.iterdir()
    run = Run.at(folder)
    assert [path.name for path in run.checkpoints.iterdir()] == ["000002"]
    assert run.about().agent_steps == 32
    monkeypatch.setenv("BREAKS", "0")
    assert pufferlib.train(resume=folder).run.about().agent_steps == 256


def test_env_that_fails_in_first_update_leaves_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(BreaksLater, "steps", 0)
    monkeypatch.setenv("BREAKS", "10")
    with pytest.raises(RuntimeError, match="the server is gone"):
        train(BreaksLater, tmp_path)
    assert not list(tmp_path.glob("*/checkpoints"))


class ChangesDtype(Short):
    """Environment that changes torch's default dtype when it resets."""

    def reset(self, *, seed=None, options=None):
        torch.set_default_dtype(torch.float64)
        return super().reset(seed=seed, options=options)


def test_env_that_changes_default_dtype_is_an_error(tmp_path):
    try:
        with pytest.raises(APIUsageError, match=r"torch's default dtype must be float32, got torch.float64; call"):
            train(ChangesDtype, tmp_path)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture
def make_trainer(target_env, tmp_path):
    def make(*callbacks, loggers=()):
        config = load_config("breakout", SMALL)
        return Trainer(config, tmp_path, loggers, vecenv=target_env(8), callbacks=callbacks)

    return make


NUMBERS = [
    (np.float32(1.5), 1.5),
    (np.int64(3), 3),
    (np.bool_(True), 1),
    (True, 1),
    (torch.tensor(2.0, requires_grad=True), 2.0),
    (np.array([2.5]), 2.5),
    (math.nan, None),
]


@pytest.mark.parametrize(("value", "written"), NUMBERS, ids=lambda value: type(value).__name__)
def test_metric_of_any_number_type_is_logged(value, written, make_trainer, tmp_path):
    path = tmp_path / "metrics.jsonl"
    trainer = make_trainer(lambda trainer, metrics: metrics.update(mine=value), loggers=[JsonlLogger(path)])
    trainer.train()
    assert [json.loads(line)["mine"] for line in path.read_text().splitlines()] == [written] * 2


@pytest.mark.parametrize(
    "value",
    [None, "phase 2", [1, 2], np.arange(3), {"a": 1}, 1j, object(), 10**400],
    ids=lambda value: type(value).__name__,
)
def test_metric_that_is_not_number_is_dropped_with_one_warning(value, make_trainer, tmp_path):
    path = tmp_path / "metrics.jsonl"

    def add(trainer, metrics):
        del metrics["agent_steps"]
        metrics["mine"] = value

    trainer = make_trainer(add, loggers=[JsonlLogger(path)])
    with pytest.warns(UserWarning, match="the metric 'mine' is not logged: metrics must be numbers, got") as caught:
        trainer.train()
    assert len(caught) == 1
    rows = read_metrics(path)
    assert [row["agent_steps"] for row in rows] == [128, 256]
    assert "mine" not in rows[0]


class Broken:
    """Logger that clears the metrics and raises in every call."""

    def __init__(self, kind):
        self.kind = kind

    def log(self, metrics):
        metrics.clear()
        raise self.kind("no network")

    def close(self):
        raise self.kind("no network")


@pytest.mark.parametrize("kind", [ConnectionError, SystemExit])
def test_failing_logger_does_not_stop_training(kind, make_trainer, tmp_path):
    path = tmp_path / "metrics.jsonl"
    trainer = make_trainer(loggers=[Broken(kind), JsonlLogger(path)])
    with pytest.warns(UserWarning, match="the logger Broken failed in") as caught:
        trainer.train()
    assert ["in log" in str(each.message) for each in caught] == [True, False], "one warning for each method"
    assert [row["agent_steps"] for row in read_metrics(path)] == [128, 256]
    assert checkpoint.latest(Run.at(tmp_path).checkpoints).name.endswith("2")


class UnsupportedState(Callback):
    def state_dict(self):
        return {"what": object()}


class FailingState(Callback):
    def state_dict(self):
        raise KeyError("lost")


@pytest.mark.parametrize("callback", [UnsupportedState, FailingState])
def test_checkpoint_is_saved_without_failing_callback_state(callback, make_trainer, tmp_path):
    trainer = make_trainer(callback())
    with pytest.warns(UserWarning, match=f"the checkpoint has no state of the callback {callback.__name__}"):
        trainer.train()
    assert checkpoint.read_state(checkpoint.latest(Run.at(tmp_path).checkpoints), "cpu")["updates"] == 2


def test_failing_evaluation_does_not_stop_training(make_trainer, target_env):
    class Fails(target_env):
        def step(self, actions):
            raise ConnectionError("the simulator is gone")

    def make(buf=None, seed=0, **kwargs):
        return Fails(1, buf=buf, seed=seed)

    trainer = make_trainer(PeriodicEvaluation(256, episodes=1, env_creator=make))
    with pytest.warns(UserWarning, match="has no evaluation, training continues: .*the simulator is gone"):
        trainer.train()
    assert trainer.updates == 2


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (NoDisplay, "cannot be made with render_mode='rgb_array': .*no display"),
        (BreaksWhileRendering, "recording stopped: ValueError: the window is gone"),
        (DrawsNothing, r"a video needs images, but render\(\) returned none"),
        (NeedsRenderMode, "the episode continues; let the function that makes it take render_mode, and pass it on"),
    ],
)
def test_env_that_fails_to_render_is_evaluated(env, words, tmp_path):
    with pytest.warns(UserWarning, match=words):
        done = train(env, tmp_path)
    assert json.loads(done.run.summary.read_text())["score"] == 8


@pytest.mark.parametrize("env", [ChangesSize, OddRate, SlowRate])
def test_video_accepts_changing_sizes_and_odd_rates(env, tmp_path):
    assert train(env, tmp_path).run.video.exists()


def test_unwritable_video_warns(tmp_path, monkeypatch):
    def fails(self):
        close(self)
        raise OSError("no room")

    close = VideoWriter.close
    monkeypatch.setattr(VideoWriter, "close", fails)
    with (
        pytest.warns(UserWarning, match="the video could not be written: no room"),
        EpisodeVideo(tmp_path / "x.mp4", 0) as film,
    ):
        film(FRAME, 30)
    assert film.about() == ""


def test_video_on_full_disk_warns_once(tmp_path):
    def record(film):
        with film:
            for frame in frames:
                film(frame, 30)

    film = EpisodeVideo(tmp_path / "x.mp4", 0)
    frames = np.random.default_rng(0).integers(0, 255, (40, 320, 320, 3), np.uint8)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.warns(UserWarning, match="could not be written") as warned:
            record(film)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (len(warned), film.about(), list(tmp_path.iterdir())) == (1, "", [])


def test_failing_random_play_keeps_score(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise ConnectionError("the simulator is gone")

    monkeypatch.setattr("pufferlib.training.evaluation.RandomPlayer.act", fails)
    with pytest.warns(UserWarning, match="random play has no score: ConnectionError: the simulator is gone"):
        done = train(Short, tmp_path)
    summary = json.loads(done.run.summary.read_text())
    assert (summary["score"], summary["random_score"]) == (8, None)
    assert "random play: no score" in str(done.comparison)


def test_failing_learning_curve_keeps_summary(drawn_curves, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.warns(UserWarning, match="the learning curve is not drawn: BindingMissing"):
        done = train(Short, tmp_path)
    assert done.run.summary.exists()


def test_random_play_obeys_action_masks(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = train(MaskedEnv, tmp_path)
    assert done.comparison.random.score_mean == 6


@pytest.mark.parametrize("num_envs", [1, 2])
def test_evaluation_opens_at_most_as_many_envs_as_training(num_envs, tmp_path):
    open_now, most = [0], [0]

    class Simulator(Short):
        def __init__(self, render_mode=None):
            super().__init__(render_mode)
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])

        def close(self):
            open_now[0] -= 1

    done = train(Simulator, tmp_path, **{"vec.num_envs": num_envs, "eval.episodes": 5})
    assert most == [num_envs]
    assert open_now == [0]
    assert (done.comparison.agent.scores, done.comparison.random.episodes) == ((8.0,) * 5, 5)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")
@pytest.mark.parametrize("edited", [None, "int broken = ;"], ids=["removed", "broken"])
def test_checkpoint_is_saved_if_c_file_is_removed_or_broken(edited, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, _ = write_template("corridor", tmp_path)
    code = versions_of(str(source))[CODE]

    def change(trainer, metrics):
        source.unlink(missing_ok=True)
        if edited:
            source.write_text(edited)

    trainer = Trainer(load_config(str(source), {**SMALL, "env.num_envs": 8}), tmp_path, callbacks=[change])
    trainer.train()
    assert trainer.checkpoint_path.is_dir()
    assert trainer.versions[CODE] == code


def test_env_in_zip_archive_is_trained(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped_env.py", "from tests.training.test_failures_beside_training import Short as Zipped")
    monkeypatch.syspath_prepend(tmp_path / "archive.zip")
    config = load_config("zipped_env:Zipped", {**SMALL, "vec.num_envs": 8, "vec.backend": "Serial"})
    trainer = Trainer(config, tmp_path)
    trainer.train()
    assert trainer.checkpoint_path.is_dir()


def test_edit_of_env_file_during_training_warns(tmp_path):
    source = tmp_path / "edited_env.py"
    source.write_text("from tests.training.test_failures_beside_training import Short as Edited\n")
    settings = {**SMALL, "vec.num_envs": 8, "vec.backend": "Serial"}

    def edit(trainer, metrics):
        source.write_text(source.read_text() + "# edited\n")

    with pytest.warns(UserWarning, match=r"edited_env.py:Edited was edited during the training: the agent was trained"):
        pufferlib.train(f"{source}:Edited", settings, runs=tmp_path / "runs", callbacks=[edit])
