"""The command confirm."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.analysis.data.defaults import CONFIRMATION_SEEDS
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.api.given import Given
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, print_table
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.analysis.statistics.contrasts import Contrast


def confirm(
    context: typer.Context,
    study: opt.StudyName,
    seeds: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of fresh seeds.")
    ] = CONFIRMATION_SEEDS,
    storage: opt.Storage = None,
    jobs: opt.Jobs = None,
    jobs_per_gpu: opt.JobsPerGpu = 1,
    models: opt.Models = opt.MODELS,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    objective: opt.Objective = None,
    as_json: opt.AsJson = False,
) -> None:
    """Measure two configurations of a study again with fresh seeds: the best and its runner-up.

    The runner-up is the best level outside the optimal range, or the configuration with the next
    mean. Of a question on differences, and where MTD does not determine the score, the two are
    those of the difference that leads the page. Runs or resumes the study STUDY-confirm in the
    same database.
    """
    from mtdlab.analysis.data.runs import mtd_value
    from mtdlab.manage.confirm import plan_confirmation, remeasured
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.run import Execution, sweep

    url = storage_url(storage)
    code = Given(import_=import_, evaluator=evaluator, objective=objective).code()
    planned = plan_confirmation(study, url, seeds, *code)
    result = sweep(
        planned.spec,
        url,
        Execution(jobs, jobs_per_gpu),
        models=models,
        invocation=opt.invocation_of(context),
    )
    again = remeasured(planned, url) if result.counts.get("COMPLETE") else None
    best, runner_up = planned.names
    write = ScoreFormat(planned.spec.metric, planned.spec.margin)
    if as_json:
        print_json(
            {
                "study": study,
                "confirmation": planned.spec.name,
                "best": best,
                "runner_up": runner_up,
                "best_mtd": mtd_value(planned.best),
                "runner_up_mtd": mtd_value(planned.runner_up),
                "original": _estimate(planned.original, write),
                "remeasured": _estimate(again, write) if again else None,
                "confirmed": again is not None and again.difference.low > 0,
            }
        )
    else:
        rows = [{"": study} | _estimate(planned.original, write)]
        rows += [{"": planned.spec.name} | _estimate(again, write)] if again else []
        print_text(
            f"{best} minus {runner_up}, {write.unit or write.name}, "
            "with 95 % intervals over seeds, and evaluation items where they were recorded"
        )
        print_table(rows)
        if again:
            print_text(_sentence(planned.original, again))
    raise typer.Exit(result.exit_code)


def _estimate(contrast: "Contrast", write: ScoreFormat) -> dict[str, Any]:
    return {"seeds": contrast.seeds, **vars(contrast.difference.as_read(write))}


def _sentence(original: "Contrast", again: "Contrast") -> str:
    shown = "a" if original.difference.low > 0 else "no"
    return (
        f"The study shows {shown} significant difference, the new seeds show "
        f"{'one' if again.difference.low > 0 else 'none'}. "
        "That of the study is too large on average, since it chose both. The evaluation items "
        "chose the two as well: where items differ in which of them they favour, the new "
        "difference is still too large."
    )
