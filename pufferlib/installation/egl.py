"""Draw an image with EGL on each device, and print the names of the renderers.

Environments such as those of MuJoCo draw with OpenGL through EGL, which needs no window. ``puffer doctor --gpu`` runs
this module as a program, because a broken driver can end the process.
"""

import ctypes
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["renderers"]

MAX_DEVICES = 64
# From the headers EGL/egl.h and EGL/eglext.h.
PLATFORM_DEVICE, OPENGL_API, NONE = 0x313F, 0x30A2, 0x3038
SURFACE_TYPE, IN_MEMORY, RENDERABLE_TYPE, OPENGL = 0x3033, 0x0001, 0x3040, 0x0008
RED_SIZE, WIDTH, HEIGHT = 0x3024, 0x3057, 0x3056
# From the header GL/gl.h.
RENDERER, COLOR_BUFFER, RGBA, UNSIGNED_BYTE = 0x1F01, 0x4000, 0x1908, 0x1401

SIZE = 8  # of the image, in pixels
COLOR = (1.0, 0.6, 0.2, 1.0)


def renderers() -> Iterator[str]:
    """Yield the renderer's name of each device on which an image could be drawn.

    Raises:
        OSError: There is no libEGL, or it cannot list devices.
    """
    egl = _EGL()
    devices, count = (ctypes.c_void_p * MAX_DEVICES)(), ctypes.c_int32()
    egl.call("eglQueryDevicesEXT", ctypes.c_int32(MAX_DEVICES), devices, ctypes.pointer(count))
    for device in devices[: count.value]:
        place = ctypes.c_uint32(PLATFORM_DEVICE), ctypes.c_void_p(device), ctypes.c_void_p()
        display = egl.call("eglGetPlatformDisplayEXT", *place, result=ctypes.c_void_p)
        if display and (name := _draw(egl, ctypes.c_void_p(display))):
            yield name


class _EGL:
    """Functions of libEGL and of OpenGL, which it finds."""

    def __init__(self) -> None:
        self._address = ctypes.CDLL("libEGL.so.1").eglGetProcAddress
        self._address.restype, self._address.argtypes = ctypes.c_void_p, [ctypes.c_char_p]

    def call(self, name: str, *arguments: Any, result: Any = ctypes.c_uint32) -> Any:
        """Call a function with arguments of ctypes, and return its result of this type."""
        address = self._address(name.encode())
        if not address:
            raise OSError(f"libEGL has no {name}")
        return ctypes.CFUNCTYPE(result, *map(type, arguments))(address)(*arguments)


def _draw(egl: _EGL, display: ctypes.c_void_p) -> str:
    """Fill an image with a color, read it back, and return the renderer's name, or "" if a step fails."""
    integers, null = ctypes.c_int32, ctypes.c_void_p()
    wanted = (integers * 7)(SURFACE_TYPE, IN_MEMORY, RENDERABLE_TYPE, OPENGL, RED_SIZE, 8, NONE)
    size = (integers * 5)(WIDTH, SIZE, HEIGHT, SIZE, NONE)
    config, count, pixel = ctypes.c_void_p(), integers(), (ctypes.c_uint8 * 4)()
    if not egl.call("eglInitialize", display, null, null):
        return ""
    try:
        egl.call("eglBindAPI", ctypes.c_uint32(OPENGL_API))
        egl.call("eglChooseConfig", display, wanted, ctypes.pointer(config), integers(1), ctypes.pointer(count))
        if not count.value:
            return ""
        pointers = {"result": ctypes.c_void_p}
        surface = ctypes.c_void_p(egl.call("eglCreatePbufferSurface", display, config, size, **pointers))
        context = ctypes.c_void_p(egl.call("eglCreateContext", display, config, null, null, **pointers))
        if not egl.call("eglMakeCurrent", display, surface, surface, context):
            return ""
        egl.call("glClearColor", *map(ctypes.c_float, COLOR), result=None)
        egl.call("glClear", ctypes.c_uint32(COLOR_BUFFER), result=None)
        kind = ctypes.c_uint32(RGBA), ctypes.c_uint32(UNSIGNED_BYTE)
        egl.call("glReadPixels", *map(integers, (SIZE - 1, SIZE - 1, 1, 1)), *kind, pixel, result=None)
        name: bytes = egl.call("glGetString", ctypes.c_uint32(RENDERER), result=ctypes.c_char_p) or b""
        is_drawn = all(abs(value - 255 * part) <= 1 for value, part in zip(pixel[:3], COLOR[:3], strict=True))
        return name.decode() if is_drawn else ""
    finally:
        egl.call("eglTerminate", display)


if __name__ == "__main__":
    try:
        print("\n".join(renderers()))
    except OSError as error:
        sys.exit(str(error))
