"""Where the model of a study's best trial is, and where its checkpoints and models are shared."""

from sqlalchemy.orm import Session

from mtdlab.store.claims import Claims
from mtdlab.store.database import explained
from mtdlab.store.ranking import find_best
from mtdlab.store.saved_model import SavedModel
from mtdlab.store.tables import StudyRow


class ModelRecords(Claims):
    """The places of one study's model and checkpoints. Every method may raise StorageError."""

    def record_artifacts(self, url: str) -> str:
        """Record where all machines keep checkpoints and models, unless that is recorded already.

        Returns the recorded URL.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(StudyRow, self.study_id, with_for_update=True)
            row.artifacts = row.artifacts or url
            return row.artifacts

    def artifacts(self) -> str | None:
        """The URL where all machines keep checkpoints and models; None: each its own."""
        with explained(self.url), Session(self._engine) as session:
            row = session.get(StudyRow, self.study_id)
            return None if row is None else row.artifacts

    def record_model(self, trial: int, host: str, folder: str) -> SavedModel | None:
        """Record where the model of a trial, by its number, was saved.

        Returns the record that is no longer valid: the former one, None without one. Where that is
        the best trial's and the given one is not, it stays, and the given one is returned: of two
        machines that save at once, the later may have the lower score.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get(StudyRow, self.study_id, with_for_update=True)
            given = SavedModel(trial, host, folder)
            if row is None:
                return given  # deleted meanwhile
            former, best = SavedModel.of(row.model), find_best(session, self.study_id)
            if former is not None and best is not None and former.trial == best.number != trial:
                return given
            row.model = {"trial": trial, "host": host, "folder": folder}
            return former

    def saved_model(self) -> SavedModel | None:
        """Where the model of the best trial was last saved; None where it is not recorded."""
        with explained(self.url), Session(self._engine) as session:
            row = session.get(StudyRow, self.study_id)
            return None if row is None else SavedModel.of(row.model)
