"""Error for missing or broken OpenGL, shared by bindings that render with MuJoCo."""

from pufferlib.errors import BindingMissing

__all__ = ["cannot_draw"]

_ADVICE = {
    "egl": "install its Debian package, libegl1, or set MUJOCO_GL=osmesa, which needs libosmesa6 and no driver",
    "osmesa": "install its Debian package, libosmesa6",
    "glfw": "it draws into windows, so where there is no display unset MUJOCO_GL",
}


def cannot_draw(where: str, backend: str, error: Exception, advice: str = "") -> BindingMissing:
    """Return the error for a failed attempt to render.

    Args:
        where: Requested environment, for example "mujoco/Ant-v5".
        backend: Value of MUJOCO_GL that was used.
        error: Error that rendering raised.
        advice: What to do. By default it depends on the backend.
    """
    return BindingMissing(
        f"{where}: OpenGL cannot draw with MUJOCO_GL={backend}: {error}; "
        f"{advice or _ADVICE.get(backend, 'unset it')}, or do not request images"
    )
