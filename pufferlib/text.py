"""Numbers, durations and sizes formatted for people: 1.25M, 2:05, 512 MiB."""

import itertools
import math
import shlex

__all__ = ["duration", "flag", "memory", "plural", "short", "sparkline"]


_UNITS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
_BARS = "▁▂▃▄▅▆▇█"


def short(value: float) -> str:
    """Format with three significant digits and a unit: ``1.25M``, ``183k``, ``0.0123``. NaN and infinity are a dash."""
    if not math.isfinite(value):
        return "–"
    for size, unit in _UNITS:
        if abs(value) >= size * 0.9995:
            return _three_digits(value / size) + unit
    if value == int(value):
        return str(int(value))
    return _three_digits(value) if abs(value) >= 0.001 else f"{value:.1e}"


def plural(number: int, noun: str) -> str:
    """Format a number with a noun: ``1 episode``, ``2 episodes``."""
    return f"{number} {noun}{'s'[: number != 1]}"


def duration(seconds: float) -> str:
    """Format a duration: ``0:05``, ``2:05``, ``1:02:05``. NaN and infinity become a dash."""
    if not math.isfinite(seconds):
        return "–"
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def memory(size_bytes: float) -> str:
    """Format a size: ``512 MiB`` or ``1.5 GiB``."""
    gib = size_bytes / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{size_bytes / 2**20:.0f} MiB"


def sparkline(values: list[float], width: int) -> str:
    """Draw ``values`` as at most ``width`` bars, each the mean of a range of values. NaN and infinity are left out."""
    values = [value for value in values if math.isfinite(value)]
    if not values or width < 1:
        return ""
    count = min(width, len(values))
    edges = [len(values) * i // count for i in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((mean - low) * scale)] for mean in means)


def _three_digits(value: float) -> str:
    value = float(f"{value:.3g}")  # round first, because rounding may add a digit: 99.96 becomes 100
    digits = 2 - min(2, math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{digits}f}"


def flag(name: str, value: object) -> str:
    """Format a setting as a command-line flag: "--train.learning-rate 0.001".

    Lists become "64,64", except for keywords of an environment, which are literals: "'[84, 84]'".
    """
    if isinstance(value, list | tuple) and not name.startswith("env."):
        value = ",".join(map(str, value))
    return f"--{name.replace('_', '-')} {shlex.quote(str(value))}"
