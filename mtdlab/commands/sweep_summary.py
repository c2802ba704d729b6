"""The summary that a sweep prints at its end: best trial, model, failures, next command."""

from pathlib import Path
from typing import Any

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.metric import ScoreFormat, as_read
from mtdlab.commands.printing import describe_failures, metric_fields, print_json, wrap_text
from mtdlab.commands.report import baseline_fields
from mtdlab.commands.show import best_fields, describe_best, find_model, list_next
from mtdlab.config.study import StudySpec
from mtdlab.store.records import as_record
from mtdlab.store.urls import mask
from mtdlab.sweep.progress import describe_look
from mtdlab.sweep.run import SweepResult
from mtdlab.terminal import print_text


def print_result(
    result: SweepResult, spec: StudySpec, models: Path, invocation: Invocation, *, as_json: bool
) -> int:
    """Print the end of a sweep or worker, as lines or as JSON; returns its exit code."""
    baseline = None
    if spec.baseline is not None:
        # SciPy and pandas take a second, which other studies do without
        from mtdlab.analysis.report.context import StudyContext
        from mtdlab.analysis.report.topics.baseline import compare_baseline
        from mtdlab.store.frames import load_frames

        frames = load_frames(result.name, result.storage, curves=False)
        baseline = compare_baseline(StudyContext(frames))
    if as_json:
        fields = summary_fields(result, models, invocation)
        if baseline is not None:
            fields["baseline"] = baseline_fields(baseline, ScoreFormat(spec.metric))
        print_json(fields)
        return result.exit_code
    if baseline is not None:
        print_text(wrap_text(baseline.sentence))
    print_text("\n".join(summary_lines(result, models, invocation)))
    if result.look:
        print_text(describe_look(result.look, len(spec.looks)))
    return result.exit_code


def summary_fields(result: SweepResult, models: Path, invocation: Invocation) -> dict[str, Any]:
    """The end of a sweep as fields; where trials are left, `next` repeats the invocation."""
    fields = {
        "study": result.name,
        "storage": mask(result.storage),
        **metric_fields(result.metric, result.select_by),
        "best": best_fields(result),
        "model": find_model(result, models / result.name, result.storage)[0],
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
        f"study {result.name} in {mask(result.storage)}: {whole}{done} of {result.planned} "
        + (f"trials done ({', '.join(others)})" if others else "trials done")
        + f"; {result.ran} run now in {format_seconds(result.seconds)}"
    ]
    if result.best:
        lines.append(f"best trial by {as_read(result.select_by)}: {describe_best(result)}")
        if result.keeps_models:
            folder = models / result.name
            absent = f"not in {folder}: another machine has it, or it could not be saved"
            lines.append(f"model: {find_model(result, folder, result.storage)[1] or absent}")
    failed = result.failures
    failures = describe_failures([row.number for row in failed], [row.reason for row in failed])
    lines += [wrap_text(f"failed: {failure}") for failure in failures]
    if result.too_many_failed:
        lines.append(f"ended by --max-failed: {len(result.failures)} trials have failed")
    return lines + [f"next: {following}" for following in _next(result, invocation)]


def _next(result: SweepResult, invocation: Invocation) -> list[str]:
    return list_next(result, invocation, result.storage, is_over=result.exit_code <= 128)
