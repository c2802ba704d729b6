"""What Optuna decides for a study: the parameters that a sampler draws, and what a pruner ends.

Trials are recorded in mtdlab's tables; Optuna reads their copy (`store.optuna_copy`).
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import optuna
from optuna.distributions import distribution_to_json
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RDBStorage, get_storage
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from mtdlab.config import StudySpec
from mtdlab.errors import MtdlabError
from mtdlab.store import Claim
from mtdlab.store.database import (
    creation_lock,
    engine_arguments,
    immediate,
    lock_writers,
    report_errors,
    translate_errors,
)
from mtdlab.store.restarts import outlast_restarts
from mtdlab.sweep.samplers import distributions, draw, pruner, sampler

OPEN_ATTEMPTS = 20
_INDEX = "CREATE INDEX IF NOT EXISTS ix_mtdlab_copies ON trials (study_id, number)"


class OptunaStudy:
    """A study as Optuna sees it. Open it inside the process that uses it.

    A study of a grid without a pruner never reads it.
    """

    def __init__(self, url: str, spec: StudySpec) -> None:
        self._url, self._spec = url, spec

    @property
    def is_watched(self) -> bool:
        """Whether a pruner compares the trials while they run."""
        return self._spec.pruner != "none"

    @property
    def needs_running(self) -> bool:
        """Whether trials have a copy in Optuna's tables while they run.

        TPE counts the parameters of running trials as bad ones, so that workers that draw at once
        do not draw the same ("constant liar").
        """
        return self.is_watched or self._spec.sampler == "tpe"

    def draw(self, claim: Claim) -> dict[str, Any]:
        """The parameters of a configuration, by the study's sampler.

        Raises StorageError where the database fails, MtdlabError where the study was deleted
        through Optuna.
        """
        with translate_errors(self._url):
            return draw(self._load(), claim.number, sampler(self._spec, claim.setting), self._spec)

    def reported(self, number: int) -> dict[int, float]:
        """The scores by step of a running trial that a pruner watches."""
        trial = self._trial(number)
        return {} if trial is None else dict(trial.intermediate_values)

    def report(self, number: int, step: int, score: float) -> bool:
        """Record a score of a running trial for the pruner; whether it ends the trial.

        Another program may have deleted or ended the trial in Optuna's tables: then it goes on.
        """
        trial = self._trial(number)
        if trial is None or trial.state.is_finished():
            return False
        with translate_errors(self._url), suppress(UpdateFinishedTrialError, KeyError):
            self._storage.set_trial_intermediate_value(trial._trial_id, step, score)
            trial = self._storage.get_trial(trial._trial_id)
            return pruner(self._spec).prune(self._load(), trial)
        return False

    def _trial(self, number: int) -> optuna.trial.FrozenTrial | None:
        with translate_errors(self._url), suppress(KeyError):
            study = self._storage.get_study_id_from_name(self._spec.name)
            found = self._storage.get_trial_id_from_study_id_trial_number(study, number)
            return self._storage.get_trial(found)
        return None

    @cached_property
    def _storage(self) -> optuna.storages.BaseStorage:
        with translate_errors(self._url):
            # get_storage adds a cache of the trials that have ended
            return get_storage(open_storage(self._url))

    def _load(self) -> optuna.Study:
        """The study, which reads its trials once."""
        try:
            return optuna.load_study(
                study_name=self._spec.name, storage=self._storage, pruner=pruner(self._spec)
            )
        except KeyError:
            raise MtdlabError(
                f"study {self._spec.name} was deleted through Optuna while this sweep ran; rerun "
                "it, which writes it to Optuna's tables again"
            ) from None


def search_space(spec: StudySpec) -> Mapping[str, str]:
    """Optuna's distribution of each searched parameter, as JSON."""
    return {name: distribution_to_json(kind) for name, kind in distributions(spec).items()}


def create_tables(url: str) -> None:
    """Create Optuna's tables where they are missing, with an index of numbers.

    By it the copy of a trial is found among 100,000. Raises StorageError.
    """
    with translate_errors(url):
        storage = open_storage(url)
        with storage.engine.begin() as connection:
            lock_writers(connection)
            connection.execute(text(_INDEX))
        storage.engine.dispose()


def open_storage(url: str) -> RDBStorage:
    """Optuna's storage with safe transactions. Retries where two processes create its tables.

    Its methods raise StorageError where the database fails; opening it raises what
    `translate_errors` converts.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for attempt in range(OPEN_ATTEMPTS):
        try:
            with creation_lock(url):
                # a template for Optuna, which replaces {SCHEMA_VERSION}
                template = url.replace("{", "{{").replace("}", "}}")
                storage = RDBStorage(template, engine_kwargs=engine_arguments(url))
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
