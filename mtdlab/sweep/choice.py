"""The choice of nuisance values: what a sweep does when all trials of the choice have ended."""

from dataclasses import replace

from mtdlab.analysis.statistics.tuning import choose_values
from mtdlab.errors import MtdlabError
from mtdlab.store import load_frames
from mtdlab.trial.study import OpenStudy


def choose_nuisance(study: OpenStudy) -> None:
    """Choose the values of nuisance settings, and add the trials that have them.

    Two sweeps compute the same choice from the same trials; one of them records it, in one
    transaction, and both go on with the recorded one. A sweep that dies before the trials are added
    adds them when it is resumed. Raises MtdlabError where a group has no value of which every trial
    is complete, StorageError where the database fails.
    """
    spec, store = study.spec, study.store
    tuning = load_frames(spec.name, study.job.url, curves=False).tuning
    assert tuning is not None
    groups = {trial.configuration.split(".")[0] for trial in spec.tuning_trials()}
    choice = choose_values(tuning)
    if missing := groups - choice.keys():
        some = tuning.trials.loc[tuning.trials["group"].isin(missing), "number"]
        raise MtdlabError(
            f"study {spec.name}: no value of {' and '.join(tuning.names)} can be chosen for "
            f"{len(missing)} of {len(groups)} groups, since trials of every value failed "
            f"(such as trial {some.min()}); `mtdlab show {spec.name} TRIAL` says why, "
            "--retry-failed runs them again"
        )
    recorded = store.record_once("chosen", choice)
    study.job = replace(study.job, spec=replace(spec, chosen=recorded))
    store.add_trials(study.spec.planned_trials(), study.spec.begins_with)
