"""The command reproduce."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.analysis.data.metric import as_read, read_scores
from mtdlab.api.given import Given
from mtdlab.commands import options as opt
from mtdlab.commands.printing import in_fields, in_list, print_json, print_table
from mtdlab.terminal import print_text, progress_bar

if TYPE_CHECKING:
    from mtdlab.evaluation.suite import Evaluation
    from mtdlab.manage.reproduce import Repeatable, Reproduction


def reproduce(
    study: opt.StudyName,
    trial: Annotated[int, typer.Argument(min=0, metavar="TRIAL", help="Number of a trial.")],
    storage: opt.Storage = None,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    out: opt.ModelFolder = None,
    as_json: opt.AsJson = False,
) -> None:
    """Run a trial again as it is recorded, and compare the scores. The database is not changed.

    With --out it keeps the model, such as that of a recommended configuration, of which the sweep
    kept none: it keeps the model of the best trial alone.
    """
    from mtdlab.manage.reproduce import find_repeatable, run_again
    from mtdlab.store.urls import storage_url
    from mtdlab.training.export import check_model_folder
    from mtdlab.trial.signals import stop_on_signals

    if out is not None:
        # before the training, not after it
        check_model_folder(out)
    modules, _ = Given(import_=import_, evaluator=evaluator).code()
    repeatable = find_repeatable(study, trial, storage_url(storage), modules)
    with stop_on_signals() as stop, progress_bar(transient=True) as bar:
        task = bar.add_task("steps", total=repeatable.settings.steps)

        def advance(step: int, _: "Evaluation | None") -> None:
            bar.update(task, completed=step)
            if stop.requested():
                raise KeyboardInterrupt

        reproduction = run_again(repeatable, advance, out)
    if as_json:
        print_json(_fields(repeatable, reproduction))
        return
    print_text(f"trial {trial} of study {study}, run again")
    varied, seed = in_list(reproduction.trial.parameters), str(reproduction.trial.row.seed)
    print_text(in_fields([("varied", varied), ("seed", seed)]))
    print_table(_rows(reproduction))
    for sentence in _sentences(reproduction):
        print_text(sentence)


def _rows(reproduction: "Reproduction") -> list[dict[str, Any]]:
    before, after, scores = map(
        read_scores, (reproduction.trial.scores, reproduction.differences, reproduction.scores)
    )
    return [
        {
            "score": name,
            "recorded": f"{before[name]:.4f}" if name in before else None,
            "reproduced": f"{score:.4f}",
            "difference": f"{after[name]:+.4g}" if after.get(name) else after.get(name),
        }
        for name, score in scores.items()
    ]


def _sentences(reproduction: "Reproduction") -> list[str]:
    trial = reproduction.trial
    if trial.row.state != "COMPLETE":
        return [f"The recorded trial has no score ({trial.row.reason}), so nothing is compared."]
    if reproduction.identical:
        steps = 0 if trial.loss is None else len(trial.loss)
        lines = [f"Bit-identical: all scores, and the loss of all {steps} steps."]
    else:
        since = reproduction.first_step
        lines = [f"Not bit-identical{f'; the loss differs from step {since} on' if since else ''}."]
    lines += [
        f"warning: different {name}: recorded {before or 'none'}; now {now or 'none'}"
        for name, (before, now) in reproduction.environment.items()
    ]
    if not reproduction.identical and not reproduction.environment:
        lines.append("The recorded versions, device, threads and processor are those of this run.")
    return lines


def _fields(repeatable: "Repeatable", reproduction: "Reproduction") -> dict[str, Any]:
    """The comparison as it is printed with --json; differences in points, second run first."""
    return {
        "study": repeatable.study,
        "trial": reproduction.trial.row.number,
        "metric": as_read(repeatable.metric),
        "identical": reproduction.identical,
        "recorded": read_scores(reproduction.trial.scores),
        "reproduced": read_scores(reproduction.scores),
        "difference": read_scores(reproduction.differences),
        "first_different_step": reproduction.first_step,
        "environment": {
            name: {"recorded": before, "now": now}
            for name, (before, now) in reproduction.environment.items()
        },
        "seconds": reproduction.seconds,
    }
