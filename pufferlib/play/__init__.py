"""Interactive play: a person or agents in an environment, whatever shows it."""
