"""Logger that tests share."""

__all__ = ["ListLogger"]


class ListLogger(list):
    """Logger that keeps the metrics of every update.

    Attributes:
        closed: Number of calls of ``close``.
    """

    closed = 0

    def log(self, metrics):
        self.append(metrics)

    def close(self):
        self.closed += 1
