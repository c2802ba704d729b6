"""Defaults and names that the analysis and mtdlab share."""

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
MODELS_FOLDER = "models"
"""The folder in which a sweep keeps models, in the working folder, unless --models names one."""
CONFIRMATION_SUFFIX = "-confirm"
"""What `mtdlab confirm` adds to the name of a study for that of its confirmation."""
CONFIRMATION_SEEDS = 5
"""How many new seeds `mtdlab confirm` runs, unless --seeds gives a number."""
