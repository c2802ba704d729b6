"""A study's rows of Optuna's tables, read and written as they are.

Optuna's own copy of a study reads it in many transactions.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, MetaData, insert, select

OF_STUDY = (
    "studies",
    "study_directions",
    "study_user_attributes",
    "study_system_attributes",
    "trials",
)
OF_TRIAL = (
    "trial_params",
    "trial_values",
    "trial_intermediate_values",
    "trial_user_attributes",
    "trial_system_attributes",
)
OptunaRows = dict[str, list[dict[str, Any]]]
"""Rows by table. Heartbeats are not among them: mtdlab has its own."""


def read_optuna_rows(connection: Connection, study_id: int) -> OptunaRows:
    """The rows of a study; no rows where Optuna has no such study."""
    tables = MetaData()
    tables.reflect(connection, only=lambda name, _: name in (*OF_STUDY, *OF_TRIAL))
    if "trials" not in tables.tables:
        return {}
    trials = tables.tables["trials"]
    mine = select(trials.c.trial_id).where(trials.c.study_id == study_id)
    rows: OptunaRows = {}
    for name in OF_STUDY:
        of_study = tables.tables[name].c.study_id == study_id
        found = connection.execute(select(tables.tables[name]).where(of_study))
        rows[name] = [dict(row) for row in found.mappings()]
    for name in OF_TRIAL:
        found = connection.execute(
            select(tables.tables[name]).where(tables.tables[name].c.trial_id.in_(mine))
        )
        rows[name] = [dict(row) for row in found.mappings()]
    return rows


def write_optuna_rows(
    connection: Connection, rows: OptunaRows, name: str
) -> tuple[int, dict[int, int]]:
    """Write the rows of a study under `name`; its id, and the trials' ids by those in the rows.

    A trial that was running waits.
    """
    tables = MetaData()
    tables.reflect(connection, only=[*OF_STUDY, *OF_TRIAL])

    def add(table: str, row: Mapping[str, Any], **changed: Any) -> int:
        [key] = tables.tables[table].primary_key.columns.keys()
        values = {column: value for column, value in row.items() if column != key} | changed
        added = connection.execute(insert(tables.tables[table]).values(values))
        identity = added.inserted_primary_key
        assert identity is not None, "one row was inserted"
        return int(identity[0])

    study_id = add("studies", {}, study_name=name)
    for table in OF_STUDY[1:-1]:
        for row in rows[table]:
            add(table, row, study_id=study_id)
    ids = {}
    for row in sorted(rows["trials"], key=itemgetter("number")):
        state = "WAITING" if row["state"] == "RUNNING" else row["state"]
        ids[row["trial_id"]] = add("trials", row, study_id=study_id, state=state)
    for table in OF_TRIAL:
        [key] = tables.tables[table].primary_key.columns.keys()
        moved = [row | {"trial_id": ids[row["trial_id"]]} for row in rows[table]]
        for row in moved:
            del row[key]
        if moved:
            connection.execute(insert(tables.tables[table]), moved)
    return study_id, ids
