"""The role of a trial: what a study runs it for."""

SEARCH, BASELINE = "search", "baseline"
"""The search compares configurations. The baseline is one outside of it, beside which they are
read: no sampler, pruner, look, verdict or choice of the best counts its trials."""
ROLES = (SEARCH, BASELINE)
