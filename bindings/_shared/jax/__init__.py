"""Shared parts of bindings to environments in JAX; only this module is imported outside their isolated stack."""

__all__ = ["VARIABLES"]

# XLA complains of every program that it kept on this very processor: it lists features as missing that are
# preferences of the compiler. Hundreds of lines of 3 KB hide what matters.
VARIABLES = {"TF_CPP_MIN_LOG_LEVEL": "3"}
