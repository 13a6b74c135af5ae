"""Third-party environments: one package each, found by name and loaded on first use.

A binding defines ``names()``, the environments it offers, without importing what it wraps, and
``env_creator(name)``, which returns a picklable function ``(buf=None, seed=0, **options)``
that makes one, as a PufferEnv or as a wrapper of ``pufferlib.emulation``. Its ``binding.toml``
holds the facts (packages, versions, licence); ``docs/add-a-binding.md`` tells the rest.
What bindings share is in ``_shared``.
"""
