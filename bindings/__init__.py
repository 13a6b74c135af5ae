"""Third-party environments: one module or package each, found by name and loaded on first use.

A binding defines ``names()``, the environments it offers, without importing what it wraps, and
``env_creator(name)``, which returns a picklable function that makes one as a PufferEnv.
"""
