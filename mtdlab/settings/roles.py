"""The role of a trial in its study: search, baseline, or the choice of nuisance values for one."""

SEARCH, BASELINE = "search", "baseline"
"""The search compares configurations. The baseline is one configuration outside of it, with which
they are compared: no sampler, pruner, look, verdict or choice of the best counts its trials."""
SEARCH_NUISANCE, BASELINE_NUISANCE = "tuning", "baseline-tuning"
"""The trials by which the values of nuisance settings are chosen, for a configuration of the search
and for the baseline. Their seeds are their own, and nothing that is reported counts them."""
OF_NUISANCE = (SEARCH_NUISANCE, BASELINE_NUISANCE)
OF_BASELINE = (BASELINE, BASELINE_NUISANCE)
"""The roles whose settings are those of the baseline."""
ROLES = (SEARCH, BASELINE, *OF_NUISANCE)
