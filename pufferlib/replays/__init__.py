"""Recording and replay of episodes.

A ``Bundle`` is a file with everything that is needed to repeat the steps of one environment. ``failures`` writes one
for every ``WorkerError``, and ``Recorder`` writes them on request. ``pufferlib.replay`` repeats the steps.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
