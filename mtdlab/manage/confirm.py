"""Confirmation of a study: its best configuration and the runner-up, with fresh seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from mtdlab.analysis.data.defaults import CONFIRMATION_SUFFIX
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.metric import as_read, is_negated
from mtdlab.analysis.data.runs import completed_runs, format_mtd, free_settings, varied_settings
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.questions.base import Question
from mtdlab.analysis.questions.study import StudyQuestions
from mtdlab.analysis.statistics.contrasts import Contrast, compare_trials
from mtdlab.analysis.statistics.sufficiency import NEAR
from mtdlab.config.reader import parse_study
from mtdlab.config.study import StudySpec, first_fresh_seed
from mtdlab.errors import NothingToReport
from mtdlab.programs import Program
from mtdlab.settings import RunSettings
from mtdlab.store.frames import load_frames
from mtdlab.store.recorded import read_planned, read_recorded, read_trial, settings_of
from mtdlab.store.tables import StudyRow
from mtdlab.trial.recorded_study import refuse_other_modules, refuse_other_objective
from mtdlab.user_code import UserModule


@dataclass(frozen=True)
class Confirmation:
    """What is confirmed: two configurations, and their difference in the study that chose them.

    `best` and `runner_up` are the MTD in steps of each, None without one; `names` are the two as
    text.
    """

    spec: StudySpec
    best: float | None
    runner_up: float | None
    original: Contrast
    names: tuple[str, str]


def plan_confirmation(
    study: str,
    url: str,
    seeds: int,
    modules: Sequence[UserModule] = (),
    program: Program | None = None,
) -> Confirmation:
    """The study STUDY-confirm: both configurations of `study` with seeds that it did not use.

    The seeds begin at the next multiple of 1,000 above the largest of the study. A confirmation
    that is begun keeps its configurations, also if the study has grown; more seeds extend it.

    Raises NothingToReport where the study is missing or has nothing to compare, MtdlabError
    where its methods come from other imported modules or another program trained it, StorageError
    where the database fails.
    """
    frames = load_frames(study, url, curves=False)
    original = read_recorded(url, study)
    refuse_other_objective(study, original.objective, program.reference if program else "")
    name, question = f"{study}{CONFIRMATION_SUFFIX}", StudyQuestions(frames).question
    try:
        begun = read_recorded(url, name)
    except NothingToReport:
        text = _write(question, original, url, seeds)
    else:
        # the study may have been renamed since
        values = yaml.safe_load(begun.file_text) | {"study": name}
        first, count = values["seeds"][0], max(seeds, len(values["seeds"]))
        text = _as_text(values | {"seeds": list(range(first, first + count))})
    spec = parse_study(name, text, modules, original.file_folder, program)
    refuse_other_modules(study, original.imports, spec.imports)
    points, settings = zip(*_pair(spec), strict=True)
    best, runner_up = (each.mtd for each in settings)
    chosen, other = _name_both(question, (best, runner_up), points)
    return Confirmation(spec, best, runner_up, _difference(frames, spec), (chosen, other))


def remeasured(confirmation: Confirmation, url: str) -> Contrast:
    """The difference over the fresh seeds that are complete."""
    return _difference(load_frames(confirmation.spec.name, url, curves=False), confirmation.spec)


def _write(question: Question, recorded: StudyRow, url: str, seeds: int) -> str:
    """The file of a confirmation of the study that is recorded."""
    frames = question.results.study
    try:
        best, other = question.choose_candidates()
    except ValueError as error:
        raise NothingToReport(f"study {frames.name}: {error}") from None
    first, second = (
        settings_of(read_trial(url, frames.name, int(each["number"])), recorded)
        for each in (best, other)
    )
    # a setting that one of two methods lacks is fixed for the other
    varied = [name for name in first if name in second and first[name] != second[name]]
    shared = {name: value for name, value in (second | first).items() if name not in varied}
    if recorded.objective:
        shared.pop("method")
    chosen = [{name: settings[name] for name in varied} for settings in (first, second)]
    names = _name_both(question, [each["mtd"] for each in (best, other)], chosen)
    if not question.is_over_mtd:
        names = frames.call((int(each["number"]) for each in (best, other)), names)
    what = f"{names[0]} against {names[1]}."
    start = first_fresh_seed(seed for _, seed in read_planned(url, frames.name))
    values = {
        "study": f"{frames.name}{CONFIRMATION_SUFFIX}",
        "description": f"Confirmation of study {frames.name} with fresh seeds: {what}",
        "metric": as_read(recorded.metric),
        **({"direction": "minimize"} if is_negated(recorded.metric) else {}),
        "trainer": shared,
        "search": {key: [first[key], second[key]] for key in varied},
        # the points of the grid of both configurations' values that are neither of them
        "skip": [
            {varied[0]: one[varied[0]], name: two[name]}
            for name in varied[1:]
            for one, two in ((first, second), (second, first))
        ],
        "seeds": list(range(start, start + seeds)),
        "verdict": {"margin": frames.margin, "alpha": frames.alpha},
        "beyond_run": frames.beyond_run,
    }
    return _as_text(values)


def _as_text(values: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)


def _pair(spec: StudySpec) -> list[tuple[dict[str, Any], RunSettings]]:
    """What is searched, and all settings, of the best configuration, then of the runner-up."""
    points, seed = spec.grid_points().values(), spec.seeds[0]
    return [(point, spec.settings(point, seed)) for point in points]


def _name_both(
    question: Question, distances: Sequence[float | None], points: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Two configurations by their MTD where the question is on it and tells them apart by it."""
    low, high = sorted(mtd or 0.0 for mtd in distances)
    if question.is_over_mtd and high > NEAR * low:
        return [f"MTD {format_mtd(mtd or 0.0)}" for mtd in distances]
    return [_name(values, question.results.study) for values in points]


def _name(values: Mapping[str, Any], frames: StudyFrames) -> str:
    """The values that a study chose for a configuration, as text, without what a method implies."""
    chosen = free_settings(completed_runs(frames.trials), frames.settings)
    listed = {name: value for name, value in values.items() if name in chosen}
    return ", ".join(f"{name} {format_value(name, value)}" for name, value in listed.items())


def _difference(frames: StudyFrames, spec: StudySpec) -> Contrast:
    """The difference of a confirmation's two configurations over the seeds of a study."""
    runs = completed_runs(frames.trials)
    varied = varied_settings(runs, frames.settings)
    numbers = []
    for _, settings in _pair(spec):
        wanted, same = settings.model_dump(), runs
        for name in varied:
            if name in wanted:
                same = same[same[name] == wanted[name]]
        if not len(same):
            named = _name(wanted, frames)
            raise NothingToReport(f"study {frames.name}: no complete run with {named}")
        numbers.append(int(same["number"].min()))
    return compare_trials(frames, *numbers)
