"""Durations as text."""


def format_seconds(seconds: float) -> str:
    """A duration: 1.5 s, 12 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{round(seconds, 1 if seconds < 10 else None):g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
