"""Films as GIF, the one moving picture that TensorBoard shows."""

import io
from pathlib import Path

__all__ = ["gif_of"]

MOST_PICTURES = 150
MOST_FPS = 15
WIDTH_PX = 240


def gif_of(video: Path) -> bytes:
    """The beginning of a film as a GIF, at most 240 pixels wide.

    Args:
        video: An mp4 file.
    """
    import av
    from PIL import Image

    pictures: list[Image.Image] = []
    with av.open(str(video)) as film:
        stream = film.streams.video[0]
        fps = float(stream.average_rate or MOST_FPS)
        every = max(1, round(fps / MOST_FPS))
        for i, frame in enumerate(film.decode(stream)):
            if len(pictures) == MOST_PICTURES:
                break
            if i % every == 0:
                width = min(WIDTH_PX, frame.width)
                picture = Image.fromarray(frame.to_ndarray(format="rgb24")).resize(
                    (width, max(1, frame.height * width // frame.width)), Image.Resampling.BOX
                )
                pictures.append(picture.quantize(64))
    if not pictures:
        return b""
    gif = io.BytesIO()
    duration_ms = round(1000 * every / fps)
    pictures[0].save(gif, "GIF", save_all=True, append_images=pictures[1:], duration=duration_ms, loop=0)
    return gif.getvalue()
