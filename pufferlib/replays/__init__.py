"""Episodes that can be stepped again.

``bundle``: the file. It is written by ``failures``, for every ``WorkerError``, and by ``recorder``, on request;
``player`` steps it again. ``pufferlib.vector`` has the public names.
"""
