"""Reads the trials of a study as pandas frames, by columns: a study may have 100,000 trials."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from analysis.frames import ENVIRONMENT_COLUMNS, TRIAL_COLUMNS, empty
from mtdlab.store.progress import living_state
from mtdlab.store.setting_names import present_settings
from mtdlab.store.tables import TrialRow

_OWN = tuple(name for name in TRIAL_COLUMNS if hasattr(TrialRow, name))
"""The columns of a trial that are columns of its row; the others are settings."""
_READ = (*_OWN, "note", "owner", "silent", "settings", "environment")
_AT_ONCE = 5_000
"""Rows whose settings are in memory as dictionaries, each ten times as large as in a frame."""
_MISSING = float("nan")


@dataclass
class RecordedTrials:
    """The trials that have begun, by number.

    columns       values of each column of `TRIAL_COLUMNS` that is not a setting.
    settings      values of each setting that any trial recorded, NaN where a trial did not.
    environments  what each trial recorded of its machine; empty for a trial that did not.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _OWN})
    settings: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    environments: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, rows: Collection[Any]) -> None:
        """Append rows with the columns `_READ`."""
        begin = len(self.notes)
        for name, values in self.columns.items():
            values += map(living_state if name == "state" else attrgetter(name), rows)
        self.notes += [row.note for row in rows]
        self.environments += [row.environment or {} for row in rows]
        recorded = [present_settings(row.settings or {}) for row in rows]
        for name in dict.fromkeys(name for each in recorded for name in each):
            self.settings.setdefault(name, [_MISSING] * begin)
        for name, values in self.settings.items():
            values += [each.get(name, _MISSING) for each in recorded]

    def trials(self) -> pd.DataFrame:
        """`TRIAL_COLUMNS`, then the other settings, then `note` if any trial has one."""
        if not self.notes:
            return empty(TRIAL_COLUMNS)
        frame = pd.DataFrame(self.settings | self.columns)
        first = frame.reindex(columns=list(TRIAL_COLUMNS))
        for name, kind in TRIAL_COLUMNS.items():
            values = first[name]
            text = values.astype("object").where(values.notna(), "").astype("str")
            first[name] = text if kind == "str" else pd.to_numeric(values)
        rest = frame.drop(columns=[name for name in TRIAL_COLUMNS if name in frame])
        if any(self.notes):
            rest["note"] = pd.Series(self.notes, dtype="str")
        return pd.concat([first, rest], axis=1)

    def environment(self) -> pd.DataFrame:
        """`ENVIRONMENT_COLUMNS`, a row per trial that recorded its environment."""
        records = [
            {"number": number} | _split_device(environment)
            for number, environment in zip(self.columns["number"], self.environments, strict=True)
            if environment
        ]
        if not records:
            return empty(ENVIRONMENT_COLUMNS)
        frame = pd.DataFrame.from_records(records, columns=list(ENVIRONMENT_COLUMNS))
        return frame.astype(dict(ENVIRONMENT_COLUMNS))

    def facts(self) -> dict[str, str]:
        """The recorded environment of the trials; several values are joined by semicolons."""
        seen: dict[str, dict[str, None]] = {}
        for environment in self.environments:
            for name, value in environment.items():
                seen.setdefault(name, {})[str(value)] = None
        return {name: "; ".join(values) for name, values in seen.items()}


def read_trials(session: Session, begun: ColumnElement[bool]) -> RecordedTrials:
    """The trials of which `begun` holds, by number."""
    columns = [getattr(TrialRow, name) for name in _READ]
    query = select(*columns).where(begun).order_by(TrialRow.number)
    recorded = RecordedTrials()
    for rows in session.execute(query.execution_options(yield_per=_AT_ONCE)).partitions():
        recorded.add(rows)
    return recorded


def _split_device(environment: Mapping[str, Any]) -> dict[str, str]:
    """The environment with its device line, "cpu, bfloat16, threads a trial: 1", split."""
    device, _, rest = str(environment.get("device", "")).partition(", ")
    precision, _, threads = rest.partition(", threads a trial: ")
    parts = {"device": device, "precision": precision, "threads": threads}
    return {name: str(environment.get(name, "")) for name in ("processor", "versions")} | parts
