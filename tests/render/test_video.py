"""Tests of VideoWriter. The written videos are decoded again."""

import resource
from pathlib import Path

import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.render.video import MIN_HEIGHT_PX, VideoWriter

av = pytest.importorskip("av", reason="needs the extra 'train'")


def frames(count: int, height: int, width: int) -> list[np.ndarray]:
    """Return grey frames that get brighter, with a red left half."""
    pictures = []
    for i in range(count):
        picture = np.full((height, width, 3), 40 + 4 * i, np.uint8)
        picture[:, : width // 2] = (200, 0, 0)
        pictures.append(picture)
    return pictures


def decode(path: Path) -> tuple[list[np.ndarray], object]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)], stream.average_rate


@pytest.mark.parametrize(("height", "width"), [(330, 576), (333, 217), (210, 160), (11, 11)])
def test_frames_are_encoded_with_even_size(tmp_path: Path, height: int, width: int) -> None:
    path = tmp_path / "a.mp4"
    with VideoWriter(path, fps=15) as writer:
        for frame in frames(12, height, width):
            writer.write(frame)
    decoded, rate = decode(path)
    assert len(decoded) == writer.frames == 12
    assert rate == 15
    got_height, got_width, _ = decoded[0].shape
    assert got_height % 2 == got_width % 2 == 0
    assert got_height >= MIN_HEIGHT_PX
    red, _, blue = decoded[0][got_height // 2, got_width // 5].astype(int)
    assert red > 150 > blue
    # Pixels outside the red half and the padding get brighter.
    grey = [picture[got_height // 2, got_width * 3 // 4, 1] for picture in decoded]
    assert grey[-1] > grey[0] + 20
    assert list(tmp_path.iterdir()) == [path]


def test_index_is_at_start_of_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with VideoWriter(path) as writer:
        for frame in frames(3, 320, 320):
            writer.write(frame)
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_max_seconds_limits_video(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "a.mp4", fps=10, max_seconds=0.5) as writer:
        for frame in frames(20, 320, 320):
            writer.write(frame)
        assert writer.full
        assert (writer.frames, writer.dropped) == (5, 15)
    assert len(decode(tmp_path / "a.mp4")[0]) == 5


def test_video_without_frames_leaves_no_file(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4")
    writer.close()
    writer.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        None,
    ],
)
def test_invalid_frame_raises(tmp_path: Path, frame: np.ndarray) -> None:
    with VideoWriter(tmp_path / "a.mp4") as writer, pytest.raises(APIUsageError, match=r"uint8 \(height, width, 3\)"):
        writer.write(frame)


def test_invalid_use_raises(tmp_path: Path) -> None:
    with pytest.raises(APIUsageError, match="fps must be at least 1, got 0"):
        VideoWriter(tmp_path / "a.mp4", fps=0)
    writer = VideoWriter(tmp_path / "a.mp4")
    writer.write(np.zeros((320, 320, 3), np.uint8))
    with pytest.raises(APIUsageError, match="shape of the first"):
        writer.write(np.zeros((320, 322, 3), np.uint8))
    writer.close()
    with pytest.raises(APIUsageError, match="closed"):
        writer.write(np.zeros((320, 320, 3), np.uint8))


def write_all(writer: VideoWriter, pictures: np.ndarray) -> None:
    for picture in pictures:
        writer.write(picture)


def test_failed_write_keeps_the_earlier_video(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"earlier")
    noise = np.random.default_rng(0).integers(0, 256, (100, 320, 320, 3), np.uint8)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = VideoWriter(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, hard))  # fails like a full disk
    try:
        with pytest.raises(OSError, match="too large"):
            write_all(writer, noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(OSError, match="too large"):
        writer.close()
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"earlier"]


def test_missing_folder_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        VideoWriter(tmp_path / "absent" / "a.mp4")
