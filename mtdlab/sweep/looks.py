"""What a sweep does when no trial waits: it chooses nuisance values, or looks at the verdict."""

from collections.abc import Collection
from dataclasses import replace

from mtdlab.analysis.inference.looks import boundaries_at
from mtdlab.analysis.questions.study import judge_look
from mtdlab.analysis.statistics.nuisance import choose_nuisance_values
from mtdlab.errors import MtdlabError
from mtdlab.settings.roles import BASELINE
from mtdlab.store.frames import load_frames
from mtdlab.store.recorded import read_planned
from mtdlab.store.tables import LookRow
from mtdlab.trial.study import OpenStudy


def take_look(study: OpenStudy) -> bool:
    """Take the next look when all planned trials have ended; False if the last has ended the study.

    It may add trials. Two sweeps compute the same look from the same trials; one of them records
    it. May raise StorageError.
    """
    last = study.store.last_look()
    if last is not None and last.decision != "continue":
        return False
    look = _compute(study, last)
    known, seeds = {tuple(key) for key in look.added}, {seed for _, seed in look.added}
    planned = read_planned(study.job.url, study.spec.name)
    added = {
        place: trial
        for place, trial in enumerate(study.spec.planned_trials())
        if trial.key in known
        or (
            trial.role == BASELINE
            and trial.seed in seeds
            and trial.key not in planned
            and study.spec.is_chosen(trial)
        )
    }
    study.store.record_look(look, added)
    return True


def _compute(study: OpenStudy, last: LookRow | None) -> LookRow:
    """The look after `last`, computed from the trials that are recorded now."""
    spec = study.spec
    index = last.look if last else 0
    bounds = boundaries_at(spec.looks, spec.alpha)
    frames = load_frames(spec.name, study.job.url, curves=False)
    nominal, is_last = float(bounds.nominal[index]), index == len(spec.looks) - 1
    judged = judge_look(frames, alpha=nominal, is_last=is_last)
    complete = frames.trials.loc[frames.trials["state"] == "COMPLETE", "number"]
    goes_on = judged.decision == "continue"
    return LookRow(
        look=index + 1,
        seeds=spec.looks[index],
        trials=complete.tolist(),
        alpha=nominal,
        spent=float(bounds.cumulative[index]),
        p_value=judged.p_value,
        verdict=judged.verdict,
        decision=judged.decision,
        added=_added(study, judged.leading, index) if goes_on else [],
    )


def _added(study: OpenStudy, leading: Collection[int], index: int) -> list[tuple[str, int]]:
    """The trials up to the next look, by configuration and seed, in the study's order.

    All seeds of that look for the configurations of the leading trials, given by their numbers;
    before the last look for all configurations.
    """
    spec, planned = study.spec, read_planned(study.job.url, study.spec.name)
    seeds = set(spec.seeds[: spec.looks[index + 1]])
    trials = (one for one in spec.search_trials() if one.seed in seeds and spec.is_chosen(one))
    new = [trial.key for trial in trials if trial.key not in planned]
    if index + 2 == len(spec.looks):
        return new
    # what the verdict leaves out gets its seeds at the last look
    first = {trial.configuration for trial in planned.values() if trial.number in leading}
    return [(configuration, seed) for configuration, seed in new if configuration in first]


def choose_nuisance(study: OpenStudy) -> str:
    """Choose the values of nuisance settings, and add the trials that have them.

    Returns a sentence where no further group gets a choice, of those of which trials of every value
    failed; what has its choice goes on.

    Two sweeps compute the same choice from the same trials; one of them records it, in one
    transaction, and both go on with the recorded one. A sweep that dies before the trials are added
    adds them when it is resumed. Raises MtdlabError where no group has a value of which every trial
    is complete, StorageError where the database fails.
    """
    spec, store = study.spec, study.store
    tuning = load_frames(spec.name, study.job.url, curves=False).tuning
    assert tuning is not None
    choice, groups = choose_nuisance_values(tuning), spec.unchosen_groups
    if not groups & choice.keys():
        some = tuning.trials.loc[tuning.trials["group"].isin(groups), "number"]
        problem = (
            f"study {spec.name}: no value of {' and '.join(tuning.names)} can be chosen for "
            f"{len(groups)} of {tuning.trials['group'].nunique()} groups, since trials of every "
            f"value failed (such as trial {some.min()}); `mtdlab show {spec.name} TRIAL` says why, "
            "--retry-failed runs them again"
        )
        if not choice:
            raise MtdlabError(problem)
        return problem
    recorded = store.record_once("chosen", choice)
    study.job = replace(study.job, spec=replace(spec, nuisance_choice=recorded))
    store.add_trials(study.spec.planned_trials(), study.spec.begins_with)
    return ""
