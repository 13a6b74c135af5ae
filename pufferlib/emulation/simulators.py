"""States of simulators written in C by other packages, as plain data. None of these packages is imported here."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pufferlib.emulation.plain_data import HiddenStateError

__all__ = ["CODECS", "Codec"]


class Codec(NamedTuple):
    """Functions that save objects of one class and load the data into another object.

    Attributes:
        save: Function that returns plain data, or raises HiddenStateError.
        load: Function that fills an object with the data.
        fits: Function that returns whether the data fit an object.
    """

    save: Callable[[Any], Any]
    load: Callable[[Any, Any], object]
    fits: Callable[[Any, Any], bool] = lambda target, data: True


def _save_ale(ale: Any) -> bytes:
    sticky = ale.getFloat("repeat_action_probability")
    if sticky > 0:
        raise HiddenStateError(
            f"an emulator with repeat_action_probability={sticky:g}, which does not reveal the action that it may "
            "repeat (pass repeat_action_probability=0, or make atari/<game>, which repeats actions itself)"
        )
    return bytes(ale.cloneState(include_rng=True).serialize())


def _load_ale(ale: Any, data: bytes) -> None:
    kind: Any = type(ale.cloneState())
    state = kind.__new__(kind)
    state.__setstate__(data)
    ale.restoreState(state)


def _save_ale_state(state: Any) -> bytes:
    return bytes(state.serialize())


def _fits_ale_state(state: Any, data: bytes) -> bool:
    return _save_ale_state(state) == data


def _keep(target: Any, data: Any) -> None:
    """Change nothing, for data that fit only if they are equal."""


def _save_mujoco(data: Any) -> dict[str, Any]:
    """Save all arrays. Environments read quantities such as body positions before a step recomputes them."""
    return {
        "time": data.time,
        "arrays": {name: value.copy() for name, value in _arrays(data).items()},
    }


def _load_mujoco(data: Any, saved: dict[str, Any]) -> None:
    for name, value in _arrays(data).items():
        # Arrays of contacts and constraints vary in length. The next step recomputes them.
        found = saved["arrays"].get(name)
        if found is not None and found.shape == value.shape:
            value[...] = found
    data.time = saved["time"]


def _fits_mujoco(data: Any, saved: dict[str, Any]) -> bool:
    there, arrays = _arrays(data), saved["arrays"]
    return all(name not in there or (name in arrays and arrays[name].shape == there[name].shape) for name in _SIZES)


_SIZES = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "userdata", "xpos")  # arrays whose size the model determines


def _arrays(data: Any) -> dict[str, Any]:
    found = {name: getattr(data, name) for name in dir(data) if not name.startswith("_")}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, np.ndarray) and value.dtype != object and value.flags.writeable and value.size
    }


def _save_model(model: Any) -> str:
    """Return a digest of the model, which is large and constant in most environments."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(_arrays(model).items()):
        digest.update(name.encode() + value.tobytes())
    return digest.hexdigest()


def _fits_model(model: Any, saved: str) -> bool:
    return saved == _save_model(model)


def _save_surface(surface: Any) -> dict[str, Any]:
    return {"size": list(surface.get_size()), "pixels": surface.get_buffer().raw}


def _load_surface(surface: Any, saved: dict[str, Any]) -> None:
    surface.get_buffer().write(saved["pixels"])


def _fits_surface(surface: Any, saved: dict[str, Any]) -> bool:
    return bool(list(surface.get_size()) == saved["size"] and surface.get_buffer().length == len(saved["pixels"]))


#: Codecs by full class name.
CODECS: dict[str, Codec] = {
    "ale_py._ale_py.ALEInterface": Codec(_save_ale, _load_ale),
    "ale_py._ale_py.ALEState": Codec(_save_ale_state, _keep, _fits_ale_state),
    "mujoco._structs.MjData": Codec(_save_mujoco, _load_mujoco, _fits_mujoco),
    "mujoco._structs.MjModel": Codec(_save_model, _keep, _fits_model),
    "pygame.surface.Surface": Codec(_save_surface, _load_surface, _fits_surface),
}
