"""A study's rows of Optuna's tables, read and written as they are.

Optuna's own copy of a study reads it in many transactions.
"""

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


def write_optuna_rows(connection: Connection, rows: OptunaRows) -> None:
    """Write the rows of a study, with their ids, into tables without any study.

    A trial that was running waits.
    """
    tables = MetaData()
    tables.reflect(connection, only=[*OF_STUDY, *OF_TRIAL])
    for name in (*OF_STUDY, *OF_TRIAL):
        if records := rows[name]:
            connection.execute(insert(tables.tables[name]), records)
    trials = tables.tables["trials"]
    running = trials.update().where(trials.c.state == "RUNNING")
    connection.execute(running.values(state="WAITING"))
