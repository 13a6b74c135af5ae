"""Bindings to third-party environments: one package each, found by name and loaded on first use.

A binding defines two functions. ``names()`` returns the environments that it offers, without importing the
wrapped package. ``env_creator(name)`` returns a picklable function ``(buf=None, seed=0, **options)`` that makes
one, as a PufferEnv or as a wrapper of ``pufferlib.emulation``. The file ``binding.toml`` holds its facts:
packages, versions, licence. For more, see ``docs/add-a-binding.md``. Shared code is in ``_shared``.
"""
