"""Check for a Vulkan device, so that a machine without one raises an error instead of crashing."""

import ctypes

from pufferlib.errors import BindingMissing

__all__ = ["check_vulkan", "find_problem"]

LIBRARY = "libvulkan.so.1"
INSTANCE_CREATE_INFO = 1  # VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO


class InstanceCreateInfo(ctypes.Structure):
    """``VkInstanceCreateInfo``. Zeros request no layers and no extensions."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("num_layers", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("num_extensions", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    )


def check_vulkan(where: str, what: str) -> None:
    """Raise an error unless there is a Vulkan device.

    Args:
        where: Environment for the error message.
        what: Option that needs Vulkan, for the error message.

    Raises:
        BindingMissing: Vulkan is not installed, or has no device.
    """
    problem = find_problem()
    if problem:
        raise BindingMissing(
            f"{where}: {what} draws with Vulkan, but {problem}; run: sudo apt-get install libvulkan1 "
            "mesa-vulkan-drivers, which draw without a graphics card too, or use observer='vector'"
        )


def find_problem() -> str:
    """Return a description of the missing part of Vulkan, or an empty string if none is missing."""
    try:
        vulkan = ctypes.CDLL(LIBRARY)
    except OSError:
        return f"the system library {LIBRARY} is not installed"
    instance, count = ctypes.c_void_p(), ctypes.c_uint32()
    if vulkan.vkCreateInstance(ctypes.byref(InstanceCreateInfo(INSTANCE_CREATE_INFO)), None, ctypes.byref(instance)):
        return "it has no driver"
    failed = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    vulkan.vkDestroyInstance(instance, None)
    return "it has no device" if failed or not count.value else ""
