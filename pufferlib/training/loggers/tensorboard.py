"""Metrics for TensorBoard."""

import io
import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pufferlib.errors import BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.training.loggers.base import Result

__all__ = ["TensorBoardLogger", "gif_of"]


MAX_FRAMES = 150
MAX_FPS = 15
WIDTH_PX = 240


def gif_of(video: Path) -> bytes:
    """Return the start of a video as a GIF, at most 240 pixels wide.

    Args:
        video: Path of an mp4 file.
    """
    import av
    from PIL import Image

    images: list[Image.Image] = []
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        fps = float(stream.average_rate or MAX_FPS)
        every = max(1, round(fps / MAX_FPS))  # keep one of this many frames
        for i, frame in enumerate(container.decode(stream)):
            if len(images) == MAX_FRAMES:
                break
            if i % every == 0:
                width = min(WIDTH_PX, frame.width)
                resized = Image.fromarray(frame.to_ndarray(format="rgb24")).resize(
                    (width, max(1, frame.height * width // frame.width)), Image.Resampling.BOX
                )
                images.append(resized.quantize(64))
    if not images:
        return b""
    gif = io.BytesIO()
    duration_ms = round(1000 * every / fps)
    images[0].save(gif, "GIF", save_all=True, append_images=images[1:], duration=duration_ms, loop=0)
    return gif.getvalue()


EVENTS = "events.out.tfevents."
STEPS = "agent_steps"
SCORE = "result/score"  # score of the evaluation, by which the hyperparameter page compares runs


class TensorBoardLogger:
    """Logger that writes each update as an event over agent steps, and the settings as hyperparameters.

    At the end of the run it writes the score, the learning curve and the video.

    Args:
        folder: Folder for the event file. If it contains one, the run continues. TensorBoard then shows repeated steps
            as they were the last time.
        settings: Hyperparameters by dotted name, such as ``{"train.learning_rate": 0.001}``.
        name: Name of the run on the hyperparameter page.

    Raises:
        BindingMissing: TensorBoard is not installed.
        OSError: ``folder`` cannot be written to.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any] | None = None, name: str = "") -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.plugins.hparams import summary_v2 as hparams
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ImportError as error:
            raise BindingMissing(
                f'TensorBoard: the logger "tensorboard" needs it; {way_to_install("track")}'
            ) from error
        self._event, self._summary = event_pb2, summary_pb2
        self._continues = any(folder.glob(f"{EVENTS}*"))
        path = folder / f"{EVENTS}{time.time():.6f}.{platform.node()}.{os.getpid()}"
        self._writer = RecordWriter(path.open("xb", buffering=0))
        self._steps = 0
        self._write(file_version="brain.Event:2")
        plain = {
            key: value if isinstance(value, str | int | float) else _text(value)
            for key, value in (settings or {}).items()
        }
        self._write(summary=hparams.hparams_config_pb([], [hparams.Metric(SCORE, display_name="score")]))
        self._write(summary=hparams.hparams_pb(plain, trial_id=name or folder.name))

    def log(self, metrics: dict[str, float]) -> None:
        """Write the metrics of an update."""
        self._steps = int(metrics[STEPS])
        if self._continues:
            self._continues = False
            started = self._event.SessionLog(status=self._event.SessionLog.START)
            self._write(
                step=self._steps, session_log=started
            )  # TensorBoard then discards later steps of the earlier session
        self._write(step=self._steps, summary=self._scalars(metrics))

    def finish(self, result: Result) -> None:
        """Write the result: its numbers as ``result/...``, and the images."""
        self._write(step=self._steps, summary=self._scalars({f"result/{key}": n for key, n in result.numbers.items()}))
        images = {"learning curve": result.curve.read_bytes() if result.curve.exists() else None}
        images["evaluation"] = gif_of(result.video) if result.video else None
        image = self._summary.Summary.Image
        values = [
            self._summary.Summary.Value(tag=tag, image=image(encoded_image_string=picture))
            for tag, picture in images.items()
            if picture
        ]
        self._write(step=self._steps, summary=self._summary.Summary(value=values))
        self._write(summary=self._session_end())

    def close(self) -> None:
        """Close the file. This may be called twice."""
        if not self._writer.closed:
            self._writer.close()

    def _scalars(self, metrics: Mapping[str, float]) -> Any:
        value = self._summary.Summary.Value
        return self._summary.Summary(value=[value(tag=key, simple_value=number) for key, number in metrics.items()])

    def _session_end(self) -> Any:
        from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

        end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=time.time())
        plugin_metadata = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=end))
        value = self._summary.Summary.Value(
            tag=metadata.SESSION_END_INFO_TAG, metadata=plugin_metadata, tensor=metadata.NULL_TENSOR
        )
        return self._summary.Summary(value=[value])

    def _write(self, **event: Any) -> None:
        self._writer.write(self._event.Event(wall_time=time.time(), **event).SerializeToString())


def _text(value: Any) -> str:
    return json.dumps(value, default=str)
