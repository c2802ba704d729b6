"""The role of a trial in its study: search or baseline."""

SEARCH, BASELINE = "search", "baseline"
"""The search compares configurations. The baseline is one configuration outside of it, with which
they are compared: no sampler, pruner, look, verdict or choice of the best counts its trials."""
ROLES = (SEARCH, BASELINE)
