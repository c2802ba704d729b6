"""What a run is scored on: the graded pairs of every run, and the tasks of published tables."""

from analysis.tasks import STS, TASKS, TRANSFER

BUILTIN = "builtin"
KNOWN = (*TASKS, BUILTIN)
"""Every task, in the order of SimCSE's tables; `builtin` needs no data."""
PAIR_SCORES = ("sts_dev", "sts_test")
"""The graded pairs of `evaluation`, which every run is scored on."""
AVERAGES = {"sts_average": STS, "transfer_average": TRANSFER}
METRICS = (*PAIR_SCORES, *AVERAGES, *KNOWN)


def parse_tasks(text: str) -> tuple[str, ...]:
    """Names separated by commas, `sts` and `transfer` for whole tables, in the tables' order.

    Nothing gives none. Raises ValueError for an unknown name.
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
    """The tasks that a metric is made of."""
    return () if metric in PAIR_SCORES else AVERAGES.get(metric, (metric,))
