"""The commands studies and show: what a database holds, a study, or one of its trials."""

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.invocation import ANY_SWEEP, Invocation
from mtdlab.analysis.data.metric import ScoreFormat, as_read, read_scores, write_score
from mtdlab.commands import options as opt
from mtdlab.commands.printing import (
    describe_failures,
    in_fields,
    in_list,
    in_scores,
    metric_fields,
    print_json,
    print_table,
)
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text
from mtdlab.trial.model_folders import kept_trial

if TYPE_CHECKING:
    from mtdlab.analysis.notebook import Study
    from mtdlab.store.progress import StudyOverview
    from mtdlab.store.recorded import RecordedTrial


def studies(storage: opt.Storage = None, as_json: opt.AsJson = False) -> None:
    """List the studies of a database: state, trials, best score, date of the last trial."""
    from mtdlab.store.progress import list_studies
    from mtdlab.store.recorded import planned_names
    from mtdlab.store.urls import storage_url

    url = storage_url(storage)
    overviews, planned = list_studies(url), planned_names(url)
    if as_json:
        print_json(
            {"studies": [study_fields(overview) for overview in overviews], "planned": planned}
        )
        return
    if overviews:
        print_table([_row(overview) for overview in overviews])
        more = in_database(Invocation("show", ("STUDY",)), url)
        print_text(f"best: reported score of the trial that ranks first. More: {more}")
    if planned:
        following = in_database(ANY_SWEEP, url)
        print_text(f"planned, without trials yet: {', '.join(planned)}; next: {following}")
    elif not overviews:
        print_text("no study yet")


def study_fields(study: "StudyOverview") -> dict[str, Any]:
    """A study as it is printed with --json; `last` is when a trial last began or ended."""
    states = ("COMPLETE", "RUNNING", "WAITING", "FAIL", "PRUNED")
    return {
        "study": study.name,
        "state": study.state,
        **metric_fields(study.metric, study.select_by),
        "planned": study.planned,
        **{state.lower(): study.counts.get(state, 0) for state in states},
        "best": best_fields(study),
        "last": study.last and study.last.isoformat(timespec="seconds"),
    }


def best_fields(study: "StudyOverview") -> dict[str, Any] | None:
    """The best trial as it is printed with --json: `select_by_score` ranks it; None without one."""
    from mtdlab.analysis.data.runs import mtd_value

    if (best := study.best) is None:
        return None
    score, ranking = (
        value if value is None else ScoreFormat(name).as_read(value)
        for name, value in ((study.metric, best.score), (study.select_by, best.ranking))
    )
    return {
        "trial": best.number,
        "seed": best.seed,
        "parameters": best.parameters,
        "mtd": mtd_value(best.mtd),
        "select_by_score": ranking,
        "score": score,
    }


def _row(study: "StudyOverview") -> dict[str, Any]:
    failed = study.counts.get("FAIL", 0)
    best, score = study.best, None
    if best is not None and best.score is not None:
        score = write_score(study.metric, best.score)
    return {
        "study": study.name,
        "state": study.state + (f", {failed} failed" if failed and study.best else ""),
        "trials": f"{study.counts.get('COMPLETE', 0)}/{study.planned}",
        "metric": as_read(study.metric),
        "best": score,
        "trial": None if best is None else best.number,
        "last": study.last and f"{study.last:%Y-%m-%d %H:%M}",
    }


def show(
    study: opt.StudyName,
    trial: Annotated[
        int | None, typer.Argument(min=0, metavar="TRIAL", help="Number of a trial.")
    ] = None,
    storage: opt.Storage = None,
    models: opt.Models = opt.MODELS,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Follow the study until its trials have ended: means, running trials, last ends.",
        ),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show a study (state, finding, best trial), or a trial (configuration, scores, error).

    A study: mtdlab show mtd

    A trial of it: mtdlab show mtd 16
    """
    from mtdlab.analysis.data.questions import ANY
    from mtdlab.api.report import load_study
    from mtdlab.store.progress import list_studies
    from mtdlab.store.recorded import find_name, read_recorded, read_trial
    from mtdlab.store.tables import living_state
    from mtdlab.store.urls import mask, storage_url

    url = storage_url(storage)
    if watch:
        if as_json or trial is not None:
            raise MtdlabError("--watch shows a whole study as text: leave out TRIAL and --json")
        from mtdlab.commands.watch import watch_study

        watch_study(study, url)
        return
    model = models / study
    if trial is None:
        frames = load_study(study, url, curves=False)
        overview = next(listed for listed in list_studies(url) if listed.name == study)
        resume = frames.invocation or ANY_SWEEP
        following = list_next(overview, resume, url, is_over=overview.is_over)
        if as_json:
            print_json(_study_fields(frames, overview, model, url) | {"next": following})
            return
        done = f"{overview.counts.get('COMPLETE', 0)} of {overview.planned} trials done"
        print_text(f"study {study} in {mask(url)}: {overview.state}, {done}")
        rows = _describe_study(frames, overview, model, url)
        print_text(in_fields([*rows, *(("next", line) for line in following)]))
        return
    recorded, of_study = read_trial(url, study, trial), read_recorded(url, study)
    metric, called = of_study.metric, find_name(of_study, recorded.row)
    if as_json:
        fields = _trial_fields(study, metric, recorded, model, url)
        print_json(fields | ({ANY: called} if called else {}))
    else:
        ended = living_state(recorded.row)
        state = "failed" if ended == "FAIL" else ended.lower()
        print_text(f"trial {trial} of study {study} in {mask(url)}: {state}")
        rows = [(ANY, called), *_describe_trial(study, metric, recorded, model, url)]
        print_text(in_fields(rows))
        if recorded.row.traceback:
            print_text(f"\n{recorded.row.traceback.rstrip()}")


def _study_fields(frames: "Study", study: "StudyOverview", model: Path, url: str) -> dict[str, Any]:
    from mtdlab.analysis.questions.study import list_fields
    from mtdlab.analysis.report.context import StudyContext
    from mtdlab.analysis.report.study_facts import trial_states
    from mtdlab.analysis.report.topics.baseline import compare_baseline
    from mtdlab.commands.report import baseline_fields

    context = StudyContext(frames)
    failed = trial_states(frames).query("state == 'FAIL'").rename(columns={"number": "trial"})
    return study_fields(study) | {
        "description": study.description,
        "varied": _varied_values(frames),
        "seeds": sorted({int(seed) for seed in frames.trials["seed"]}),
        "verdict": list_fields(context),
        "baseline": baseline_fields(compare_baseline(context), context.write),
        "failed": failed[["trial", "reason", "reason_code"]].to_dict("records"),
        "model": find_model(study, model, url)[0],
    }


def _describe_study(
    frames: "Study", study: "StudyOverview", model: Path, url: str
) -> list[tuple[str, str]]:
    from mtdlab.analysis.report.context import StudyContext
    from mtdlab.analysis.report.study_facts import trial_states
    from mtdlab.analysis.report.summary import list_rows
    from mtdlab.analysis.statistics.best_trial import compute_choices

    failed = trial_states(frames).query("state == 'FAIL'")
    best = describe_best(study)
    if len(choices := compute_choices(frames)) and choices["number"][0] not in {
        *frames.trials["number"]
    }:
        scores = {choices["chosen_by"][0]: choices["value"][0], study.metric: choices["score"][0]}
        best = f"{choices['number'][0]} of the baseline, {in_scores(scores)}; of the search {best}"
    return [
        *list_rows(StudyContext(frames)).items(),
        ("best trial", best),
        ("model", find_model(study, model, url)[1]),
        *(("failed", failure) for failure in describe_failures(failed["number"], failed["reason"])),
        ("last trial", f"{study.last:%Y-%m-%d %H:%M}" if study.last else ""),
    ]


def describe_best(study: "StudyOverview") -> str:
    """The best trial with its MTD and its scores; empty without one."""
    from mtdlab.analysis.data.runs import format_mtd

    if (best := study.best) is None:
        return ""
    mtd = "" if best.mtd is None else f" (MTD {format_mtd(best.mtd)})"
    scores = {study.select_by: best.ranking, study.metric: best.score}
    known = {name: score for name, score in scores.items() if score is not None}
    return f"{best.number}{mtd}, {in_scores(known)}"


def find_model(study: "StudyOverview", folder: Path, url: str) -> tuple[str | None, str]:
    """The folder of the best trial's model, here or shared, and that, or where else it is, as text.

    None where it is in neither; the text is empty where it is not known to be anywhere.
    """
    number = None if study.best is None else study.best.number
    if number is not None and kept_trial(folder, url) == number:
        return str(folder), str(folder)
    # of another trial where that was saved last
    if (saved := study.model) is None or saved.trial != number:
        return None, ""
    if saved.is_shared:
        return saved.path, saved.path
    if (saved.host, saved.folder) == (platform.node(), str(folder.absolute())):
        return None, f"no longer in {folder}, where it was saved"
    return None, f"not in {folder} on this machine: {saved}"


def list_next(study: "StudyOverview", resume: Invocation, url: str, *, is_over: bool) -> list[str]:
    """The commands to go on with: resume a study; else run failed trials again, read its page.

    Trials that would fail again are not run again; where all did, the page lists the reasons.
    """
    if not is_over:
        return [in_database(resume, url)]
    may_mend = resume.may_mend(study.reason_codes)
    retry = [in_database(resume.retrying(), url)] if may_mend else []
    has_page = study.best is not None or not retry
    return [*retry, report_command(study.name, url)] if has_page else retry


def report_command(study: str, url: str) -> str:
    """The command that writes a study's page from this database."""
    return in_database(Invocation("report", options={"study": (study,)}), url)


def in_database(command: Invocation, url: str) -> str:
    """A command, which names this database where it would use another one."""
    from mtdlab.store.urls import mask, storage_url

    used = storage_url(command.value("storage") or None)
    return str(command if mask(used) == mask(url) else command.giving("storage", mask(url)))


def _varied_values(frames: "Study") -> dict[str, list[Any]]:
    """The settings that differ between the trials, with their values in order."""
    from mtdlab.analysis.data.runs import is_missing, varied_settings

    trials, varied = frames.trials, {}
    for name in varied_settings(trials, frames.settings):
        # whole numbers are fractions where a method lacks the setting
        known = trials[name][~is_missing(trials[name])].convert_dtypes().unique().tolist()
        # a changed database may hold numbers and texts
        varied[name] = sorted(known, key=lambda value: (isinstance(value, str), value))
    return varied


def _trial_fields(
    study: str, metric: str, trial: "RecordedTrial", model: Path, url: str
) -> dict[str, Any]:
    from mtdlab.analysis.data.runs import mtd_value
    from mtdlab.store.tables import living_state

    row, write = trial.row, ScoreFormat(metric)
    return {
        "study": study,
        "trial": row.number,
        "role": row.role,
        "state": living_state(row).lower(),
        "seed": row.seed,
        "parameters": dict(trial.parameters),
        "mtd": mtd_value(row.mtd),
        **{
            name: score if score is None else write.as_read(score)
            for name, score in (("score", row.score), ("score_before", row.score_before))
        },
        "scores": read_scores(trial.scores),
        "best_step": row.best_step,
        "seconds": row.wall_seconds,
        "peak_memory": row.peak_memory,
        "reason": row.reason or None,
        "reason_code": row.reason_code or None,
        "note": row.note or None,
        "traceback": row.traceback or None,
        "model": str(model) if kept_trial(model, url) == row.number else None,
        "settings": _other_settings(trial) | dict(trial.parameters),
        "environment": trial.environment.sentences(),
    }


def _describe_trial(
    study: str, metric: str, trial: "RecordedTrial", model: Path, url: str
) -> list[tuple[str, str]]:
    from mtdlab.analysis.data.runs import format_mtd
    from mtdlab.settings.roles import SEARCH

    row, kept = trial.row, kept_trial(model, url)
    where = str(model) if kept == row.number else ""
    if kept not in (None, row.number):
        where = f"not kept; {model} is the model of trial {kept}"
    before = "" if row.score_before is None else write_score(metric, row.score_before)
    again = Invocation("reproduce", (study, str(row.number)))
    return [
        ("reason", row.reason),
        ("varied" if row.role == SEARCH else row.role, in_list(trial.parameters)),
        ("seed", str(row.seed)),
        ("MTD", "" if row.mtd is None else f"{format_mtd(row.mtd)} steps"),
        ("scores", in_scores(trial.scores)),
        ("untrained", before and f"{before}, the study's metric before training"),
        ("best step", f"{row.best_step} of {row.steps}" if row.best_step else ""),
        ("time", format_seconds(row.wall_seconds) if row.wall_seconds else ""),
        ("peak memory", f"{row.peak_memory / 1e6:,.0f} MB" if row.peak_memory else ""),
        ("model", "" if row.is_of_program else where),
        ("note", row.note),
        ("settings", in_list(_other_settings(trial))),
        *trial.environment.sentences().items(),
        ("run again", "" if row.is_of_program else in_database(again, url)),
    ]


def _other_settings(trial: "RecordedTrial") -> dict[str, Any]:
    return {name: value for name, value in trial.settings.items() if name not in trial.parameters}
