"""Names by which a section of a settings file, such as ``["Hopper-v5".train]``, refers to an environment."""

import ast

from pufferlib.errors import PufferError
from pufferlib.registry.inside import binding_module, bindings, inside_names, is_inside, names
from pufferlib.registry.objects import is_object_name, short_name, source_file
from pufferlib.registry.outside import registrations

__all__ = ["all_names", "names_beside", "own_names"]


def own_names(env_name: str) -> list[str]:
    """Return the names of an environment in settings files, such as "Hopper-v5" and "mujoco/Hopper-v5".

    An environment of a binding has its name in ``puffer list``, even if ``env_name`` is a short form of it. A class or
    function has its own name, and its name with its file or module: "Forage" and "my_env.py:Forage".
    """
    binding, _, task = env_name.partition("/")
    if not (task and binding in bindings()):
        name = short_name(env_name)
        return [name, *([name.rpartition(":")[2]] if ":" in name else [])]
    listed = names(binding)
    if task not in listed:
        made = _made(binding, task)
        task = next((other for other in listed if made is not None and _made(binding, other) == made), task)
    return [task, f"{binding}/{task}"]


def names_beside(env_name: str) -> list[str]:
    """Return the names of the environments that share a settings file with ``env_name``, itself included.

    These are the environments of its binding, or the classes and functions of its file and all registered environments.
    """
    own = own_names(env_name)
    binding, _, task = env_name.partition("/")
    if task and binding in bindings():
        return [*own, *(form for other in names(binding) for form in (other, f"{binding}/{other}"))]
    if is_inside(env_name):
        return own
    file = source_file(env_name) if is_object_name(env_name) else None
    if file is None:
        return [*own, *registrations()]
    place = own[0].partition(":")[0]
    kinds = ast.ClassDef | ast.FunctionDef
    defined = [each.name for each in ast.parse(file.read_text("utf-8")).body if isinstance(each, kinds)]
    return [*own, *defined, *(f"{place}:{name}" for name in defined), *registrations()]


def all_names(env_name: str) -> list[str]:
    """Return ``names_beside(env_name)`` and the full names of all environments, including Gymnasium's ids."""
    import gymnasium

    return [*names_beside(env_name), *inside_names(), *registrations(), *gymnasium.registry]


def _made(binding: str, task: str) -> object:
    """Return a value that is equal for all names of one environment of a binding, or None if there is no such name."""
    try:
        creator = binding_module(binding).env_creator(task)
    except PufferError:
        return None
    return getattr(creator, "func", None), getattr(creator, "args", None), getattr(creator, "keywords", creator)
