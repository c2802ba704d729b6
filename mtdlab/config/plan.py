"""A study's settings and their MTD, before anything runs."""

from typing import Any

from mtdlab.config.study import StudySpec

ALWAYS = ("ema_decay", "queue_size", "batch_size", "initial_queue_size")
"""Settings that are shown whether they vary or not: MTD is made of them."""


def planned(spec: StudySpec) -> list[dict[str, Any]]:
    """A row per configuration, by MTD: what is searched, made absolute; None for a setting that
    the configuration's method lacks.

    A sampled study has no rows: its configurations are drawn while it runs.
    """
    first = [unit for unit in spec.units() if unit.seed == spec.seeds[0]]
    rows = []
    for unit in first:
        if unit.parameters is None:
            return []
        settings = spec.settings(unit.parameters, unit.seed)
        mtd = None if settings.mtd is None else round(settings.mtd, 3)
        names = dict.fromkeys((*ALWAYS, *spec.search))
        shown = {name: getattr(settings, name, None) for name in names if name in spec.known}
        rows.append({"mtd": mtd} | shown)
    return sorted(rows, key=lambda row: (row["mtd"] is None, row["mtd"]))
