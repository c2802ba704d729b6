"""Looks at the verdict: what a sweep does when all planned trials of a study have ended."""

from collections.abc import Collection, Sequence

from mtdlab.analysis.inference.looks import boundaries_at, judge_look
from mtdlab.config import PlannedTrial, StudySpec
from mtdlab.settings.roles import BASELINE
from mtdlab.store import Look, Store, load_frames
from mtdlab.store.recorded import read_configurations
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
    study.store.record_look(look, _with_baseline(study.spec, study.store, look.added))
    return True


def _compute(study: OpenStudy, last: Look | None) -> Look:
    """The look after `last`, computed from the trials that are recorded now."""
    spec = study.spec
    index = last.look if last else 0
    bounds = boundaries_at(spec.looks, spec.alpha)
    frames = load_frames(spec.name, study.job.url, curves=False)
    nominal, is_last = float(bounds.nominal[index]), index == len(spec.looks) - 1
    judged = judge_look(frames, alpha=nominal, is_last=is_last)
    complete = frames.trials.loc[frames.trials["state"] == "COMPLETE", "number"]
    goes_on = judged.decision == "continue"
    return Look(
        look=index + 1,
        seeds=spec.looks[index],
        trials=tuple(int(number) for number in complete),
        alpha=nominal,
        spent=float(bounds.cumulative[index]),
        p_value=judged.p_value,
        verdict=judged.verdict,
        decision=judged.decision,
        added=_added(study, judged.leading, index) if goes_on else (),
    )


def _with_baseline(
    spec: StudySpec, store: Store, added: Sequence[PlannedTrial]
) -> dict[int, PlannedTrial]:
    """The trials that a look adds and the baseline with their seeds, by place in the study."""
    known, seeds = {trial.key for trial in added}, {trial.seed for trial in added}
    planned = store.planned()
    return {
        place: trial
        for place, trial in enumerate(spec.planned_trials())
        if trial.key in known
        or (trial.role == BASELINE and trial.seed in seeds and trial.key not in planned)
    }


def _added(study: OpenStudy, leading: Collection[int], index: int) -> tuple[PlannedTrial, ...]:
    """The trials up to the next look, in the study's order.

    All seeds of that look for the configurations of the leading trials, given by their numbers;
    before the last look for all configurations.
    """
    spec = study.spec
    seeds = set(spec.seeds[: spec.looks[index + 1]])
    planned = study.store.planned()
    new = [
        trial for trial in spec.search_trials() if trial.seed in seeds and trial.key not in planned
    ]
    if index + 2 == len(spec.looks):
        return tuple(new)
    # what the verdict leaves out gets its seeds at the last look
    known = read_configurations(study.job.url, spec.name)
    first = {known[number] for number in leading}
    return tuple(trial for trial in new if trial.configuration in first)
