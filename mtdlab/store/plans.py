"""Plans: the specification of a study's verdict, recorded before its first trial."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from mtdlab.store.database import lock_writers, translate_errors, writing_engine
from mtdlab.store.names import refuse_foreign
from mtdlab.store.reading import reading
from mtdlab.store.tables import PlanRow, StudyRow, TrialRow


def planned_names(url: str) -> list[str]:
    """The names of studies of which a plan is recorded, but no trial. May raise StorageError."""
    with reading(url) as session:
        begun = select(StudyRow.name)
        plans = select(PlanRow.study).where(PlanRow.study.not_in(begun)).distinct()
        return list(session.scalars(plans.order_by(PlanRow.study)))


def record_plan(url: str, study: str, plan: Mapping[str, Any], sha256: str) -> int:
    """Record a study's plan; returns how many trials had started when it was first recorded.

    Before the first trial a new plan replaces the earlier one. Afterwards a plan that differs from
    the latest is added, with the number of trials that had started. Raises StorageError, also where
    another program wrote a study of this name.
    """
    refuse_foreign(url, study)
    with translate_errors(url), Session(writing_engine(url)) as session, session.begin():
        lock_writers(session.connection())
        begun = session.scalar(
            select(func.count())
            .select_from(TrialRow)
            .join(StudyRow)
            .where(StudyRow.name == study, TrialRow.began.is_not(None))
        )
        mine = PlanRow.study == study
        if not begun:
            session.execute(delete(PlanRow).where(mine))
        rows = session.scalars(select(PlanRow).where(mine).order_by(PlanRow.position)).all()
        if not rows or rows[-1].sha256 != sha256:
            position = len(rows)
            row = PlanRow(study=study, position=position, trials=begun or 0, sha256=sha256)
            row.plan = dict(plan)
            session.add(row)
            return row.trials
        return rows[-1].trials
