"""This installation: extras and their pins, ``puffer install`` and ``puffer doctor``."""
