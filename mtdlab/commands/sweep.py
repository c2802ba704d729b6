"""The command sweep."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.commands.options import (
    AsJson,
    Imports,
    Jobs,
    JobsPerGpu,
    Models,
    Overrides,
    Profile,
    Storage,
    StudyFile,
    import_named,
)
from mtdlab.commands.printing import print_json

if TYPE_CHECKING:
    from mtdlab.store import Look
    from mtdlab.sweep.run import SweepResult


def sweep(
    file: StudyFile,
    storage: Storage = None,
    jobs: Jobs = None,
    jobs_per_gpu: JobsPerGpu = 1,
    models: Models = Path("models"),
    profile: Profile = None,
    set_: Overrides = None,
    import_: Imports = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run or resume a study. Sweeps that run at the same time share its trials."""
    from mtdlab.config import read_study
    from mtdlab.store.database import shown, storage_url
    from mtdlab.sweep.finished import clock, describe_look
    from mtdlab.sweep.run import sweep as run

    spec = read_study(file, set_ or [], profile, import_named(import_, file))
    url = storage_url(storage)
    command = shlex.join(["mtdlab", *sys.argv[1:]])
    result = run(
        spec,
        url,
        models=models,
        jobs=jobs,
        jobs_per_gpu=jobs_per_gpu,
        retry_failed=retry_failed,
        command=command,
    )
    done = result.counts.get("COMPLETE", 0)
    look = _described(result.look)
    if as_json:
        print_json(
            {
                "study": result.study,
                "storage": shown(url),
                "metric": result.metric,
                "select_by": result.select_by,
                "best": _best(result),
                "planned": result.planned,
                "ran": result.ran,
                "seconds": round(result.seconds, 1),
                "trials": {state.lower(): n for state, n in result.counts.items()},
            }
            | ({"look": look} if look else {})
        )
    else:
        others = [
            f"{count} {state.lower()}"
            for state, count in result.counts.items()
            if state != "COMPLETE"
        ]
        whole = "complete: " if done == result.planned else ""
        print(
            f"study {result.study} in {shown(url)} is {whole}{done} of {result.planned} trials "
            + (f"done ({', '.join(others)})" if others else "done")
            + f"; {result.ran} run now in {clock(result.seconds)}"
        )
        if best := _best(result):
            mtd = "" if best["mtd"] is None else f" (mtd {best['mtd']:.2f})"
            scores = {result.select_by: best["select_by_score"], result.metric: best["score"]}
            shown_scores = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
            print(f"best trial by {result.select_by}: {best['trial']}{mtd}, {shown_scores}")
        if result.look:
            print(describe_look(result.look, len(spec.looks)))
    raise typer.Exit(result.exit_code)


def _best(result: "SweepResult") -> dict[str, Any] | None:
    """The best trial with its MTD, the score that ranks it, and the score that is reported."""
    if (best := result.best) is None:
        return None
    scores = {"select_by_score": best.ranking, "score": best.score}
    return {"trial": best.number, "mtd": best.mtd} | scores


def _described(look: "Look | None") -> dict[str, Any]:
    """The last look as fields; none for a study without looks."""
    if look is None:
        return {}
    fields = asdict(look)
    return fields | {"trials": len(look.trials), "added": len(look.added)}
