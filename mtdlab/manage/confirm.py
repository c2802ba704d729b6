"""Confirmation of a study: its best configuration and the runner-up, with fresh seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from analysis.data.defaults import CONFIRMATION_SUFFIX
from analysis.data.frames import StudyFrames
from analysis.data.runs import format_mtd, traced_runs, varied_settings
from analysis.inference.looks import judged_trials
from analysis.inference.pairing import Difference
from analysis.report.context import StudyContext
from analysis.statistics.contrasts import choose_candidates, compare_candidates
from mtdlab.config import StudySpec
from mtdlab.config.reader import parse_study
from mtdlab.errors import NothingToReport
from mtdlab.programs import Program
from mtdlab.settings import RunSettings
from mtdlab.store import load_frames
from mtdlab.store.recorded import read_recorded, read_states, read_trial
from mtdlab.store.tables import StudyRow
from mtdlab.trial.recorded_study import refuse_other_modules, refuse_other_objective
from mtdlab.user_code import UserModule


@dataclass(frozen=True)
class Confirmation:
    """What is confirmed: two levels of MTD, and their difference in the study that chose them."""

    spec: StudySpec
    best: float
    runner_up: float
    original: Difference


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

    Raises NothingToReport where the study is missing or has no two levels to compare, MtdlabError
    where its methods come from other imported modules or another program trained it, StorageError
    where the database fails.
    """
    frames = load_frames(study, url, curves=False)
    original = read_recorded(url, study)
    refuse_other_objective(study, original.objective, program.reference if program else "")
    name = f"{study}{CONFIRMATION_SUFFIX}"
    try:
        begun = read_recorded(url, name)
    except NothingToReport:
        text = _write(frames, original, url, seeds)
    else:
        text = _with_seeds(begun.file_text, name, seeds)
    spec = parse_study(name, text, modules, original.file_folder, program)
    refuse_other_modules(study, original, spec)
    best, runner_up = (settings.mtd or 0.0 for settings in _pair(spec))
    return Confirmation(spec, best, runner_up, _difference(frames, spec))


def remeasured(confirmation: Confirmation, url: str) -> Difference:
    """The difference over the fresh seeds that are complete."""
    return _difference(load_frames(confirmation.spec.name, url, curves=False), confirmation.spec)


def _write(frames: StudyFrames, recorded: StudyRow, url: str, seeds: int) -> str:
    """The file of a confirmation of the study that is recorded."""
    context = StudyContext(frames)
    trials, _ = judged_trials(frames, context.curve_trials)
    try:
        best, other = choose_candidates(
            trials, frames.settings, context.verdict, beyond_run=frames.beyond_run
        )
    except ValueError as error:
        raise NothingToReport(f"study {frames.name}: {error}") from None
    first, second = (_settings(recorded, url, each.number) for each in (best, other))
    varied = [setting for setting in first if first[setting] != second[setting]]
    largest = max(seed for _, seed in read_states(url, frames.name))
    start = 1000 * (largest // 1000 + 1)
    values = {
        "study": f"{frames.name}{CONFIRMATION_SUFFIX}",
        "description": f"Confirmation of study {frames.name} with fresh seeds: its best level, "
        f"MTD {format_mtd(best.mtd)}, against its runner-up, MTD {format_mtd(other.mtd)}.",
        "metric": recorded.metric,
        "trainer": {key: value for key, value in first.items() if key not in varied},
        "search": {key: [first[key], second[key]] for key in varied},
        "skip": _mixed(varied, first, second),
        "seeds": list(range(start, start + seeds)),
        "verdict": {"margin": frames.margin, "alpha": frames.alpha},
        "beyond_run": frames.beyond_run,
    }
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _settings(recorded: StudyRow, url: str, number: int) -> dict[str, Any]:
    """A trial's settings, at the precision that it ran with."""
    settings = dict(read_trial(url, recorded.name, number).settings)
    if recorded.objective:
        settings.pop("method")
    if settings.get("precision") == "auto" and recorded.precision:
        settings["precision"] = recorded.precision
    return settings


def _mixed(
    varied: Sequence[str], first: Mapping[str, Any], second: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The points of the grid of both configurations' values that are neither of them."""
    lead, *others = varied
    return [
        {lead: one[lead], name: two[name]}
        for name in others
        for one, two in ((first, second), (second, first))
    ]


def _with_seeds(text: str, name: str, seeds: int) -> str:
    """The file of a confirmation that is begun, with more seeds if more are asked for."""
    values = yaml.safe_load(text)
    # the study may have been renamed since
    values["study"] = name
    first, count = values["seeds"][0], max(seeds, len(values["seeds"]))
    values["seeds"] = list(range(first, first + count))
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _pair(spec: StudySpec) -> list[RunSettings]:
    """The settings of the best configuration, then of the runner-up, with the first seed."""
    first = [trial for trial in spec.search_trials() if trial.seed == spec.seeds[0]]
    return [spec.settings(trial.parameters or {}, trial.seed) for trial in first]


def _difference(frames: StudyFrames, spec: StudySpec) -> Difference:
    """The difference of a confirmation's two configurations over the seeds of a study."""
    runs = traced_runs(frames.trials)
    varied = varied_settings(runs, frames.settings)
    numbers = []
    for settings in _pair(spec):
        wanted, same = settings.model_dump(), runs
        for name in varied:
            if name in wanted:
                same = same[same[name] == wanted[name]]
        if not len(same):
            raise NothingToReport(
                f"study {frames.name}: no complete run at MTD {format_mtd(settings.mtd or 0.0)}"
            )
        numbers.append(int(same["number"].min()))
    best, other = numbers
    return compare_candidates(frames.trials, frames.settings, best, other, frames.items)
