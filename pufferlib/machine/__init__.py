"""Properties of this machine: usable cores, memory, containers, and commands for messages."""
