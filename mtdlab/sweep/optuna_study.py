"""The Optuna study beside mtdlab's tables: created, written to, and synchronised with them."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage, get_storage
from optuna.storages._rdb.models import TrialModel, TrialUserAttributeModel, TrialValueModel
from optuna.trial import TrialState
from sqlalchemy import delete, insert, update
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from mtdlab.config import StudySpec
from mtdlab.errors import MtdlabError
from mtdlab.settings import RunSettings
from mtdlab.store import Claim, Store
from mtdlab.store.damage import refuse_damaged
from mtdlab.store.database import (
    creation_lock,
    engine_arguments,
    explained,
    immediate,
    report_errors,
)
from mtdlab.store.owner import describe_end, is_ahead, is_dead, is_visible
from mtdlab.store.restarts import outlast_restarts
from mtdlab.sweep.samplers import distributions, pruner, sampler, suggest

_LOG = logging.getLogger(__name__)
OPEN_ATTEMPTS = 20
FOLDER = "folder"
"""The study's user attribute with the folder of its file."""


class OptunaStudy:
    """One study in Optuna's tables. Open it inside the process that uses it."""

    def __init__(self, url: str, spec: StudySpec) -> None:
        """Open the study, creating it where it is missing. May raise StorageError."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.spec, self._url = spec, url
        with explained(url):
            database = open_storage(url)
            self._engine = database.engine
            # get_storage adds a cache, which has to see every trial that is created
            self.storage = get_storage(database)
            self.study = _create(self.storage, spec)
        self.study_id = self.storage.get_study_id_from_name(spec.name)

    def begin(self, claim: Claim) -> tuple[optuna.Trial, dict[str, Any]]:
        """A running Optuna trial for a claim, and its parameters, drawn where they are missing."""
        if claim.optuna_id is not None and claim.parameters is not None:
            self.storage.set_trial_state_values(claim.optuna_id, TrialState.RUNNING)
            return optuna.Trial(self.study, claim.optuna_id), claim.parameters
        if claim.parameters is not None:
            wanted = distributions(self.spec)
            template = optuna.trial.create_trial(
                state=TrialState.RUNNING,
                params=claim.parameters,
                distributions={name: wanted[name] for name in claim.parameters},
            )
            identity = self.storage.create_new_trial(self.study_id, template_trial=template)
            self._describe(identity, claim.parameters, claim.seed)
            return optuna.Trial(self.study, identity), claim.parameters
        # not study.ask, which would first return a trial that an interrupt put back as waiting
        self.study.sampler = sampler(self.spec, claim.setting)
        trial = optuna.Trial(self.study, self.storage.create_new_trial(self.study_id))
        parameters = suggest(trial, self.spec)
        self._describe(trial._trial_id, parameters, claim.seed)
        return trial, parameters

    def _describe(self, optuna_id: int, parameters: dict[str, Any], seed: int) -> None:
        """Record a new trial's user attributes: every resolved setting, and its MTD.

        In one statement: Optuna's methods take two for each attribute, or a transaction.
        """
        try:
            described = attributes(self.spec.settings(parameters, seed))
        except ValueError:
            described = {"seed": seed}
        rows = [
            {"trial_id": optuna_id, "key": name, "value_json": json.dumps(value)}
            for name, value in described.items()
        ]
        with self._engine.begin() as connection:
            connection.execute(insert(TrialUserAttributeModel), rows)

    @contextmanager
    def noticing_deletion(self) -> Iterator[None]:
        """Raise MtdlabError for an error in the block if Optuna's study is no longer there."""
        try:
            yield
        except KeyError:
            known = {each.study_name for each in open_storage(self._url).get_all_studies()}
            if self.spec.name in known:
                raise
            raise MtdlabError(
                f"study {self.spec.name} was deleted through Optuna while this sweep ran; rerun "
                "it, which begins the study again"
            ) from None

    def release(self, optuna_id: int) -> None:
        """Put an interrupted trial back as waiting."""
        with suppress(UpdateFinishedTrialError):
            self.storage.set_trial_state_values(optuna_id, TrialState.WAITING)

    def name_scores(self, select_by: str) -> None:
        """Record which score the trials' values are, and which user attribute is the metric."""
        known = self.study.user_attrs
        for name, score in (("select_by", select_by), ("metric", self.spec.metric)):
            if known.get(name) != score:
                self.study.set_user_attr(name, score)

    def record_folder(self, folder: Path | None) -> None:
        """Record the folder of the study file, in which its relative paths are looked up."""
        if folder is not None and self.study.user_attrs.get(FOLDER) != str(folder):
            self.study.set_user_attr(FOLDER, str(folder))

    def record(
        self,
        optuna_id: int,
        state: str,
        ranking: float | None = None,
        score: float | None = None,
        *,
        reason: str = "",
        note: str = "",
    ) -> None:
        """Record a trial's end; one that is finished already stays as it is.

        ranking  the score that ranks it, which becomes its value; score  the study's metric.
        """
        trial = self.storage.get_trial(optuna_id)
        if trial.state.is_finished():
            return
        named: dict[str, str | float | None] = {"reason": reason, "note": note}
        if state == "COMPLETE":
            named[self.spec.metric] = score
        value = ranking if state == "COMPLETE" else None
        # another sweep that repairs the study may record the same end at the same time
        with suppress(UpdateFinishedTrialError):
            for name, content in named.items():
                if content != "":
                    self.storage.set_trial_user_attr(optuna_id, name, content)
            self.study.tell(trial.number, value, state=TrialState[state], skip_if_finished=True)

    def synchronise(self, store: Store) -> None:
        """Repair what dead processes left: their trials, results not recorded here.

        A process that died on this machine since it was started counts as a death of its trial,
        which may have caused it. One that ended with its machine or container, or is silent on
        another machine, does not.

        A trial that is running in Optuna's tables and has no owner was lost between two
        transactions: it failed, and its configuration runs again as another trial.

        What another program recorded in Optuna's tables alone is replaced by mtdlab's record.
        """
        # read first: a trial that is claimed now is not among these
        before = store.unfinished_ids()
        owned = store.owned()
        dead = [trial for trial in owned if is_dead(trial.owner, trial.silent)]
        for each in dead:
            if is_ahead(each.silent):
                _LOG.warning("a trial waits again: %s", describe_end(each.owner, each.silent))
            if is_visible(each.owner):
                state = store.record_death(each.row, each.owner, "it was found dead by a sweep")
            else:
                state = "WAITING" if store.release(each.row, each.owner) else None
            if state == "WAITING" and each.optuna_id is not None:
                self.release(each.optuna_id)
        for identity, ended in store.finished(store.unfinished_ids()).items():
            self.record(identity, ended.state, ended.ranking, ended.score)
        if before and len(dead) == len(owned):
            known = store.begun()
            for identity in before:
                if identity not in known:
                    self.record(identity, "FAIL", reason="its worker ended before it began")
        self._overwrite(store)

    def _overwrite(self, store: Store) -> None:
        """Write mtdlab's record of trials over one of Optuna's that differs."""
        store.restart_ended()
        if not (wrong := store.disagreements()):
            return
        _LOG.warning(
            "study %s: Optuna's tables had another end of %d of its trials; mtdlab's record "
            "decides, and was written over it",
            self.spec.name,
            len(wrong),
        )
        with self._engine.begin() as connection:
            for identity, state, value in wrong:
                mine = TrialModel.trial_id == identity
                connection.execute(update(TrialModel).where(mine).values(state=TrialState[state]))
                mine = TrialValueModel.trial_id == identity
                connection.execute(delete(TrialValueModel).where(mine))
                if state == "COMPLETE":
                    finite = TrialValueModel.TrialValueType.FINITE
                    row = {"trial_id": identity, "objective": 0, "value": value}
                    connection.execute(insert(TrialValueModel).values(value_type=finite, **row))

    def record_death(self, store: Store, process: int, how: str) -> bool:
        """Release the trial of a worker that died, or fail it at its third; whether it had one.

        process, how  its process id on this machine, and how it ended.
        """
        for trial in store.owned():
            if trial.owner.get("pid") != process or not is_dead(trial.owner, 0.0):
                continue
            state = store.record_death(trial.row, trial.owner, how)
            if state == "WAITING" and trial.optuna_id is not None:
                self.release(trial.optuna_id)
            return state is not None
        return False


def recorded_folder(study: str, url: str) -> Path | None:
    """The folder of a study's file in its last sweep; None where none was recorded.

    May raise StorageError; the study is there.
    """
    refuse_damaged(url)
    with explained(url):
        recorded = optuna.load_study(study_name=study, storage=open_storage(url)).user_attrs.get(
            FOLDER
        )
    return None if recorded is None else Path(recorded)


def attributes(settings: RunSettings) -> dict[str, Any]:
    """A run's settings and its MTD by name."""
    return settings.model_dump() | {"mtd": settings.mtd}


def open_storage(url: str) -> RDBStorage:
    """Optuna's storage with safe claims. Retries where two processes create the tables at once.

    Its methods raise StorageError where the database fails; opening it raises what `explained`
    converts.
    """
    for attempt in range(OPEN_ATTEMPTS):
        try:
            with creation_lock(url):
                storage = RDBStorage(url, engine_kwargs=engine_arguments(url))
            immediate(storage.engine)
            report_errors(storage.engine, url)
            outlast_restarts(storage.engine, url)
            storage.engine.dispose()
            return storage
        except (IntegrityError, OperationalError, ProgrammingError) as error:
            created = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not created or attempt == OPEN_ATTEMPTS - 1:
                raise
            time.sleep(0.1)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _create(storage: BaseStorage, spec: StudySpec) -> optuna.Study:
    try:
        return optuna.create_study(
            storage=storage,
            study_name=spec.name,
            direction="maximize",
            sampler=sampler(spec, "sample-00000"),
            pruner=pruner(spec),
        )
    except DuplicatedStudyError:
        return optuna.load_study(
            storage=storage,
            study_name=spec.name,
            sampler=sampler(spec, "sample-00000"),
            pruner=pruner(spec),
        )
