"""Evaluation of a run: the graded pairs that every run uses, and the tasks of published tables."""

from analysis.tasks import STS, TASKS, TRANSFER

BUILTIN = "builtin"
KNOWN = (*TASKS, BUILTIN)
"""All tasks in the order of SimCSE's tables; `builtin` needs no data files."""
PAIR_SCORES = ("sts_dev", "sts_test")
"""Scores on the graded pairs of the setting `evaluation`; every run has them."""
AVERAGES = {"sts_average": STS, "transfer_average": TRANSFER}
METRICS = (*PAIR_SCORES, *AVERAGES, *KNOWN)


def parse_tasks(text: str) -> tuple[str, ...]:
    """Task names separated by commas, `sts` or `transfer` for all tasks of a table.

    Returns them in the order of `KNOWN`, none for an empty text. Raises ValueError for an unknown
    name.
    """
    chosen: set[str] = set()
    for name in (part.strip() for part in text.split(",") if text.strip()):
        group = {"sts": STS, "transfer": TRANSFER}.get(name, (name,))
        if not set(group) <= set(KNOWN):
            raise ValueError(
                f"task {name!r}: not known; write sts, transfer or any of {', '.join(KNOWN)}"
            )
        chosen.update(group)
    return tuple(name for name in KNOWN if name in chosen)


def needed(metric: str) -> tuple[str, ...]:
    """The tasks that a metric is computed from; none for the scores on graded pairs."""
    return () if metric in PAIR_SCORES else AVERAGES.get(metric, (metric,))
