"""Settings of a run: their names and defaults, the files that set them, and errors for wrong ones.

``config`` defines every setting. ``sources`` reads the files that set values, merges them and checks names and types.
``sections`` selects the tables of a file that apply to an environment, ``suggestions`` finds the right name for a wrong
one, ``toml`` reads and writes files, and ``env_values`` stores keyword arguments of environments in them.
"""
