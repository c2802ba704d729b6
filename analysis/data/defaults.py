"""Defaults of the verdict: for study files, and for runs that come without a study file."""

from typing import Literal

BeyondRun = Literal["leave-out", "keep"]
BEYOND_RUN: BeyondRun = "leave-out"
"""Whether levels of MTD beyond the run take part in the verdict."""

MARGIN = 0.5
"""Points (score x 100) below which a difference is treated as no difference."""
ALPHA = 0.05
"""Error rate of the verdict."""
LEVEL = 0.95
"""Confidence of every interval but those of a verdict, and of published bands."""
