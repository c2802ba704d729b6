"""The models of best trials in the place that all machines share, and which place that is.

    STUDY/models/trial-7-0f3a9c21/   the model of trial 7, as in `models/STUDY`

Each upload has a folder of its own. Which of them is the best trial's is recorded with the study:
the database orders machines that finish at once, as files in such a place cannot.
"""

import platform
import secrets
from pathlib import Path

from mtdlab.data_paths import RUN
from mtdlab.errors import MtdlabError, NothingToReport, StorageError
from mtdlab.store import SavedModel, Store
from mtdlab.store.recorded import read_recorded
from mtdlab.trial.artifacts import Artifacts, artifacts_url
from mtdlab.trial.model_folders import kept_trial
from mtdlab.trial.study import Job


def choose_artifacts(job: Job, given: str | None) -> str | None:
    """The URL that a sweep shares checkpoints and models at: the study's, or the first given one.

    None where neither is. Raises MtdlabError where the given one cannot be meant.
    """
    spec = job.spec
    try:
        recorded = read_recorded(job.url, spec.name).artifacts
    except (NothingToReport, StorageError):
        # missing, or of an earlier version: opening the study reports what is wrong with it
        recorded = None
    if given is None:
        return recorded
    chosen = artifacts_url(given)
    refuse_other_artifacts(spec.name, recorded or chosen, chosen)
    if not spec.keeps_models:
        raise MtdlabError(
            "--artifacts shares the checkpoints and models of mtdlab's own trainer; a program of "
            "--objective keeps its own files: leave --artifacts out"
        )
    if chosen == f"file://{job.models}":
        raise MtdlabError(
            f"--artifacts and --models are the same folder, {job.models}; name another one for "
            "one of them"
        )
    return chosen


def refuse_other_artifacts(study: str, recorded: str, given: str) -> None:
    """Raise MtdlabError where a study shares its checkpoints and models elsewhere."""
    if recorded != given:
        raise MtdlabError(
            f"study {study} keeps checkpoints and models in {recorded}, not in {given}; "
            "leave --artifacts out to resume it"
        )


def record_artifacts(study: str, store: Store, chosen: str) -> None:
    """Record the shared place of a study. Raises MtdlabError where another is recorded now."""
    refuse_other_artifacts(study, store.record_once("artifacts", chosen), chosen)


def is_shared(number: int, store: Store, artifacts: Artifacts) -> bool:
    """Whether the shared place has the model of a trial, by its number. May raise StorageError."""
    model = store.saved_model()
    return model is not None and model.trial == number and _name(model, artifacts) is not None


def share_model(folder: Path, store: Store, artifacts: Artifacts) -> None:
    """Upload a saved model and record it, if it is that of the best trial and not shared yet.

    Hold the lock of the folder (`export.locked`). The model that it replaces is removed, or its
    own upload where another machine has finished a better trial meanwhile. Raises ArtifactsError
    and StorageError.
    """
    number, best = kept_trial(folder), store.best_trial()
    if best is None or number != best.number or is_shared(number, store, artifacts):
        return
    name = f"{folder.name}/models/trial-{number}-{secrets.token_hex(4)}"
    artifacts.upload(folder, name, last=str(RUN))
    replaced = store.record_model(number, platform.node(), f"{artifacts.url}/{name}")
    if replaced is not None and (old := _name(replaced, artifacts)) is not None:
        artifacts.remove(old)


def _name(model: SavedModel, artifacts: Artifacts) -> str | None:
    """The name of a saved model in the shared place; None where it is elsewhere."""
    name = model.folder.removeprefix(f"{artifacts.url}/")
    return None if name == model.folder else name
