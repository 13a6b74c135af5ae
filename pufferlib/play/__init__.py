"""Interactive play of an environment by a user or by trained agents."""
