"""Defaults of the verdict, for study files and for frames without one."""

MARGIN = 0.5
"""Points (score x 100) below which a difference counts as none."""
ALPHA = 0.05
"""Error rate of the verdict."""
