"""Trained policies outside of this library: as ONNX, as one file of C, as a program of ``torch.export``.

The package can be called: ``pufferlib.export(...)`` is ``pufferlib.exports.exported.export(...)``, which its docstring
describes. ``trained`` opens what is exported; ``recording`` is what the copies are checked against; ``c_source`` writes
C; ``graph`` is the policy as a function of tensors, of which ``onnx_model`` and ``torch_program`` make their files.
"""

import importlib
import sys
import types
import typing

_HOME = dict.fromkeys(("FORMATS", "Exported", "export"), "exported")


class _CallableExport(types.ModuleType):
    """Module that is called like the function of its name, which is imported only then."""

    def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Call ``pufferlib.exports.exported.export``."""
        from pufferlib.exports.exported import export

        return export(*args, **kwargs)


def __getattr__(name: str) -> typing.Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pufferlib.export' has no attribute {name!r}")
    return getattr(importlib.import_module(f"pufferlib.export.{_HOME[name]}"), name)


sys.modules[__name__].__class__ = _CallableExport
