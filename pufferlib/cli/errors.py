"""What the command line refuses itself."""

from pufferlib.errors import APIUsageError

__all__ = ["UsageError"]


class UsageError(APIUsageError):
    """The command was not understood; exit code 2."""
