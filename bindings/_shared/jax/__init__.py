"""Code shared by bindings to JAX environments. Only this module is imported outside of their isolated process."""

__all__ = ["VARIABLES"]

# XLA logs an error for every cached program, even one compiled on this processor, because it lists compiler
# preferences as missing CPU features. These hundreds of lines of 3 KB would hide other messages.
VARIABLES = {"TF_CPP_MIN_LOG_LEVEL": "3"}
