"""The command plan: a study's configurations, power and looks, and an estimate of its cost."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.commands.options import (
    AsJson,
    Imports,
    Jobs,
    JobsPerGpu,
    Overrides,
    Profile,
    Storage,
    StudyFile,
    import_named,
)
from mtdlab.commands.printing import print_json, print_table
from mtdlab.errors import MtdlabError, TrialError, one_line
from mtdlab.sweep.finished import clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mtdlab.config import StudySpec

MAIN_SETTINGS = ("ema_decay", "queue_size", "batch_size", "initial_queue_size")
"""Settings that the table shows whether they are searched or not: those behind the MTD."""


def plan(
    file: StudyFile,
    profile: Profile = None,
    set_: Overrides = None,
    import_: Imports = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Time a few steps to estimate the cost on this machine."
        ),
    ] = True,
    jobs: Jobs = None,
    jobs_per_gpu: JobsPerGpu = 1,
    effect: Annotated[
        float, typer.Option(min=0.01, help="Points of the peak or slope that has to be found.")
    ] = 2.0,
    sd: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            show_default=False,
            help="Residual standard deviation of a run. Default: that of the study's runs, or 1.5.",
        ),
    ] = None,
    storage: Storage = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record/--no-record", help="Record what the verdict is judged by in the database."
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show a study's configurations, the seeds that it needs, its looks, and estimate its cost.

    Records margin, alpha, looks and metric with a hash, before the first trial.
    """
    from mtdlab.commands.plan_design import describe_design, find_design
    from mtdlab.config import read_study

    spec = read_study(file, set_ or [], profile, import_named(import_, file))
    rows = planned(spec)
    trials = len(spec.units())
    design = find_design(spec, storage, effect=effect, sd=sd, record=record)
    if as_json:
        found = {"estimate": _costs(spec, jobs, jobs_per_gpu)} if measure else {}
        notes = {"warnings": warn_of_design(rows)}
        print_json(
            {"study": spec.name, "trials": trials, "settings": rows} | notes | design | found
        )
        return
    if rows:
        print_table(rows)
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) > 1 else ''}"
    what = f"{len(rows)} configurations" if rows else f"{spec.trials} drawn by {spec.sampler}"
    most = "at most " if spec.until else ""
    print(f"study {spec.name}: {what} x {seeds} = {most}{trials} trials", flush=True)
    print("\n".join(describe_design(design)), flush=True)
    for warning in warn_of_design(rows):
        print(f"warning {warning}")
    if measure:
        print("\n".join(_cost_lines(_costs(spec, jobs, jobs_per_gpu))))


def planned(spec: "StudySpec") -> list[dict[str, Any]]:
    """A row per configuration, by MTD: its main settings and those that are searched.

    A setting that the configuration's method lacks is None, and so is the MTD of a method without
    one. Empty for a sampled study, whose configurations are drawn while it runs.
    """
    first = [unit for unit in spec.units() if unit.seed == spec.seeds[0]]
    rows = []
    for unit in first:
        if unit.parameters is None:
            return []
        settings = spec.settings(unit.parameters, unit.seed)
        names = dict.fromkeys((*MAIN_SETTINGS, *spec.search))
        row = {name: getattr(settings, name, None) for name in names if name in spec.known}
        rows.append({"mtd": None if settings.mtd is None else round(settings.mtd, 3)} | row)
    return sorted(rows, key=lambda row: (row["mtd"] is None, row["mtd"]))


def warn_of_design(rows: "Sequence[Mapping[str, Any]]") -> list[str]:
    """What the planned configurations confound with MTD. rows  as from `planned`."""
    from analysis.confounding import describe_confounding

    traced = [row for row in rows if row["mtd"] is not None]
    decays = [row["ema_decay"] for row in traced]
    ratios = [row["queue_size"] / row["batch_size"] for row in traced]
    text = describe_confounding(decays, ratios)
    return [text] if text else []


def _costs(spec: "StudySpec", jobs: int | None, jobs_per_gpu: int) -> dict[str, Any]:
    """The fields of the estimate; only `reason` where it failed."""
    from mtdlab.cost.estimate import estimate

    try:
        return asdict(estimate(spec, jobs, jobs_per_gpu))
    except (MtdlabError, TrialError) as error:
        return {"reason": str(error)}
    except Exception as error:
        # out of memory, a killed worker, a GPU error: the configurations are shown nevertheless
        return {"reason": one_line(error)[:200]}


def _cost_lines(found: dict[str, Any]) -> list[str]:
    """Time, memory and disk, a line each; or why there is no estimate."""
    from rich.filesize import decimal

    if "reason" in found:
        return [f"no estimate: {found['reason']}"]
    workers = f"{found['workers']} worker{'s' if found['workers'] > 1 else ''}"
    shortest, longest = map(clock, found["trial"])
    duration = shortest if shortest == longest else f"{shortest} to {longest}"
    return [
        f"time    about {clock(found['seconds'])}: trials of {duration} on {workers} "
        f"with {found['threads']} thread{'s' if found['threads'] > 1 else ''} each, "
        f"after {clock(found['start'])} to start",
        f"memory  up to {decimal(found['memory'])}: {workers} of {decimal(found['worker_memory'])}",
        f"disk    {decimal(found['database'])} of database, {decimal(found['model'])} for the best "
        "model",
        f"basis   {found['measured']} of {found['kinds']} kinds of step were timed on this machine",
    ]
