"""The tasks of the published tables, by name and in their order."""

import re

from mtdlab.analysis.data.defaults import BUILT_IN

STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICKR")
"""The tasks of semantic similarity, scored by Spearman's correlation."""
TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""The tasks of classification on frozen sentence vectors, scored by accuracy."""
TASKS = (*STS, *TRANSFER)
DEV = "sts_dev"
"""The score on the dev pairs."""
TASK_COLUMNS = (*TASKS, DEV)
"""The columns of scores that a table of runs may have."""
POINTS = "points"
"""The unit of scores x 100."""
LAST = "last"
"""The value of `select_on` with which nothing is selected: the last step's weights are scored."""

WORD_OVERLAP = "word overlap"
"""The reading of a pair without an encoder: the share of their words that both sentences have."""

_OWN = {
    "beir": "nDCG@10 × 100 ({}, test queries)",
    "mteb": "main score × 100 (MTEB {}, test)",
    "evaluator": "{} × 100 (evaluator, test)",
}
"""The units of scores on other tasks, by the kind that their name begins with."""
_RHO, _ACCURACY = "Spearman ρ × 100", "accuracy × 100"
AVERAGES = {
    "sts_average": f"{_RHO} (mean of {len(STS)} STS tasks)",
    "transfer_average": f"{_ACCURACY} (mean of {len(TRANSFER)} transfer tasks)",
}
_STS_B = re.compile(r"sts[-_ ]?b", re.IGNORECASE)


def is_own(score: str) -> bool:
    """Whether a score is of a folder, MTEB or a user's function, by its name."""
    return score.partition(":")[0] in _OWN and ":" in score


def label_score(metric: str, evaluation: str = "", unit: str = POINTS) -> str:
    """The unit of a metric with what it is measured on, for the axis of a figure.

    `evaluation` is the data set of the graded pairs; empty where it is not known. Another `unit`
    than points is that of a score of the user's own.
    """
    if unit != POINTS:
        return f"{metric} ({unit})"
    if metric in AVERAGES:
        return AVERAGES[metric]
    if split := {"sts_dev": "dev", "sts_test": "test"}.get(metric):
        pairs = f"{split} pairs"
        if evaluation == BUILT_IN:
            pairs = f"built-in {pairs}"
        elif _STS_B.search(evaluation):
            pairs = f"STS-B {split}"
        return f"{_RHO} ({pairs})"
    kind, _, name = metric.partition(":")
    if is_own(metric):
        return _OWN[kind].format(name)
    if metric in TRANSFER:
        return f"{_ACCURACY} ({metric})"
    return f"{_RHO} ({metric})" if metric in (*STS, "builtin") else f"{metric} ({unit})"
