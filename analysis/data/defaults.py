"""Defaults of the verdict: for study files, and for runs that come without a study file."""

from typing import Literal

BeyondRun = Literal["leave-out", "keep"]
BEYOND_RUN: BeyondRun = "leave-out"
"""Whether levels of MTD beyond the run take part in the verdict."""

MARGIN = 0.5
"""The margin: a difference of fewer points (score x 100) counts as no difference."""
ALPHA = 0.05
"""The error rate of the verdict."""
LEVEL = 0.95
"""The confidence of all intervals but those of a verdict, and of published bands."""
