"""The summary that a sweep prints at its end: best trial, model, failures, next command."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.api.plan import mtd_value
from mtdlab.commands.printing import name_trials, print_json, wrap_text
from mtdlab.commands.report import baseline_fields
from mtdlab.config import StudySpec
from mtdlab.store.records import as_record
from mtdlab.store.urls import mask, storage_url
from mtdlab.sweep.progress import describe_look
from mtdlab.sweep.run import SweepResult
from mtdlab.terminal import print_text
from mtdlab.trial.model_folders import kept_trial

if TYPE_CHECKING:
    from mtdlab.analysis.report.topics.baseline import Beside

SHOWN_TRIALS = 10
"""The most failed trials whose numbers are printed for one reason; `--json` has all."""


def print_result(
    result: SweepResult, spec: StudySpec, models: Path, invocation: Invocation, *, as_json: bool
) -> int:
    """Print the end of a sweep or worker, as lines or as JSON; returns its exit code."""
    beside = _find_baseline(result) if spec.baseline is not None else None
    if as_json:
        own = {} if beside is None else {"baseline": baseline_fields(beside)}
        print_json(summary_fields(result, models, invocation) | own)
        return result.exit_code
    if beside is not None:
        print_text(wrap_text(beside.sentence))
    print_text("\n".join(summary_lines(result, models, invocation)))
    if result.look:
        print_text(describe_look(result.look, len(spec.looks)))
    return result.exit_code


def _find_baseline(result: SweepResult) -> "Beside | None":
    """The baseline compared with the configuration that the page will recommend."""
    # SciPy and pandas take a second, which other studies do without
    from mtdlab.analysis.report.summary import find_baseline
    from mtdlab.store.frames import load_frames

    return find_baseline(load_frames(result.study, result.storage, curves=False))


def summary_fields(result: SweepResult, models: Path, invocation: Invocation) -> dict[str, Any]:
    """The end of a sweep as fields.

    Args:
        models: the folder of the studies' models.
        invocation: the command of the sweep, which `next` repeats where trials are left.
    """
    best = result.best
    fields = {
        "study": result.study,
        "storage": mask(result.storage),
        "metric": result.metric,
        "select_by": result.select_by,
        # value, as in Optuna, and select_by_score rank it; score is reported
        "best": best
        and {
            "trial": best.number,
            "seed": best.seed,
            "parameters": best.parameters,
            "mtd": mtd_value(best.mtd),
            "value": best.ranking,
            "select_by_score": best.ranking,
            "score": best.score,
        },
        "model": _model(result, models),
        "planned": result.planned,
        "ran": result.ran,
        "seconds": round(result.seconds, 1),
        "trials": {state.lower(): n for state, n in result.counts.items()},
        "failures": [
            {"trial": row.number, "seed": row.seed, "parameters": row.parameters}
            | {"reason": row.reason, "reason_code": row.reason_code}
            for row in result.failures
        ],
        "too_many_failed": result.too_many_failed,
        "next": _next(result, invocation),
    }
    if (look := result.look) is None:
        return fields
    described = as_record(look) | {"trials": len(look.trials), "added": len(look.added)}
    del described["study_id"]
    return fields | {"look": described}


def summary_lines(result: SweepResult, models: Path, invocation: Invocation) -> list[str]:
    """The end of a sweep in a few lines; the arguments are those of `summary_fields`."""
    done = result.counts.get("COMPLETE", 0)
    others = [f"{n} {state.lower()}" for state, n in result.counts.items() if state != "COMPLETE"]
    whole = "complete, " if done == result.planned else ""
    lines = [
        f"study {result.study} in {mask(result.storage)}: {whole}{done} of {result.planned} "
        + (f"trials done ({', '.join(others)})" if others else "trials done")
        + f"; {result.ran} run now in {format_seconds(result.seconds)}"
    ]
    if best := result.best:
        mtd = "" if best.mtd is None else f" (MTD {format_mtd(best.mtd)})"
        scores = {result.select_by: best.ranking, result.metric: best.score}
        listed = ", ".join(f"{name} {score:.2f}" for name, score in scores.items() if score)
        lines.append(f"best trial by {result.select_by}: {best.number}{mtd}, {listed}")
        if result.keeps_models:
            reason = f"another machine ran trial {best.number}, or it could not be saved"
            if result.model is not None and result.model.trial == best.number:
                reason = str(result.model)
            absent = f"not in {models / result.study} on this machine: {reason}"
            lines.append(f"model: {_model(result, models) or absent}")
    reasons: dict[str, list[int]] = {}
    for row in result.failures:
        reasons.setdefault(row.reason, []).append(row.number)
    for reason, numbers in reasons.items():
        lines.append(wrap_text(f"failed: {name_trials(numbers, SHOWN_TRIALS)}: {reason}"))
    if result.too_many_failed:
        lines.append(f"ended by --max-failed: {len(result.failures)} trials have failed")
    return lines + [f"next: {following}" for following in _next(result, invocation)]


def _model(result: SweepResult, models: Path) -> str | None:
    """The folder of the best trial's model, here or shared; None where it is in neither."""
    folder, saved = models / result.study, result.model
    if (best := result.best) is None:
        return None
    if kept_trial(folder) == best.number:
        return str(folder)
    if saved is not None and saved.is_shared and saved.trial == best.number:
        return saved.path
    return None


def _next(result: SweepResult, invocation: Invocation) -> list[str]:
    """The commands to go on with: resume, or run failed trials again; report."""
    if result.exit_code > 128:
        return [str(invocation)]
    retry = [str(invocation.adding("retry-failed"))] if result.failures else []
    if result.best is None:
        return retry
    report = Invocation("report", options={"study": (result.study,)})
    if result.storage != storage_url(None):
        report = report.adding("storage", mask(result.storage))
    return [*retry, str(report)]
