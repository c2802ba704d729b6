"""A study's settings and their MTD, before anything runs."""

from typing import Any

from mtdlab.config.study import StudySpec


def planned(spec: StudySpec) -> list[dict[str, Any]]:
    """A row per setting, by MTD: what is searched, resolved, and what it amounts to.

    A sampled study has no rows: its settings are drawn while it runs.
    """
    first = [unit for unit in spec.units() if unit.seed == spec.seeds[0]]
    rows = []
    for unit in first:
        if unit.parameters is None:
            return []
        settings = spec.settings(unit.parameters, unit.seed)
        searched = {name: getattr(settings, name) for name in spec.search}
        always = {
            name: getattr(settings, name)
            for name in ("ema_decay", "queue_size", "batch_size", "initial_queue_size")
        }
        rows.append({"mtd": round(settings.mtd, 3)} | always | searched)
    return sorted(rows, key=lambda row: row["mtd"])
