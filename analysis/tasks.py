"""The tasks of the published tables, by name and in their order."""

import re

STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICKR")
"""Semantic similarity: Spearman's correlation."""
TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""Classification on frozen sentence vectors: accuracy."""
TASKS = (*STS, *TRANSFER)

_STS_B = re.compile(r"sts[-_ ]?b", re.IGNORECASE)


def label_score(metric: str, evaluation: str = "") -> str:
    """The unit of a metric x 100 with what it is measured on, for the axis of a figure.

    metric      its name, such as sts_test or STS12; another name is written as it is.
    evaluation  what the graded pairs were, as the study recorded it: "builtin: 1,500 ...".
    """
    averages = {"sts_average": (STS, "STS"), "transfer_average": (TRANSFER, "transfer")}
    if metric in averages:
        tasks, kind = averages[metric]
        return f"{_unit(tasks[0])} (mean of {len(tasks)} {kind} tasks)"
    split = {"sts_dev": "dev", "sts_test": "test"}.get(metric)
    if split:
        source, _, _ = evaluation.partition(":")
        if source == "builtin":
            return f"{_unit('STSB')} (built-in {split} pairs)"
        return (
            f"{_unit('STSB')} ({'STS-B ' + split if _STS_B.search(source) else split + ' pairs'})"
        )
    return f"{_unit(metric)} ({metric})" if metric in (*TASKS, "builtin") else f"{metric} × 100"


def _unit(task: str) -> str:
    return "accuracy × 100" if task in TRANSFER else "Spearman ρ × 100"
