"""End of the environments of a run."""

import warnings
from typing import Any

__all__ = ["close_vecenv"]


def close_vecenv(vecenv: Any) -> None:
    """Close the environments of a run. One that raises costs a warning, since what was learned is worth more."""
    try:
        vecenv.close()
    except Exception as error:
        warnings.warn(f"the environments raised in close: {type(error).__name__}: {error}", stacklevel=2)
