"""This machine, seen from inside a process: cores, memory, containers, and commands as they are typed here."""
