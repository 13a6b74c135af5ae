"""What bindings share whose games are written in JAX; imported by the host of their stack only."""
